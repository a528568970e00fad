//! Cutting a run of entries out of a map.

use super::Keyed;
use super::entry::Val;
use super::page::Page;
use crate::tree::{Cut, Leaf};

impl Cut for Page {
    /// Writes the remaining entries to a new page.
    fn cut(&mut self, at: usize, count: usize) {
        let mut left = Self::default();
        for item in (0..at).chain(at + count..self.len()).filter_map(|rank| self.item(rank)) {
            match item.value {
                Val::Bytes(value) => left.insert(item.key, value, |_| ()),
                Val::Blob(blob) => left.insert_blob(item.key, blob.clone(), |_| ()),
            }
        }
        *self = left;
    }
}

impl Keyed {
    /// Removes `count` entries from a rank on: O(log n), and half of the pages are read at most.
    pub fn cut(&mut self, rank: u64, count: u64) {
        self.0.cut(rank, count);
    }

    /// True if both are clones of one map, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}
