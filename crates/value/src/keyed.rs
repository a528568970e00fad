//! An ordered map of byte keys to byte values, in a tree of pages: sets, hashes and sorted sets are
//! made of it.
//!
//! ```text
//! key       | head, u32 big-endian | tail                ordered by these bytes
//!
//! used by              head                       tail                    value
//! set                  32-bit hash of the member  the member              -
//! hash                 32-bit hash of the field   the field               the value
//! expiry of fields     32-bit hash of the field   the field               the time, i64
//! order of expiry      upper half of the time     lower half, the field   -
//! sorted set, members  32-bit hash of the member  the member              the score, f64
//! sorted set, order    upper half of the score    lower half, the member  -; 1 for minus zero
//! names of consumers   first four bytes           how many of them, rest  the place, u32
//! ```
//!
//! `keyed/page.rs` draws a page.

mod cut;
mod entry;
mod page;

pub use crate::tree::WARM_MAX;
use crate::tree::{Tree, Walk, Way};
use base::Blob;
pub use entry::{Item, Key, Val};
pub use page::{FAR_MIN, Page};

/// The map. Cloning it is O(1); what follows is O(log n) unless it says otherwise.
#[derive(Clone, Default)]
pub struct Keyed(pub(crate) Tree<Page>);

impl Keyed {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
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

    /// Gives up entries before a rank ([`Tree::release_before`]).
    pub(crate) fn release_before(&mut self, rank: u64) -> usize {
        self.0.release_before(rank)
    }

    /// Gives up all entries, but counts them as before.
    pub(crate) fn release(&mut self) -> usize {
        self.0.release()
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<Val<'_>> {
        self.0.find_key(key).get(key)
    }

    /// Prefetches the memory that looking up these keys will read, stage by stage for all of them,
    /// so that the waits overlap. Returns the pages in which they are, or would be. At most
    /// [`WARM_MAX`] keys.
    pub fn warm(&self, keys: &[Key<'_>]) -> [&Page; WARM_MAX] {
        let pages = self.0.warm(keys);
        pages.iter().zip(keys).for_each(|(page, key)| page.prefetch_slots(key.head));
        pages.iter().zip(keys).for_each(|(page, key)| page.prefetch_entry(*key));
        pages
    }

    /// True if a clone has the page of this key too.
    pub(crate) fn is_shared(&self, key: Key<'_>) -> bool {
        self.0.is_shared(Way::Key(key))
    }

    /// Copies what clones share of the way to this key, so that a change there copies nothing.
    pub(crate) fn unshare(&mut self, key: Key<'_>) {
        self.0.edit(Way::Key(key), |_, _| ());
    }

    /// Sets the value of a key; `old` is called with the value before, if there was one.
    #[inline]
    pub fn insert<R>(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        old: impl FnOnce(Option<Val<'_>>) -> R,
    ) -> R {
        self.0.edit(Way::Key(key), |page, _| page.insert(key, value, old))
    }

    /// As [`Keyed::insert`], of a value in its final buffer.
    pub fn insert_blob<R>(
        &mut self,
        key: Key<'_>,
        value: Blob,
        old: impl FnOnce(Option<Val<'_>>) -> R,
    ) -> R {
        if value.len() < FAR_MIN
            && let Some(value) = value.contiguous()
        {
            return self.insert(key, value, old);
        }
        self.0.edit(Way::Key(key), |page, _| page.insert_blob(key, value, old))
    }

    /// Removes a key; `old` is called with its value. `None` if it is not there.
    pub fn remove<R>(&mut self, key: Key<'_>, old: impl FnOnce(Val<'_>) -> R) -> Option<R> {
        self.0.edit(Way::Key(key), |page, _| page.remove(key, old))
    }

    /// Entries with a smaller key, and whether this one is there.
    pub fn rank(&self, key: Key<'_>) -> (u64, bool) {
        let (page, before) = self.0.find(Way::Key(key));
        let (at, found) = page.seek(key);
        (before + at as u64, found)
    }

    /// The entry of a rank, counted from 0.
    pub fn at(&self, rank: u64) -> Option<Item<'_>> {
        let (page, before) = self.0.find(Way::Rank(rank));
        page.item((rank - before) as usize)
    }

    /// The entries from this rank on, upwards.
    pub fn from_rank(&self, rank: u64) -> Iter<'_> {
        let walk = self.0.walk(Way::Rank(rank));
        let at = (rank - walk.before()) as usize;
        Iter { walk, at }
    }

    /// The entries before this rank, downwards: the first is that of `rank - 1`.
    pub fn before_rank(&self, rank: u64) -> IterBack<'_> {
        let walk = self.0.walk(Way::Rank(rank.min(self.len())));
        let at = (rank.min(self.len()) - walk.before()) as usize;
        IterBack { walk, at }
    }

    /// The entries from this key on, upwards, the key's own included.
    pub fn from_key(&self, key: Key<'_>) -> Iter<'_> {
        let walk = self.0.walk(Way::Key(key));
        let at = walk.leaf().seek(key).0;
        Iter { walk, at }
    }

    /// All entries in order of their keys.
    pub fn iter(&self) -> Iter<'_> {
        self.from_rank(0)
    }
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyed").field("len", &self.len()).field("nodes", &self.nodes()).finish()
    }
}

/// Entries upwards.
#[derive(Clone)]
pub struct Iter<'a> {
    walk: Walk<'a, Page>,
    at: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            if let Some(item) = self.walk.leaf().item(self.at) {
                self.at += 1;
                return Some(item);
            }
            if !self.walk.forward() {
                return None;
            }
            self.at = 0;
        }
    }
}

/// Entries downwards.
#[derive(Clone)]
pub struct IterBack<'a> {
    walk: Walk<'a, Page>,
    at: usize,
}

impl<'a> Iterator for IterBack<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        while self.at == 0 {
            if !self.walk.backward() {
                return None;
            }
            self.at = self.walk.leaf().slots();
        }
        self.at -= 1;
        self.walk.leaf().item(self.at)
    }
}

#[cfg(test)]
mod tests;
