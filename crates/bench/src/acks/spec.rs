//! What to send to whom.

use super::error::Error;
use ingest::v2::{Acking, SinkKind};
use ingest::{HEADER_BYTES, Strategy};
use std::net::SocketAddr;
use std::time::Duration;

/// Messages that one `writev` takes at most (`IOV_MAX`); of protocol 2 any number makes one slice.
pub const BATCH_MAX: usize = 1024;
/// Writes in a row before acknowledgements are read, unless the client reads them after each.
pub const WRITES: usize = 16;
/// Bytes of one write at most.
pub const BLOCK_MAX: usize = 16 << 20;
/// Bytes of a message of protocol 2 before its payload: the size.
pub const SIZE_BYTES: usize = 4;

/// What to send to whom.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The listener.
    pub address: SocketAddr,
    /// What it speaks.
    pub protocol: Protocol,
    /// Connections; with protocol 2 each is a producer of its own.
    pub clients: usize,
    /// Messages on each of them.
    pub messages: u64,
    /// Stop after so long, however many messages were sent until then.
    pub time: Option<Duration>,
    /// Bytes of a message on the wire: with classic 12 of header and the payload, with protocol 2
    /// the 4 of its size and the payload (a frame has 16 more).
    pub message_size: usize,
    /// Messages in one `writev`, or in one Data frame.
    pub batch: usize,
    /// A batch waits until all of the one before is acknowledged. Request-reply always does.
    pub waits: bool,
    /// Writes in a row before acknowledgements are looked at.
    pub writes: usize,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Write blocks of so many bytes (rounded down to whole messages) instead of batches.
    pub block: Option<usize>,
    /// Threads that share the connections.
    pub threads: usize,
    /// Wait for acknowledgements and check them. If not (a null reader), the end of the connection
    /// ends the run.
    pub acknowledged: bool,
    /// The run ends after this time without progress.
    pub patience: Duration,
}

/// What a listener speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One of the five classic strategies.
    Classic(Strategy),
    /// Protocol 2.
    Two(Producers),
}

/// What producers of protocol 2 say in their Hello. Their names are new in each run, so that
/// nothing is held of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producers {
    /// When acknowledgements are asked for.
    pub acking: Acking,
    /// Where messages go.
    pub sink: SinkKind,
    /// The key of a list or stream, else empty.
    pub key: Vec<u8>,
    /// Its database.
    pub db: u32,
    /// Entries that a stream keeps; 0: all.
    pub maxlen: u64,
    /// For AUTH; both empty: none.
    pub user: String,
    /// The password to it.
    pub password: String,
}

/// A strategy of protocol 2 by its name.
pub fn acking(name: &str) -> Result<Acking, String> {
    Acking::from_name(name).ok_or_else(|| "adaptive, synchronous or batched".to_owned())
}

impl Producers {
    /// Producers whose messages are only counted.
    pub fn new(acking: Acking) -> Self {
        Self {
            acking,
            sink: SinkKind::Null,
            key: Vec::new(),
            db: 0,
            maxlen: 0,
            user: String::new(),
            password: String::new(),
        }
    }
}

impl Spec {
    /// One connection that sends 100,000 messages of 17 bytes, one by one, to a classic listener.
    pub fn new(address: SocketAddr, strategy: Strategy) -> Self {
        Self {
            address,
            protocol: Protocol::Classic(strategy),
            clients: 1,
            messages: 100_000,
            time: None,
            message_size: 17,
            batch: 1,
            waits: false,
            writes: WRITES,
            nodelay: true,
            block: None,
            threads: 1,
            acknowledged: true,
            patience: Duration::from_secs(10),
        }
    }

    /// The same with 17 bytes of payload and a listener of protocol 2.
    pub fn two(address: SocketAddr, producers: Producers) -> Self {
        Self {
            protocol: Protocol::Two(producers),
            message_size: SIZE_BYTES + 17,
            ..Self::new(address, Strategy::Sync)
        }
    }

    /// Bytes of a message before its payload.
    pub(super) fn header(&self) -> usize {
        match self.protocol {
            Protocol::Classic(_) => HEADER_BYTES,
            Protocol::Two(_) => SIZE_BYTES,
        }
    }

    /// The strategy's name.
    pub(super) fn load(&self) -> &'static str {
        match &self.protocol {
            Protocol::Classic(strategy) => strategy.name(),
            Protocol::Two(producers) => producers.acking.name(),
        }
    }

    /// Messages of one write.
    pub(super) fn batch_len(&self) -> usize {
        self.block.map_or(self.batch, |bytes| (bytes / self.message_size).max(1))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let bad = |what: &str| Err(Error::Spec(what.to_owned()));
        if self.clients == 0 || self.messages == 0 || self.threads == 0 || self.writes == 0 {
            return bad("clients, messages, threads and writes in a row are at least 1");
        }
        if self.message_size < self.header() || self.message_size > BLOCK_MAX {
            return bad("a message has its header and at most 16 MiB");
        }
        let slices = matches!(self.protocol, Protocol::Classic(_)) && self.block.is_none();
        if self.batch == 0 || (slices && self.batch > BATCH_MAX) {
            return bad("a batch has at least 1 message, a classic one at most 1024");
        }
        if self.batch_len().saturating_mul(self.message_size) > BLOCK_MAX {
            return bad("one write has at most 16 MiB");
        }
        Ok(())
    }
}
