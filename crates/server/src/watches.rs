//! The keys that a session watches.

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

/// Watched keys, each once, with the cell that is marked when the key changes. Moving them is O(1), whatever there is.
#[derive(Debug, Default)]
pub struct Watches(BTreeMap<Watched, Arc<WatchCell>>);

impl Watches {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cell of a key that was not watched; `None` if it was. O(log n).
    pub fn add(&mut self, db: DbIndex, key: &[u8]) -> Option<Arc<WatchCell>> {
        let cell = WatchCell::new();
        let std::collections::btree_map::Entry::Vacant(place) =
            self.0.entry(Watched { db, key: key.into() })
        else {
            return None;
        };
        place.insert(Arc::clone(&cell));
        Some(cell)
    }

    /// Takes one out. O(log n).
    pub fn pop(&mut self) -> Option<(Watched, Arc<WatchCell>)> {
        self.0.pop_first()
    }

    /// Puts back what was taken out.
    pub fn put_back(&mut self, (watched, cell): (Watched, Arc<WatchCell>)) {
        self.0.insert(watched, cell);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Watched, &Arc<WatchCell>)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// Of keys, by this thread.
        pub static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn each_key_once() {
        let mut watches = Watches::default();
        assert!(watches.add(DbIndex(0), b"k").is_some());
        assert!(watches.add(DbIndex(0), b"k").is_none());
        assert!(watches.add(DbIndex(1), b"k").is_some());
        assert_eq!(watches.len(), 2);
        let first = watches.pop().expect("there are two");
        assert_eq!(first.0, Watched { db: DbIndex(0), key: b"k"[..].into() });
        watches.put_back(first);
        assert_eq!(watches.len(), 2);
    }

    #[test]
    fn many_keys_are_not_compared_with_each_other() {
        const KEYS: u32 = 60_000;
        let mut watches = Watches::default();
        COMPARISONS.set(0);
        for n in 0..KEYS {
            assert!(watches.add(DbIndex(0), n.reverse_bits().to_string().as_bytes()).is_some());
        }
        while watches.pop().is_some() {}
        let each = COMPARISONS.get() / KEYS as usize;
        assert!(each <= 60, "{each} comparisons a key");
    }
}
