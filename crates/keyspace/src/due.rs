//! What becomes of keys, and fields of hashes, whose time has come. Whoever looks for a key says it
//! ([`Due`]); and whatever he says, nothing is removed while expiry is held, nor in a frozen slot.
//!
//! The rule is looked at only when something is due.

use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::may::Intent;
use crate::stats::add;
use crate::undo::{Change, Place};
use crate::wait::Ready;
use base::sync::atomic::Ordering;
use base::{DbIndex, SlotId, UnixMs};
use std::collections::BTreeSet;
use value::Big;

/// What becomes of a key, or a field of a hash, that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Due {
    /// It is removed. While that may not be, it is hidden.
    #[default]
    Remove,
    /// It is not seen, and stays: for who may not change anything, not even so.
    Hide,
    /// Nothing: it is there as if it were not due. For who repeats what was done earlier, or copies
    /// data in.
    Ignore,
}

impl Keyspace {
    /// Nothing that is due is removed before this time, but hidden.
    pub fn hold_expiry(&self, until: UnixMs) {
        self.expiry_held.store(until.0, Ordering::Release);
    }

    /// Import mode: as long as it lasts, nothing that is due is removed, but hidden.
    pub fn set_importing(&self, on: bool) {
        self.importing.store(on, Ordering::Release);
    }

    /// True in import mode.
    #[inline]
    pub fn is_importing(&self) -> bool {
        self.importing.load(Ordering::Acquire)
    }

    /// True if what is due at this time is not removed.
    #[inline]
    pub fn is_expiry_held(&self, now: UnixMs) -> bool {
        self.expiry_held.load(Ordering::Acquire) > now.0 || self.is_importing()
    }
}

impl Guard<'_> {
    /// Says what becomes of what is due; a new guard removes it.
    pub fn set_due(&mut self, due: Due) {
        self.due = due;
    }

    /// What becomes of what is due in this slot.
    pub(crate) fn due_rule(&self, slot: SlotId) -> Due {
        let may_remove =
            || !self.ks.is_expiry_held(self.w.now) && self.ks.may(slot, Intent::Expire).is_ok();
        match self.due {
            Due::Remove if !may_remove() => Due::Hide,
            due => due,
        }
    }

    /// Meets a key that is due: removes it if that is the rule. True if it is not there for this
    /// guard.
    #[cold]
    pub(crate) fn expire_or_hide(&mut self, db: DbIndex, place: Place, entry: EntryPtr) -> bool {
        let rule = self.due_rule(place.slot);
        if rule == Due::Remove {
            self.expire_entry(db, place, entry);
        }
        rule != Due::Ignore
    }

    /// As [`Guard::expire_or_hide`], of what is about to be replaced: true if it was removed.
    #[cold]
    pub(crate) fn remove_if_due(&mut self, db: DbIndex, place: Place, entry: EntryPtr) -> bool {
        let removes = self.due_rule(place.slot) == Due::Remove;
        if removes {
            self.expire_entry(db, place, entry);
        }
        removes
    }

    /// True if the entry's time has come, or that of all its fields.
    pub(crate) fn is_all_due(&self, entry: EntryPtr) -> bool {
        let now = self.w.now.0;
        self.is_due(entry) || matches!(entry.big(), Some(Big::Hash(hash)) if hash.is_over(now))
    }

    /// True if the entry's time has come, and that counts.
    pub(crate) fn counts_as_expired(&self, slot: SlotId, entry: EntryPtr) -> bool {
        self.is_due(entry) && self.due_rule(slot) != Due::Ignore
    }

    /// Takes an entry away because its time, or that of all its `fields`, has come. That is a
    /// change of its own: a rollback of the command that came upon it does not bring it back, and
    /// who must hear of it is told at once.
    pub(crate) fn remove_expired(&mut self, db: DbIndex, place: Place, old: EntryPtr, fields: u64) {
        let table = self.table_of(place);
        let found = table.find_entry(&self.ks.mem, place.hash, old);
        let listeners = self.before_change(place, old);
        self.unlink(place, table, &found);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Expired { place, old, fields });
        self.wake_for_expired(db, place, old.key());
        if listeners.any() {
            self.notify_expired(db, old, fields);
        }
    }

    /// Tells who watches a key, or waits for it, that its time has come.
    pub(crate) fn wake_for_expired(&mut self, db: DbIndex, place: Place, key: &[u8]) {
        if !self.ks.slot(place.slot).is_watched() {
            return;
        }
        let waited = self.owned(place.slot).with_parts(|_, parts| {
            parts.watchers.expire(db, place.hash, key);
            parts.waiters.has(db, place.hash, key)
        });
        let ready = Ready { db, key: key.into() };
        if waited {
            self.w.ready.push(ready);
        }
    }

    /// Of the entries that were taken away behind the first `from` changes, those that the command
    /// itself had made or changed before, by address: with the command they are taken back.
    pub(crate) fn own_expired(&self, from: usize) -> BTreeSet<u64> {
        let changes = &self.w.undo.changes[from.min(self.w.undo.changes.len())..];
        let (mut named, mut own) = (BTreeSet::new(), BTreeSet::new());
        if !changes.iter().any(|change| matches!(change, Change::Expired { .. })) {
            return own;
        }
        for change in changes {
            match *change {
                Change::Expired { old, .. } if named.contains(&old.address()) => {
                    own.insert(old.address());
                }
                Change::Inserted { new: entry, .. }
                | Change::Replaced { new: entry, .. }
                | Change::Moved { to: entry, .. }
                | Change::Value { entry, .. }
                | Change::Range { entry, .. }
                | Change::Expiry { entry, .. }
                | Change::BlobRange { entry, .. }
                | Change::Edited { entry, .. }
                | Change::Header { entry, .. } => {
                    named.insert(entry.address());
                }
                Change::Expired { .. }
                | Change::Removed { .. }
                | Change::Flushed
                | Change::Swapped(..)
                | Change::Nothing => {}
            }
        }
        own
    }

    /// Puts an entry back that the command had made, or made due, before it was taken away.
    pub(crate) fn restore_expired(&mut self, place: Place, old: EntryPtr, fields: u64) {
        self.relink(place, old);
        let stats = self.ks.stats(self.w.index);
        if fields == 0 {
            add(&stats.expired, -1);
        } else {
            add(&stats.expired_fields, -(fields as i64));
        }
    }
}
