//! Requests that begin like the one before: the same number of arguments, and the same command
//! name. Clients send many of these in a row, so only what follows the name is parsed.
//!
//! ```text
//! * 2 \r \n $ 3 \r \n | G E T \r \n $ 1 6
//! first word          | second word, masked to the name
//! ```

use crate::args::Span;
use crate::frame::arguments_behind_name;

/// Longest name: what the second word holds.
const NAME_MAX: usize = 8;
/// Bytes before the name, if its length and the number of arguments have one digit each.
const HEAD: usize = 8;

/// How a request begins. No request begins like the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    head: u64,
    name: u64,
    mask: u64,
    name_len: u32,
    /// Number of arguments, 2 to 4; 0 if the request is not remembered.
    args: u32,
}

impl Beginning {
    /// The beginning of the request at `buf[at]`, which was framed as `spans`.
    #[inline]
    pub fn of(buf: &[u8], at: usize, spans: &[Span]) -> Self {
        if !(2..=4).contains(&spans.len()) {
            return Self::default();
        }
        let Some((head, name)) = words(buf, at) else { return Self::default() };
        let Span { start, len } = spans[0];
        let is_short = start as usize == at + HEAD && (1..=NAME_MAX as u32).contains(&len);
        if !is_short || buf[at] != b'*' {
            return Self::default();
        }
        let mask = u64::MAX >> (u64::BITS - len * 8);
        Self { head, name: name & mask, mask, name_len: len, args: spans.len() as u32 }
    }

    /// True if the bytes at `buf[at]` begin like this request.
    #[inline(always)]
    pub fn is_at(&self, buf: &[u8], at: usize) -> bool {
        words(buf, at)
            .is_some_and(|(head, name)| head == self.head && name & self.mask == self.name)
    }

    /// Frames the request at `buf[at]` if it is complete, begins like this one, and has short
    /// lengths: pushes its spans and returns its end. Otherwise it changes nothing, and the caller
    /// uses [`crate::frame`].
    #[inline(always)]
    pub fn frame(&self, buf: &[u8], at: usize, spans: &mut Vec<Span>) -> Option<usize> {
        if !self.is_at(buf, at) {
            return None;
        }
        let name = Span { start: (at + HEAD) as u32, len: self.name_len };
        match self.args {
            2 => arguments_behind_name::<2>(buf, name, spans),
            3 => arguments_behind_name::<3>(buf, name, spans),
            4 => arguments_behind_name::<4>(buf, name, spans),
            _ => None,
        }
    }
}

/// The two words at `buf[at]`.
#[inline(always)]
fn words(buf: &[u8], at: usize) -> Option<(u64, u64)> {
    let both: &[u8; 2 * HEAD] = buf.get(at..)?.first_chunk()?;
    let both = u128::from_le_bytes(*both);
    Some((both as u64, (both >> u64::BITS) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framed, Limits, frame};

    fn beginning(buf: &[u8]) -> Beginning {
        let mut spans = Vec::new();
        let framed = frame(buf, 0, &mut spans, &mut Vec::new(), &Limits::default());
        assert!(matches!(framed, Framed::Complete { .. }));
        Beginning::of(buf, 0, &spans)
    }

    #[test]
    fn another_name_or_argument_count_does_not_match() {
        let get = beginning(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
        let mut spans = Vec::new();
        let mut ends = |buf: &[u8]| get.frame(buf, 0, &mut spans);
        assert_eq!(ends(b"*2\r\n$3\r\nGET\r\n$2\r\nkk\r\n"), Some(21));
        assert_eq!(ends(b"*2\r\n$3\r\nSET\r\n$2\r\nkk\r\n"), None);
        assert_eq!(ends(b"*3\r\n$3\r\nGET\r\n$2\r\nkk\r\n$1\r\nv\r\n"), None);
        assert_eq!(ends(b"*2\r\n$4\r\nGETX\r\n$2\r\nkk\r\n"), None);
        assert_eq!(ends(b"*2\r\n$3\r\nGET\r\n$2\r\nkk\r"), None, "incomplete");
        assert_eq!(spans.len(), 2);
    }

    #[test]
    fn an_unsupported_request_gives_an_empty_beginning() {
        let long = beginning(b"*2\r\n$9\r\nGETTERSET\r\n$1\r\nk\r\n");
        assert_eq!((long, beginning(b"PING a very long line\r\n")), Default::default());
        assert_eq!(Beginning::default().frame(&[0; 64], 0, &mut Vec::new()), None);
    }
}
