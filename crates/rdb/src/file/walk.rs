//! Finds the end of a value without reading it, in bytes that may end anywhere.
//!
//! A type is a list of a few steps ([`Op`]) with loops. A walk keeps its place in the list, so no
//! byte is looked at twice, whatever the blocks of a file are.

use super::opcode;
use crate::primitive::Head;
use crate::{Dialect, Error, Reader, STRING_MAX, types};

/// A step.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A string.
    Text,
    /// A length.
    Length,
    /// So many bytes.
    Bytes(u8),
    /// A double as text.
    TextDouble,
    /// A count, and so many times these steps.
    Times(&'static [Op]),
    /// Values of a module, up to the end among them.
    Module,
}

use Op::{Bytes, Length, Module, Text, TextDouble, Times};

const TEXT: &[Op] = &[Text];
const PAIR: &[Op] = &[Text, Text];
const PENDING: &[Op] = &[Bytes(24), Length];
const CONSUMER: &[Op] = &[Text, Bytes(8), Times(&[Bytes(16)])];
const CONSUMER_3: &[Op] = &[Text, Bytes(16), Times(&[Bytes(16)])];

/// The steps of a value. `None` if the type is not known.
fn ops_of(id: u8, dialect: Dialect) -> Option<&'static [Op]> {
    Some(match id {
        types::STRING
        | types::HASH_ZIPMAP
        | types::LIST_ZIPLIST
        | types::SET_INTSET
        | types::ZSET_ZIPLIST
        | types::HASH_ZIPLIST
        | types::HASH_LISTPACK
        | types::ZSET_LISTPACK
        | types::SET_LISTPACK => TEXT,
        types::LIST | types::SET | types::LIST_QUICKLIST => &[Times(TEXT)],
        types::ZSET => &[Times(&[Text, TextDouble])],
        types::HASH => &[Times(PAIR)],
        types::ZSET_2 => &[Times(&[Text, Bytes(8)])],
        types::LIST_QUICKLIST_2 => &[Times(&[Length, Text])],
        types::STREAM => &[
            Times(PAIR),
            Length, // entries
            Length, // the last id
            Length,
            Times(&[Text, Length, Length, Times(PENDING), Times(CONSUMER)]),
        ],
        types::STREAM_2 | types::STREAM_3 => stream(id == types::STREAM_3),
        types::HASH_2 if dialect == Dialect::Valkey => &[Times(&[Text, Text, Bytes(8)])],
        types::HASH_METADATA_PRE if dialect == Dialect::Redis => &[Times(&[Length, Text, Text])],
        types::HASH_LISTPACK_EX_PRE if dialect == Dialect::Redis => TEXT,
        types::HASH_METADATA if dialect == Dialect::Redis => {
            &[Bytes(8), Times(&[Length, Text, Text])]
        }
        types::HASH_LISTPACK_EX if dialect == Dialect::Redis => &[Bytes(8), Text],
        types::MODULE => &[Length, Module],
        _ => return None,
    })
}

/// The steps of a stream with what it counts.
fn stream(has_active_times: bool) -> &'static [Op] {
    macro_rules! ops {
        ($consumer:expr) => {
            &[
                Times(PAIR),
                Length, // entries
                Length, // the last id, the first one, the highest deleted one
                Length,
                Length,
                Length,
                Length,
                Length,
                Length, // entries added
                Times(&[Text, Length, Length, Length, Times(PENDING), Times($consumer)]),
            ]
        };
    }
    if has_active_times { ops!(CONSUMER_3) } else { ops!(CONSUMER) }
}

/// The steps behind an opcode. `None` if it is not known, or means something else to Redis.
fn ops_behind(code: u8, dialect: Dialect) -> Option<&'static [Op]> {
    Some(match code {
        opcode::SLOT_IMPORT if dialect == Dialect::Valkey => {
            &[Text, Times(&[Length, Length])] // a job, its slots
        }
        opcode::SLOT_INFO => &[Length, Length, Length],
        opcode::FUNCTION => TEXT,
        opcode::MODULE_AUX => &[Length, Module],
        opcode::IDLE | opcode::DATABASE => &[Length],
        opcode::FREQUENCY => &[Bytes(1)],
        opcode::AUX => PAIR,
        opcode::RESIZE => &[Length, Length],
        opcode::EXPIRE_MS => &[Bytes(8)],
        opcode::EXPIRE_S => &[Bytes(4)],
        _ => return None,
    })
}

/// Whether a value consists of parts, between which it can be cut.
pub(super) fn has_parts(id: u8, dialect: Dialect) -> bool {
    let is_stream = matches!(id, types::STREAM | types::STREAM_2 | types::STREAM_3);
    let ops = ops_of(id, dialect).unwrap_or_default();
    !is_stream && matches!(ops, [Times(_)] | [Bytes(_), Times(_)])
}

/// Loops are nested three deep, in a stream.
const DEPTH_MAX: usize = 3;

/// The place in a list of steps.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    ops: &'static [Op],
    /// The next one.
    at: usize,
    /// How often they are still to be taken, this time included.
    left: u64,
}

/// Where a walk is.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Bytes to be passed before the next step.
    skip: u64,
    depth: usize,
    frames: [Frame; DEPTH_MAX + 1],
}

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walked {
    /// The bytes end.
    More,
    /// It passed the goal, and is between two parts.
    Part,
    /// It is behind the value.
    Complete,
}

impl Walk {
    fn new(ops: &'static [Op]) -> Self {
        let mut frames = [Frame::default(); DEPTH_MAX + 1];
        frames[0] = Frame { ops, at: 0, left: 1 };
        Self { skip: 0, depth: 0, frames }
    }

    /// Before a string.
    pub fn text() -> Self {
        Self::new(TEXT)
    }

    /// Before a value. `None` if the type is not known.
    pub fn value(id: u8, dialect: Dialect) -> Option<Self> {
        ops_of(id, dialect).map(Self::new)
    }

    /// Behind an opcode. `None` if it is not known.
    pub fn behind(code: u8, dialect: Dialect) -> Option<Self> {
        ops_behind(code, dialect).map(Self::new)
    }

    /// Moves `at` on in the bytes of a file, which up to `further` bytes follow. Between two parts
    /// it stops at `goal`, or behind it.
    ///
    /// # Errors
    /// [`Error::Short`] if something reaches beyond the end of the file.
    pub fn run(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        goal: usize,
        further: u64,
    ) -> Result<Walked, Error> {
        loop {
            let rest = &bytes[*at..];
            if self.skip > rest.len() as u64 {
                let left = self.skip - rest.len() as u64;
                if left > further {
                    return Err(Error::Short);
                }
                self.skip = left;
                *at = bytes.len();
                return Ok(Walked::More);
            }
            let rest = &rest[self.skip as usize..];
            *at = bytes.len() - rest.len();
            self.skip = 0;
            let frame = &mut self.frames[self.depth];
            let Some(&op) = frame.ops.get(frame.at) else {
                frame.left -= 1;
                if frame.left > 0 {
                    frame.at = 0;
                    if self.depth == 1 && *at >= goal {
                        return Ok(Walked::Part);
                    }
                } else if self.depth == 0 {
                    return Ok(Walked::Complete);
                } else {
                    self.depth -= 1;
                }
                continue;
            };
            let mut reader = Reader::new(rest);
            match self.step(op, &mut reader) {
                Ok(()) => {
                    let rest = reader.rest().len();
                    *at = bytes.len() - rest;
                    // What is repeated takes a byte at least.
                    if self.frames[self.depth].left > further.saturating_add(rest as u64) {
                        return Err(Error::Short);
                    }
                }
                Err(Error::Short) if further > 0 => return Ok(Walked::More),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a step as far as it has to be read; the rest of it is skipped.
    fn step(&mut self, op: Op, reader: &mut Reader<'_>) -> Result<(), Error> {
        let frame = &mut self.frames[self.depth];
        match op {
            Text => self.skip = text(reader)?,
            Length => _ = reader.length()?,
            Bytes(count) => self.skip = u64::from(count),
            TextDouble => {
                // The three highest lengths are numbers by themselves.
                let len = reader.byte()?;
                self.skip = if len < 253 { u64::from(len) } else { 0 };
            }
            Times(ops) => {
                let left = reader.length()?;
                frame.at += 1;
                if left > 0 {
                    self.depth += 1;
                    self.frames[self.depth] = Frame { ops, at: 0, left };
                }
                return Ok(());
            }
            Module => match reader.length()? {
                0 => {}
                kind => {
                    self.skip = match kind {
                        1 | 2 => reader.length().map(|_| 0)?,
                        3 => 4,
                        4 => 8,
                        5 => text(reader)?,
                        _ => return Err(Error::Corrupt),
                    };
                    return Ok(()); // the next one
                }
            },
        }
        frame.at += 1;
        Ok(())
    }
}

/// Reads what stands before the bytes of a string; how many follow.
pub(super) fn text(reader: &mut Reader<'_>) -> Result<u64, Error> {
    match reader.head()? {
        Head::Plain(len) if len > STRING_MAX => Err(Error::Corrupt),
        Head::Plain(len) => Ok(len),
        Head::Int(_) => Ok(0),
        Head::Lzf => {
            let (packed, len) = (reader.length()?, reader.length()?);
            if len.max(packed) > STRING_MAX { Err(Error::Corrupt) } else { Ok(packed) }
        }
    }
}

/// The name of a module's type, which is the upper 54 bits of its number: nine characters.
pub(super) fn module_name(id: u64) -> String {
    const CHARACTERS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let six = |at: u32| char::from(CHARACTERS[(id >> (58 - 6 * at) & 0x3f) as usize]);
    (0..9).map(six).collect()
}
