//! Numbers and texts in a page.
//!
//! ```text
//! number  seven bits per byte, the lowest first; the highest bit says that another byte follows
//!         300: AC 02
//! text    as in crate::packed, and | 0xC9 | length, u32 little-endian | bytes |
//! ```

use crate::list::{Item, listpack_entry};
use crate::packed::Elem;

const VERY_LONG: u8 = 0xC9;
/// The longest text of the packed form.
const LONG_MAX: usize = u16::MAX as usize;
/// Lengths up to here are the tag itself.
const SHORT_MAX: u8 = 0xBF;

/// Appends a number.
#[inline]
pub fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number into the bytes that it takes ([`number_size`]).
#[inline]
pub fn write_number(out: &mut [u8], mut number: u64) {
    for byte in out.iter_mut() {
        *byte = number as u8 | 0x80;
        number >>= 7;
    }
    if let Some(last) = out.last_mut() {
        *last &= 0x7F;
    }
}

/// Bytes that a number takes.
#[inline]
pub fn number_size(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The number at an offset, which moves behind it.
#[inline]
pub fn read_number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

/// Appends a text; says what it takes in a listpack.
#[inline]
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) -> u64 {
    let elem = Elem::of(text);
    if text.len() > LONG_MAX {
        out.push(VERY_LONG);
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text);
    } else {
        elem.push(out);
    }
    listpack_text(elem)
}

/// Writes a text into the bytes that it takes ([`text_size`]); says what it takes in a listpack.
#[inline]
pub fn write_elem(out: &mut [u8], elem: Elem<'_>) -> u64 {
    match elem {
        Elem::Bytes(text) if text.len() > LONG_MAX => {
            out[0] = VERY_LONG;
            out[1..5].copy_from_slice(&(text.len() as u32).to_le_bytes());
            out[5..].copy_from_slice(text);
        }
        elem => elem.write(out),
    }
    listpack_text(elem)
}

/// Bytes that a text takes here.
#[inline]
pub fn text_size(elem: Elem<'_>) -> usize {
    match elem {
        Elem::Bytes(text) if text.len() > LONG_MAX => 5 + text.len(),
        elem => elem.size(),
    }
}

/// The text at an offset, which moves behind it.
#[inline]
pub fn read_text<'a>(bytes: &'a [u8], at: &mut usize) -> Elem<'a> {
    let rest = &bytes[*at..];
    if rest[0] == VERY_LONG {
        let len = u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize;
        *at += 5 + len;
        return Elem::Bytes(&rest[5..5 + len]);
    }
    let (elem, len) = Elem::first(rest).expect("a text stands here");
    *at += len;
    elem
}

/// The tag of a text whose length it tells.
#[inline]
pub fn short_tag(elem: Elem<'_>) -> Option<u8> {
    match elem {
        Elem::Bytes(text) if text.len() > usize::from(SHORT_MAX) => None,
        elem => Some(elem.tag()),
    }
}

/// Whether this text stands at an offset, which then moves behind it.
#[inline]
pub fn is_text(bytes: &[u8], at: &mut usize, text: &[u8]) -> bool {
    let rest = &bytes[*at..];
    if rest[0] <= SHORT_MAX {
        let is = usize::from(rest[0]) == text.len() && rest[1..=text.len()] == *text;
        *at += 1 + text.len();
        return is;
    }
    read_text(bytes, at) == Elem::of(text)
}

/// Bytes of a listpack entry of a text.
#[inline]
pub fn listpack_text(elem: Elem<'_>) -> u64 {
    listpack_entry(Item::Near(elem))
}

/// Bytes of a listpack entry of a number.
#[inline]
pub fn listpack_number(number: i64) -> u64 {
    listpack_entry(Item::Near(Elem::Int(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::string::IntText;

    #[test]
    fn all_encodings_round_trip() {
        let mut out = Vec::new();
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
            out.clear();
            push_number(&mut out, number);
            let mut at = 0;
            assert_eq!((read_number(&out, &mut at), at), (number, out.len()));
            assert_eq!(number_size(number), out.len());
            let mut written = vec![0; out.len()];
            write_number(&mut written, number);
            assert_eq!(written, out);
        }
        let mut texts: Vec<Vec<u8>> =
            [0, 1, 191, 192, 65_535, 65_536, 70_000].map(|len| vec![b'x'; len]).to_vec();
        texts.extend(["0", "47", "48", "-1", "9223372036854775807"].map(Vec::from));
        for text in &texts {
            out.clear();
            push_text(&mut out, text);
            let (mut at, mut scratch) = (0, IntText::default());
            assert_eq!(read_text(&out, &mut at).bytes(&mut scratch), text);
            assert_eq!((at, text_size(Elem::of(text))), (out.len(), out.len()));
            let mut written = vec![0; out.len()];
            write_elem(&mut written, Elem::of(text));
            assert_eq!(written, out);
            for other in &texts {
                assert_eq!(is_text(&out, &mut 0, other), text == other);
            }
        }
    }
}
