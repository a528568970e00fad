//! Where a producer connects, what it asks for, and its bounds.

use std::time::Duration;

use ingest::v2::{Acking, HEADER_BYTES, HELLO_MAX, Hello, Level, SinkKind, write_hello};

use crate::Error;

/// The options of a [`Producer`](crate::Producer); `new` sets the usual ones.
#[derive(Clone, Debug)]
pub struct Options {
    /// `HOST:PORT` of the listener.
    pub address: String,
    /// The producer's name, 1 to 64 bytes.
    pub producer: Vec<u8>,
    /// Where messages go; the default is the listener's own sink.
    pub sink: SinkKind,
    /// The key of a list or stream.
    pub key: Vec<u8>,
    /// The key's database.
    pub db: u32,
    /// Entries that a stream keeps; 0: all.
    pub maxlen: u64,
    /// `maxlen` trims exactly, not by whole nodes.
    pub exact: bool,
    /// What an acknowledgement must guarantee.
    pub level: Level,
    /// When the server acknowledges.
    pub strategy: Acking,
    /// Acknowledge when so many messages wait; 0: the server's choice.
    pub ack_messages: u32,
    /// Acknowledge when the oldest waits so long; 0: the server's choice.
    pub ack_micros: u32,
    /// The user; empty: `default`.
    pub user: Vec<u8>,
    /// The password; with an empty user too: no authentication.
    pub password: Vec<u8>,
    /// The server must know this producer already.
    pub resume: bool,
    /// Bytes that may be unacknowledged, 4 for each message included; then `send` waits. 4 MiB.
    pub buffer_bytes: usize,
    /// Messages that may be unacknowledged. 65536.
    pub buffer_messages: u64,
    /// A Data frame is closed when it is so long. 64 KiB.
    pub frame_bytes: usize,
    /// How long `send`, `flush` and `close` wait. 30 s.
    pub timeout: Duration,
    /// How long the first connection may take, tries included. 10 s.
    pub connect_timeout: Duration,
    /// How long one try may take. 5 s.
    pub attempt_timeout: Duration,
    /// The first pause between tries; it doubles until something is acknowledged. 20 ms.
    pub backoff_min: Duration,
    /// The longest pause. 2 s.
    pub backoff_max: Duration,
    /// After so long without a sign of a server that owes acknowledgements, reconnect. 60 s.
    pub stall_timeout: Duration,
}

impl Options {
    /// A producer of this name for the listener's own sink.
    pub fn new(address: impl Into<String>, producer: impl Into<Vec<u8>>) -> Self {
        Self {
            address: address.into(),
            producer: producer.into(),
            sink: SinkKind::Listener,
            key: Vec::new(),
            db: 0,
            maxlen: 0,
            exact: false,
            level: Level::Received,
            strategy: Acking::Adaptive,
            ack_messages: 0,
            ack_micros: 0,
            user: Vec::new(),
            password: Vec::new(),
            resume: false,
            buffer_bytes: 4 << 20,
            buffer_messages: 1 << 16,
            frame_bytes: 64 << 10,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(5),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_secs(2),
            stall_timeout: Duration::from_secs(60),
        }
    }

    /// The Hello frame.
    pub(crate) fn hello(&self, resume: bool) -> Result<Vec<u8>, Error> {
        let strings = [&self.producer, &self.key, &self.user, &self.password];
        let bytes: usize = strings.iter().map(|string| string.len()).sum();
        if bytes + HEADER_BYTES > HELLO_MAX as usize - 40 {
            return Err(Error::Options("the names and the key are too long"));
        }
        let mut out = Vec::new();
        write_hello(
            &mut out,
            &Hello {
                level: self.level,
                acking: self.strategy,
                ack_messages: self.ack_messages,
                ack_micros: self.ack_micros,
                resume,
                exact: self.exact,
                sink: self.sink,
                db: self.db,
                maxlen: self.maxlen,
                producer: &self.producer,
                key: &self.key,
                user: &self.user,
                password: &self.password,
            },
        );
        Ok(out)
    }
}
