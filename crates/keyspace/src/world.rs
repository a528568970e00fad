//! Changes to whole databases, under World: FLUSHDB, FLUSHALL, SWAPDB. A flush detaches tables, a
//! swap exchanges two numbers; neither grows with the number of keys.

use crate::capture::Subject;
use crate::guard::{Guard, Mode};
use crate::stats::add;
use crate::table::HeldTable;
use crate::undo::{Change, Detached, Place};
use base::{DbIndex, SlotId};

impl Guard<'_> {
    /// Empties a database and returns how many keys it had. They are freed in steps by
    /// [`crate::Access::reclaim`] after the commit.
    pub fn flush_db(&mut self, db: DbIndex) -> u64 {
        assert!(self.mode() == Mode::World, "a flush needs World");
        self.notify_all_touched();
        let physical = self.ks.physical(db);
        if !self.ks.is_used(physical) {
            return 0;
        }
        let listeners = self.before(|| Subject::Database(physical));
        let mut detached = Detached { physical, ..Detached::default() };
        for id in SlotId::all() {
            let slot = self.owned(id);
            let Some(table) = slot.table(physical).filter(|table| table.buckets() > 0) else {
                continue;
            };
            if slot.is_watched() {
                self.touch_existing(db, physical, id, db);
            }
            detached.keys += i64::from(table.len());
            let mut taken = crate::table::Table::default();
            table.move_to(HeldTable::of_mut(&mut taken));
            detached.tables.push((id, taken));
            let due = slot.with_parts_if_any(|_, parts| {
                let taken = (parts.take_due(physical), parts.take_fields(physical));
                self.ks.due.publish(id, parts);
                taken
            });
            let (due, fields) = due.unwrap_or_default();
            if let Some(due) = due {
                detached.expires += due.len() as i64;
                detached.due.push((id, due));
            }
            if let Some(fields) = fields {
                detached.with_fields += fields.len() as i64;
                detached.fields.push((id, fields));
            }
        }
        detached.due_sum = self.ks.due_sum(physical);
        detached.bytes = self.ks.bytes_sum(physical);
        let stats = self.ks.stats(self.w.index).of(physical);
        stats.due.add(-detached.due_sum);
        add(&stats.keys, -detached.keys);
        add(&stats.bytes, -detached.bytes);
        add(&stats.expires, -detached.expires);
        add(&stats.with_fields, -detached.with_fields);
        let keys = detached.keys as u64;
        self.w.undo.commit_work += 1;
        self.w.undo.flushed.push(detached);
        self.w.undo.changes.push(Change::Flushed);
        self.count_change(listeners, keys as i64);
        keys
    }

    /// Empties every database and returns how many keys there were.
    pub fn flush_all(&mut self) -> u64 {
        (0..self.ks.databases()).map(|db| self.flush_db(DbIndex::new(db))).sum()
    }

    /// Exchanges the contents of two databases.
    pub fn swap_db(&mut self, a: DbIndex, b: DbIndex) {
        assert!(self.mode() == Mode::World, "a swap needs World");
        if a == b {
            return;
        }
        self.notify_all_touched();
        let listeners = self.before(|| Subject::Names(a, b));
        for id in SlotId::all() {
            if !self.owned(id).is_watched() {
                continue;
            }
            for watched in [a, b] {
                for holder in [a, b] {
                    self.touch_existing(watched, self.ks.physical(holder), id, watched);
                }
            }
            self.mark_due_watched(a, self.ks.physical(b), id);
            self.mark_due_watched(b, self.ks.physical(a), id);
        }
        self.ks.swap_map(a, b);
        self.w.undo.changes.push(Change::Swapped(a, b));
        self.count_change(listeners, 1);
    }

    /// For the watches of logical database `watched`: marks those of keys that move there from
    /// `physical` and are due, so that their removal is no change.
    fn mark_due_watched(&mut self, watched: DbIndex, physical: u16, id: SlotId) {
        let slot = self.owned(id);
        let Some(table) = slot.table(physical) else { return };
        slot.with_parts(|_, parts| {
            let watches = parts.watchers.of_db(watched);
            let due: Vec<(Box<[u8]>, u64)> = watches
                .filter(|(key, hash, _)| {
                    let found = table.find(&self.ks.mem, *hash, key);
                    found.is_some_and(|found| self.counts_as_expired(id, found.entry))
                })
                .map(|(key, hash, _)| (key.into(), hash))
                .collect();
            for (key, hash) in &due {
                parts.watchers.mark_due(watched, *hash, key);
            }
        });
    }

    /// Notes the watches and tickets of those keys of logical database `watched` that exist in
    /// `physical`.
    fn touch_existing(&mut self, watched: DbIndex, physical: u16, id: SlotId, db: DbIndex) {
        let slot = self.owned(id);
        let Some(table) = slot.table(physical) else { return };
        let is_own = self.ks.physical(watched) == physical;
        let existing: Vec<(Box<[u8]>, u64, bool)> = slot.with_parts(|_, parts| {
            let watches = parts.watchers.of_db(watched).map(|(key, hash, _)| (key, hash));
            watches
                .chain(parts.waiters.of_db(watched))
                .filter_map(|(key, hash)| {
                    let found = table.find(&self.ks.mem, hash, key)?;
                    let is_over = self.counts_as_expired(id, found.entry);
                    (is_own || !is_over).then(|| (key.into(), hash, is_over))
                })
                .collect()
        });
        for (key, hash, is_over) in existing {
            let place = Place { hash, slot: id, physical };
            if is_over {
                self.wake_for_expired(db, place, &key);
            } else {
                self.touch_watched(db, place, &key);
            }
        }
    }
}
