//! Frames: their header, their bodies, and how each is written. Numbers are little-endian.
//!
//! ```text
//!  every frame
//!  0           4      5       6         8                  8 + length
//!  +-----------+------+-------+---------+-- - - - - - - - --+
//!  | length, 4 | type | flags | 0, 2    | body              |
//!  +-----------+------+-------+---------+-- - - - - - - - --+
//!
//!  from the producer
//!  0x01 Hello    drawn in `hello.rs`
//!  0x02 Data     8 first number | size, 4 | payload | size, 4 | payload | ...
//!  0x03 Flush    no body
//!  0x04 Bye      no body
//!
//!  from the server; offsets in the body
//!  0x81 Welcome  0         2       3          4             8           12
//!                | version | level | strategy | max message | max frame | idle ms
//!                16           24         32            40
//!                | last id, 8 | durable, 8 | credit, 8 |
//!  0x82 Ack      0       8             12    16          24           32
//!                | id, 8 | skipped, 4 | 0, 4 | memory, 8 | durable, 8 |     flag 1: nothing new
//!  0x83 Credit   0                       8
//!                | limit of Data bytes, 8 |
//!  0x84 Error    0      2             4      8       16
//!                | code | text length | 0, 4 | id, 8 | text
//! ```

use crate::v2::{Acking, Fault};

/// The version of the protocol.
pub const VERSION: u16 = 2;
/// Bytes before the body of a frame.
pub const HEADER_BYTES: usize = 8;
/// Bytes of a Data frame before its first message: the header and the first number.
pub const DATA_HEADER_BYTES: usize = 16;
/// Bytes of an Ack frame.
pub const ACK_BYTES: usize = HEADER_BYTES + ACK_BODY;
/// The most bytes of a Hello's body.
pub const HELLO_MAX: u32 = 8192;

pub(crate) const WELCOME_BODY: usize = 40;
pub(crate) const ACK_BODY: usize = 32;
pub(crate) const CREDIT_BODY: usize = 8;
pub(crate) const ERROR_BODY: usize = 16;
/// The Ack flag: it covers no message.
pub(crate) const NOTHING_NEW: u8 = 1;

/// Types of frames.
pub(crate) mod kind {
    pub const HELLO: u8 = 0x01;
    pub const DATA: u8 = 0x02;
    pub const FLUSH: u8 = 0x03;
    pub const BYE: u8 = 0x04;
    pub const WELCOME: u8 = 0x81;
    pub const ACK: u8 = 0x82;
    pub const CREDIT: u8 = 0x83;
    pub const ERROR: u8 = 0x84;
}

/// What an acknowledgement guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The server has received the message.
    #[default]
    Received,
    /// The message is in the key.
    InMemory,
    /// The message is on disk.
    Fsynced,
}

impl Level {
    /// All of them, by their number on the wire.
    pub const ALL: [Self; 3] = [Self::Received, Self::InMemory, Self::Fsynced];
}

/// The first 8 bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub reserved: u16,
}

impl Header {
    #[inline(always)]
    pub fn parse(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, d, kind, flags, e, f] = bytes;
        Self {
            length: u32::from_le_bytes([a, b, c, d]),
            kind,
            flags,
            reserved: u16::from_le_bytes([e, f]),
        }
    }
}

/// The server's answer to Hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    /// What its acknowledgements guarantee.
    pub level: Level,
    /// When the server acknowledges.
    pub acking: Acking,
    /// The largest payload.
    pub max_message: u32,
    /// The largest length field of Data.
    pub max_frame: u32,
    /// A frame must be complete after so many milliseconds; 0: no bound.
    pub idle_ms: u32,
    /// The highest number held, 0 if none.
    pub last_id: u64,
    /// The highest number on disk.
    pub durable: u64,
    /// How many bytes of Data may be sent at first.
    pub credit: u64,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// It covers no message: the answer to a Flush.
    pub nothing_new: bool,
    /// The server holds all messages up to this number.
    pub id: u64,
    /// Covered messages besides the last one.
    pub skipped: u32,
    /// The highest number that is in the key.
    pub memory: u64,
    /// The highest number on disk.
    pub durable: u64,
}

impl Ack {
    /// Messages of this connection that it covers.
    pub const fn covered(&self) -> u64 {
        if self.nothing_new { 0 } else { self.skipped as u64 + 1 }
    }
}

pub(crate) fn begin(out: &mut Vec<u8>, kind: u8, flags: u8, length: usize) {
    let length = u32::try_from(length).expect("a frame is shorter than 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[kind, flags, 0, 0]);
}

/// The header of a Data frame whose messages, sizes included, have `messages_bytes` in all.
pub fn data_header(first: u64, messages_bytes: usize) -> [u8; DATA_HEADER_BYTES] {
    let length = u32::try_from(messages_bytes + 8).expect("a frame is shorter than 4 GiB");
    let mut header = [0; DATA_HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4] = kind::DATA;
    header[8..].copy_from_slice(&first.to_le_bytes());
    header
}

/// Appends the header of a Data frame; its messages must follow ([`write_message`]).
pub fn write_data_header(out: &mut Vec<u8>, first: u64, messages_bytes: usize) {
    out.extend_from_slice(&data_header(first, messages_bytes));
}

/// Appends one message of a Data frame.
#[inline]
pub fn write_message(out: &mut Vec<u8>, payload: &[u8]) {
    let size = u32::try_from(payload.len()).expect("a payload is shorter than 4 GiB");
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Appends a Flush frame.
pub fn write_flush(out: &mut Vec<u8>) {
    begin(out, kind::FLUSH, 0, 0);
}

/// Appends a Bye frame.
pub fn write_bye(out: &mut Vec<u8>) {
    begin(out, kind::BYE, 0, 0);
}

/// Appends a Welcome frame.
pub fn write_welcome(out: &mut Vec<u8>, welcome: &Welcome) {
    begin(out, kind::WELCOME, 0, WELCOME_BODY);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[welcome.level as u8, welcome.acking as u8]);
    for bound in [welcome.max_message, welcome.max_frame, welcome.idle_ms] {
        out.extend_from_slice(&bound.to_le_bytes());
    }
    for number in [welcome.last_id, welcome.durable, welcome.credit] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Appends an Ack frame.
pub fn write_ack(out: &mut Vec<u8>, ack: &Ack) {
    begin(out, kind::ACK, if ack.nothing_new { NOTHING_NEW } else { 0 }, ACK_BODY);
    out.extend_from_slice(&ack.id.to_le_bytes());
    out.extend_from_slice(&ack.skipped.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&ack.memory.to_le_bytes());
    out.extend_from_slice(&ack.durable.to_le_bytes());
}

/// Appends a Credit frame.
pub fn write_credit(out: &mut Vec<u8>, limit: u64) {
    begin(out, kind::CREDIT, 0, CREDIT_BODY);
    out.extend_from_slice(&limit.to_le_bytes());
}

/// Appends an Error frame; of a text above 65535 bytes the beginning.
pub fn write_error(out: &mut Vec<u8>, code: u16, id: u64, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX))];
    begin(out, kind::ERROR, 0, ERROR_BODY + text.len());
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(text);
}

/// Reads the fields of a body in order; a missing one is [`Fault::Malformed`].
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// The member of `all` with this number.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T, Fault> {
        all.get(usize::from(self.u8()?)).copied().ok_or(Fault::Malformed)
    }

    /// A length of 2 bytes, and so many bytes.
    pub fn string(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.u16()?;
        self.bytes(usize::from(len))
    }
}
