//! Cutting a run of elements out of a sequence.

use super::Seq;
use super::page::Page;
use crate::tree::Cut;

impl Cut for Page {
    fn cut(&mut self, at: usize, count: usize) {
        self.remove_range(at, count as u64);
    }
}

impl Seq {
    /// Removes `count` elements from a position on: O(log n), and half of the pages are read at
    /// most.
    pub fn remove_range(&mut self, at: u64, count: u64) {
        self.0.cut(at, count);
    }

    /// True if both are clones of one sequence, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }
}
