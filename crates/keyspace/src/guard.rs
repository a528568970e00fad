//! The guard: what a command holds while it runs. Reading is here; the one door for change is in
//! `change.rs`.
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

/// Locks held by one command (or one EXEC). Dropping it releases them; what was not committed is
/// committed then, unless a panic is unwinding, which rolls it back.
pub struct Guard<'a> {
    pub(crate) ks: &'a Keyspace,
    pub(crate) w: &'a mut Worker,
    mode: Mode,
    /// Reads leave the access times of keys alone.
    no_touch: bool,
    /// What becomes of what is due.
    pub(crate) due: Due,
}

impl<'a> Guard<'a> {
    #[inline(always)]
    pub(crate) fn new(ks: &'a Keyspace, w: &'a mut Worker, mode: Mode) -> Self {
        debug_assert!(w.undo.is_empty() && w.graveyard.is_empty());
        Self { ks, w, mode, no_touch: false, due: Due::Remove }
    }

    /// A guard over nothing that ends what a forgotten one has left.
    pub(crate) fn over_forgotten(ks: &'a Keyspace, w: &'a mut Worker) -> Self {
        Self { ks, w, mode: Mode::Free, no_touch: false, due: Due::Remove }
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &'a Keyspace {
        self.ks
    }

    /// What is kept of the uses of keys.
    pub fn uses(&self) -> Uses {
        self.w.uses
    }

    /// Takes over what [`Keyspace::set_uses`] said since the worker went inside.
    pub fn follow_uses(&mut self) {
        self.w.follow_uses(self.ks);
    }

    /// The time at which the command runs; one for all of it.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.w.now
    }

    /// Goes on at a later time: what has fallen due meanwhile is due.
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

    /// The slot, which this guard must cover: everything that touches a slot comes through here.
    /// The proof is used while the guard covers the slot: it is not kept until the guard or its
    /// step has ended.
    #[inline(always)]
    pub(crate) fn owned(&self, id: SlotId) -> Held<'a> {
        let slot = self.ks.slot(id);
        assert!(
            slot.lock.is_held_by(self.w.me) || self.covers_all(),
            "the guard covers the key's slot"
        );
        // SAFETY: 1. Just checked; who has a guard is inside or holds World, and neither ends while
        // the guard borrows the access. 2. Proofs of this crate end before their guard or step
        // does.
        unsafe { Held::new(slot) }
    }

    /// True if this guard is over everything. Asked of the mode and of the gate: a flag would stay
    /// behind with a guard that is forgotten.
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

    /// Finds the entry, expired or not.
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

    /// Finds the entry that is there now; one whose time has come is removed through the door, or
    /// whatever else becomes of it ([`Due`]).
    #[inline(always)]
    pub(crate) fn find_live(&mut self, db: DbIndex, key: &Key<'_>) -> Option<(Found<'a>, Place)> {
        let (found, _, place) = self.find_any(db, key)?;
        if found.entry.header().has_ttl()
            && self.is_due(found.entry)
            && self.expire_or_hide(db, place, found.entry)
        {
            return None;
        }
        // One bit tells most entries from those whose fields may expire.
        if found.entry.header().is_big()
            && found.entry.next_field_due().is_some_and(|due| due <= self.w.now)
        {
            return self.find_after_fields(db, key, place, found.entry);
        }
        Some((found, place))
    }

    /// As [`Guard::find_live`], once the fields of a hash whose time has come are gone, or hidden;
    /// or shown, if that is to be ignored.
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

    /// True if the entry's time has come.
    #[inline]
    pub(crate) fn is_due(&self, entry: EntryPtr) -> bool {
        entry.expiry().is_some_and(|at| at <= self.w.now)
    }

    /// Whether [`Guard::read`] leaves the access times of keys alone, as `CLIENT NO-TOUCH` asks;
    /// a new guard does not.
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

    /// As [`Guard::read`], for commands that ask for the key: who listens is told if it is not
    /// there.
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

    /// The collection under a key, expired or not, as it is: for a look ahead that changes nothing.
    pub fn stored_big(&self, db: DbIndex, key: &Key<'_>) -> Option<&Big> {
        self.find_any(db, key).and_then(|(found, ..)| found.entry.big())
    }

    /// True if the key exists.
    #[inline]
    pub fn contains(&mut self, db: DbIndex, key: &Key<'_>) -> bool {
        self.find_live(db, key).is_some()
    }

    /// The entry of a key, to change; its first change tells the event.
    #[inline]
    pub fn entry_mut(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
    ) -> Option<EntryMut<'_, 'a>> {
        let (found, place) = self.find_live(db, key)?;
        Some(EntryMut::new(self, db, place, found.entry, event))
    }

    /// The highest sequence number of the slots that the guard saw: the hold of the reply.
    #[inline]
    pub fn seq(&self) -> SeqNo {
        SeqNo(self.w.seq_max)
    }

    /// Gives the covered slots the number of the record that describes their change.
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

    /// As [`Guard::mark_long`], for a command that has changed nothing yet and can be given back:
    /// it parks where somebody waits for a turn.
    pub fn try_mark_long(&mut self) -> Result<(), Parked> {
        // A grower has been asked already, and is long.
        if !matches!(self.mode, Mode::World | Mode::Growing) {
            self.w.may_be_long(self.ks)?;
        }
        self.mark_long();
        Ok(())
    }

    /// Lets what this guard still does be long: it has begun, and is not given back any more.
    pub fn exempt_from_turns(&mut self) {
        self.w.exempt_from_turns = true;
    }

    /// Says that this command will hold its slots for long: whoever meets them parks instead of
    /// waiting, and is woken when they are released. Who wants World does not wait for this section
    /// either. While its worker is alone nobody is there to hear it.
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

    /// Makes the guard cover the slot of a key that the command has come upon: takes it under the
    /// growth token, if the guard does not have it yet. A guard over everything has it; any other
    /// must.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder. The command gives everything back, parks, and runs
    /// again; it waits for a turn meanwhile ([`crate::Turn::wait`]).
    #[inline]
    pub fn cover(&mut self, slot: SlotId) -> Result<(), Parked> {
        if self.mode == Mode::Growing && !self.ks.slot(slot).lock.is_held_by(self.w.me) {
            self.w.lock_grown(self.ks, slot)?;
        }
        Ok(())
    }

    /// Runs `f` with one slot covered, for a guard that covers none ([`crate::Access::free`]) or
    /// everything; what it changes is committed before a slot is released.
    ///
    /// # Errors
    /// As [`Keyspace::may`] says of what `f` wants; and [`Parked::Slot`] behind a long holder, but
    /// not for a guard over everything.
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

    /// Takes one slot for a step of a guard that covers none; none is taken under World, nor of
    /// what was surveyed.
    pub(crate) fn step_into(&mut self, slot: SlotId) -> Result<(), Parked> {
        match self.mode {
            Mode::World => {}
            Mode::Free => {
                self.w.lock_step(self.ks, slot)?;
                self.w.held.push(slot);
                self.w.seq_max = self.w.seq_max.max(self.ks.slot(slot).last_seq());
            }
            Mode::Growing => assert!(self.covers(slot), "a walk beside locks has its slots"),
            Mode::One(_) | Mode::Many => panic!("a walk takes its slots by itself"),
        }
        Ok(())
    }

    /// Ends the step: finishes its changes, releases the slot and frees. Under World the walk is a
    /// part of its command, whose end commits.
    pub(crate) fn step_out(&mut self) {
        if self.mode == Mode::Free {
            self.finish();
            self.w.unlock_held(self.ks);
            self.w.bury(self.ks);
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
        if let Mode::One(slot) = self.mode {
            if self.w.unlock(self.ks.slot(slot)) {
                self.wake_parked(slot);
            }
        } else {
            // A panic inside a step of a walk leaves its slot in `held`, too.
            self.w.unlock_held(self.ks);
            if self.mode == Mode::Growing {
                self.w.survey = None;
                release_growth(self.ks, self.w.me);
            }
        }
        self.w.bury(self.ks);
    }

    #[cold]
    fn wake_parked(&self, slot: SlotId) {
        self.ks.parking.release(Parked::Slot(slot));
    }
}
