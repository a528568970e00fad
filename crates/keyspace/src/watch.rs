//! Watched keys (WATCH): which sessions are notified when a key changes.
//!
//! ```text
//! session                         slot of the key (cold parts)
//! +-------------+                 Watchers: (db, hash) -> [Watch { key, cell, was_due }, ...]
//! | WatchCell   |<--------------------------------------------------------+
//! |  dirty: bool|   one cell for all keys that the session watches
//! +-------------+
//!   WATCH       adds a Watch for each key, under the key's slot
//!   a change    collects the cells of its key; the commit marks them dirty
//!   EXEC        reads the cell: dirty -> the transaction fails
//!   UNWATCH     removes the Watches
//! ```

use crate::guard::Guard;
use crate::keyspace::Key;
use base::DbIndex;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;

/// Whether a key that a session watches was changed.
#[derive(Debug, Default)]
pub struct WatchCell {
    dirty: AtomicBool,
}

impl WatchCell {
    /// A clean cell.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// True if a watched key was changed.
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Marks that a watched key was changed.
    pub fn mark(&self) {
        self.dirty.store(true, Ordering::Release);
    }
}

struct Watch {
    key: Box<[u8]>,
    cell: Arc<WatchCell>,
    /// The key was due, and so hidden, when the watch began: its removal is no change.
    was_due: bool,
}

/// The watches of one slot, by *logical* database and hash: SWAPDB moves the keys, not the watches.
#[derive(Default)]
pub(crate) struct Watchers {
    by_key: BTreeMap<(DbIndex, u64), Vec<Watch>>,
    count: usize,
}

impl Watchers {
    fn add(&mut self, db: DbIndex, key: &Key<'_>, cell: &Arc<WatchCell>, was_due: bool) {
        let watches = self.by_key.entry((db, key.hash)).or_default();
        if watches.iter().any(|w| Arc::ptr_eq(&w.cell, cell) && *w.key == *key.bytes) {
            return;
        }
        watches.push(Watch { key: key.bytes.into(), cell: Arc::clone(cell), was_due });
        self.count += 1;
    }

    fn remove(&mut self, db: DbIndex, key: &Key<'_>, cell: &Arc<WatchCell>) {
        let Some(watches) = self.by_key.get_mut(&(db, key.hash)) else { return };
        let before = watches.len();
        watches.retain(|w| !(Arc::ptr_eq(&w.cell, cell) && *w.key == *key.bytes));
        self.count -= before - watches.len();
        if watches.is_empty() {
            self.by_key.remove(&(db, key.hash));
        }
    }

    /// The cells that watch this key.
    pub fn cells<'a>(
        &'a self,
        db: DbIndex,
        hash: u64,
        key: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<WatchCell>> {
        let watches = self.by_key.get(&(db, hash)).map_or(&[][..], Vec::as_slice);
        watches.iter().filter(move |w| *w.key == *key).map(|w| &w.cell)
    }

    /// Marks the cells that watch this key, because it has expired. Cells for which it was due from
    /// the beginning are not marked: for them it did not exist.
    pub fn expire(&mut self, db: DbIndex, hash: u64, key: &[u8]) {
        let watches = self.by_key.get(&(db, hash)).map_or(&[][..], Vec::as_slice);
        watches.iter().filter(|w| *w.key == *key && !w.was_due).for_each(|w| w.cell.mark());
    }

    /// Notes for all watches of this key that it is due: its removal is no change for them.
    pub fn mark_due(&mut self, db: DbIndex, hash: u64, key: &[u8]) {
        let watches = self.by_key.get_mut(&(db, hash)).map_or(&mut [][..], Vec::as_mut_slice);
        watches.iter_mut().filter(|w| *w.key == *key).for_each(|w| w.was_due = true);
    }

    /// Every watch of a database: key, hash, cell.
    pub fn of_db(&self, db: DbIndex) -> impl Iterator<Item = (&[u8], u64, &Arc<WatchCell>)> {
        self.by_key
            .range((db, 0)..=(db, u64::MAX))
            .flat_map(|((_, hash), list)| list.iter().map(|w| (&*w.key, *hash, &w.cell)))
    }

    pub fn len(&self) -> usize {
        self.count
    }
}

impl Guard<'_> {
    /// Marks `cell` when the key is changed from now on. The removal of a key that is due now is no
    /// change. The guard covers the key's slot.
    pub fn watch(&mut self, db: DbIndex, key: &Key<'_>, cell: &Arc<WatchCell>) {
        let was_due = self.peek(db, key).is_none() && self.find_any(db, key).is_some();
        let slot = self.owned(key.slot);
        slot.with_parts(|slot, parts| {
            parts.watchers.add(db, key, cell, was_due);
            slot.count_watches(parts);
        });
    }

    /// Removes a watch; harmless if there is none.
    pub fn unwatch(&mut self, db: DbIndex, key: &Key<'_>, cell: &Arc<WatchCell>) {
        let slot = self.owned(key.slot);
        if !slot.is_watched() {
            return;
        }
        slot.with_parts(|slot, parts| {
            parts.watchers.remove(db, key, cell);
            slot.count_watches(parts);
        });
    }

    /// Called by EXEC for each watched key before it reads the cell: if the key has expired since
    /// WATCH, this removes or hides it, which marks the cell.
    pub fn expire_watched(&mut self, db: DbIndex, key: &Key<'_>) {
        if self.peek(db, key).is_none()
            && let Some((_, _, place)) = self.find_any(db, key)
        {
            let slot = self.owned(key.slot);
            slot.with_parts(|_, parts| parts.watchers.expire(db, place.hash, key.bytes));
        }
    }
}
