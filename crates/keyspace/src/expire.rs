//! Active expiry: an index of expiry times on three levels, and the sweep that removes keys when
//! they are due.
//!
//! ```text
//! DueIndex.groups   256 x i64     earliest time in 64 slots      group g belongs to worker
//!                   +----+----+   (i64::MAX: never)              g % workers
//!                   |    |    | ...
//!                   +----+----+
//! DueIndex.slots    16,384 x i64  earliest time in a slot
//!                   +--+--+--+--+
//!                   |  |  |  |  | ...        read without locks, written under the slot's lock
//!                   +--+--+--+--+
//! slot, cold parts  due:    per database a DueSet, ordered (time, hash of the key)
//!                   fields: the same for hashes, by the time of the next field (HEXPIRE)
//! ```
//!
//! A worker sweeps its groups whose time has come. It claims a group by setting its time to
//! "never", sweeps its slots, and lowers the time to what remains. A command that gives a slot an
//! earlier time writes the slot first and lowers the group afterwards. All these steps are
//! sequentially consistent, so either the sweep sees the slot's new time, or the command lowers the
//! group after the sweep.

use crate::access::Access;
use crate::due::Due;
use crate::due_set::DueSet;
use crate::entry::EntryPtr;
use crate::event::Event;
use crate::guard::Guard;
use crate::may::Intent;
use crate::parking::Parked;
use crate::slot::Parts;
use crate::stats::add;
use crate::undo::Place;
use base::sync::Arc;
use base::sync::hint::{AtomicI64, Ordering};
use base::{DbIndex, MonoNs, SLOTS, SlotId, UnixMs};
use value::Big;

const GROUP: usize = 64;
const GROUPS: usize = SLOTS / GROUP;
const NEVER: i64 = i64::MAX;
/// Keys that are removed under one lock, and between two reads of the clock.
const BURST: usize = 16;

/// Due fields of a hash that an access to the hash removes at once. It hides further ones; the
/// sweep or the next access removes them. (The sweep removes [`BURST`] at a time.)
pub(crate) const FIELDS_MAX: usize = 64;

/// The size of a sample of keys that are due and not removed yet: slots, and records in each.
const SAMPLED_SLOTS: usize = 16;
const SAMPLED_RECORDS: usize = 1024;

/// Keys with an expiry in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleShare {
    /// Those that are due.
    pub due: u64,
    /// All of them.
    pub seen: u64,
}

/// The result of a step of the sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireReport {
    /// Keys removed.
    pub expired: u64,
    /// The longest time that one of them was removed after it was due, in milliseconds.
    pub lag_ms_max: u64,
    /// The budget ended before the work did.
    pub more: bool,
    /// Some keys that are due must not be removed yet.
    pub held: bool,
}

/// The earliest time at which a key is due, per slot and per group of slots.
pub(crate) struct DueIndex {
    slots: Box<[AtomicI64]>,
    groups: Box<[AtomicI64]>,
    workers: usize,
}

impl DueIndex {
    pub fn new(workers: usize) -> Self {
        let never = |n: usize| (0..n).map(|_| AtomicI64::new(NEVER)).collect();
        Self { slots: never(SLOTS), groups: never(GROUPS), workers }
    }

    pub fn memory(&self) -> usize {
        (self.slots.len() + self.groups.len()) * size_of::<AtomicI64>()
    }

    /// Updates the earliest time of a slot whose index has changed. Called under its lock.
    pub fn publish(&self, slot: SlotId, parts: &Parts) {
        let sets = parts.due.iter().chain(&parts.fields);
        let first = sets.filter_map(|(_, set)| set.first()).map(|d| d.0).min();
        let first = first.unwrap_or(NEVER);
        let word = &self.slots[slot.index()];
        if word.load(Ordering::Relaxed) == first {
            return;
        }
        word.store(first, Ordering::SeqCst);
        let group = &self.groups[slot.index() / GROUP];
        if first < group.load(Ordering::SeqCst) {
            group.fetch_min(first, Ordering::SeqCst);
        }
    }

    /// True if a slot has a key, or a field of a hash, that expires.
    pub fn has_any(&self, slot: SlotId) -> bool {
        self.slots[slot.index()].load(Ordering::Relaxed) != NEVER
    }

    /// The earliest time in the worker's groups.
    fn next(&self, worker: usize) -> i64 {
        let mine = self.groups.iter().skip(worker).step_by(self.workers);
        mine.map(|group| group.load(Ordering::Relaxed)).min().unwrap_or(NEVER)
    }
}

/// What a record of the index stands for: a key, or a hash with fields that expire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Key,
    Field,
}

/// The index of one database, made if it does not exist.
fn set_of(sets: &mut Vec<(u16, DueSet)>, physical: u16) -> &mut DueSet {
    let at = sets.iter().position(|(p, _)| *p == physical).unwrap_or_else(|| {
        if sets.is_empty() {
            // Nearly every slot has one. By itself a vector makes room for four, in each slot.
            sets.reserve_exact(1);
        }
        sets.push((physical, DueSet::default()));
        sets.len() - 1
    });
    &mut sets[at].1
}

impl Parts {
    fn due_of(&mut self, physical: u16) -> &mut DueSet {
        set_of(&mut self.due, physical)
    }

    /// Removes the index of one database's fields and returns it.
    pub fn take_fields(&mut self, physical: u16) -> Option<DueSet> {
        let at = self.fields.iter().position(|(p, _)| *p == physical)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Puts an index of fields back.
    pub fn put_fields(&mut self, physical: u16, set: DueSet) {
        *set_of(&mut self.fields, physical) = set;
    }

    /// Removes the index of one database and returns it.
    pub fn take_due(&mut self, physical: u16) -> Option<DueSet> {
        let at = self.due.iter().position(|(p, _)| *p == physical)?;
        Some(self.due.swap_remove(at).1)
    }

    /// Puts an index of keys back.
    pub fn put_due(&mut self, physical: u16, set: DueSet) {
        *self.due_of(physical) = set;
    }

    /// The first record that is due.
    fn first_due(&self, now: UnixMs) -> Option<(What, u16, i64, u64)> {
        let keys = self.due.iter().map(|set| (What::Key, set));
        let fields = self.fields.iter().map(|set| (What::Field, set));
        let firsts = keys.chain(fields).filter_map(|(what, (physical, set))| {
            set.first().map(|(at, hash)| (what, *physical, at, hash))
        });
        firsts.min_by_key(|&(_, _, at, _)| at).filter(|&(_, _, at, _)| at <= now.0)
    }
}

impl Guard<'_> {
    /// Updates the index when an entry's expiry is added, changed or removed.
    #[inline]
    pub(crate) fn reindex(&mut self, place: Place, from: Option<UnixMs>, to: Option<UnixMs>) {
        if from != to {
            self.reindex_changed(place, from, to);
        }
    }

    fn reindex_changed(&mut self, place: Place, from: Option<UnixMs>, to: Option<UnixMs>) {
        let slot = self.owned(place.slot);
        slot.with_parts(|_, parts| {
            let set = parts.due_of(place.physical);
            if let Some(UnixMs(at)) = from {
                set.remove((at, place.hash));
            }
            if let Some(UnixMs(at)) = to {
                set.insert((at, place.hash));
            }
            self.ks.due.publish(place.slot, parts);
        });
        let delta = i64::from(to.is_some()) - i64::from(from.is_some());
        let stats = self.ks.stats(self.w.index).of(place.physical);
        add(&stats.expires, delta);
        let sum = &stats.due;
        sum.add(from.map_or(0, |at| -i128::from(at.0)));
        sum.add(to.map_or(0, |at| i128::from(at.0)));
    }

    /// Updates the index when the time of a hash's next expiring field changes.
    #[inline]
    pub(crate) fn reindex_fields(
        &mut self,
        place: Place,
        from: Option<UnixMs>,
        to: Option<UnixMs>,
    ) {
        if from != to {
            self.reindex_fields_changed(place, from, to);
        }
    }

    #[cold]
    fn reindex_fields_changed(&mut self, place: Place, from: Option<UnixMs>, to: Option<UnixMs>) {
        self.owned(place.slot).with_parts(|_, parts| {
            let set = set_of(&mut parts.fields, place.physical);
            if let Some(UnixMs(at)) = from {
                set.remove((at, place.hash));
            }
            if let Some(UnixMs(at)) = to {
                set.insert((at, place.hash));
            }
            self.ks.due.publish(place.slot, parts);
        });
        let delta = i64::from(to.is_some()) - i64::from(from.is_some());
        add(&self.ks.stats(self.w.index).of(place.physical).with_fields, delta);
    }

    /// Applies the rule to a hash with due fields. False if the hash does not exist for this guard.
    #[cold]
    pub(crate) fn expire_or_hide_fields(
        &mut self,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) -> bool {
        let now = self.w.now.0;
        let Some(Big::Hash(hash)) = entry.big() else { return true };
        let (is_over, hides) = (hash.is_over(now), hash.hidden() > 0);
        match self.due_rule(place.slot) {
            Due::Remove => {
                self.expire_fields(db, place, entry, FIELDS_MAX);
                return !is_over;
            }
            Due::Hide if is_over => return false,
            Due::Hide => _ = self.hide_fields(db, place, entry, 0),
            Due::Ignore if hides => {
                self.record_shown(db, entry);
                // Not a change that anybody is notified of.
                let _ = self.edit_big(place, entry, |big, log| {
                    if let Big::Hash(hash) = big {
                        hash.unhide(log);
                    }
                });
            }
            Due::Ignore => {}
        }
        true
    }

    /// Removes up to `max` due fields of a hash and hides the other due ones. The key is removed
    /// with its last field, hidden or not. Returns how many fields were removed.
    #[cold]
    fn expire_fields(&mut self, db: DbIndex, place: Place, entry: EntryPtr, max: usize) -> usize {
        let now = self.w.now.0;
        let Some(Big::Hash(hash)) = entry.big() else { return 0 };
        if hash.is_over(now) {
            // Removes the key with all of them.
            let count = hash.len() + hash.hidden();
            add(&self.ks.stats(self.w.index).expired_fields, count as i64);
            self.remove_expired(db, place, entry, count);
            return count as usize;
        }
        // A removal is a change of its own, so it must not happen within a command that may still
        // be rolled back. Such a command hides the fields, which can be undone. The next access or
        // the sweep removes them.
        if !self.w.undo.is_empty() {
            self.hide_fields(db, place, entry, 0);
            return 0;
        }
        let removed = self.hide_fields(db, place, entry, max);
        self.finish();
        add(&self.ks.stats(self.w.index).expired_fields, removed as i64);
        removed
    }

    /// Hides the due fields of a hash, and removes up to `max` hidden ones. Returns how many were
    /// removed.
    fn hide_fields(&mut self, db: DbIndex, place: Place, entry: EntryPtr, max: usize) -> usize {
        let now = self.w.now.0;
        if max == 0 && matches!(entry.big(), Some(Big::Hash(hash)) if !hash.has_to_hide(now)) {
            return 0;
        }
        let names = self.names_to_hide(entry);
        let (listeners, (hidden, removed)) = self.edit_big(place, entry, |big, log| {
            let Big::Hash(hash) = big else { return (0, 0) };
            let hidden = hash.hide(now, log);
            (hidden, (0..max).take_while(|_| hash.expire_next(now, log)).count())
        });
        if self.is_recording() {
            self.record_hidden(db, entry.key(), &names);
        }
        if hidden > 0 {
            // Fields that were hidden before were already invisible.
            self.touch_as(listeners, Event::DUE_TOUCHED, Event::FIELDS_EXPIRED, db, place, entry);
        }
        removed
    }

    /// The fields that are about to be hidden, if that is to be recorded.
    fn names_to_hide(&self, entry: EntryPtr) -> Vec<Box<[u8]>> {
        match entry.big() {
            Some(Big::Hash(hash)) if self.is_recording() => {
                hash.to_hide(self.w.now.0).map(Box::from).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Removes fields that are due by `at` from the keys with this hash value, and so the record.
    fn expire_fields_of(&mut self, place: Place, at: UnixMs, max: usize) -> usize {
        let db = self.ks.logical(place.physical);
        let table = self.owned(place.slot).table_or_new(place.physical);
        let mut entries = Vec::new();
        table.visit_tag(&self.ks.mem, place.hash, |entry| {
            if entries.len() < max
                && entry.next_field_due().is_some_and(|due| due <= at)
                && self.ks.hasher.hash(entry.key()) == place.hash
            {
                entries.push(entry);
            }
        });
        if entries.is_empty() {
            // Another key with the same hash value has removed the record together with its own.
            self.reindex_fields_changed(place, Some(at), None);
        }
        entries.into_iter().map(|entry| self.expire_fields(db, place, entry, max)).sum()
    }

    /// Removes up to `max` due keys of a covered slot.
    fn expire_slot(&mut self, id: SlotId, max: usize, report: &mut ExpireReport) -> usize {
        let (mut removed, mut fields) = (0, 0);
        let slot = self.owned(id);
        while removed < max {
            let now = self.w.now;
            let first = slot.with_parts_if_any(|_, parts| parts.first_due(now)).flatten();
            let Some((what, physical, at, hash)) = first else { break };
            let place = Place { hash, slot: id, physical };
            if what == What::Field {
                fields += 1 + self.expire_fields_of(place, UnixMs(at), max);
                if fields >= max {
                    break;
                }
                continue;
            }
            removed += self.expire_hash(place, UnixMs(at), max - removed);
            report.lag_ms_max = report.lag_ms_max.max(now.0.saturating_sub(at).max(0) as u64);
        }
        self.finish();
        self.take_drawn(); // no client's
        report.expired += removed as u64;
        removed
    }

    /// Removes up to `max` keys with this hash value that were due by `at`, and so their records.
    fn expire_hash(&mut self, place: Place, at: UnixMs, max: usize) -> usize {
        let db = self.ks.logical(place.physical);
        let slot = self.owned(place.slot);
        let table = slot.table_or_new(place.physical);
        let mut entries = Vec::new();
        table.visit_tag(&self.ks.mem, place.hash, |entry| {
            if entries.len() < max
                && entry.expiry().is_some_and(|due| due <= at)
                && self.ks.hasher.hash(entry.key()) == place.hash
            {
                entries.push(entry);
            }
        });
        debug_assert!(!entries.is_empty(), "the index knows only keys that exist");
        for &entry in &entries {
            self.expire_entry(db, place, entry);
        }
        if entries.is_empty() {
            self.reindex_changed(place, Some(at), None);
        }
        entries.len()
    }
}

/// Ends a sweep of a group: lowers its time to the earliest of its slots, even after a panic.
struct Republish<'a> {
    due: &'a DueIndex,
    group: usize,
}

impl Drop for Republish<'_> {
    fn drop(&mut self) {
        let slots = &self.due.slots[self.group * GROUP..(self.group + 1) * GROUP];
        let earliest = slots.iter().map(|due| due.load(Ordering::SeqCst)).min().unwrap_or(NEVER);
        self.due.groups[self.group].fetch_min(earliest, Ordering::SeqCst);
    }
}

impl Access {
    /// Makes this worker's next [`Access::expire_step`] panic after so many changes, for tests.
    /// [`Access::disarm`] cancels that.
    pub fn panic_after(&mut self, changes: u32) {
        self.w.undo.set_fuse(changes);
    }

    /// Cancels [`Access::panic_after`].
    pub fn disarm(&mut self) {
        self.w.undo.set_fuse(0);
    }

    /// When the next key of this worker's slots is due, or earlier. A further Access has no slots.
    pub fn next_due(&self) -> Option<UnixMs> {
        if self.is_further() {
            return None;
        }
        let next = self.ks.due.next(self.w.index);
        (next != NEVER).then_some(UnixMs(next))
    }

    /// Removes due keys from this worker's slots, for at most about `budget_ns` by `clock`. The
    /// caller is inside its section.
    pub fn expire_step(
        &mut self,
        now: UnixMs,
        budget_ns: u64,
        mut clock: impl FnMut() -> MonoNs,
    ) -> ExpireReport {
        let mut report = ExpireReport::default();
        if self.next_due().is_none_or(|due| due > now) {
            return report;
        }
        if self.ks.is_expiry_held(now) {
            report.held = true;
            return report;
        }
        let until = clock().plus(budget_ns);
        let (workers, worker) = (self.ks.workers(), self.w.index);
        let mine = (GROUPS - worker).div_ceil(workers);
        for turn in 0..mine {
            let share = (self.w.expire_at + turn) % mine;
            let group = worker + share * workers;
            if self.ks.due.groups[group].load(Ordering::Relaxed) > now.0 {
                continue;
            }
            self.expire_group(group, now, until, &mut clock, &mut report);
            if report.more {
                self.w.expire_at = share;
                break;
            }
        }
        report
    }

    /// Samples which share of the keys with an expiry is due and not removed yet. Each call samples
    /// other slots of this worker. The caller is inside its section.
    pub fn sample_stale(&mut self, now: UnixMs) -> StaleShare {
        let (workers, worker) = (self.ks.workers(), self.w.index);
        let mine = (GROUPS - worker).div_ceil(workers) * GROUP;
        let (mut share, mut looked) = (StaleShare::default(), 0);
        let from = self.w.sample_at;
        for turn in 0..mine {
            let at = (from + turn) % mine;
            let index = (worker + at / GROUP * workers) * GROUP + at % GROUP;
            if self.ks.due.slots[index].load(Ordering::Relaxed) == NEVER {
                continue;
            }
            if looked == SAMPLED_SLOTS {
                break;
            }
            looked += 1;
            self.w.sample_at = at + 1;
            let slot = SlotId::new(index as u16);
            let Ok(guard) = self.lock_one(slot, now, Intent::Read) else { continue };
            guard.owned(slot).with_parts_if_any(|_, parts| {
                for (_, set) in &parts.due {
                    let due = set.count_by(now.0, SAMPLED_RECORDS);
                    let all = if due == SAMPLED_RECORDS { due } else { set.len() };
                    share.due += due as u64;
                    share.seen += all as u64;
                }
            });
        }
        share
    }

    fn expire_group(
        &mut self,
        group: usize,
        now: UnixMs,
        until: MonoNs,
        clock: &mut impl FnMut() -> MonoNs,
        report: &mut ExpireReport,
    ) {
        self.ks.due.groups[group].swap(NEVER, Ordering::SeqCst);
        let ks = Arc::clone(&self.ks);
        let _republished = Republish { due: &ks.due, group };
        for index in group * GROUP..(group + 1) * GROUP {
            let slot = SlotId::new(index as u16);
            while !report.more && self.ks.due.slots[index].load(Ordering::SeqCst) <= now.0 {
                let mut guard = match self.lock_one(slot, now, Intent::Expire) {
                    Ok(guard) => guard,
                    Err(parked) => {
                        // The next step tries it again.
                        report.held |= !matches!(parked, Parked::Slot(_));
                        break;
                    }
                };
                guard.expire_slot(slot, BURST, report);
                drop(guard);
                report.more = clock() >= until;
            }
        }
    }
}
