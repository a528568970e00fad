//! Zipmaps, read only: what Redis packed small hashes into before 2.6.
//!
//! ```text
//! fields (254: count them) | field, value ... | 0xff
//!
//! field: length, one byte up to 253, or 0xfe and u32 LE; text
//! value: length, the same; unused bytes, one byte; text; so many unused bytes
//! ```

use crate::{Error, Reader};

/// A count, or a length, that says nothing by itself.
const LONG: u8 = 0xfe;
/// Ends a zipmap.
const END: u8 = 0xff;

/// Calls `each` with every field and its value; says how many there are.
pub fn read(
    bytes: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut reader = Reader::new(bytes);
    let count = reader.byte()?;
    let mut seen = 0;
    while reader.rest().first() != Some(&END) {
        let len = length(&mut reader)?;
        let field = reader.take(len)?;
        let len = length(&mut reader)?;
        let unused = reader.byte()?;
        let value = reader.take(len)?;
        reader.take(u64::from(unused))?;
        each(field, value)?;
        seen += 1;
    }
    let is_right = count == LONG || u64::from(count) == seen;
    if is_right && reader.rest().len() == 1 { Ok(seen) } else { Err(Error::Corrupt) }
}

fn length(reader: &mut Reader<'_>) -> Result<u64, Error> {
    match reader.byte()? {
        END => Err(Error::Corrupt),
        LONG => match u32::from_le_bytes(reader.array()?) {
            len if len < u32::from(LONG) => Err(Error::Corrupt),
            len => Ok(u64::from(len)),
        },
        len => Ok(u64::from(len)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair = (Vec<u8>, Vec<u8>);

    fn pairs(bytes: &[u8]) -> Result<Vec<Pair>, Error> {
        let mut pairs = Vec::new();
        let count = read(bytes, |field, value| {
            pairs.push((field.to_vec(), value.to_vec()));
            Ok(())
        })?;
        assert_eq!(count, pairs.len() as u64);
        Ok(pairs)
    }

    #[test]
    fn fields_are_read_and_inconsistent_zipmaps_refused() {
        let pair = |a: &[u8], b: &[u8]| (a.to_vec(), b.to_vec());
        let good = b"\x02\x01a\x01\x031###\x01b\x03\0xyz\xff";
        let both = vec![pair(b"a", b"1"), pair(b"b", b"xyz")];
        assert_eq!(pairs(good), Ok(both.clone()));
        let mut unknown = good.to_vec();
        unknown[0] = LONG;
        assert_eq!(pairs(&unknown), Ok(both));
        let long = [b"\x01\xfe\x2c\x01\0\0".as_slice(), &[b'f'; 300], b"\0\0\xff"].concat();
        assert_eq!(pairs(&long), Ok(vec![pair(&[b'f'; 300], b"")]));
        for cut in 0..good.len() {
            assert!(pairs(&good[..cut]).is_err(), "{cut}");
        }
        for bad in [
            &b"\x03\x01a\x01\x001\x01b\x01\0x\xff"[..], // one field too few
            b"\x01\x01a\x01\x001\xff\xff",              // a byte after the end
            b"\x01\xfe\x01\0\0\0a\x01\x001\xff",        // a long form of a short length
            b"\x01\x01a\xff",                           // a field without a value
        ] {
            assert!(pairs(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = pairs(&bytes);
        }
    }
}
