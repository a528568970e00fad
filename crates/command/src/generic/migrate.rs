//! MIGRATE: what it is asked for, and what it takes along. The keys' slots are frozen while their
//! values travel; talking to the target is the server's.

use std::ops::Range;

use base::{Blob, DbIndex, UnixMs};
use keyspace::{Captured, Entry, Guard, Parts, ReclaimOnDrop};
use rdb::{Saver, TextDump};
use resp::Args;
use value::{Encoding, Str};

use crate::error::Error;
use crate::ops::{Bytes, Credentials, Migrate, ServerOp};
use crate::parse::{integer, is};
use crate::parts::Stored;
use crate::spec::KeyRuns;

/// The timeout where none or a negative one is given, as recorded.
const TIMEOUT_MS: u64 = 1000;
/// A longer string is written after its slot is released.
const TEXT_MAX: usize = 16 * 1024;

/// The options of MIGRATE.
struct Options {
    copy: bool,
    replace: bool,
    auth: Option<Credentials>,
    /// The arguments that are its keys.
    keys: Range<usize>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        let mut options = Options { copy: false, replace: false, auth: None, keys: 3..4 };
        let mut at = 6;
        while at < args.len() {
            let word = args.get(at);
            let left = args.len() - at - 1;
            if is(word, "COPY") {
                options.copy = true;
            } else if is(word, "REPLACE") {
                options.replace = true;
            } else if is(word, "AUTH") && left >= 1 {
                let password = args.get(at + 1).into();
                options.auth = Some(Credentials { user: None, password });
                at += 1;
            } else if is(word, "AUTH2") && left >= 2 {
                let user = Some(args.get(at + 1).into());
                options.auth = Some(Credentials { user, password: args.get(at + 2).into() });
                at += 2;
            } else if is(word, "KEYS") {
                if !args.get(3).is_empty() {
                    return Err(Error::MigrateKeys);
                }
                options.keys = at + 1..args.len();
                break;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// The keys of MIGRATE.
pub fn migrate_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(Options::parse(args)?.keys))
}

/// The keys that `COMMAND GETKEYS MIGRATE` answers, as recorded: those behind the first KEYS that
/// is no password and no user, whatever else stands there. A KEYS that is the last word is not
/// seen, unless there is another one.
pub fn migrate_getkeys(args: Args<'_>) -> Result<KeyRuns, Error> {
    let is_seen = (2..args.len() - 1).any(|at| is(args.get(at), "KEYS"));
    let mut at = 6;
    while is_seen && at < args.len() {
        match args.get(at) {
            word if is(word, "AUTH") => at += 1,
            word if is(word, "AUTH2") => at += 2,
            word if is(word, "KEYS") => {
                let is_right = args.get(3).is_empty() && at + 1 < args.len();
                let keys = is_right.then(|| KeyRuns::of(at + 1..args.len()));
                return keys.ok_or(Error::InvalidArguments);
            }
            _ => {}
        }
        at += 1;
    }
    Ok(KeyRuns::of(3..4))
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username password]
/// [KEYS key ...]`. An invalid port is found when connecting.
pub fn migrate(args: Args<'_>) -> Result<ServerOp, Error> {
    let Options { copy, replace, auth, keys } = Options::parse(args)?;
    let keys: Vec<Bytes> = keys.map(|at| args.get(at).into()).collect();
    let timeout = integer(args.get(5))?;
    let db = integer(args.get(4))?;
    let timeout_ms = u64::try_from(timeout).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS);
    let (host, port) = (args.get(1).into(), args.get(2).into());
    let op = Migrate { host, port, keys, db, timeout_ms, copy, replace, auth };
    Ok(ServerOp::Migrate(Box::new(op)))
}

/// A value under its key, to be read after the guard that it was found under.
pub struct Parcel {
    /// The key.
    pub key: Bytes,
    /// Milliseconds left to live, 0 for ever.
    pub ttl_ms: i64,
    kept: ValueSnapshot,
}

/// A value that is written after the guard was dropped under which it was found.
pub(super) enum ValueSnapshot {
    Payload(Vec<u8>),
    Big(Captured, Encoding),
    /// A string of many bytes.
    Text(ReclaimOnDrop<LongText>),
}

/// The payload of a long string under way.
pub(super) struct LongText(pub TextDump);

impl Parts for LongText {
    fn memory(&self) -> usize {
        self.0.memory()
    }
}

impl ValueSnapshot {
    /// Keeps what is long by reference; what is short is written at once.
    pub fn of(keyspace: &keyspace::Keyspace, entry: Entry<'_>) -> Self {
        if let Some(big) = entry.big() {
            ValueSnapshot::Big(keyspace.capture(big), entry.encoding())
        } else if let Some(blob) = long_text(entry) {
            ValueSnapshot::Text(keyspace.reclaim_on_drop(LongText(TextDump::new(blob.clone()))))
        } else {
            ValueSnapshot::Payload(Saver::default().dump(&Stored::of(entry)))
        }
    }

    /// The bytes that RESTORE takes.
    pub fn into_payload(self) -> Vec<u8> {
        match self {
            ValueSnapshot::Payload(payload) => payload,
            ValueSnapshot::Big(big, encoding) => {
                Saver::default().dump(&Stored::captured(&big, encoding))
            }
            ValueSnapshot::Text(mut text) => loop {
                if let Some(payload) = text.0.step(usize::MAX) {
                    return payload.to_vec();
                }
            },
        }
    }
}

/// The string outside an entry, if it is long.
fn long_text(entry: Entry<'_>) -> Option<&Blob> {
    match entry.is_string().then(|| entry.str())? {
        Str::Blob(blob) if blob.len() > TEXT_MAX => Some(blob),
        _ => None,
    }
}

impl Parcel {
    /// The values of those keys that exist, in the order of the keys. Of what is big only a
    /// reference is taken.
    pub fn pack(guard: &mut Guard<'_>, db: DbIndex, keys: &[Bytes], now: UnixMs) -> Vec<Parcel> {
        let keyspace = guard.keyspace();
        let pack = |bytes: &Bytes| {
            let entry = guard.read(db, &keyspace.key(bytes))?;
            let ttl_ms = entry.expiry().map_or(0, |at| (at.0 - now.0).max(1));
            Some(Parcel { key: bytes.clone(), ttl_ms, kept: ValueSnapshot::of(keyspace, entry) })
        };
        keys.iter().filter_map(pack).collect()
    }

    /// The key, its milliseconds to live, and the bytes that RESTORE takes. Takes as long as DUMP.
    pub fn open(self) -> (Bytes, i64, Vec<u8>) {
        (self.key, self.ttl_ms, self.kept.into_payload())
    }
}
