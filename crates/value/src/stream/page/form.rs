//! The parts of an entry's head, and the form of its id. [`super`] draws them.

use crate::stream::id::StreamId;

/// The bit of a head which says that the fields are those of the page.
pub const SAME_FIELDS: u8 = 1;
/// Where the form of the id stands in a head.
pub const FORM_SHIFT: u8 = 1;
/// Where the length stands in a head.
pub const LEN_SHIFT: u8 = 3;
/// A length in a head: the length of the body follows.
pub const LEN_LONG: u8 = 31;
/// A length in a head: the body is values without tags, which are those of the page.
pub const LEN_ROW: u8 = 30;
/// The `row` of a page without tags.
pub const NO_TAGS: u32 = u32::MAX;
/// Bytes around the elements of a listpack.
pub const LISTPACK_FRAME: u64 = 7;
/// Bytes of an id, at most: two numbers.
const ID_MAX: usize = 20;

/// An id relative to the one before it: its form, the bytes that are stored, and how many.
#[inline]
pub fn encode_id(before: StreamId, id: StreamId) -> (u8, [u8; ID_MAX], usize) {
    let (mut bytes, mut len) = ([0; ID_MAX], 0);
    let mut put = |mut number: u64| {
        while number >= 0x80 {
            bytes[len] = number as u8 | 0x80;
            (number, len) = (number >> 7, len + 1);
        }
        bytes[len] = number as u8;
        len += 1;
    };
    let form = if id.ms == before.ms {
        match id.seq - before.seq {
            1 => 0,
            more => {
                put(more);
                2
            }
        }
    } else {
        put(id.ms - before.ms);
        if id.seq == 0 {
            1
        } else {
            put(id.seq);
            3
        }
    };
    (form, bytes, len)
}
