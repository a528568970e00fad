//! Lengths, strings and doubles: what all types are made of.

use std::borrow::Cow;

use base::num::{I64_TEXT_MAX, format_i64, parse_i64};

use crate::lzf::{self, Compressor};
use crate::{Error, STRING_MAX};

/// First bytes of lengths that take more than two.
const LEN_32: u8 = 0x80;
const LEN_64: u8 = 0x81;
/// The upper two bits of a first byte.
const FORM: u8 = 0xc0;
/// First bytes of strings that are not plain.
const INT_8: u8 = 0xc0;
const INT_16: u8 = 0xc1;
const INT_32: u8 = 0xc2;
pub(crate) const LZF: u8 = 0xc3;
/// Lengths of a score as text that are none.
const TEXT_NAN: u8 = 253;
const TEXT_INF: u8 = 254;
const TEXT_NEG_INF: u8 = 255;
/// Strings up to here are never compressed.
const COMPRESS_ABOVE: usize = 20;
/// Compression must save more than so many bytes.
pub(crate) const COMPRESS_SAVES: usize = 4;
/// Texts up to here may become a 32-bit integer.
const INT_TEXT_MAX: usize = 11;

/// Bytes being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// How a string begins.
pub(crate) enum Head {
    Plain(u64),
    Int(i64),
    Lzf,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, Error> {
        let (&byte, rest) = self.rest.split_first().ok_or(Error::Short)?;
        self.rest = rest;
        Ok(byte)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Error> {
        let len = usize::try_from(len).map_err(|_| Error::Short)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Error::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Error::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A length.
    pub fn length(&mut self) -> Result<u64, Error> {
        match self.head()? {
            Head::Plain(len) => Ok(len),
            Head::Int(_) | Head::Lzf => Err(Error::Corrupt),
        }
    }

    /// A number of items which take at least `least` bytes each: more than the rest could hold are
    /// an error, and so is none.
    pub fn count(&mut self, least: usize) -> Result<u64, Error> {
        self.count_in(least, 0)
    }

    /// As [`Reader::count`], where up to `further` bytes follow the rest.
    pub(crate) fn count_in(&mut self, least: usize, further: u64) -> Result<u64, Error> {
        let count = self.length()?;
        let bytes = further.saturating_add(self.rest.len() as u64);
        match count {
            0 => Err(Error::Empty),
            count if count <= bytes / least as u64 => Ok(count),
            _ => Err(Error::Short),
        }
    }

    /// As [`Reader::count`], where none is no error.
    pub fn count_or_none(&mut self, least: usize) -> Result<u64, Error> {
        match self.count(least) {
            Err(Error::Empty) => Ok(0),
            count => count,
        }
    }

    /// A double, 8 bytes.
    pub fn double(&mut self) -> Result<f64, Error> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A double as text behind the length of the text.
    pub fn text_double(&mut self) -> Result<f64, Error> {
        match self.byte()? {
            TEXT_NAN => Ok(f64::NAN),
            TEXT_INF => Ok(f64::INFINITY),
            TEXT_NEG_INF => Ok(f64::NEG_INFINITY),
            len => base::double::parse(self.take(u64::from(len))?).ok_or(Error::Corrupt),
        }
    }

    /// A string. One that is compressed, or an integer, is written into `scratch`.
    pub fn string<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Error>
    where
        'a: 's,
    {
        match self.head()? {
            Head::Plain(len) => self.take(len),
            Head::Int(value) => {
                scratch.clear();
                scratch.extend_from_slice(format_i64(&mut [0; I64_TEXT_MAX], value));
                Ok(scratch)
            }
            Head::Lzf => {
                scratch.clear();
                self.compressed(scratch)?;
                Ok(scratch)
            }
        }
    }

    fn compressed(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let (packed, len) = (self.length()?, self.length()?);
        if len > STRING_MAX {
            return Err(Error::Corrupt);
        }
        lzf::decompress(self.take(packed)?, len as usize, out)
    }

    pub(crate) fn head(&mut self) -> Result<Head, Error> {
        let first = self.byte()?;
        Ok(match first & FORM {
            0x00 => Head::Plain(u64::from(first)),
            0x40 => Head::Plain(u64::from(first & !FORM) << 8 | u64::from(self.byte()?)),
            _ => match first {
                LEN_32 => Head::Plain(u64::from(u32::from_be_bytes(self.array()?))),
                LEN_64 => Head::Plain(u64::from_be_bytes(self.array()?)),
                INT_8 => Head::Int(i64::from(i8::from_le_bytes(self.array()?))),
                INT_16 => Head::Int(i64::from(i16::from_le_bytes(self.array()?))),
                INT_32 => Head::Int(i64::from(i32::from_le_bytes(self.array()?))),
                LZF => Head::Lzf,
                _ => return Err(Error::Corrupt),
            },
        })
    }
}

/// A string by itself: a key, or a value of type 0.
pub fn load_string<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, Error> {
    match reader.head()? {
        Head::Plain(len) if len > STRING_MAX => Err(Error::Corrupt),
        Head::Plain(len) => Ok(Cow::Borrowed(reader.take(len)?)),
        Head::Int(value) => Ok(Cow::Owned(format_i64(&mut [0; I64_TEXT_MAX], value).to_vec())),
        Head::Lzf => {
            let mut text = Vec::new();
            reader.compressed(&mut text)?;
            Ok(Cow::Owned(text))
        }
    }
}

/// Appends a length.
pub fn put_length(out: &mut Vec<u8>, len: u64) {
    if len < 1 << 6 {
        out.push(len as u8);
    } else if len < 1 << 14 {
        out.extend_from_slice(&(len as u16 | 0x4000).to_be_bytes());
    } else if let Ok(len) = u32::try_from(len) {
        out.push(LEN_32);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(LEN_64);
        out.extend_from_slice(&len.to_be_bytes());
    }
}

/// Appends a string: as an integer where its text is one of at most 32 bits, compressed where a
/// `compressor` is given and it saves enough, else plain.
pub fn put_string(out: &mut Vec<u8>, bytes: &[u8], compressor: Option<&mut Compressor>) {
    if bytes.len() <= INT_TEXT_MAX
        && let Some(value) = parse_i64(bytes).and_then(|value| i32::try_from(value).ok())
    {
        return put_int(out, value);
    }
    put_blob(out, bytes, compressor);
}

/// Appends a string that is no integer: a packed container.
pub fn put_blob(out: &mut Vec<u8>, bytes: &[u8], compressor: Option<&mut Compressor>) {
    if bytes.len() > COMPRESS_ABOVE
        && let Some(packed) =
            compressor.and_then(|one| one.compress(bytes, bytes.len() - COMPRESS_SAVES - 1))
    {
        out.push(LZF);
        put_length(out, packed.len() as u64);
        put_length(out, bytes.len() as u64);
        out.extend_from_slice(packed);
    } else {
        put_length(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

fn put_int(out: &mut Vec<u8>, value: i32) {
    if let Ok(value) = i8::try_from(value) {
        out.extend_from_slice(&[INT_8, value as u8]);
    } else if let Ok(value) = i16::try_from(value) {
        out.push(INT_16);
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        out.push(INT_32);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(len: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_length(&mut out, len);
        out
    }

    #[test]
    fn lengths_at_their_limits_round_trip() {
        for (len, bytes) in [
            (0, &[0][..]),
            (63, &[63]),
            (64, &[0x40, 64]),
            (16_383, &[0x7f, 0xff]),
            (16_384, &[0x80, 0, 0, 0x40, 0]),
            (u64::from(u32::MAX), &[0x80, 255, 255, 255, 255]),
            (1 << 32, &[0x81, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[0x81, 255, 255, 255, 255, 255, 255, 255, 255]),
        ] {
            assert_eq!(written(len), bytes);
            assert_eq!(Reader::new(bytes).length(), Ok(len));
            for cut in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..cut]).length(), Err(Error::Short));
            }
        }
        assert_eq!(Reader::new(&[0x82, 0, 0, 0, 1]).length(), Err(Error::Corrupt));
        assert_eq!(Reader::new(&[0xc0, 1]).length(), Err(Error::Corrupt));
    }

    #[test]
    fn counts_are_bounded_by_the_bytes_left() {
        assert_eq!(Reader::new(&[2, 0, 0, 0, 0]).count(2), Ok(2));
        assert_eq!(Reader::new(&[2, 0, 0, 0]).count(2), Err(Error::Short));
        assert_eq!(Reader::new(&[0, 1]).count(1), Err(Error::Empty));
    }

    /// Recorded from DUMP of redis-server 7.0.
    #[test]
    fn strings_match_the_real_server() {
        let mut compressor = Compressor::default();
        for (text, bytes) in [
            (&b""[..], &b"\0"[..]),
            (b"-1", b"\xc0\xff"),
            (b"127", b"\xc0\x7f"),
            (b"256", b"\xc1\0\x01"),
            (b"1234567890", b"\xc2\xd2\x02\x96\x49"),
            (b"-2147483648", b"\xc2\0\0\0\x80"),
            (b"2147483648", b"\x0a2147483648"),
            (b"+1", b"\x02+1"),
            (b"01", b"\x0201"),
            (&[b'a'; 20], b"\x14aaaaaaaaaaaaaaaaaaaa"),
        ] {
            let mut out = Vec::new();
            put_string(&mut out, text, Some(&mut compressor));
            assert_eq!(out, bytes, "{}", text.escape_ascii());
            let mut reader = Reader::new(bytes);
            assert_eq!(load_string(&mut reader).as_deref(), Ok(text));
            assert_eq!(reader.rest(), b"");
        }
        // Compressed from 21 bytes on. A compressor may choose among encodings.
        let packed = b"\xc3\x06\x15\x01aa\xe0\x0a\0";
        assert_eq!(load_string(&mut Reader::new(packed)).as_deref(), Ok(&[b'a'; 21][..]));
        let mut out = Vec::new();
        put_string(&mut out, &[b'a'; 21], Some(&mut compressor));
        assert_eq!(out, b"\xc3\x05\x15\0a\xe0\x0b\0");
    }

    #[test]
    fn text_and_binary_doubles_are_read() {
        let text = |bytes: &[u8]| Reader::new(bytes).text_double();
        assert_eq!(text(b"\x031.5"), Ok(1.5));
        assert_eq!(text(b"\xfe"), Ok(f64::INFINITY));
        assert_eq!(text(b"\xff"), Ok(f64::NEG_INFINITY));
        assert!(text(b"\xfd").is_ok_and(f64::is_nan));
        assert_eq!(text(b"\x03abc"), Err(Error::Corrupt));
        assert_eq!(text(b"\0"), Err(Error::Corrupt));
        assert_eq!(text(b"\x041.5"), Err(Error::Short));
        assert_eq!(Reader::new(&(-2.5f64).to_le_bytes()).double(), Ok(-2.5));
    }

    proptest! {
        #[test]
        fn strings_round_trip(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..100),
            prop::collection::vec(0u8..3, 0..600),
            any::<i64>().prop_map(|n| n.to_string().into_bytes()),
            any::<i16>().prop_map(|n| n.to_string().into_bytes()),
        ], squeeze: bool) {
            let mut compressor = Compressor::default();
            let mut out = Vec::new();
            put_string(&mut out, &bytes, squeeze.then_some(&mut compressor));
            let mut reader = Reader::new(&out);
            let read = load_string(&mut reader);
            prop_assert_eq!(read.as_deref(), Ok(&*bytes));
            prop_assert_eq!(reader.rest(), b"");
            let mut scratch = Vec::new();
            prop_assert_eq!(Reader::new(&out).string(&mut scratch), Ok(&*bytes));
        }
    }
}
