//! Ids of entries, as arguments write them.

use value::StreamId;

use crate::error::Error;

/// The longest text that can be an id, bytes.
const ID_TEXT_MAX: usize = 127;

/// A number of an id: as `strtoull` reads it, blanks, a plus and zeros before it included
/// (recorded).
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// An id as it is written out: `ms-seq`, or `ms` alone with this number.
pub(super) fn strict_id(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    let parse = || {
        if text.len() > ID_TEXT_MAX {
            return None;
        }
        match text.iter().position(|byte| *byte == b'-') {
            None => Some(StreamId::new(number(text)?, seq)),
            Some(at) => Some(StreamId::new(number(&text[..at])?, number(&text[at + 1..])?)),
        }
    };
    parse().ok_or(Error::StreamId)
}

/// An id, or `-` for the lowest and `+` for the highest.
pub(super) fn id(text: &[u8], seq: u64) -> Result<StreamId, Error> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        text => strict_id(text, seq),
    }
}

/// The lower end of a range, which is included: an id, `-`, or `(` and an id that is not.
pub(super) fn range_start(text: &[u8]) -> Result<StreamId, Error> {
    match text.strip_prefix(b"(") {
        None => id(text, 0),
        Some(text) => strict_id(text, 0)?.next().ok_or(Error::StreamRangeStart),
    }
}

/// The upper end of a range, likewise.
pub(super) fn range_end(text: &[u8]) -> Result<StreamId, Error> {
    match text.strip_prefix(b"(") {
        None => id(text, u64::MAX),
        Some(text) => strict_id(text, u64::MAX)?.before().ok_or(Error::StreamRangeEnd),
    }
}

/// The id that XADD is given.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// `*`: the time, or more.
    Any,
    /// `ms-*`.
    At(u64),
    /// This one.
    Exactly(StreamId),
}

impl Wanted {
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        if text == b"*" {
            return Ok(Self::Any);
        }
        match text.strip_suffix(b"-*").filter(|ms| !ms.contains(&b'-')) {
            Some(ms) => number(ms).map(Self::At).ok_or(Error::StreamId),
            None => strict_id(text, 0).map(Self::Exactly),
        }
    }

    /// The id itself, which is higher than the last one.
    pub fn choose(self, last: StreamId, now_ms: u64) -> Result<StreamId, Error> {
        if last == StreamId::MAX {
            return Err(Error::StreamIdsExhausted);
        }
        let id = match self {
            Self::Any if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            Self::Any => last.next(),
            Self::At(ms) if ms > last.ms => Some(StreamId::new(ms, 0)),
            Self::At(ms) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq))
            }
            Self::At(_) => None,
            Self::Exactly(id) => Some(id).filter(|id| *id > last),
        };
        id.ok_or(Error::StreamIdTooLow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_and_completed() {
        for (text, expected) in [("7", (7, 3)), ("007-+01", (7, 1)), (" 8-2", (8, 2))] {
            let id = strict_id(text.as_bytes(), 3).expect(text);
            assert_eq!((id.ms, id.seq), expected, "{text}");
        }
        for wrong in ["", "-", "7-", "-1", "x", "7-x", "1-2-3", "18446744073709551616", "1 "] {
            assert!(strict_id(wrong.as_bytes(), 0).is_err(), "{wrong}");
        }
        assert_eq!(range_start(b"(5").expect("an id"), StreamId::new(5, 1));
        assert_eq!(range_end(b"(5-0").expect("an id"), StreamId::new(4, u64::MAX));
    }
}
