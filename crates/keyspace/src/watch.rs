//! Watched keys: who must hear that a key changed before its transaction runs.

use crate::guard::Guard;
use crate::keyspace::Key;
use base::DbIndex;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;

/// One session's "a key that I watch was changed".
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

    /// Says that a watched key was changed.
    pub fn mark(&self) {
        self.dirty.store(true, Ordering::Release);
    }
}

struct Watch {
    key: Box<[u8]>,
    cell: Arc<WatchCell>,
    /// The key was due when it was watched, and hidden: that it goes is no change.
    was_due: bool,
}

/// The watches of one slot, by *logical* database and hash: a session watches what it can name, so
/// swapping databases moves the keys and not the watches.
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

    /// Marks the cells that watch this key because its time has come, but for those that saw it
    /// due: for them it was not there.
    pub fn expire(&mut self, db: DbIndex, hash: u64, key: &[u8]) {
        let watches = self.by_key.get(&(db, hash)).map_or(&[][..], Vec::as_slice);
        watches.iter().filter(|w| *w.key == *key && !w.was_due).for_each(|w| w.cell.mark());
    }

    /// Says that this key is due: that it goes is no change for those who watch it.
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
    /// Has `cell` marked when the key is changed. That a key which is due now disappears later is
    /// no change. The guard covers the key's slot.
    pub fn watch(&mut self, db: DbIndex, key: &Key<'_>, cell: &Arc<WatchCell>) {
        let was_due = self.peek(db, key).is_none() && self.find_any(db, key).is_some();
        let slot = self.owned(key.slot);
        slot.with_parts(|slot, parts| {
            parts.watchers.add(db, key, cell, was_due);
            slot.count_watches(parts);
        });
    }

    /// Takes a watch back; harmless if there is none.
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

    /// What EXEC asks of each watched key before it reads the cell: a key that has expired since
    /// it was watched is removed now, or hidden, which marks the cell.
    pub fn expire_watched(&mut self, db: DbIndex, key: &Key<'_>) {
        if self.peek(db, key).is_none()
            && let Some((_, _, place)) = self.find_any(db, key)
        {
            let slot = self.owned(key.slot);
            slot.with_parts(|_, parts| parts.watchers.expire(db, place.hash, key.bytes));
        }
    }
}
