//! The guard: the locks of one command, and reading under them. Changing is in `change.rs`.
//!
//! ```text
//! made by                   covers                                          Mode
//! Access::lock_one          one slot                                        One
//! Access::lock              several slots, locked in ascending order        Many
//! Access::grow              several, and any other on demand (`cover`)      Growing
//! Access::world             all slots                                       World
//! Access::free              none; walks take one slot at a time (`visit`)   Free
//! ```
#![allow(unsafe_code)]

use crate::access::{Worker, release_growth};
use crate::due::Due;
use crate::entry::EntryPtr;
use crate::entry_mut::EntryMut;
use crate::event::Event;
use crate::keyspace::{Key, Keyspace};
use crate::may::Intent;
use crate::parking::Parked;
use crate::slot::Held;
use crate::stand::Stand;
use crate::table::{Found, HeldTable};
use crate::undo::Place;
use crate::uses::Uses;
use crate::view::Entry;
use crate::workspace::Workspace;
use base::{DbIndex, SeqNo, SlotId, UnixMs};
use value::Big;

/// What a guard covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One slot.
    One(SlotId),
    /// The slots in the worker's `held`.
    Many,
    /// The slots in the worker's `held`, and with the growth token any other on demand.
    Growing,
    /// Everything: every other worker is outside.
    World,
    /// Nothing, or one slot at a time inside a call.
    Free,
}

/// The locks of one command (or one EXEC). Dropping it commits what was not committed, or rolls it
/// back if a panic is unwinding, and releases the locks.
pub struct Guard<'a> {
    pub(crate) ks: &'a Keyspace,
    pub(crate) w: &'a mut Worker,
    mode: Mode,
    /// Reads do not record the use of keys.
    no_touch: bool,
    /// The rule for keys that are due.
    pub(crate) due: Due,
}

impl<'a> Guard<'a> {
    #[inline(always)]
    pub(crate) fn new(ks: &'a Keyspace, w: &'a mut Worker, mode: Mode) -> Self {
        debug_assert!(w.undo.is_empty() && w.graveyard.is_empty());
        Self { ks, w, mode, no_touch: false, due: Due::Remove }
    }

    /// A guard over nothing, to commit the changes of a guard that was forgotten (`mem::forget`).
    pub(crate) fn over_forgotten(ks: &'a Keyspace, w: &'a mut Worker) -> Self {
        Self { ks, w, mode: Mode::Free, no_touch: false, due: Due::Remove }
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &'a Keyspace {
        self.ks
    }

    /// What is recorded about the uses of keys: times or counts.
    pub fn uses(&self) -> Uses {
        self.w.uses
    }

    /// Adopts the latest [`Keyspace::set_uses`], within a batch.
    pub fn follow_uses(&mut self) {
        self.w.follow(self.ks);
    }

    /// The time at which the command runs: the same for all of it.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.w.now
    }

    /// Moves the time of the command forward: more keys may be due.
    pub fn advance(&mut self, now: UnixMs) {
        self.w.advance(now);
    }

    /// True if the guard covers the whole keyspace.
    pub fn is_world(&self) -> bool {
        self.mode == Mode::World
    }

    #[inline(always)]
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The proof that this guard covers the slot, or a panic: every access to a slot passes here.
    /// The proof must not outlive the guard, or the step of a walk that locked the slot.
    #[inline(always)]
    pub(crate) fn owned(&self, id: SlotId) -> Held<'a> {
        let slot = self.ks.slot(id);
        assert!(
            slot.lock.is_held_by(self.w.me) || self.covers_all(),
            "the guard covers the key's slot"
        );
        // SAFETY: 1. Just checked. A worker with a guard is inside or holds World, and neither ends
        // while the guard borrows the access. 2. This crate drops proofs before their guard or step
        // ends.
        unsafe { Held::new(slot) }
    }

    /// True if this guard covers all slots. Both the mode and the gate are asked: a flag of the
    /// worker would stay set if a guard were forgotten.
    #[cold]
    fn covers_all(&self) -> bool {
        self.mode == Mode::World && self.ks.gate.is_closed_by(self.w.me)
    }

    #[inline(always)]
    pub(crate) fn workspace(&mut self) -> Workspace<'_> {
        Workspace {
            mem: &self.ks.mem,
            pages: &mut self.w.pages,
            hasher: &self.ks.hasher,
            scratch: &mut self.w.scratch,
        }
    }

    #[inline(always)]
    pub(crate) fn place(&self, db: DbIndex, key: &Key<'_>) -> Place {
        Place { hash: key.hash, slot: key.slot, physical: self.ks.physical(db) }
    }

    /// Finds the entry, due or not.
    #[inline(always)]
    pub(crate) fn find_any(
        &self,
        db: DbIndex,
        key: &Key<'_>,
    ) -> Option<(Found<'a>, HeldTable<'a>, Place)> {
        let place = self.place(db, key);
        let table = self.owned(key.slot).table(place.physical)?;
        let found = table.find(&self.ks.mem, key.hash, key.bytes)?;
        Some((found, table, place))
    }

    /// Finds the entry that exists now. The rule for due keys ([`Due`]) is applied to one that is
    /// due.
    #[inline(always)]
    pub(crate) fn find_live(&mut self, db: DbIndex, key: &Key<'_>) -> Option<(Found<'a>, Place)> {
        let (found, _, place) = self.find_any(db, key)?;
        if found.entry.header().has_ttl()
            && self.is_due(found.entry)
            && self.expire_or_hide(db, place, found.entry)
        {
            return None;
        }
        // This bit is 0 for most entries, and for all without fields that expire.
        if found.entry.header().is_big()
            && found.entry.next_field_due().is_some_and(|due| due <= self.w.now)
        {
            return self.find_after_fields(db, key, place, found.entry);
        }
        Some((found, place))
    }

    /// As [`Guard::find_live`], after the rule was applied to the due fields of a hash.
    #[cold]
    fn find_after_fields(
        &mut self,
        db: DbIndex,
        key: &Key<'_>,
        place: Place,
        entry: EntryPtr,
    ) -> Option<(Found<'a>, Place)> {
        if !self.expire_or_hide_fields(db, place, entry) {
            return None;
        }
        self.find_any(db, key).map(|(found, _, place)| (found, place))
    }

    /// True if the entry is due.
    #[inline]
    pub(crate) fn is_due(&self, entry: EntryPtr) -> bool {
        entry.expiry().is_some_and(|at| at <= self.w.now)
    }

    /// Sets whether [`Guard::read`] leaves the use of keys unrecorded, as `CLIENT NO-TOUCH` asks. A
    /// new guard records it.
    #[inline]
    pub fn set_no_touch(&mut self, no_touch: bool) {
        self.no_touch = no_touch;
    }

    /// The entry of a key, marked as used now.
    #[inline]
    pub fn read(&mut self, db: DbIndex, key: &Key<'_>) -> Option<Entry<'_>> {
        let (found, _) = self.find_live(db, key)?;
        if !self.no_touch {
            self.w.touch(found.entry);
        }
        Some(Entry::new(found.entry))
    }

    /// As [`Guard::read`], with the `keymiss` event if the key does not exist.
    #[inline]
    pub fn look_up(&mut self, db: DbIndex, key: &Key<'_>) -> Option<Entry<'_>> {
        let Some((found, _)) = self.find_live(db, key) else {
            self.notify(Event::MISS, db, key);
            return None;
        };
        if !self.no_touch {
            self.w.touch(found.entry);
        }
        Some(Entry::new(found.entry))
    }

    /// The entry of a key, for commands that do not count as a use (TTL, TYPE, OBJECT).
    #[inline]
    pub fn peek(&mut self, db: DbIndex, key: &Key<'_>) -> Option<Entry<'_>> {
        self.find_live(db, key).map(|(found, _)| Entry::new(found.entry))
    }

    /// What the value under a key takes, due or not, bytes; nothing changes.
    pub fn stored_memory(&self, db: DbIndex, key: &Key<'_>) -> Option<u64> {
        self.find_any(db, key).map(|(found, ..)| Entry::new(found.entry).memory() as u64)
    }

    /// The collection stored under a key, due or not; for warming caches, without any change.
    pub fn stored_big(&self, db: DbIndex, key: &Key<'_>) -> Option<&Big> {
        self.find_any(db, key).and_then(|(found, ..)| found.entry.big())
    }

    /// True if the key exists.
    #[inline]
    pub fn contains(&mut self, db: DbIndex, key: &Key<'_>) -> bool {
        self.find_live(db, key).is_some()
    }

    /// The entry of a key, to change. Its first change emits the event.
    #[inline(always)] // a call would cost INCR and HSET 20 instructions
    pub fn entry_mut(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
    ) -> Option<EntryMut<'_, 'a>> {
        let (found, place) = self.find_live(db, key)?;
        Some(EntryMut::new(self, db, place, found.entry, event))
    }

    /// The highest sequence number of the slots that the guard touched: the reply is held until it
    /// is safe.
    #[inline]
    pub fn seq(&self) -> SeqNo {
        SeqNo(self.w.seq_max)
    }

    /// Sets the sequence number of the covered slots to that of their change.
    pub fn stamp(&mut self, seq: SeqNo) {
        match self.mode {
            Mode::One(slot) => self.owned(slot).set_last_seq(seq.0),
            Mode::Many | Mode::Growing | Mode::Free => {
                for &slot in &self.w.held {
                    self.owned(slot).set_last_seq(seq.0);
                }
            }
            Mode::World => SlotId::all().for_each(|slot| self.owned(slot).set_last_seq(seq.0)),
        }
        self.w.seq_max = self.w.seq_max.max(seq.0);
    }

    /// As [`Guard::mark_long`], for a command that has changed nothing yet and can be retried.
    ///
    /// # Errors
    /// [`Parked::Turn`] while another command waits for a turn.
    pub fn try_mark_long(&mut self) -> Result<(), Parked> {
        // A grower has asked already, and is long.
        if !matches!(self.mode, Mode::World | Mode::Growing) {
            self.w.may_be_long(self.ks)?;
        }
        self.mark_long();
        Ok(())
    }

    /// Allows this guard to become long even while others wait for a turn: its command has begun
    /// and cannot be retried.
    pub fn exempt_from_turns(&mut self) {
        self.w.exempt_from_turns = true;
    }

    /// Marks this command long: whoever needs its slots parks instead of waiting, and is woken when
    /// they are released; whoever needs World does not wait for this section. Without effect while
    /// the worker is alone.
    pub fn mark_long(&mut self) {
        let long = |slot: SlotId| self.owned(slot).lock.mark_long(self.w.me);
        if self.w.stand == Stand::Alone || self.mode == Mode::World {
            return;
        }
        self.ks.gate.mark_long(self.w.index);
        match self.mode {
            Mode::One(slot) => long(slot),
            Mode::Many | Mode::Growing | Mode::Free => {
                self.w.held.iter().copied().for_each(long);
            }
            Mode::World => {}
        }
    }

    /// Makes a growing guard cover one more slot, for a key that the command found while it runs.
    /// Guards of other modes must cover the slot already.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder. The command releases everything, parks, and is
    /// retried; it waits for a turn meanwhile ([`crate::Turn::wait`]).
    #[inline]
    pub fn cover(&mut self, slot: SlotId) -> Result<(), Parked> {
        if self.mode == Mode::Growing && !self.ks.slot(slot).lock.is_held_by(self.w.me) {
            self.w.lock_grown(self.ks, slot)?;
        }
        Ok(())
    }

    /// Runs `f` with one slot covered, for a guard that covers none ([`crate::Access::free`]) or
    /// all. The changes of `f` are committed before the slot is released.
    ///
    /// # Errors
    /// As [`Keyspace::may`]. [`Parked::Slot`] behind a long holder, unless the guard covers all.
    pub fn visit<R>(
        &mut self,
        slot: SlotId,
        intent: Intent,
        f: impl FnOnce(&mut Self) -> R,
    ) -> Result<R, Parked> {
        self.ks.may(slot, intent)?;
        self.step_into(slot)?;
        let result = f(self);
        self.step_out();
        Ok(result)
    }

    /// Locks one slot for a step of a walk. Under World, and within what a transaction surveyed,
    /// the slot is held already.
    pub(crate) fn step_into(&mut self, slot: SlotId) -> Result<(), Parked> {
        match self.mode {
            Mode::World => {}
            Mode::Free => {
                self.w.lock_step(self.ks, slot)?;
                self.w.held.push(slot);
                self.w.seq_max = self.w.seq_max.max(self.ks.slot(slot).last_seq());
            }
            Mode::Growing => {
                assert!(self.covers(slot), "a walk of a transaction has surveyed its slots");
            }
            Mode::One(_) | Mode::Many => panic!("a walk locks its slots one by one"),
        }
        Ok(())
    }

    /// Ends the step: commits its changes and releases the slot. Under World, and in a transaction,
    /// the command commits when it ends.
    pub(crate) fn step_out(&mut self) {
        if self.mode == Mode::Free {
            self.finish();
            self.w.unlock_held(self.ks);
            self.w.free_graveyard(self.ks);
        }
    }
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Mode::One(slot) = self.mode
            && self.w.undo.is_empty()
            && self.w.graveyard.is_empty()
        {
            if self.w.unlock(self.ks.slot(slot)) {
                self.wake_parked(slot);
            }
        } else {
            self.drop_slow();
        }
    }
}

impl Guard<'_> {
    #[inline(never)]
    fn drop_slow(&mut self) {
        if !self.w.undo.is_empty() {
            if base::sync::thread::panicking() {
                self.rollback();
            } else {
                self.finish();
            }
        }
        if self.has_pending_records() {
            self.number(); // removals of what was due, which a rollback has kept
        }
        if let Mode::One(slot) = self.mode {
            if self.w.unlock(self.ks.slot(slot)) {
                self.wake_parked(slot);
            }
        } else {
            // After a panic inside a step of a walk its slot is in `held`.
            self.w.unlock_held(self.ks);
            if self.mode == Mode::Growing {
                self.w.survey = None;
                release_growth(self.ks, self.w.me);
            }
        }
        self.w.free_graveyard(self.ks);
    }

    #[cold]
    fn wake_parked(&self, slot: SlotId) {
        self.ks.parking.release(Parked::Slot(slot));
    }
}
