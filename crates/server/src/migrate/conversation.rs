//! MIGRATE's conversation with the target, on a helper thread. The slots of the keys are frozen
//! meanwhile (`docs/design/0006-migrate.md`).

use base::{DbIndex, MonoNs, SeqNo, SlotId};
use command::Error;
use command::error::MigrateTarget;
use command::generic::Parcel;
use command::ops::{Bytes, Migrate};
use driver::ConnId;
use driver::outgoing::{ConnectError, Outgoing};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// MIGRATEs under way at most; further ones wait.
pub const MIGRATIONS_MAX: usize = 16;
/// Requests sent before their replies are read: what they answer fits any socket.
const BATCH_MAX: usize = 128;
/// Bytes of requests that are sent together.
const BATCH_BYTES: usize = 1 << 20;

/// A MIGRATE whose thread is back.
#[derive(Debug)]
pub struct Trip {
    /// Whose command it is.
    pub conn: ConnId,
    /// When it began.
    pub started: MonoNs,
    /// The database the keys are in.
    pub db: DbIndex,
    /// Their frozen slots, ascending.
    pub slots: Vec<SlotId>,
    /// Keys that the target has taken and that are to be removed here.
    pub gone: Vec<Bytes>,
    /// How it ended.
    pub result: Result<(), Error>,
    /// The hold of its reply.
    pub hold: SeqNo,
}

/// Sends the values to the target. Returns the keys that the target has accepted, and how it ended.
/// Blocks as long as the target keeps it waiting.
pub fn send_values(op: &Migrate, parcels: Vec<Parcel>) -> (Vec<Bytes>, Result<(), Error>) {
    let mut taken = Vec::new();
    // Whatever happens here, the session must be answered and the slots thawed.
    let result = catch_unwind(AssertUnwindSafe(|| converse(op, parcels, &mut taken)));
    (taken, result.unwrap_or(Err(Error::MigrateWriting)))
}

fn converse(op: &Migrate, parcels: Vec<Parcel>, taken: &mut Vec<Bytes>) -> Result<(), Error> {
    let timeout = Duration::from_millis(op.timeout_ms);
    let host = std::str::from_utf8(&op.host).map_err(|_| Error::MigrateConnecting)?;
    let port = std::str::from_utf8(&op.port).ok().and_then(|port| port.parse().ok());
    let Some(port) = port else { return Err(Error::MigrateWriting) };
    let mut target = Outgoing::connect(host, port, timeout).map_err(|e| match e {
        ConnectError::Resolve => Error::MigrateConnecting,
        // As Redis: a port where nobody listens shows with the first write.
        ConnectError::Connect(_) => Error::MigrateWriting,
    })?;
    let mut batch = Batch::greeting(op);
    // The first thing the target refused. A greeting that was refused lets no key go.
    let mut refused = None;
    let mut let_in = true;
    let mut parcels = parcels.into_iter().peekable();
    while let Some(parcel) = parcels.next() {
        batch.restore(parcel, op.replace);
        if parcels.peek().is_some() && !batch.is_full() {
            continue;
        }
        target.send(&batch.bytes).map_err(|_| Error::MigrateWriting)?;
        batch.bytes.clear();
        for key in batch.asked.drain(..) {
            let line = target.line().map_err(|_| Error::MigrateReading)?;
            match (line.strip_prefix(b"-"), key) {
                (Some(why), key) => {
                    let_in &= key.is_some();
                    refused.get_or_insert_with(|| MigrateTarget { reply: why.into() }.into());
                }
                (None, Some(key)) if let_in => taken.push(key),
                (None, _) => {}
            }
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Requests that leave together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// For each of them the key that it carries.
    asked: Vec<Option<Bytes>>,
}

impl Batch {
    /// AUTH and SELECT, as the target needs them.
    fn greeting(op: &Migrate) -> Self {
        let mut batch = Self::default();
        if let Some(auth) = &op.auth {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(auth.user.as_deref());
            words.push(&auth.password);
            batch.request(&words);
            batch.asked.push(None);
        }
        if op.db != -1 {
            batch.request(&[b"SELECT", op.db.to_string().as_bytes()]);
            batch.asked.push(None);
        }
        batch
    }

    fn restore(&mut self, parcel: Parcel, replace: bool) {
        let (key, ttl_ms, payload) = parcel.open();
        let ttl = ttl_ms.to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", &key, ttl.as_bytes(), &payload];
        if replace {
            words.push(b"REPLACE");
        }
        self.request(&words);
        self.asked.push(Some(key));
    }

    fn request(&mut self, words: &[&[u8]]) {
        self.bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    fn is_full(&self) -> bool {
        self.asked.len() >= BATCH_MAX || self.bytes.len() >= BATCH_BYTES
    }
}
