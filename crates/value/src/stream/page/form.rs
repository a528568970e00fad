//! The numbers of the form in which a page stores its entries.

use crate::stream::id::StreamId;

pub const SAME_FIELDS: u8 = 1;
pub const FORM_SHIFT: u8 = 1;
pub const LEN_SHIFT: u8 = 3;
/// The length of a body follows.
pub const LEN_LONG: u8 = 31;
/// The body is values without tags: those of the page.
pub const LEN_ROW: u8 = 30;
/// A page whose values have no tags in common.
pub const NO_TAGS: u32 = u32::MAX;
/// Redis's frame around the elements of a listpack.
pub const LISTPACK_FRAME: u64 = 7;
/// Bytes of an id, at most: two numbers.
const ID_MAX: usize = 20;
/// How an id is told from the one before it: the form, and its numbers.
#[inline]
pub fn ident(before: StreamId, id: StreamId) -> (u8, [u8; ID_MAX], usize) {
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
