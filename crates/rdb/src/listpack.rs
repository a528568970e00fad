//! Listpacks: elements one after the other in one string.
//!
//! ```text
//! bytes in all, u32 LE | elements, u16 LE (65535: count them) | element ... | 0xff
//!
//! element: 0nnnnnnn                        an integer from 0 to 127
//!          10llllll text                   up to 63 bytes
//!          110nnnnn nnnnnnnn               a signed integer of 13 bits
//!          1110llll llllllll text          up to 4095 bytes
//!          0xf0 length u32 LE text         longer
//!          0xf1 to 0xf4 integer LE         16, 24, 32, 64 bits, signed
//! behind each element its own length, seven bits per byte, the highest first; the upper bit is
//! set in all bytes but the first
//! ```

use base::num::{I64_TEXT_MAX, format_i64, parse_i64};

use crate::{Error, Reader};

/// Bytes before the first element.
const HEADER: usize = 6;
/// An element count that says nothing.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// Ends a listpack.
const END: u8 = 0xff;
const TEXT_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;
/// First lengths that need the next form.
const TEXT_6_END: usize = 1 << 6;
const TEXT_12_END: usize = 1 << 12;
/// Texts that may be integers are no longer than this.
const INT_TEXT_MAX: usize = I64_TEXT_MAX;

/// An element of a packed container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem<'a> {
    /// Written as an integer; its bytes are the decimal text.
    Int(i64),
    /// Written as it is.
    Bytes(&'a [u8]),
}

impl Elem<'_> {
    /// Its bytes; those of an integer are written into `text`.
    pub fn bytes<'s>(&'s self, text: &'s mut [u8; I64_TEXT_MAX]) -> &'s [u8] {
        match *self {
            Self::Int(value) => format_i64(text, value),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The integer that it is.
    pub fn int(&self) -> Option<i64> {
        match *self {
            Self::Int(value) => Some(value),
            Self::Bytes(bytes) => parse_i64(bytes),
        }
    }
}

/// Reads a listpack from its start, once.
#[derive(Clone, Debug)]
pub struct Listpack<'a> {
    reader: Reader<'a>,
    count: u16,
    seen: u64,
}

impl<'a> Listpack<'a> {
    /// Checks the header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let total = u32::from_le_bytes(reader.array()?);
        let count = u16::from_le_bytes(reader.array()?);
        if total as usize != bytes.len() {
            return Err(Error::Corrupt);
        }
        Ok(Self { reader, count, seen: 0 })
    }

    /// How many elements there are, if the header says it.
    pub fn count(&self) -> Option<u64> {
        (self.count != COUNT_UNKNOWN).then_some(u64::from(self.count))
    }

    /// The next element. The end checks the count, and that nothing follows.
    pub fn step(&mut self) -> Result<Option<Elem<'a>>, Error> {
        let before = self.reader.rest();
        let first = self.reader.byte()?;
        if first == END {
            let is_right = self.count().is_none_or(|count| count == self.seen);
            let ends = self.reader.rest().is_empty();
            return if is_right && ends { Ok(None) } else { Err(Error::Corrupt) };
        }
        let reader = &mut self.reader;
        let elem = match first {
            0..0x80 => Elem::Int(i64::from(first)),
            0x80..0xc0 => Elem::Bytes(reader.take(u64::from(first & 0x3f))?),
            0xc0..0xe0 => {
                let value = i64::from(first & 0x1f) << 8 | i64::from(reader.byte()?);
                Elem::Int(if value < 1 << 12 { value } else { value - (1 << 13) })
            }
            0xe0..TEXT_32 => {
                let len = u64::from(first & 0x0f) << 8 | u64::from(reader.byte()?);
                Elem::Bytes(reader.take(len)?)
            }
            TEXT_32 => {
                let len = u32::from_le_bytes(reader.array()?);
                Elem::Bytes(reader.take(u64::from(len))?)
            }
            INT_16 => Elem::Int(i64::from(i16::from_le_bytes(reader.array()?))),
            INT_24 => Elem::Int(int24(reader.array()?)),
            INT_32 => Elem::Int(i64::from(i32::from_le_bytes(reader.array()?))),
            INT_64 => Elem::Int(i64::from_le_bytes(reader.array()?)),
            _ => return Err(Error::Corrupt),
        };
        let (back, len) = back(before.len() - reader.rest().len());
        if reader.take(len as u64)? != &back[..len] {
            return Err(Error::Corrupt);
        }
        self.seen += 1;
        Ok(Some(elem))
    }
}

/// A signed integer of three bytes.
pub(crate) fn int24([a, b, c]: [u8; 3]) -> i64 {
    i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)
}

/// The length of an element as it stands behind it, and how many bytes that takes.
fn back(len: usize) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let count = back_len(len);
    for (at, byte) in bytes[..count].iter_mut().enumerate() {
        let seven = (len >> (7 * (count - 1 - at)) & 0x7f) as u8;
        *byte = if at == 0 { seven } else { seven | 0x80 };
    }
    (bytes, count)
}

/// How many groups of seven bits a length has.
fn back_len(len: usize) -> usize {
    (len.max(1).ilog2() / 7 + 1) as usize
}

/// The bytes that `element` takes in a listpack.
pub fn size(element: &[u8]) -> usize {
    let len = match text_int(element) {
        Some(value) => 1 + int_bytes(value),
        None if element.len() < TEXT_6_END => 1 + element.len(),
        None if element.len() < TEXT_12_END => 2 + element.len(),
        None => 5 + element.len(),
    };
    len + back_len(len)
}

/// The size of a listpack whose elements take `bytes`.
pub const fn total(bytes: usize) -> usize {
    HEADER + bytes + 1
}

fn text_int(element: &[u8]) -> Option<i64> {
    if element.len() <= INT_TEXT_MAX { parse_i64(element) } else { None }
}

/// How many bytes follow the first one of an integer.
fn int_bytes(value: i64) -> usize {
    match value {
        0..128 => 0,
        -4096..4096 => 1,
        -0x8000..0x8000 => 2,
        -0x80_0000..0x80_0000 => 3,
        -0x8000_0000..0x8000_0000 => 4,
        _ => 8,
    }
}

/// Makes a listpack.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self { bytes: vec![0; HEADER], count: 0 }
    }
}

impl Builder {
    /// Forgets what it has.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        self.count = 0;
    }

    /// True if nothing was pushed.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends an element, as an integer if its text is one.
    pub fn push(&mut self, element: &[u8]) {
        if let Some(value) = text_int(element) {
            return self.push_int(value);
        }
        let start = self.bytes.len();
        let len = element.len();
        if len < TEXT_6_END {
            self.bytes.push(0x80 | len as u8);
        } else if len < TEXT_12_END {
            self.bytes.extend_from_slice(&(0xe000 | len as u16).to_be_bytes());
        } else {
            self.bytes.push(TEXT_32);
            self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
        }
        self.bytes.extend_from_slice(element);
        self.close(start);
    }

    /// Appends an integer.
    pub fn push_int(&mut self, value: i64) {
        let start = self.bytes.len();
        let word = value.to_le_bytes();
        match int_bytes(value) {
            0 => self.bytes.push(value as u8),
            1 => self.bytes.extend_from_slice(&(0xc000 | value as u16 & 0x1fff).to_be_bytes()),
            many => {
                self.bytes.push(if many == 8 { INT_64 } else { INT_16 + many as u8 - 2 });
                self.bytes.extend_from_slice(&word[..many]);
            }
        }
        self.close(start);
    }

    /// Puts the length behind the element from `start` on.
    fn close(&mut self, start: usize) {
        let (bytes, len) = back(self.bytes.len() - start);
        self.bytes.extend_from_slice(&bytes[..len]);
        self.count += 1;
    }

    /// The listpack. The builder takes nothing more before [`Builder::clear`].
    pub fn finish(&mut self) -> &[u8] {
        self.bytes.push(END);
        let total = u32::try_from(self.bytes.len()).expect("a listpack is shorter than 4 GiB");
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn built(elements: &[Vec<u8>]) -> Vec<u8> {
        let mut builder = Builder::default();
        for element in elements {
            builder.push(element);
        }
        builder.finish().to_vec()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut pack = Listpack::new(bytes)?;
        let mut elements = Vec::new();
        while let Some(elem) = pack.step()? {
            elements.push(elem.bytes(&mut [0; I64_TEXT_MAX]).to_vec());
        }
        Ok(elements)
    }

    fn texts(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// From DUMP of redis-server 7.0: `RPUSH l a0 a1 a2`.
    #[test]
    fn a_listpack_of_the_real_server_is_read() {
        let bytes = b"\x13\0\0\0\x03\0\x82a0\x03\x82a1\x03\x82a2\x03\xff";
        assert_eq!(read(bytes), Ok(texts(&["a0", "a1", "a2"])));
        assert_eq!(built(&texts(&["a0", "a1", "a2"])), bytes);
    }

    #[test]
    fn integers_at_their_limits_round_trip() {
        for (value, bytes) in [
            (0i64, &[0, 1][..]),
            (127, &[127, 1]),
            (128, &[0xc0, 128, 2]),
            (-1, &[0xdf, 0xff, 2]),
            (4095, &[0xcf, 0xff, 2]),
            (-4096, &[0xd0, 0, 2]),
            (4096, &[0xf1, 0, 0x10, 3]),
            (-32_768, &[0xf1, 0, 0x80, 3]),
            (32_768, &[0xf2, 0, 0x80, 0, 4]),
            (-8_388_608, &[0xf2, 0, 0, 0x80, 4]),
            (8_388_608, &[0xf3, 0, 0, 0x80, 0, 5]),
            (i64::from(i32::MIN), &[0xf3, 0, 0, 0, 0x80, 5]),
            (i64::MAX, &[0xf4, 255, 255, 255, 255, 255, 255, 255, 0x7f, 9]),
        ] {
            let text = value.to_string().into_bytes();
            let pack = built(std::slice::from_ref(&text));
            assert_eq!(pack[HEADER..pack.len() - 1], *bytes, "{value}");
            assert_eq!(size(&text), bytes.len());
            assert_eq!(read(&pack), Ok(vec![text]));
        }
    }

    #[test]
    fn back_lengths_take_one_to_five_bytes() {
        for (len, bytes) in [
            (1, &[1][..]),
            (127, &[127]),
            (128, &[1, 0x80]),
            (16_383, &[127, 255]),
            (16_384, &[1, 0x80, 0x80]),
            (2_097_151, &[127, 255, 255]),
            (2_097_152, &[1, 0x80, 0x80, 0x80]),
            (268_435_456, &[1, 0x80, 0x80, 0x80, 0x80]),
        ] {
            let (found, count) = back(len);
            assert_eq!(&found[..count], bytes, "{len}");
        }
        for len in [63, 64, 126, 4095, 4096, 20_000] {
            let element = vec![b'x'; len];
            let pack = built(std::slice::from_ref(&element));
            assert_eq!(pack.len(), total(size(&element)));
            assert_eq!(read(&pack), Ok(vec![element]));
        }
    }

    #[test]
    fn more_elements_than_the_header_can_count_are_read() {
        for count in [65_534, 65_535, 65_536] {
            let elements = vec![b"1".to_vec(); count];
            let pack = built(&elements);
            let known = Listpack::new(&pack).expect("a header").count();
            assert_eq!(known.is_some(), count < 65_535);
            assert_eq!(read(&pack).map(|all| all.len()), Ok(count));
        }
    }

    #[test]
    fn inconsistent_listpacks_are_refused() {
        let good = built(&texts(&["a", "5", "bc"]));
        assert!(read(&good).is_ok());
        for (at, byte) in [(0, 99), (4, 2), (4, 4), (6, 0xf5), (6, 0xfe), (6, 0xff), (8, 3)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(read(&bad).is_err(), "{at} {byte}");
        }
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err());
            let mut bad = good[..cut].to_vec();
            if let Some(head) = bad.first_chunk_mut::<4>() {
                *head = (cut as u32).to_le_bytes();
            }
            assert!(read(&bad).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn elements_round_trip(elements in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            (any::<i64>(), 0..64u32).prop_map(|(n, by)| (n >> by).to_string().into_bytes()),
            (0..6000usize).prop_map(|len| vec![b'y'; len]),
        ], 0..30)) {
            let pack = built(&elements);
            let sizes: usize = elements.iter().map(|element| size(element)).sum();
            prop_assert_eq!(pack.len(), total(sizes));
            prop_assert_eq!(read(&pack), Ok(elements));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(mut bytes: Vec<u8>) {
            let len = bytes.len() as u32;
            if let Some(head) = bytes.first_chunk_mut::<4>() {
                *head = len.to_le_bytes();
            }
            let _ = read(&bytes);
        }
    }
}
