//! Hello: the producer, where its messages go, and what acknowledgements must guarantee.
//!
//! The body of the frame (its header is drawn in `frame.rs`); numbers are little-endian:
//!
//! ```text
//!   0         4         6       7          8              12           16
//!   +---------+---------+-------+----------+--------------+------------+
//!   | "SHFI"  | version | level | strategy | ack messages | ack micros |
//!   +---------+---------+-------+----------+--------------+------------+
//!   16       18     19  20       24          32
//!   +--------+------+---+--------+-----------+----------+-----+------+----------+
//!   | flags  | sink | 0 | db     | maxlen, 8 | producer | key | user | password |
//!   +--------+------+---+--------+-----------+----------+-----+------+----------+
//!
//!   flags     bit 0 resume: the server must know this producer; bit 1 exact: `maxlen` is exact
//!   producer, key, user, password     length u16, then so many bytes
//! ```

use crate::v2::frame::{Fields, begin, kind};
use crate::v2::{Fault, Level, VERSION};
use std::fmt;

/// The most bytes of a producer's name.
pub const PRODUCER_MAX: usize = 64;
/// The most bytes of a key.
pub const KEY_MAX: usize = 4096;

const MAGIC: &[u8; 4] = b"SHFI";
const RESUME: u16 = 1;
const EXACT: u16 = 2;

/// When a connection is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Acking {
    /// Adapted to the producer by the server.
    #[default]
    Adaptive,
    /// After each read that completed a message.
    Synchronous,
    /// After several reads, or a time limit.
    Batched,
}

impl Acking {
    /// All of them, by their number on the wire.
    pub const ALL: [Self; 3] = [Self::Adaptive, Self::Synchronous, Self::Batched];

    /// Its name in INFO and tools.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Synchronous => "synchronous",
            Self::Batched => "batched",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}

impl fmt::Display for Acking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a producer wants its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SinkKind {
    /// Where the listener puts them.
    #[default]
    Listener,
    /// Nowhere: they are counted.
    Null,
    /// The end of a list.
    List,
    /// Entries of a stream.
    Stream,
}

impl SinkKind {
    /// All of them, by their number on the wire.
    pub const ALL: [Self; 4] = [Self::Listener, Self::Null, Self::List, Self::Stream];
}

/// A producer's first frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// What an acknowledgement must guarantee.
    pub level: Level,
    /// When to acknowledge.
    pub acking: Acking,
    /// Acknowledge when so many messages wait; 0: the server's choice.
    pub ack_messages: u32,
    /// Acknowledge when the oldest waits so long; 0: the server's choice.
    pub ack_micros: u32,
    /// The server must know this producer.
    pub resume: bool,
    /// `maxlen` trims exactly.
    pub exact: bool,
    /// Where messages go.
    pub sink: SinkKind,
    /// The key's database.
    pub db: u32,
    /// Entries that a stream keeps; 0: all.
    pub maxlen: u64,
    /// The producer's name.
    pub producer: &'a [u8],
    /// The key of a list or stream.
    pub key: &'a [u8],
    /// The user; empty: `default`.
    pub user: &'a [u8],
    /// The password; with an empty user too: no authentication.
    pub password: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Reads the body of a Hello frame.
    ///
    /// # Errors
    /// [`Fault::NoHello`], [`Fault::Version`] or [`Fault::Malformed`].
    pub fn parse(body: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(body);
        if fields.bytes(4)? != MAGIC {
            return Err(Fault::NoHello);
        }
        if fields.u16()? != VERSION {
            return Err(Fault::Version);
        }
        let level = fields.one_of(&Level::ALL)?;
        let acking = fields.one_of(&Acking::ALL)?;
        let (ack_messages, ack_micros) = (fields.u32()?, fields.u32()?);
        let flags = fields.u16()?;
        let sink = fields.one_of(&SinkKind::ALL)?;
        if flags & !(RESUME | EXACT) != 0 || fields.u8()? != 0 {
            return Err(Fault::Malformed);
        }
        let hello = Self {
            level,
            acking,
            ack_messages,
            ack_micros,
            resume: flags & RESUME != 0,
            exact: flags & EXACT != 0,
            sink,
            db: fields.u32()?,
            maxlen: fields.u64()?,
            producer: fields.string()?,
            key: fields.string()?,
            user: fields.string()?,
            password: fields.string()?,
        };
        let named = (1..=PRODUCER_MAX).contains(&hello.producer.len());
        if named && fields.0.is_empty() { Ok(hello) } else { Err(Fault::Malformed) }
    }

    /// Checks whether servers support a well-formed Hello, whatever the listener. Whether messages
    /// are fsynced depends on the server.
    ///
    /// # Errors
    /// [`Fault::Level`]: nothing of a null sink is fsynced. [`Fault::Sink`].
    pub fn check(&self) -> Result<(), Fault> {
        if self.level == Level::Fsynced && self.sink == SinkKind::Null {
            return Err(Fault::Level);
        }
        let fits = match self.sink {
            SinkKind::Listener => self.key.is_empty() && self.db == 0 && self.maxlen == 0,
            SinkKind::Null => self.key.is_empty(),
            SinkKind::List | SinkKind::Stream => (1..=KEY_MAX).contains(&self.key.len()),
        };
        if fits { Ok(()) } else { Err(Fault::Sink) }
    }
}

/// Appends a Hello frame. Names and keys are not checked: the server refuses those above its
/// bounds.
pub fn write_hello(out: &mut Vec<u8>, hello: &Hello<'_>) {
    let strings = [hello.producer, hello.key, hello.user, hello.password];
    let length = 32 + strings.iter().map(|s| 2 + s.len()).sum::<usize>();
    begin(out, kind::HELLO, 0, length);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[hello.level as u8, hello.acking as u8]);
    out.extend_from_slice(&hello.ack_messages.to_le_bytes());
    out.extend_from_slice(&hello.ack_micros.to_le_bytes());
    let flags = if hello.resume { RESUME } else { 0 } | if hello.exact { EXACT } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[hello.sink as u8, 0]);
    out.extend_from_slice(&hello.db.to_le_bytes());
    out.extend_from_slice(&hello.maxlen.to_le_bytes());
    for string in strings {
        let len = u16::try_from(string.len()).expect("a string of Hello has at most 65535 bytes");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(string);
    }
}
