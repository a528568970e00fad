//! What happens to keys, and fields of hashes, that are due: their expiry time has come.
//!
//! Each guard has a rule ([`Due`]): remove, hide or ignore. While expiry is paused (CLIENT PAUSE,
//! import mode) and in a frozen slot nothing is removed; then *remove* becomes *hide*. The rule is
//! evaluated only when a lookup finds something that is due.

use crate::capture::Subject;
use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::may::Intent;
use crate::stats::{add, get, set};
use crate::undo::{Change, Place};
use crate::wait::Ready;
use base::sync::atomic::Ordering;
use base::{DbIndex, SlotId, UnixMs};
use std::collections::BTreeSet;
use value::Big;

/// What happens to a key, or a field of a hash, that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Due {
    /// It is removed; hidden while removing is not allowed.
    #[default]
    Remove,
    /// It is not shown, and stays: for callers that must not change anything.
    Hide,
    /// It is treated like any other key: for repeating earlier changes, and for importing data.
    Ignore,
}

impl Keyspace {
    /// Until this time keys that are due are hidden and not removed.
    pub fn hold_expiry(&self, until: UnixMs) {
        self.expiry_held.store(until.0, Ordering::Release);
    }

    /// Turns import mode on or off: while it is on, keys that are due are hidden and not removed.
    pub fn set_importing(&self, on: bool) {
        self.importing.store(on, Ordering::Release);
    }

    /// True in import mode.
    #[inline]
    pub fn is_importing(&self) -> bool {
        self.importing.load(Ordering::Acquire)
    }

    /// True if keys that are due are not removed at this time.
    #[inline]
    pub fn is_expiry_held(&self, now: UnixMs) -> bool {
        self.expiry_held.load(Ordering::Acquire) > now.0 || self.is_importing()
    }
}

impl Guard<'_> {
    /// Sets the rule for keys that are due. A new guard removes them.
    pub fn set_due(&mut self, due: Due) {
        self.due = due;
    }

    /// True if keys that are due are treated like any other: earlier changes are repeated, or data
    /// is imported.
    pub fn ignores_due(&self) -> bool {
        self.due == Due::Ignore
    }

    /// The rule for keys that are due in this slot.
    pub(crate) fn due_rule(&self, slot: SlotId) -> Due {
        let may_remove =
            || !self.ks.is_expiry_held(self.w.now) && self.ks.may(slot, Intent::Expire).is_ok();
        match self.due {
            Due::Remove if !may_remove() => Due::Hide,
            due => due,
        }
    }

    /// Applies the rule to a key that is due. True if the key does not exist for this guard: it is
    /// removed or hidden.
    #[cold]
    pub(crate) fn expire_or_hide(&mut self, db: DbIndex, place: Place, entry: EntryPtr) -> bool {
        let rule = self.due_rule(place.slot);
        if rule == Due::Remove {
            self.expire_entry(db, place, entry);
        }
        rule != Due::Ignore
    }

    /// Removes a key that is due and about to be replaced, if the rule says so. True if removed.
    #[cold]
    pub(crate) fn remove_if_due(&mut self, db: DbIndex, place: Place, entry: EntryPtr) -> bool {
        let rule = self.due_rule(place.slot);
        if rule == Due::Remove {
            self.expire_entry(db, place, entry);
        } else if rule == Due::Hide && self.is_recording() {
            // Who repeats the change finds the key, which was not there for the command.
            self.record_removed(db, entry.key());
        }
        rule == Due::Remove
    }

    /// True if the entry is due, or all its fields are.
    pub(crate) fn is_all_due(&self, entry: EntryPtr) -> bool {
        let now = self.w.now.0;
        self.is_due(entry) || matches!(entry.big(), Some(Big::Hash(hash)) if hash.is_over(now))
    }

    /// True if the entry is due and the rule does not ignore that.
    pub(crate) fn counts_as_expired(&self, slot: SlotId, entry: EntryPtr) -> bool {
        self.is_due(entry) && self.due_rule(slot) != Due::Ignore
    }

    /// Removes an entry that is due.
    #[cold]
    pub(crate) fn expire_entry(&mut self, db: DbIndex, place: Place, entry: EntryPtr) {
        self.count_expired(entry);
        self.remove_expired(db, place, entry, 0);
    }

    /// Counts an entry that has expired, and how late it is removed.
    #[cold]
    fn count_expired(&self, entry: EntryPtr) {
        let late = entry.expiry().map_or(0, |at| self.w.now.0.saturating_sub(at.0));
        let stats = self.ks.stats(self.w.index);
        add(&stats.expired, 1);
        set(&stats.lag_last_ms, late);
        if late > get(&stats.lag_max_ms) {
            set(&stats.lag_max_ms, late);
        }
    }

    /// Removes an entry because it is due, or because all its `fields` are. This is a change of its
    /// own: a rollback of the command that found it does not restore it, and sessions that watch
    /// it are notified at once.
    pub(crate) fn remove_expired(&mut self, db: DbIndex, place: Place, old: EntryPtr, fields: u64) {
        let table = self.table_of(place);
        let found = table.find_entry(&self.ks.mem, place.hash, old);
        let listeners = self.before(|| Subject::Leaving(place, old));
        self.unlink(place, table, &found);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Expired { place, old, fields });
        if self.is_recording() {
            self.record_expired(db, old.key(), old.address());
        }
        self.wake_for_expired(db, place, old.key());
        if listeners.any() {
            self.notify_expired(db, old, fields);
        }
    }

    /// Marks the watches of a key that has expired, and makes it ready for its waiters.
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

    /// The addresses of entries that expired after the first `from` changes, and that the same
    /// command had made or changed before: a rollback of the command restores them.
    pub(crate) fn own_expired(&self, from: usize) -> BTreeSet<u64> {
        let changes = &self.w.undo.changes[from.min(self.w.undo.changes.len())..];
        let (mut changed, mut own) = (BTreeSet::new(), BTreeSet::new());
        if !changes.iter().any(|change| matches!(change, Change::Expired { .. })) {
            return own;
        }
        for change in changes {
            match *change {
                Change::Expired { old, .. } if changed.contains(&old.address()) => {
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
                    changed.insert(entry.address());
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

    /// Restores an entry that the command had made, or made due, before it expired.
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
