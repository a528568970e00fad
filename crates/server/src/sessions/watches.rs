//! The keys that a session watches.

use crate::sessions::client_memory::{ClientMemory, Share};
use base::DbIndex;
use base::sync::Arc;
use keyspace::WatchCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A watched key.
#[derive(Debug, PartialEq, Eq)]
pub struct Watched {
    /// Logical database at the time of WATCH.
    pub db: DbIndex,
    /// The key.
    pub key: Box<[u8]>,
}

impl Ord for Watched {
    fn cmp(&self, other: &Self) -> Ordering {
        #[cfg(test)]
        tests::COMPARISONS.with(|count| count.set(count.get() + 1));
        self.db.cmp(&other.db).then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for Watched {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What a watch takes beside its key, which stands here and in its slot: places in two trees, a
/// cell, a list of its own.
const WATCH_BYTES: u64 = 340;

/// Watched keys, each once, with the cell that is marked when the key changes. Moving them is O(1),
/// whatever there is.
#[derive(Debug)]
pub struct Watches {
    keys: BTreeMap<Watched, Arc<WatchCell>>,
    held: Share,
}

impl Watches {
    /// None yet.
    pub fn new(held: Share) -> Self {
        Self { keys: BTreeMap::new(), held }
    }

    /// Takes all of them out.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let none = Self::new(self.held.another());
        std::mem::replace(self, none)
    }

    /// Their bytes count for another worker from now on.
    pub fn move_to(&mut self, memory: &ClientMemory) {
        self.held.move_to(memory);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes that they take, those in the slots among them.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// The cell of a key that was not watched; `None` if it was. O(log n).
    pub fn add(&mut self, db: DbIndex, key: &[u8]) -> Option<Arc<WatchCell>> {
        let cell = WatchCell::new();
        let std::collections::btree_map::Entry::Vacant(place) =
            self.keys.entry(Watched { db, key: key.into() })
        else {
            return None;
        };
        place.insert(Arc::clone(&cell));
        self.held.set(self.held.bytes() + bytes_of(key));
        Some(cell)
    }

    /// The first one in their order.
    pub fn first(&self) -> Option<(&Watched, &Arc<WatchCell>)> {
        self.keys.first_key_value()
    }

    /// Takes the first one out. O(log n).
    pub fn pop(&mut self) -> Option<(Watched, Arc<WatchCell>)> {
        let taken = self.keys.pop_first()?;
        self.held.set(self.held.bytes() - bytes_of(&taken.0.key));
        Some(taken)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Watched, &Arc<WatchCell>)> {
        self.keys.iter()
    }
}

fn bytes_of(key: &[u8]) -> u64 {
    WATCH_BYTES + 2 * key.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::client_memory::ClientMemory;
    use std::cell::Cell;

    thread_local! {
        /// Key comparisons made by this thread.
        pub static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_key_is_watched_only_once() {
        let memory = ClientMemory::default();
        let mut watches = Watches::new(memory.share());
        assert!(watches.add(DbIndex(0), b"k").is_some());
        assert!(watches.add(DbIndex(0), b"k").is_none());
        assert!(watches.add(DbIndex(1), b"k").is_some());
        assert_eq!(watches.len(), 2);
        let first = watches.first().expect("there are two").0;
        assert_eq!(*first, Watched { db: DbIndex(0), key: b"k"[..].into() });
        assert_eq!((watches.len(), watches.bytes()), (2, 2 * bytes_of(b"k")));
        let mut taken = watches.take();
        assert_eq!(
            (watches.len(), memory.bytes()),
            (0, taken.bytes()),
            "they count until they are gone"
        );
        while taken.pop().is_some() {}
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn watching_many_keys_compares_few_of_them() {
        const KEYS: u32 = 60_000;
        let mut watches = Watches::new(ClientMemory::default().share());
        COMPARISONS.set(0);
        for n in 0..KEYS {
            assert!(watches.add(DbIndex(0), n.reverse_bits().to_string().as_bytes()).is_some());
        }
        while watches.pop().is_some() {}
        let each = COMPARISONS.get() / KEYS as usize;
        assert!(each <= 60, "{each} comparisons a key");
    }
}
