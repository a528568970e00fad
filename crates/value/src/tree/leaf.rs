//! What a tree needs of its leaves.

use super::separator::{End, Separator};
use std::cmp::Ordering;

/// A run of elements, neighbours in their tree.
pub trait Leaf: Clone + Default {
    /// What an element is found by; `()` where only the rank counts.
    type Key<'a>: Copy;

    /// Elements in it.
    fn len(&self) -> usize;
    /// True if there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Heap bytes it holds, O(1).
    fn memory(&self) -> usize;
    /// Too large: to be split.
    fn is_over(&self) -> bool;
    /// So small that it should be joined with a neighbour.
    fn is_under(&self) -> bool;
    /// Cuts the upper part off: about half by size, less if elements came in order.
    #[must_use]
    fn split(&mut self) -> Self;
    /// Takes the elements of its right neighbour, unless both are too much for one leaf.
    fn absorb(&mut self, right: &Self) -> bool;
    /// A separator from the left neighbour: above all keys there, not above any here.
    fn separator(&self, left: &Self) -> Separator;
    /// The first eight bytes of a key as a number ([`super::number`]).
    fn number(key: Self::Key<'_>) -> u64;
    /// A key against a separator of the same number: `Less` if it belongs to the left of it.
    fn compare(key: Self::Key<'_>, separator: &End) -> Ordering;
}

/// A leaf out of which a run can be cut.
pub trait Cut: Leaf {
    /// Removes so many elements from this rank on, which are not all.
    fn cut(&mut self, at: usize, count: usize);
}
