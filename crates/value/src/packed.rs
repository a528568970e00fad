//! Small collections: one element after the other, in a buffer that stands in its key's entry.
//!
//! ```text
//! | tag | payload | tag | payload | ...
//!
//! tag          payload
//! 0x00..=0xBF  so many bytes of text                                 "ab"  02 61 62
//! 0xC0         length, u16 little-endian, and that many bytes
//! 0xC1..=0xC8  an integer of 1 to 8 bytes, little-endian              300  C2 2C 01
//! 0xD0..=0xFF  none: the integer is the tag minus 0xD0, 0 to 47         5  D5
//! ```
//!
//! A text that is the canonical decimal form of a 64-bit integer is stored as that integer. A set
//! has its members in such a buffer, a list its elements; [`crate::hash`] and [`crate::zset`] draw
//! theirs.

use crate::string::IntText;
use base::num::{I64_TEXT_MAX, parse_i64, text_len};

/// The longest buffer in an entry, unless one of the next two applies; a larger collection is a
/// tree.
pub const PACKED_MAX: usize = 4096;
/// The same for a set of integers: 512 of 8 bytes, the most that are listed in their order by
/// default, take 9 bytes each.
pub const PACKED_INTS_MAX: usize = 8192;
/// The same for a hash or a set that is called listpack, which shows the order of insertion. What
/// outgrows it is called hashtable, though Redis's default limits let a listpack grow to some 67
/// KB: an entry holds no more than 16 KiB, a lookup walks a packed value from its start, and a
/// write copies it, which a tree's page spares.
pub const LISTPACK_MAX: usize = 15 * 1024;
const SHORT_MAX: usize = 0xBF;
const LONG: u8 = 0xC0;
const TINY: u8 = 0xD0;
const TINY_MAX: i64 = 47;

/// An element as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem<'a> {
    /// A number; its bytes are the decimal text.
    Int(i64),
    /// Any other text.
    Bytes(&'a [u8]),
}

impl<'a> Elem<'a> {
    /// How a text is stored.
    #[inline]
    pub fn of(text: &'a [u8]) -> Self {
        if text.len() <= I64_TEXT_MAX
            && let Some(value) = parse_i64(text)
        {
            Self::Int(value)
        } else {
            Self::Bytes(text)
        }
    }

    /// The text; a number is written into `scratch` first.
    #[inline]
    pub fn bytes<'b>(self, scratch: &'b mut IntText) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Int(value) => {
                *scratch = IntText::new(value);
                scratch.as_bytes()
            }
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The text as a vector of its own.
    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut IntText::default()).to_vec()
    }

    /// Length of the text.
    pub fn len(self) -> usize {
        match self {
            Self::Int(value) => text_len(value),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// True if the text is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Bytes it takes in a buffer.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            Self::Int(0..=TINY_MAX) => 1,
            Self::Int(value) => 1 + int_bytes(value),
            Self::Bytes(bytes) if bytes.len() <= SHORT_MAX => 1 + bytes.len(),
            Self::Bytes(bytes) => 3 + bytes.len(),
        }
    }

    /// Its tag: its kind, and mostly its length.
    #[inline]
    pub fn tag(self) -> u8 {
        match self {
            Self::Int(value @ 0..=TINY_MAX) => TINY + value as u8,
            Self::Int(value) => LONG + int_bytes(value) as u8,
            Self::Bytes(bytes) if bytes.len() <= SHORT_MAX => bytes.len() as u8,
            Self::Bytes(_) => LONG,
        }
    }

    /// Appends it to a buffer. A text is shorter than 64 KiB.
    #[inline]
    pub fn push(self, out: &mut Vec<u8>) {
        out.push(self.tag());
        self.push_payload(out);
    }

    /// Appends the payload.
    #[inline]
    pub fn push_payload(self, out: &mut Vec<u8>) {
        match self {
            Self::Int(0..=TINY_MAX) => {}
            Self::Int(value) => {
                out.extend_from_slice(&value.to_le_bytes()[..int_bytes(value)]);
            }
            Self::Bytes(bytes) => {
                if bytes.len() > SHORT_MAX {
                    let len = u16::try_from(bytes.len()).expect("packed elements are short");
                    out.extend_from_slice(&len.to_le_bytes());
                }
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Writes it into the bytes that it takes ([`Elem::size`]).
    #[inline]
    pub fn write(self, out: &mut [u8]) {
        let (tag, rest) = out.split_first_mut().expect("as many bytes as it takes");
        *tag = self.tag();
        self.write_payload(rest);
    }

    /// Writes the payload into the bytes that it takes: one less than [`Elem::size`].
    #[inline]
    pub fn write_payload(self, out: &mut [u8]) {
        match self {
            Self::Int(value) => out.copy_from_slice(&value.to_le_bytes()[..out.len()]),
            Self::Bytes(text) => {
                let (len, bytes) = out.split_at_mut(out.len() - text.len());
                if !len.is_empty() {
                    let short = u16::try_from(text.len()).expect("packed elements are short");
                    len.copy_from_slice(&short.to_le_bytes());
                }
                bytes.copy_from_slice(text);
            }
        }
    }

    /// The first element of a buffer, and how long it is there.
    #[inline]
    pub fn first(buffer: &'a [u8]) -> Option<(Self, usize)> {
        let (&tag, rest) = buffer.split_first()?;
        let (elem, len) = Self::tagged(tag, rest);
        Some((elem, 1 + len))
    }

    /// The element of a tag whose payload stands at the start of `rest`, and the payload's length.
    #[inline]
    pub fn tagged(tag: u8, rest: &'a [u8]) -> (Self, usize) {
        match tag {
            0..=0xBF => (Self::Bytes(&rest[..tag as usize]), tag as usize),
            LONG => {
                let len = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
                (Self::Bytes(&rest[2..2 + len]), 2 + len)
            }
            TINY.. => (Self::Int(i64::from(tag - TINY)), 0),
            _ => {
                let len = usize::from(tag - LONG);
                let mut bytes = if rest[len - 1] & 0x80 == 0 { [0; 8] } else { [0xFF; 8] };
                bytes[..len].copy_from_slice(&rest[..len]);
                (Self::Int(i64::from_le_bytes(bytes)), len)
            }
        }
    }
}

/// Bytes that hold a number with its sign.
#[inline]
fn int_bytes(value: i64) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    8 - (magnitude.leading_zeros() as usize - 1) / 8
}

/// Appends an element.
#[inline]
pub fn push(out: &mut Vec<u8>, text: &[u8]) {
    Elem::of(text).push(out);
}

/// Bytes that an element takes.
#[inline]
pub fn size(text: &[u8]) -> usize {
    Elem::of(text).size()
}

/// Bytes that the first element of a buffer takes.
#[inline]
pub fn skip(buffer: &[u8]) -> usize {
    match buffer[0] {
        len @ 0..=0xBF => 1 + usize::from(len),
        LONG => 3 + usize::from(u16::from_le_bytes([buffer[1], buffer[2]])),
        TINY.. => 1,
        tag => 1 + usize::from(tag - LONG),
    }
}

/// The elements of a buffer that [`push`] has filled.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    /// The buffer.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The elements from the first on.
    #[inline]
    pub fn iter(self) -> PackedIter<'a> {
        self.iter_at(0)
    }

    /// The elements from the one that starts at this offset.
    #[inline]
    pub fn iter_at(self, offset: usize) -> PackedIter<'a> {
        PackedIter { buffer: self.0, at: offset }
    }

    /// Elements, O(n).
    pub fn count(self) -> usize {
        let (mut at, mut count) = (0, 0);
        while at < self.0.len() {
            at += skip(&self.0[at..]);
            count += 1;
        }
        count
    }
}

impl<'a> IntoIterator for Packed<'a> {
    type Item = Elem<'a>;
    type IntoIter = PackedIter<'a>;

    fn into_iter(self) -> PackedIter<'a> {
        self.iter()
    }
}

/// Elements one after the other.
#[derive(Clone, Debug)]
pub struct PackedIter<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl PackedIter<'_> {
    /// Where the next element starts.
    #[inline]
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        let (elem, len) = Elem::first(&self.buffer[self.at..])?;
        self.at += len;
        Some(elem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_use_the_shortest_encoding() {
        for (value, bytes) in [
            (0, 1),
            (47, 1),
            (48, 2),
            (-1, 2),
            (127, 2),
            (128, 3),
            (-128, 2),
            (-129, 3),
            (32767, 3),
            (32768, 4),
            (12_345_678, 5),
            (i64::MAX, 9),
            (i64::MIN, 9),
        ] {
            assert_eq!(Elem::Int(value).size(), bytes, "{value}");
        }
        assert_eq!(size(b"012"), 4, "not canonical: a text");
        assert_eq!((size(b""), size(&[b'a'; 191]), size(&[b'a'; 192])), (1, 192, 195));
    }

    proptest! {
        #[test]
        fn pushed_elements_are_read_back(texts in proptest::collection::vec(prop_oneof![
            any::<i64>().prop_map(|n| n.to_string().into_bytes()),
            (-300..300i64).prop_map(|n| n.to_string().into_bytes()),
            proptest::collection::vec(any::<u8>(), 0..300),
        ], 0..40)) {
            let mut buffer = Vec::new();
            for text in &texts {
                let before = buffer.len();
                push(&mut buffer, text);
                prop_assert_eq!(buffer.len() - before, size(text));
            }
            let read: Vec<Vec<u8>> = Packed::new(&buffer).iter().map(Elem::to_vec).collect();
            prop_assert_eq!(&read, &texts);
            prop_assert_eq!(Packed::new(&buffer).count(), texts.len());
            let lens: Vec<usize> = Packed::new(&buffer).iter().map(Elem::len).collect();
            prop_assert!(lens.iter().eq(&texts.iter().map(Vec::len).collect::<Vec<_>>()));
        }
    }
}
