//! Two strings, operations on them, and the replies that must come.

use base::prng::Prng;
use client::Value;
use std::fmt;

/// A string is seldom shorter when it is written whole.
const LEN_MIN: u64 = 1 << 20;
/// A string is never longer.
const LEN_MAX: u64 = 3 << 20;
/// Bytes of a part that is written.
const PART_MAX: u64 = 40_000;

/// One of the strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The one which is written.
    A,
    /// The one to which the other is copied and restored.
    B,
}

impl Key {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];
}

/// An operation. Strings which are empty do not exist.
#[derive(Clone)]
pub enum Op {
    /// SET.
    Set(Vec<u8>),
    /// APPEND.
    Append(Key, Vec<u8>),
    /// SETRANGE.
    SetRange(Key, usize, Vec<u8>),
    /// SETBIT.
    SetBit(Key, usize, bool),
    /// BITFIELD, which sets bytes: several changes of one command.
    Bytes(Key, Vec<(usize, u8)>),
    /// GETRANGE.
    GetRange(Key, usize, usize),
    /// GET.
    Get(Key),
    /// STRLEN.
    StrLen(Key),
    /// DUMP of the first string, if it exists.
    Dump,
    /// RESTORE to the second string what was the first one at the last DUMP.
    Restore(Vec<u8>),
    /// COPY of the first string to the second.
    Copy,
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(text) => write!(f, "Set({} bytes)", text.len()),
            Self::Append(key, part) => write!(f, "Append({key:?}, {} bytes)", part.len()),
            Self::SetRange(key, at, part) => {
                write!(f, "SetRange({key:?}, {at}, {} bytes)", part.len())
            }
            Self::SetBit(key, at, bit) => write!(f, "SetBit({key:?}, {at}, {bit})"),
            Self::Bytes(key, bytes) => write!(f, "Bytes({key:?}, {bytes:?})"),
            Self::GetRange(key, from, to) => write!(f, "GetRange({key:?}, {from}, {to})"),
            Self::Get(key) => write!(f, "Get({key:?})"),
            Self::StrLen(key) => write!(f, "StrLen({key:?})"),
            Self::Dump => write!(f, "Dump"),
            Self::Restore(payload) => write!(f, "Restore({} bytes)", payload.len()),
            Self::Copy => write!(f, "Copy"),
        }
    }
}

/// Bytes which differ from place to place. Some can be compressed.
fn text(p: &mut Prng, len: u64) -> Vec<u8> {
    let (seed, compressible) = (p.draw(), p.chance(1, 2));
    let word = |at: u64| if compressible { seed ^ at >> 9 } else { seed.wrapping_mul(2 * at + 1) };
    let mut text: Vec<u8> = (0..=len / 8).flat_map(|at| word(at).to_le_bytes()).collect();
    text.truncate(len as usize);
    text
}

impl Op {
    /// An operation. In a transaction no reply is large.
    pub fn draw(p: &mut Prng, in_transaction: bool) -> Self {
        let key = Key::BOTH[p.below(2) as usize];
        let at = p.below(LEN_MAX - PART_MAX) as usize;
        let len = 1 + p.below(PART_MAX);
        match p.below(18) {
            0 | 1 => {
                let most = if p.chance(1, 4) { LEN_MAX } else { LEN_MIN + LEN_MIN / 4 };
                let len = LEN_MIN + p.below(most - LEN_MIN);
                Self::Set(text(p, len))
            }
            2 | 3 => Self::Append(key, text(p, len)),
            4..7 => Self::SetRange(key, at, text(p, len)),
            7 | 8 => Self::SetBit(key, 8 * at + p.below(8) as usize, p.chance(1, 2)),
            9 | 10 => Self::GetRange(key, at, at + len as usize),
            11 | 12 if !in_transaction => Self::Get(key),
            13 if !in_transaction => Self::Dump,
            14 => Self::Copy,
            15 | 16 => {
                let places = (0..=p.below(4)).map(|_| p.below(LEN_MIN) as usize).collect();
                Self::bytes(p, key, places)
            }
            _ => Self::StrLen(key),
        }
    }

    fn bytes(p: &mut Prng, key: Key, places: Vec<usize>) -> Self {
        Self::Bytes(key, places.into_iter().map(|at| (at, p.below(256) as u8)).collect())
    }

    /// The command, with the names of the keys.
    pub fn command(&self, key: &dyn Fn(Key) -> Vec<u8>) -> Vec<Vec<u8>> {
        let number = |n: usize| n.to_string().into_bytes();
        let words = |name: &str, rest: Vec<Vec<u8>>| {
            let mut all = vec![name.as_bytes().to_vec()];
            all.extend(rest);
            all
        };
        match self {
            Self::Set(text) => words("SET", vec![key(Key::A), text.clone()]),
            Self::Append(k, part) => words("APPEND", vec![key(*k), part.clone()]),
            Self::SetRange(k, at, part) => {
                words("SETRANGE", vec![key(*k), number(*at), part.clone()])
            }
            Self::SetBit(k, at, bit) => {
                words("SETBIT", vec![key(*k), number(*at), number((*bit).into())])
            }
            Self::Bytes(k, bytes) => {
                let set = |(at, byte): &(usize, u8)| format!("SET u8 #{at} {byte}");
                let steps: Vec<String> = bytes.iter().map(set).collect();
                let steps = crate::clients::words(&steps.join(" "));
                words("BITFIELD", [vec![key(*k)], steps].concat())
            }
            Self::GetRange(k, from, to) => {
                words("GETRANGE", vec![key(*k), number(*from), number(*to)])
            }
            Self::Get(k) => words("GET", vec![key(*k)]),
            Self::StrLen(k) => words("STRLEN", vec![key(*k)]),
            Self::Dump => words("DUMP", vec![key(Key::A)]),
            Self::Restore(payload) => words(
                "RESTORE",
                vec![key(Key::B), b"0".to_vec(), payload.clone(), b"REPLACE".to_vec()],
            ),
            Self::Copy => words("COPY", vec![key(Key::A), key(Key::B), b"REPLACE".to_vec()]),
        }
    }
}

/// The reply that must come.
#[derive(PartialEq, Eq)]
pub enum Said {
    /// OK.
    Ok,
    /// A number.
    Number(usize),
    /// Numbers.
    Numbers(Vec<i64>),
    /// A string, in part or whole.
    Text(Vec<u8>),
    /// Nothing is there.
    Nothing,
    /// Any bytes, for RESTORE.
    Payload,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => write!(f, "OK"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Numbers(numbers) => write!(f, "{numbers:?}"),
            Self::Text(text) => write!(f, "{} bytes", text.len()),
            Self::Nothing => write!(f, "nothing"),
            Self::Payload => write!(f, "a payload"),
        }
    }
}

impl Said {
    /// The whole of a string.
    pub fn text(text: &[u8]) -> Self {
        if text.is_empty() { Self::Nothing } else { Self::Text(text.to_vec()) }
    }

    /// Whether `reply` is the reply that must come.
    pub fn is(&self, reply: &Value) -> bool {
        match (self, reply) {
            (Self::Ok, reply) => *reply == Value::ok(),
            (Self::Number(number), Value::Integer(found)) => *found == *number as i64,
            (Self::Numbers(numbers), Value::Array(found)) => {
                found.iter().map(Value::as_integer).eq(numbers.iter().map(|n| Some(*n)))
            }
            (Self::Text(text), Value::Bulk(found)) => text == found,
            (Self::Nothing, reply) => reply.is_null(),
            _ => false,
        }
    }
}

/// The strings.
#[derive(Clone, Default)]
pub struct Strings {
    texts: [Vec<u8>; 2],
    /// The first one at the last DUMP.
    dumped: Vec<u8>,
}

impl Strings {
    /// A string.
    pub fn get(&self, key: Key) -> &[u8] {
        &self.texts[key as usize]
    }

    /// Executes an operation.
    pub fn apply(&mut self, op: &Op) -> Said {
        match op {
            Op::Set(text) => {
                self.texts[Key::A as usize].clone_from(text);
                Said::Ok
            }
            Op::Append(key, part) => {
                let text = &mut self.texts[*key as usize];
                text.extend_from_slice(part);
                Said::Number(text.len())
            }
            Op::SetRange(key, at, part) => {
                let text = self.reach(*key, at + part.len());
                text[*at..at + part.len()].copy_from_slice(part);
                Said::Number(text.len())
            }
            Op::SetBit(key, at, bit) => {
                let byte = &mut self.reach(*key, at / 8 + 1)[at / 8];
                let mask = 0x80 >> (at % 8);
                let before = *byte & mask != 0;
                *byte = if *bit { *byte | mask } else { *byte & !mask };
                Said::Number(before.into())
            }
            Op::Bytes(key, bytes) => {
                let set = |(at, byte): &(usize, u8)| {
                    let place = &mut self.reach(*key, at + 1)[*at];
                    i64::from(std::mem::replace(place, *byte))
                };
                Said::Numbers(bytes.iter().map(set).collect())
            }
            Op::GetRange(key, from, to) => {
                let text = self.get(*key);
                let end = text.len().min(to + 1);
                Said::Text(text.get(*from..end).unwrap_or_default().to_vec())
            }
            Op::Get(key) => Said::text(self.get(*key)),
            Op::StrLen(key) => Said::Number(self.get(*key).len()),
            Op::Dump if self.get(Key::A).is_empty() => Said::Nothing,
            Op::Dump => {
                self.dumped = self.get(Key::A).to_vec();
                Said::Payload
            }
            Op::Restore(_) => {
                self.texts[Key::B as usize].clone_from(&self.dumped);
                Said::Ok
            }
            Op::Copy => {
                let text = self.get(Key::A).to_vec();
                let is_there = !text.is_empty();
                if is_there {
                    self.texts[Key::B as usize] = text;
                }
                Said::Number(is_there.into())
            }
        }
    }

    /// A string, at least so long.
    fn reach(&mut self, key: Key, len: usize) -> &mut Vec<u8> {
        let text = &mut self.texts[key as usize];
        text.resize(text.len().max(len), 0);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strings_are_as_the_commands_say() {
        let mut strings = Strings::default();
        let mut said = |op| strings.apply(&op);
        assert_eq!(said(Op::Dump), Said::Nothing);
        assert_eq!(said(Op::Copy), Said::Number(0));
        assert_eq!(said(Op::Set(b"ab".to_vec())), Said::Ok);
        assert_eq!(said(Op::SetRange(Key::A, 4, b"x".to_vec())), Said::Number(5));
        assert_eq!(said(Op::SetBit(Key::A, 7, false)), Said::Number(1));
        assert_eq!(said(Op::Get(Key::A)), Said::Text(b"`b\0\0x".to_vec()));
        assert_eq!(said(Op::Dump), Said::Payload);
        assert_eq!(said(Op::Append(Key::A, b"y".to_vec())), Said::Number(6));
        assert_eq!(said(Op::Restore(Vec::new())), Said::Ok);
        assert_eq!(said(Op::GetRange(Key::B, 3, 9)), Said::Text(b"\0x".to_vec()));
        assert_eq!(said(Op::GetRange(Key::B, 7, 9)), Said::Text(Vec::new()));
        assert_eq!(said(Op::Copy), Said::Number(1));
        let bytes = vec![(0, 7), (7, 8), (0, 9)];
        assert_eq!(said(Op::Bytes(Key::B, bytes)), Said::Numbers(vec![96, 0, 7]));
        assert_eq!(said(Op::GetRange(Key::B, 0, 99)), Said::Text(b"\tb\0\0xy\0\x08".to_vec()));
        assert_eq!(said(Op::StrLen(Key::B)), Said::Number(8));
    }
}
