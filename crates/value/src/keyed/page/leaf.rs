//! A page as a leaf of its tree: when it is split, and when it joins a neighbour.

use super::block::{SLOT, size_class};
use super::far::FarEntries;
use super::{PAGE_BYTES, Page};
use crate::keyed::entry::Key;
use crate::tree::{End, Leaf, Separator, number};
use std::cmp::Ordering;

/// A page of less joins a neighbour.
const PAGE_BYTES_MIN: usize = PAGE_BYTES / 4;
/// Bytes of two pages that become one, at most.
const PAGE_BYTES_JOINED: usize = PAGE_BYTES * 3 / 4;
/// Bytes of its page that a far entry counts as, besides its slot.
const FAR_WEIGHT: usize = 64;

impl Page {
    /// Bytes of slots and entries.
    #[inline]
    pub(super) fn live(&self) -> usize {
        usize::from(self.len) * SLOT + usize::from(self.heap) - usize::from(self.hole_bytes)
    }

    /// Bytes in use, with a share for far entries.
    #[inline]
    fn used(&self) -> usize {
        self.live() + self.far.as_ref().map_or(0, |far| far.entries.len() * FAR_WEIGHT)
    }
}

impl Leaf for Page {
    type Key<'a> = Key<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.slots()
    }

    #[inline]
    fn memory(&self) -> usize {
        let far = self.far.as_ref().map_or(0, |far| {
            size_of::<FarEntries>() + far.entries.capacity() * size_of::<usize>() + far.bytes
        });
        self.block.len() * SLOT + far
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.used() > PAGE_BYTES && self.len > 1
    }

    #[inline]
    fn is_under(&self) -> bool {
        self.used() < PAGE_BYTES_MIN
    }

    fn split(&mut self) -> Self {
        let len = self.slots();
        let from = if self.ordered { len - 1 } else { len / 2 };
        let mut right = self.part(from..len, 4 * SLOT);
        right.ordered = self.ordered;
        *self = self.part(0..from, 0);
        right
    }

    fn absorb(&mut self, right: &Self) -> bool {
        if self.used() + right.used() > PAGE_BYTES_JOINED {
            return false;
        }
        self.compact(size_class(self.live() + right.live()));
        self.append(right, 0..right.slots());
        self.ordered = false;
        true
    }

    fn separator(&self, left: &Self) -> Separator {
        let first = self.item(0).expect("a page after a split has entries").key;
        let last = left.item(left.slots() - 1).expect("a page after a split has entries").key;
        // The shortest start of the first key here that is above the last one there.
        if first.head != last.head {
            return Separator::new(first.head, &[]);
        }
        let same = first.tail.iter().zip(last.tail).take_while(|(a, b)| a == b).count();
        Separator::new(first.head, &first.tail[..=same])
    }

    #[inline]
    fn number(key: Key<'_>) -> u64 {
        number(key.head, key.tail)
    }

    fn compare(key: Key<'_>, separator: &End) -> Ordering {
        separator.compare(key.tail)
    }
}
