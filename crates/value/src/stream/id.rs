//! The name of an entry: a time and a number within it.

use crate::tree::End;
use base::num::parse_u64;
use std::cmp::Ordering;
use std::fmt;

/// The name of an entry, in the order of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds, mostly since the epoch.
    pub ms: u64,
    /// Which one of that millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The lowest.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The highest.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// This one.
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// The next higher one; none behind the highest.
    #[inline]
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_add(1).map(|ms| Self { ms, seq: 0 }),
        }
    }

    /// The next lower one; none before the lowest.
    pub fn before(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_sub(1).map(|ms| Self { ms, seq: u64::MAX }),
        }
    }

    /// `ms-seq`, or `ms` alone with the number `seq`; nothing else.
    pub fn parse(text: &[u8], seq: u64) -> Option<Self> {
        match text.iter().position(|byte| *byte == b'-') {
            None => Some(Self { ms: parse_u64(text)?, seq }),
            Some(at) => {
                Some(Self { ms: parse_u64(&text[..at])?, seq: parse_u64(&text[at + 1..])? })
            }
        }
    }

    /// Both numbers, big-endian: ordered as the ids are.
    #[inline]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// Reads [`StreamId::to_bytes`].
    #[inline]
    pub fn of_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { ms: (both >> 64) as u64, seq: both as u64 }
    }

    /// The tree's separator before this id.
    pub(super) fn separator(self) -> crate::tree::Separator {
        crate::tree::Separator::new((self.ms >> 32) as u32, &self.to_bytes()[4..])
    }

    /// This id against a separator whose number is `ms`.
    pub(super) fn against(self, end: &End) -> Ordering {
        end.compare(&self.to_bytes()[4..])
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_ids_carry_between_their_parts() {
        let edge = StreamId::new(4, u64::MAX);
        assert_eq!(edge.next(), Some(StreamId::new(5, 0)));
        assert_eq!(StreamId::new(5, 0).before(), Some(edge));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.before()), (None, None));
        assert_eq!(StreamId::of_bytes(edge.to_bytes()), edge);
    }

    #[test]
    fn ids_are_parsed_and_formatted() {
        assert_eq!(StreamId::parse(b"7", 3), Some(StreamId::new(7, 3)));
        assert_eq!(StreamId::parse(b"7-1", 3), Some(StreamId::new(7, 1)));
        for wrong in ["", "-", "7-", "-1", "x", "7-x", "1-2-3", "18446744073709551616", "+1"] {
            assert_eq!(StreamId::parse(wrong.as_bytes(), 0), None, "{wrong}");
        }
        assert_eq!(StreamId::MAX.to_string(), "18446744073709551615-18446744073709551615");
    }
}
