//! Rolling back: takes back the changes of a command after an error or a panic (`undo.rs`).
#![allow(unsafe_code)]

use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::records::RecordMark;
use crate::stats::{add, set};
use crate::table::HeldTable;
use crate::undo::{Change, Detached, Mark, Notice, Place};
use base::SeqNo;

impl Guard<'_> {
    /// Takes back every change since the last commit, except removals of expired keys.
    #[cold]
    pub fn rollback(&mut self) {
        self.undo_to(0, self.w.records.part);
        for event in self.expired_from(0) {
            self.w.undo.events.keep(event);
        }
        if self.w.undo.listeners != 0 {
            self.keep_pre_images_of(0);
            self.hand_over();
        }
        for change in &self.w.undo.changes {
            if let Change::Expired { old, .. } = *change {
                // SAFETY: 1. The change took it out of its table. 2. This line of the log is read
                // once. 3. References into a guard's entries borrow the guard, which is borrowed
                // exclusively here.
                self.w.graveyard.push(unsafe { old.into_gone() });
            }
        }
        self.w.undo.clear();
        self.w.undo.events.tell(SeqNo(self.w.seq_max));
    }

    /// Takes back every change since `mark`, as [`Guard::rollback`] does. Changes before it stay,
    /// to be committed.
    #[cold]
    pub fn rollback_to(&mut self, mark: Mark) {
        self.undo_to(mark.changes, mark.records);
        if self.w.undo.listeners != 0 {
            self.keep_pre_images_of(mark.changes);
        }
        if self.w.undo.changes.is_empty() {
            self.w.undo.clear();
        } else {
            let expired = self.expired_from(mark.changes);
            self.w.undo.truncate(mark);
            self.w.undo.notices.extend(expired.into_iter().map(Notice::Event));
        }
    }

    /// Undoes the changes after the first `len`, except removals of expired keys, which stay in the
    /// log; and drops the records of what was undone.
    fn undo_to(&mut self, len: usize, records: RecordMark) {
        let own_expired = self.own_expired(len);
        self.w.records.truncate(records, |entry| own_expired.contains(&entry));
        let mut stays = Vec::new();
        while self.w.undo.changes.len() > len
            && let Some(change) = self.w.undo.changes.pop()
        {
            match change {
                Change::Expired { old, .. } if !own_expired.contains(&old.address()) => {
                    stays.push(change);
                }
                change => self.undo(change),
            }
        }
        self.w.undo.changes.extend(stays.into_iter().rev());
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Value { entry, header, start } => {
                // SAFETY: 1. References into a guard's entries borrow the guard, which is borrowed
                // exclusively here. 2. They were saved before the overwrite; what came later was
                // undone before.
                unsafe { entry.restore(header, &self.w.undo.bytes[start..]) };
            }
            Change::Range { entry, at, start, len } => {
                let value_len = entry.str().len();
                let room = entry.room_for(value_len, usize::MAX).expect("an inline value");
                let saved = &self.w.undo.bytes[start..start + len];
                // SAFETY: 1. As for `Change::Value`; the reference of `str()` has ended, and
                // `saved` is in the log. 2. It was just asked for.
                unsafe { entry.patch(room, at, saved, value_len, entry.uses()) };
            }
            Change::Expiry { place, entry, from } => {
                let changed = entry.expiry();
                entry.set_expiry(from);
                self.reindex(place, changed, Some(from));
            }
            Change::Inserted { place, new } => {
                let table = self.table_of(place);
                let found = table.find_entry(&self.ks.mem, place.hash, new);
                self.unlink(place, table, &found);
                // SAFETY: 1. It was just taken out of its table. 2. This line of the log was
                // popped. 3. As above.
                self.w.graveyard.push(unsafe { new.into_gone() });
            }
            Change::Replaced { place, old, new } => {
                let found = self.table_of(place).find_entry(&self.ks.mem, place.hash, new);
                self.exchange(place, &found, old);
                // SAFETY: as above; `old` stands in its place again.
                self.w.graveyard.push(unsafe { new.into_gone() });
            }
            Change::Removed { place, old } => self.relink(place, old),
            Change::Expired { place, old, fields } => self.restore_expired(place, old, fields),
            Change::Edited { place, entry, mark } => self.undo_edit(place, entry, mark),
            // SAFETY: 1. It was saved before another encoding was said; what came later was undone
            // before.
            Change::Header { entry, header } => unsafe { entry.restore_header(header) },
            Change::Moved { place, from, to } => {
                // SAFETY: 1. As for `Change::Value`.
                from.put_box(unsafe { to.take_box() });
                self.account(place.physical, from.outside() as i64);
                self.reindex_fields(place, None, from.next_field_due());
            }
            Change::BlobRange { physical, entry, old_len, at, start, len } => {
                let saved = std::mem::take(&mut self.w.undo.bytes);
                self.change_blob(physical, entry, |blob| {
                    blob.truncate(old_len);
                    blob.write_at(at, &saved[start..start + len]);
                });
                self.w.undo.bytes = saved;
            }
            Change::Flushed => {
                let detached = self.w.undo.flushed.pop().expect("a flush has detached something");
                self.attach(detached);
            }
            Change::Swapped(a, b) => self.ks.swap_map(a, b),
            Change::Nothing => {}
        }
    }

    /// Puts a removed entry back.
    pub(crate) fn relink(&mut self, place: Place, old: EntryPtr) {
        let slot = self.owned(place.slot);
        let table = slot.table_or_new(place.physical);
        self.link(place, slot, table, old);
        // `link` adds the memory of a new entry; that of this one was never subtracted.
        add(&self.ks.stats(self.w.index).used, -(old.memory() as i64));
    }

    /// Puts a flushed database back.
    fn attach(&mut self, detached: Detached) {
        let Detached { physical, tables, due, fields, keys, bytes, expires, with_fields, due_sum } =
            detached;
        for (id, mut table) in tables {
            let target = self.owned(id).table_or_new(physical);
            // What the command put there since is undone, but an emptied table keeps a page.
            while target.pop_bucket(&mut self.workspace(), |_| unreachable!("an emptied table")) {}
            HeldTable::of_mut(&mut table).move_to(target);
        }
        for (id, set) in fields {
            self.owned(id).with_parts(|_, parts| {
                parts.put_fields(physical, set);
                self.ks.due.publish(id, parts);
            });
        }
        for (id, set) in due {
            let slot = self.owned(id);
            slot.with_parts(|_, parts| {
                parts.put_due(physical, set);
                self.ks.due.publish(id, parts);
            });
        }
        let all = self.ks.stats(self.w.index);
        set(&all.buckets, self.w.pages.buckets);
        let stats = all.of(physical);
        add(&stats.bytes, bytes);
        add(&stats.keys, keys);
        add(&stats.expires, expires);
        add(&stats.with_fields, with_fields);
        stats.due.add(due_sum);
    }
}
