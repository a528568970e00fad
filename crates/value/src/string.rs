//! Strings: how they are stored, what they look like to a reader, and which encoding Redis names.

use base::Blob;
use base::num::{I64_TEXT_MAX, format_i64, parse_i64, text_len};
use std::borrow::Cow;

/// The longest string that `OBJECT ENCODING` calls `embstr`; a longer one is `raw`.
pub const EMBSTR_MAX: usize = 44;

/// A stored string as a reader sees it.
#[derive(Clone, Copy, Debug)]
pub enum Str<'a> {
    /// Stored as a number; its bytes are the decimal text.
    Int(i64),
    /// Stored inside the entry.
    Bytes(&'a [u8]),
    /// Stored outside the entry: a reference to it can be sent after the guard is dropped.
    Blob(&'a Blob),
}

/// Scratch space for the decimal text of an integer.
#[derive(Clone, Copy, Debug)]
pub struct IntText {
    bytes: [u8; I64_TEXT_MAX],
    start: u8,
}

impl IntText {
    /// The text of `value`.
    #[inline]
    pub fn new(value: i64) -> Self {
        let mut bytes = [0; I64_TEXT_MAX];
        let start = I64_TEXT_MAX - format_i64(&mut bytes, value).len();
        Self { bytes, start: start as u8 }
    }

    /// The digits, with the sign in front.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start as usize..]
    }
}

impl Default for IntText {
    fn default() -> Self {
        Self { bytes: [0; I64_TEXT_MAX], start: I64_TEXT_MAX as u8 }
    }
}

impl<'a> Str<'a> {
    /// Length of the text in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(value) => text_len(*value),
            Self::Bytes(bytes) => bytes.len(),
            Self::Blob(blob) => blob.len(),
        }
    }

    /// True if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text; a number is written into `scratch` first. A string of pages is copied, O(n):
    /// whoever handles long ones walks their pages.
    #[inline]
    pub fn bytes<'b>(&self, scratch: &'b mut IntText) -> Cow<'b, [u8]>
    where
        'a: 'b,
    {
        match *self {
            Self::Int(value) => {
                *scratch = IntText::new(value);
                Cow::Borrowed(scratch.as_bytes())
            }
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Blob(blob) => blob.to_slice(),
        }
    }

    /// As [`Str::bytes`], unless they are in pages. A string in pages spells no number.
    pub fn block<'b>(&self, scratch: &'b mut IntText) -> Option<Cow<'b, [u8]>>
    where
        'a: 'b,
    {
        let is_paged = matches!(self, Self::Blob(blob) if blob.is_paged());
        (!is_paged).then(|| self.bytes(scratch))
    }

    /// The text as a vector of its own, O(n).
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut IntText::default()).into_owned()
    }

    /// The value as an integer, if its text is one in Redis's strict form.
    #[inline]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bytes(bytes) => parse_i64(bytes),
            Self::Blob(blob) => blob.contiguous().and_then(parse_i64),
        }
    }
}

/// A string to store.
#[derive(Clone, Debug)]
pub enum NewStr<'a> {
    /// A number.
    Int(i64),
    /// A text of at most [`EMBSTR_MAX`] bytes which was not changed in place.
    Embstr(&'a [u8]),
    /// Any text; stays `raw` even when it is short.
    Raw(&'a [u8]),
    /// A text that is already in its final buffer.
    Blob(Blob),
}

/// Chooses the encoding of a text as Redis does: `int` if it is the canonical decimal text of a
/// 64-bit integer, else `embstr` up to [`EMBSTR_MAX`] bytes, else `raw`.
#[inline]
pub fn encode(bytes: &[u8]) -> NewStr<'_> {
    if bytes.len() <= I64_TEXT_MAX
        && let Some(value) = parse_i64(bytes)
    {
        NewStr::Int(value)
    } else if bytes.len() <= EMBSTR_MAX {
        NewStr::Embstr(bytes)
    } else {
        NewStr::Raw(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encodings_change_at_44_bytes() {
        assert!(matches!(encode(&[b'a'; 44]), NewStr::Embstr(_)));
        assert!(matches!(encode(&[b'a'; 45]), NewStr::Raw(_)));
        assert!(matches!(encode(b""), NewStr::Embstr(b"")));
        assert!(matches!(encode(b"12"), NewStr::Int(12)));
        assert!(matches!(encode(b"012"), NewStr::Embstr(_)));
    }

    proptest! {
        #[test]
        fn int_text_round_trips(value: i64) {
            let text = IntText::new(value);
            let expected = value.to_string();
            prop_assert_eq!(text.as_bytes(), expected.as_bytes());
            prop_assert_eq!(parse_i64(text.as_bytes()), Some(value));
            prop_assert_eq!(Str::Int(value).len(), text.as_bytes().len());
        }
    }
}
