//! Cursors, and the scan of one collection: what SCAN, HSCAN, SSCAN and ZSCAN share.

use base::glob::{Case, matches};
use base::out::OutBuf;
use resp::{Args, Proto, Reply};
use value::IntText;

use crate::collection::{Show, Text};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{integer, is};

/// Elements that SCAN visits when nothing else is said.
pub const SCAN_COUNT_DEFAULT: u64 = 10;
/// Elements that one SCAN visits at most, whatever its COUNT, which is a hint: the worker serves no
/// other client during it.
pub const SCAN_COUNT_MAX: u64 = 1 << 13;

/// How many elements a match counts for besides the one that it matches, if it may take long: at
/// most a step for each byte of the pattern and each of the text.
pub fn matching_cost(pattern: Option<&[u8]>, text: usize) -> u64 {
    pattern.map_or(0, |pattern| (pattern.len().saturating_mul(text) / MATCH_STEPS) as u64)
}

/// Steps of a match that take as long as visiting an element.
const MATCH_STEPS: usize = 100;

/// A cursor as C's `strtoul` reads it: nothing is 0, a minus sign wraps around, a NUL ends it.
pub fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0);
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let cursor = digits.iter().try_fold(0_u64, |cursor, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        cursor.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if negative { cursor.wrapping_neg() } else { cursor })
}

/// HSCAN and SSCAN under way. A cursor is a point in the 32-bit space of hashes, 0 at the beginning
/// and behind the end.
pub struct ElementScan<'a> {
    cursor: u64,
    left: u64,
    pattern: Option<&'a [u8]>,
    /// `NOVALUES`: no values of fields.
    pub names_only: bool,
    /// Hash of the last element that was visited.
    last: Option<u32>,
    next: u64,
    found: OutBuf,
    shown: usize,
}

/// The cursor of HSCAN and SSCAN.
pub fn parse_cursor_arg(ctx: &Ctx<'_, '_>) -> Result<u64, Error> {
    parse_cursor(ctx.arg(2)).ok_or(Error::InvalidCursor)
}

impl<'a> ElementScan<'a> {
    /// Reads the options behind the cursor.
    pub fn parse(args: Args<'a>, cursor: u64, has_values: bool) -> Result<Self, Error> {
        let mut scan = Self {
            cursor,
            left: SCAN_COUNT_DEFAULT,
            pattern: None,
            names_only: !has_values,
            last: None,
            next: 0,
            found: OutBuf::new(),
            shown: 0,
        };
        let mut words = args.from(3).iter();
        while let Some(word) = words.next() {
            if has_values && is(word, "NOVALUES") {
                scan.names_only = true;
                continue;
            }
            let value = words.next().ok_or(Error::Syntax)?;
            if is(word, "COUNT") {
                let count = u64::try_from(integer(value)?).ok().filter(|count| *count > 0);
                scan.left = count.ok_or(Error::Syntax)?.min(SCAN_COUNT_MAX);
            } else if is(word, "MATCH") {
                scan.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(scan)
    }

    /// The reply for a key that does not exist.
    pub fn none(reply: &mut Reply<'_>) {
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
    }

    /// The hash from which on to visit; `None` behind the last one.
    pub fn start(&self) -> Option<u32> {
        u32::try_from(self.cursor).ok()
    }

    /// True if this scan visited enough and the next one begins with this element. Elements of one
    /// hash are visited together.
    pub fn ends_before(&mut self, name: &[u8]) -> bool {
        let hash = value::hash32(name);
        if self.left == 0 && self.last != Some(hash) {
            self.next = u64::from(hash);
            return true;
        }
        self.last = Some(hash);
        self.left = self.left.saturating_sub(1 + matching_cost(self.pattern, name.len()));
        false
    }

    /// Shows an element if it matches.
    pub fn show(&mut self, name: Text<'_>, value: Text<'_>, show: Show) {
        let matched = self.pattern.is_none_or(|pattern| {
            matches(pattern, &name.bytes(&mut IntText::default()), Case::Sensitive)
        });
        if matched {
            self.shown += if show == Show::Pairs { 2 } else { 1 };
            show.write(&mut Reply::new(&mut self.found, Proto::Resp2), name, value);
        }
    }

    /// Replies the next cursor and what was shown.
    pub fn reply(self, reply: &mut Reply<'_>) {
        reply.array(2);
        reply.bulk(self.next.to_string().as_bytes());
        reply.array(self.shown);
        reply.append(&self.found);
    }
}

#[cfg(test)]
mod tests {
    use super::parse_cursor;

    /// Recorded from a real server.
    #[test]
    fn cursors_are_parsed_as_recorded() {
        let valid: [(&[u8], u64); 10] = [
            (b"0", 0),
            (b"", 0),
            (b"00", 0),
            (b"-0", 0),
            (b"+5", 5),
            (b"-1", u64::MAX),
            (b"18446744073709551615", u64::MAX),
            (b"-18446744073709551615", 1),
            (b"5\0x", 5),
            (b"\0x", 0),
        ];
        for (text, cursor) in valid {
            assert_eq!(parse_cursor(text), Some(cursor), "{text:?}");
        }
        let invalid: [&[u8]; 11] = [
            b"x",
            b"1x",
            b"0x10",
            b" 5",
            b"5 ",
            b"\t5",
            b"+",
            b"-",
            b"+-3",
            b"18446744073709551616",
            b"-18446744073709551616",
        ];
        for text in invalid {
            assert_eq!(parse_cursor(text), None, "{text:?}");
        }
    }
}
