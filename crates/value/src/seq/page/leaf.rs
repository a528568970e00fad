//! A page as a leaf of its tree: when it is split, and when it joins a neighbour.

use super::{FAR, Grew, PAGE_BYTES, Page, skip};
use crate::seq::item::Item;
use crate::tree::{End, Leaf, Separator};
use base::Blob;
use std::cmp::Ordering;

/// A page of less joins a neighbour.
const PAGE_BYTES_MIN: usize = PAGE_BYTES / 4;
/// Bytes of two pages that become one, at most.
const PAGE_BYTES_JOINED: usize = PAGE_BYTES * 3 / 4;

impl Page {
    /// Appends elements of another page from one rank up to another.
    fn append(&mut self, other: &Self, from: usize, to: usize) {
        let mut offset = other.offset(from);
        let end = other.offset(to);
        if other.far.is_empty() {
            self.bytes.extend_from_slice(&other.bytes[offset..end]);
            self.count += (to - from) as u16;
            return;
        }
        while offset < end {
            let len = skip(&other.bytes[offset..]);
            if let Some((Item::Far(blob), _)) = other.read(offset) {
                let place = self.store_far(blob.clone()) as u16;
                self.bytes.push(FAR);
                self.bytes.extend_from_slice(&place.to_le_bytes());
            } else {
                self.bytes.extend_from_slice(&other.bytes[offset..offset + len]);
            }
            self.count += 1;
            offset += len;
        }
    }
}

impl Leaf for Page {
    type Key<'a> = ();

    fn len(&self) -> usize {
        usize::from(self.count)
    }

    #[inline]
    fn memory(&self) -> usize {
        self.bytes.capacity() + self.far.capacity() * size_of::<Option<Blob>>() + self.far_bytes
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.used() > PAGE_BYTES && self.count > 1
    }

    #[inline]
    fn is_under(&self) -> bool {
        self.used() < PAGE_BYTES_MIN
    }

    fn split(&mut self) -> Self {
        let count = usize::from(self.count);
        let at = match self.grew {
            Grew::Front => 1,
            Grew::Back => count - 1,
            Grew::Middle => count / 2,
        };
        let (mut left, mut right) = (Self::default(), Self::default());
        right.append(self, at, count);
        left.append(self, 0, at);
        *self = left;
        right
    }

    fn absorb(&mut self, right: &Self) -> bool {
        // An empty page never stays: the last page has a last element.
        let one_is_empty = self.count == 0 || right.count == 0;
        if !one_is_empty && self.used() + right.used() > PAGE_BYTES_JOINED {
            return false;
        }
        self.append(right, 0, usize::from(right.count));
        self.known = 0;
        true
    }

    fn separator(&self, _: &Self) -> Separator {
        Separator::default()
    }

    fn number((): ()) -> u64 {
        unreachable!("a list is addressed by position")
    }

    fn compare((): (), _: &End) -> Ordering {
        unreachable!("a list is addressed by position")
    }
}
