//! A page of a stream: what Redis keeps in one listpack, so that trimming by whole nodes cuts at
//! the same places.
//!
//! ```text
//! bytes:  field names of the page | [tags] | entry | entry | ... | (spare capacity)
//! tags:   one byte for each value of the first entry, if none of them is longer than a tag can say
//! entry:  head u8 | [length of the body, if it is 30 or more] | id | body
//! head:   bit 0     the fields are those of the page
//!         bits 1-2  the id, seen from the one before (from the page's own, of the first):
//!                   0 the next number of the same millisecond: nothing
//!                   1 a later millisecond, number 0: the difference
//!                   2 the same millisecond: the difference of the numbers
//!                   3 the difference of the milliseconds, the number
//!         bits 3-7  length of the body; 31: it follows; 30: the body is values without their tags,
//!                   which are the page's
//! body:   values; or the number of fields, and field, value, field, value, ...
//! ```
//! Numbers and texts are those of [`super::elem`]. An entry that is deleted leaves nothing behind
//! but its share of `listpack`, by which Redis's node would be full.

mod append;
mod edit;
mod form;
mod limits;
mod read;

use super::id::StreamId;
use crate::tree::{Cut, End, Leaf, Separator};
pub use limits::{Limits, NODE_BYTES_MAX};
pub use read::{Cursor, Entry, Fields, Page};
use std::cmp::Ordering;

impl Leaf for Page {
    type Key<'a> = StreamId;

    #[inline]
    fn len(&self) -> usize {
        self.count as usize + self.following.as_ref().map_or(0, |page| page.len())
    }

    #[inline]
    fn memory(&self) -> usize {
        let following = self.following.as_ref();
        self.bytes.capacity()
            + self.rest.len()
            + following.map_or(0, |page| page.memory() + size_of::<Self>())
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.following.is_some()
    }

    fn is_under(&self) -> bool {
        self.len() == 0
    }

    fn split(&mut self) -> Self {
        // Nothing is appended here any more.
        self.settle();
        *self.following.take().expect("a page that is over has a following one")
    }

    /// Only if one of them is empty: a page stays what Redis's node would be.
    fn absorb(&mut self, right: &Self) -> bool {
        if self.len() == 0 {
            *self = right.clone();
            return true;
        }
        right.len() == 0
    }

    fn separator(&self, _: &Self) -> Separator {
        self.master.separator()
    }

    #[inline]
    fn number(key: StreamId) -> u64 {
        key.ms
    }

    fn compare(key: StreamId, separator: &End) -> Ordering {
        key.against(separator)
    }
}

impl Cut for Page {
    fn cut(&mut self, at: usize, count: usize) {
        self.remove(self.place(at), count);
    }
}
