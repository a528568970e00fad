//! Ziplists, read only: what Redis packed elements into before 7.0.
//!
//! ```text
//! bytes in all, u32 LE | place of the last element, u32 LE | elements, u16 LE (65535: count them)
//! element ... | 0xff
//!
//! element: length of the element before, one byte, or 0xfe and u32 LE; then
//!          00llllll text                 up to 63 bytes
//!          01llllll llllllll text        up to 16383 bytes
//!          10...... length u32 BE text   longer
//!          0xc0, 0xd0, 0xe0 integer LE   16, 32, 64 bits, signed
//!          0xf0 integer LE               24 bits, signed
//!          0xfe integer                  8 bits, signed
//!          0xf1 to 0xfd                  the integers from 0 to 12
//! ```

use crate::listpack::{Elem, int24};
use crate::{Error, Reader};

/// Bytes before the first element.
const HEADER: usize = 10;
/// An element count that says nothing.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// Ends a ziplist.
const END: u8 = 0xff;
/// A length of the element before that takes four bytes more.
const BEFORE_32: u8 = 0xfe;

/// Reads a ziplist from its start, once.
#[derive(Clone, Debug)]
pub struct Ziplist<'a> {
    reader: Reader<'a>,
    total: usize,
    tail: u32,
    count: u16,
    seen: u64,
    /// The length of the element before.
    before: usize,
}

impl<'a> Ziplist<'a> {
    /// Checks the header.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let total = u32::from_le_bytes(reader.array()?) as usize;
        let tail = u32::from_le_bytes(reader.array()?);
        let count = u16::from_le_bytes(reader.array()?);
        if total != bytes.len() {
            return Err(Error::Corrupt);
        }
        Ok(Self { reader, total, tail, count, seen: 0, before: 0 })
    }

    /// How many elements there are, if the header says it.
    pub fn count(&self) -> Option<u64> {
        (self.count != COUNT_UNKNOWN).then_some(u64::from(self.count))
    }

    /// The next element. The end checks the count, the place of the last element, and that nothing
    /// follows.
    pub fn step(&mut self) -> Result<Option<Elem<'a>>, Error> {
        let start = self.reader.rest();
        let first = self.reader.byte()?;
        if first == END {
            let place = self.total - start.len() - self.before;
            let is_right = self.count().is_none_or(|count| count == self.seen)
                && self.tail as usize == place.max(HEADER)
                && self.reader.rest().is_empty();
            return if is_right { Ok(None) } else { Err(Error::Corrupt) };
        }
        let before = match first {
            BEFORE_32 => u32::from_le_bytes(self.reader.array()?) as usize,
            len => usize::from(len),
        };
        if before != self.before {
            return Err(Error::Corrupt);
        }
        let elem = self.element()?;
        self.before = start.len() - self.reader.rest().len();
        self.seen += 1;
        Ok(Some(elem))
    }

    fn element(&mut self) -> Result<Elem<'a>, Error> {
        let reader = &mut self.reader;
        let first = reader.byte()?;
        Ok(match first {
            0..0x40 => Elem::Bytes(reader.take(u64::from(first))?),
            0x40..0x80 => {
                let len = u64::from(first & 0x3f) << 8 | u64::from(reader.byte()?);
                Elem::Bytes(reader.take(len)?)
            }
            0x80..0xc0 => {
                let len = u32::from_be_bytes(reader.array()?);
                Elem::Bytes(reader.take(u64::from(len))?)
            }
            0xc0 => Elem::Int(i64::from(i16::from_le_bytes(reader.array()?))),
            0xd0 => Elem::Int(i64::from(i32::from_le_bytes(reader.array()?))),
            0xe0 => Elem::Int(i64::from_le_bytes(reader.array()?)),
            0xf0 => Elem::Int(int24(reader.array()?)),
            0xfe => Elem::Int(i64::from(i8::from_le_bytes(reader.array()?))),
            0xf1..=0xfd => Elem::Int(i64::from(first & 0x0f) - 1),
            _ => return Err(Error::Corrupt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::num::I64_TEXT_MAX;

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut list = Ziplist::new(bytes)?;
        let mut elements = Vec::new();
        while let Some(elem) = list.step()? {
            elements.push(elem.bytes(&mut [0; I64_TEXT_MAX]).to_vec());
        }
        Ok(elements)
    }

    /// A ziplist of elements given without the length of the previous one.
    fn built(elements: &[&[u8]]) -> Vec<u8> {
        let (mut body, mut before, mut tail) = (Vec::new(), 0usize, HEADER);
        for element in elements {
            tail = HEADER + body.len();
            match u8::try_from(before) {
                Ok(len) if len < BEFORE_32 => body.push(len),
                _ => {
                    body.push(BEFORE_32);
                    body.extend_from_slice(&(before as u32).to_le_bytes());
                }
            }
            body.extend_from_slice(element);
            before = HEADER + body.len() - tail;
        }
        let mut bytes = ((HEADER + body.len() + 1) as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&(tail as u32).to_le_bytes());
        bytes.extend_from_slice(&(elements.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.push(END);
        bytes
    }

    #[test]
    fn every_encoding_of_an_element_is_read() {
        let long = [b"\x41\x2c".as_slice(), &[b'c'; 300]].concat();
        let elements: [(&[u8], &[u8]); 12] = [
            (b"\x01a", b"a"),
            (b"\0", b""),
            (&long, &[b'c'; 300]),
            (b"\x80\0\0\0\x02de", b"de"),
            (b"\xc0\xff\x7f", b"32767"),
            (b"\xd0\0\0\0\x80", b"-2147483648"),
            (b"\xe0\xff\xff\xff\xff\xff\xff\xff\x7f", b"9223372036854775807"),
            (b"\xf0\0\0\x80", b"-8388608"),
            (b"\xfe\x80", b"-128"),
            (b"\xf1", b"0"),
            (b"\xfd", b"12"),
            (b"\x02zz", b"zz"),
        ];
        let bytes = built(&elements.map(|(form, _)| form));
        assert_eq!(read(&bytes), Ok(elements.map(|(_, text)| text.to_vec()).to_vec()));
        assert_eq!(read(&built(&[])), Ok(vec![]));
        for cut in 0..bytes.len() {
            let mut bad = bytes[..cut].to_vec();
            if let Some(head) = bad.first_chunk_mut::<4>() {
                *head = (cut as u32).to_le_bytes();
            }
            assert!(read(&bad).is_err(), "{cut}");
        }
    }

    #[test]
    fn inconsistent_ziplists_are_refused() {
        let good = built(&[b"\x01a", b"\x01b"]);
        assert!(read(&good).is_ok());
        // Size, offset of the last element, count, a previous length, and two invalid elements.
        for (at, byte) in [(0, 9), (4, 10), (8, 3), (8, 1), (13, 2), (14, 0xff), (14, 0xc1)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(read(&bad).is_err(), "{at} {byte}");
        }
        let mut unknown = good.clone();
        unknown[8..10].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(read(&unknown).map(|all| all.len()), Ok(2));
    }

    proptest::proptest! {
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
