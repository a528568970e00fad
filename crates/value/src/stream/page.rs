//! A page of a stream: what Redis keeps in one listpack, so that trimming by whole nodes cuts at
//! the same places.
//!
//! ```text
//! bytes:
//! +-------------+------+-------+-------+-- ... --+-------+----------------+
//! | field names | tags | entry | entry |         | entry | spare capacity |
//! +-------------+------+-------+-------+-- ... --+-------+----------------+
//!                      start
//!
//! names    the fields of the first entry
//! tags     one byte for each of its values: kind and length; none if a value is longer than a tag
//!          can say
//!
//! entry:   | head u8 | length | id | body |
//!
//! head:    bits 7-3: length         bits 2-1: form of the id      bit 0: same fields
//!
//! length   0 to 29   of the body
//!          30        the body is values only, with the tags of the page; all such bodies of a
//!                    page have one length
//!          31        a number behind the head is the length of the body
//! form     the id, relative to the entry before; of the first one, to the page's own id
//!          0         the next number of the same millisecond   nothing is stored
//!          1         a later millisecond, number 0             difference of the milliseconds
//!          2         a later number of the same millisecond    difference of the numbers
//!          3         any other                                 difference of the ms, number
//! same     1         the fields are those of the page; body    value, value, ...
//! fields   0         others; body                              count, field, value, field, ...
//! ```
//!
//! Numbers and texts are those of [`super::elem`]. A deleted entry stays counted in `listpack`,
//! the size that Redis's node would have.

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
            + self.tail.len()
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
        self.shrink();
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
