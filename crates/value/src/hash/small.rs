//! Small hashes: fields and values by turns in one buffer ([`crate::packed`]), in the order in
//! which they came.

use crate::packed::{Elem, Packed};

/// Where a field is in a packed hash: field, value, field, value and so on.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Where the field starts.
    pub start: usize,
    /// Where its value starts.
    pub at: usize,
    /// Where the next field starts.
    pub end: usize,
    /// The value.
    pub value: Elem<'a>,
}

/// Looks for a field in a packed hash; if it is not there, how many are. O(n).
#[inline]
pub fn find<'a>(packed: &'a [u8], field: Elem<'_>) -> Result<Found<'a>, u64> {
    let (mut start, mut fields) = (0, 0);
    while let Some((name, len)) = Elem::first(&packed[start..]) {
        let at = start + len;
        let (value, len) = Elem::first(&packed[at..]).expect("each field has a value");
        let end = at + len;
        if name == field {
            return Ok(Found { start, at, end, value });
        }
        start = end;
        fields += 1;
    }
    Err(fields)
}

/// The fields of a packed hash with their values, in the order in which they came.
pub fn pairs(packed: &[u8]) -> impl Iterator<Item = (Elem<'_>, Elem<'_>)> {
    let mut elements = Packed::new(packed).iter();
    std::iter::from_fn(move || elements.next().zip(elements.next()))
}

/// What setting a field did to a packed hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The field is new; so many were there before.
    New(u64),
    /// It was there.
    Replaced,
    /// Nothing: it has no room.
    Full,
}

/// Sets a field of a packed hash, which has at most `bytes_max` bytes then.
pub fn put(packed: &mut Vec<u8>, field: Elem<'_>, value: Elem<'_>, bytes_max: usize) -> Put {
    match find(packed, field) {
        Ok(Found { at, end, .. }) => {
            let (old, new) = (end - at, value.size());
            if packed.len() - old + new > bytes_max {
                return Put::Full;
            }
            let len = packed.len();
            value.push(packed);
            if old == new {
                packed.copy_within(len.., at);
                packed.truncate(len);
            } else {
                packed[at..].rotate_right(new);
                packed.drain(at + new..at + new + old);
            }
            Put::Replaced
        }
        Err(fields) => {
            if packed.len() + field.size() + value.size() > bytes_max {
                return Put::Full;
            }
            field.push(packed);
            value.push(packed);
            Put::New(fields)
        }
    }
}
