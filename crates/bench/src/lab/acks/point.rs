//! How messages are sent, and to what.

use std::fmt;
use std::net::SocketAddr;

use ingest::v2::Acking;
use ingest::{HEADER_BYTES, Strategy};

use crate::acks::{Producers, Protocol, SIZE_BYTES, Spec};

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Connections.
    pub clients: usize,
    /// Bytes of a classic message with its header of 12; protocol 2 sends the same payload.
    pub message_size: usize,
    /// Messages per `writev`, or in a Data frame.
    pub batch: usize,
    /// A write waits until the one before is acknowledged.
    pub waits: bool,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Acknowledgements are looked at after every write, not after some.
    pub looks: bool,
    /// Blocks of so many bytes instead of batches.
    pub block: Option<usize>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, message_size, batch, waits, nodelay, looks, block } = self;
        write!(f, "{clients} x {message_size} bytes, ")?;
        match block {
            Some(bytes) => write!(f, "blocks of {} KiB", bytes >> 10)?,
            None => write!(f, "{batch} per write")?,
        }
        f.write_str(if *waits { ", waits" } else { "" })?;
        f.write_str(if *looks { ", looks" } else { "" })?;
        f.write_str(if *nodelay { "" } else { ", Nagle" })
    }
}

impl Point {
    /// What differs from `base`, in few letters.
    pub fn difference(&self, base: &Self) -> String {
        if let Some(bytes) = self.block {
            return format!("{} KiB", bytes >> 10);
        }
        let parts = [
            (self.clients != base.clients, format!("c={}", self.clients)),
            (self.message_size != base.message_size, format!("{} B", self.message_size)),
            (self.batch != base.batch, format!("b={}", self.batch)),
            (self.waits, "waits".to_owned()),
            (self.looks, "looks".to_owned()),
            (!self.nodelay, "Nagle".to_owned()),
        ];
        let parts: Vec<String> =
            parts.into_iter().filter(|(differs, _)| *differs).map(|(_, part)| part).collect();
        if parts.is_empty() { "base".to_owned() } else { parts.join(" ") }
    }

    /// What a listener of this way is sent.
    pub fn spec(&self, way: Way, address: SocketAddr, threads: usize) -> Spec {
        let spec = way.spec(address);
        let message_size = match spec.protocol {
            Protocol::Classic(_) => self.message_size,
            Protocol::Two(_) => two_size(self.message_size),
        };
        Spec {
            clients: self.clients,
            message_size,
            batch: self.batch,
            waits: self.waits,
            nodelay: self.nodelay,
            writes: if self.looks { 1 } else { spec.writes },
            block: self.block,
            threads,
            ..spec
        }
    }
}

/// Whether and how messages are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A strategy of classic ingest.
    Strategy(Strategy),
    /// Protocol 2.
    Two(Acking),
    /// Nothing is acknowledged; the end of the connection says that all was read.
    Null,
    /// Request-reply by a loop that sleeps.
    Echo,
    /// Protocol 2 by a thread per connection that acknowledges each read.
    EachRead,
}

impl Way {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strategy(strategy) => strategy.name(),
            Self::Two(acking) => acking.name(),
            Self::Null => "null reader",
            Self::Echo => "echo-ack",
            Self::EachRead => "ack each read",
        }
    }

    /// False for a client that waits for a listener which never acknowledges.
    pub fn takes(self, point: &Point) -> bool {
        !(point.waits && self == Self::Null)
    }

    /// A client with payloads of 5 bytes: messages of 17 with classic's header.
    pub fn spec(self, address: SocketAddr) -> Spec {
        let classic = |strategy| Spec::new(address, strategy);
        let two = |acking| Spec {
            message_size: two_size(classic(Strategy::Sync).message_size),
            ..Spec::two(address, Producers::new(acking))
        };
        match self {
            Self::Strategy(strategy) => classic(strategy),
            Self::Two(acking) => two(acking),
            Self::Null => Spec { acknowledged: false, ..classic(Strategy::Sync) },
            Self::Echo => classic(Strategy::RequestReply),
            Self::EachRead => two(Acking::Synchronous),
        }
    }
}

/// Bytes of the message of protocol 2 that has the payload of a classic one.
fn two_size(classic: usize) -> usize {
    classic - HEADER_BYTES + SIZE_BYTES
}
