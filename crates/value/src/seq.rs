//! A sequence addressed by position, with cheap ends: what a big list is made of.

mod cut;
mod item;
mod page;

use crate::tree::{Leaf, Tree, Walk, Way};
pub use item::{FAR_MIN, Item, NewItem};
pub use page::Page;

/// The sequence. Cloning it is O(1); everything with a position is O(log n).
#[derive(Clone, Default)]
pub struct Seq(pub(crate) Tree<Page>);

impl Seq {
    /// An empty sequence.
    pub fn new() -> Self {
        Self::default()
    }

    /// Elements.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Nodes of the tree, O(1).
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// As [`Tree::release_if_shared`].
    pub(crate) fn release_if_shared(&mut self) -> bool {
        self.0.release_if_shared()
    }

    /// Gives up elements before a position ([`Tree::release_before`]).
    pub(crate) fn release_before(&mut self, at: u64) -> usize {
        self.0.release_before(at)
    }

    /// The element at a position.
    pub fn get(&self, at: u64) -> Option<Item<'_>> {
        if at >= self.len() {
            return None;
        }
        let (page, before) = self.0.find(Way::Rank(at));
        Some(page.get((at - before) as usize))
    }

    /// Inserts before the element at this position; the length appends.
    #[inline]
    pub fn insert(&mut self, at: u64, new: NewItem<'_>) {
        if at == self.len() {
            return self.0.edit(Way::Last, |page, _| page.insert(page.len(), new));
        }
        assert!(at < self.len(), "a position in the list");
        self.0.edit(Way::Rank(at), |page, before| page.insert((at - before) as usize, new));
    }

    /// Removes the element at this position; `old` sees it.
    #[inline]
    pub fn remove<R>(&mut self, at: u64, old: impl FnOnce(Item<'_>) -> R) -> R {
        if at + 1 == self.len() {
            return self.0.edit(Way::Last, |page, _| page.remove(page.len() - 1, old));
        }
        assert!(at < self.len(), "a position in the list");
        self.0.edit(Way::Rank(at), |page, before| page.remove((at - before) as usize, old))
    }

    /// Puts another element at this position; `old` sees the one that was there.
    pub fn set<R>(&mut self, at: u64, new: NewItem<'_>, old: impl FnOnce(Item<'_>) -> R) -> R {
        assert!(at < self.len(), "a position in the list");
        self.0.edit(Way::Rank(at), |page, before| page.set((at - before) as usize, new, old))
    }

    /// The elements from this position on.
    pub fn iter_from(&self, at: u64) -> Iter<'_> {
        let walk = self.0.walk(Way::Rank(at.min(self.len())));
        let in_page = (at.min(self.len()) - walk.before()) as usize;
        let offset = walk.leaf().offset(in_page);
        Iter { walk, offset }
    }

    /// All elements.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// The elements before this position, downwards: the first is that at `at - 1`.
    pub fn iter_back_from(&self, at: u64) -> IterBack<'_> {
        let walk = self.0.walk(Way::Rank(at.min(self.len())));
        let in_page = (at.min(self.len()) - walk.before()) as usize;
        let mut offsets = Vec::new();
        walk.leaf().offsets(in_page, &mut offsets);
        IterBack { walk, offsets }
    }
}

impl std::fmt::Debug for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seq").field("len", &self.len()).field("nodes", &self.nodes()).finish()
    }
}

/// Elements upwards.
#[derive(Clone)]
pub struct Iter<'a> {
    walk: Walk<'a, Page>,
    offset: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            if let Some((item, next)) = self.walk.leaf().read(self.offset) {
                self.offset = next;
                return Some(item);
            }
            if !self.walk.forward() {
                return None;
            }
            self.offset = self.walk.leaf().offset(0);
        }
    }
}

/// Elements downwards.
#[derive(Clone)]
pub struct IterBack<'a> {
    walk: Walk<'a, Page>,
    /// The starts of the remaining elements of this page.
    offsets: Vec<u16>,
}

impl<'a> Iterator for IterBack<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        while self.offsets.is_empty() {
            if !self.walk.backward() {
                return None;
            }
            let page = self.walk.leaf();
            page.offsets(page.len(), &mut self.offsets);
        }
        let offset = usize::from(self.offsets.pop()?);
        self.walk.leaf().read(offset).map(|(item, _)| item)
    }
}

#[cfg(test)]
mod tests;
