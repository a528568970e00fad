//! The way into the keyspace: each worker has one [`Access`], and there may be further ones
//! (`further.rs`). It has a section behind the World gate, locks, and buffers that commands reuse.
//!
//! ```text
//! outside --- enter() ---> inside --- lock_one/lock/grow/free ---> Guard   (dropped: unlocks)
//!    ^                        |
//!    |                        | step_beside()        the batch continues, without slots
//!    |                        v
//!    +------- leave() ----- beside --- try_world() ---> holds World --- world() ---> Guard
//!                                                          open_world() ends it
//! ```

use crate::entry::{EntryPtr, Gone};
use crate::evict::Pool;
use crate::gate::Refused;
use crate::guard::{Guard, Mode};
use crate::keyspace::Keyspace;
use crate::lock::{HeldLong, Owner, Waited};
use crate::may::Intent;
use crate::memory::PageCache;
use crate::parking::Parked;
use crate::reclaim::{NODES_MAX, Reclaimer};
use crate::records::Records;
use crate::slab::{EntryCache, Source};
use crate::slot::Slot;
use crate::stand::Stand;
use crate::stats::{add, get, set};
use crate::survey::Survey;
use crate::table::HeldTable;
use crate::undo::{Detached, Note, Undo};
use crate::uses::{COUNTING, Uses};
use crate::wait::{Ready, ReadyKeys};
use crate::workspace::Workspace;
use crate::{bucket::Word, stats::WorkerStats};
use base::prng::Prng;
use base::sync::Arc;
use base::{Blob, SeqNo, SlotId, UnixMs};
use std::collections::VecDeque;
use value::Big;

/// The time for which the closer of the gate waits doubles this often at most, up to 50 ms.
const WORLD_DOUBLED_MAX: u32 = 10;

/// An access to the keyspace. It may move to another thread, but one thread uses it at a time.
pub struct Access {
    pub(crate) ks: Arc<Keyspace>,
    pub(crate) w: Worker,
}

/// The part of an access that is not shared; apart from the keyspace, so that both can be borrowed.
pub(crate) struct Worker {
    pub me: Owner,
    /// A worker's number, or one from [`Keyspace::workers`] on.
    pub index: usize,
    /// Whether it is inside, beside the gate or outside.
    pub stand: Stand,
    /// The running command may be long even while others wait for a turn.
    pub exempt_from_turns: bool,
    /// How often in a row World could not be taken although nobody was inside for long.
    world_tries: u32,
    pub now: UnixMs,
    /// What is recorded about the uses of keys, and the bits for a key that is used or created now.
    pub uses: Uses,
    pub uses_now: u32,
    /// The version of the settings that `uses` and the undo log's listeners have.
    uses_version: u32,
    /// Decides at random whether a use raises a counter.
    pub dice: Prng,
    /// The highest sequence number of the slots that the guard has touched.
    pub seq_max: u64,
    /// The last number that was drawn and that nobody has asked for.
    pub drawn: SeqNo,
    pub held: Vec<SlotId>,
    pub undo: Undo,
    pub records: Records,
    /// The slots that the walks of the running transaction may visit.
    pub survey: Option<Box<Survey>>,
    /// Entries to free when the guard has dropped.
    pub graveyard: Vec<Gone>,
    /// Flushed databases, freed in steps.
    pub garbage: VecDeque<Detached>,
    pub pages: PageCache,
    pub entries: EntryCache,
    pub scratch: Vec<Word>,
    pub text: Vec<u8>,
    /// Changed keys for which tickets wait.
    pub ready: ReadyKeys,
    /// Notes of callers, with changes that are committed.
    pub notes: VecDeque<Note>,
    /// Where the next expiry step begins.
    pub expire_at: usize,
    /// Where the next sample of due keys begins, in this worker's share of the slots.
    pub sample_at: usize,
    /// Keys that may be the next to go.
    pub pool: Pool,
}

impl Access {
    /// Keys with waiters which a sweep has removed. The caller offers them under a guard
    /// ([`crate::Guard::push_ready`]).
    pub fn take_ready(&mut self) -> VecDeque<Ready> {
        self.w.ready.take()
    }

    /// The Access of `worker`, which must have none.
    pub fn new(ks: Arc<Keyspace>, worker: usize) -> Self {
        ks.claims.claim_worker(worker);
        Self::of(ks, worker)
    }

    /// An Access under a number that the caller has claimed.
    pub(crate) fn of(ks: Arc<Keyspace>, index: usize) -> Self {
        let stats = ks.stats(index);
        let w = Worker {
            me: Owner::numbered(index),
            index,
            stand: Stand::Outside,
            exempt_from_turns: false,
            world_tries: 0,
            now: UnixMs(0),
            uses: Uses::Times,
            uses_now: 0,
            uses_version: 0,
            dice: Prng::new(index as u64 + 1),
            seq_max: 0,
            drawn: SeqNo(0),
            held: Vec::new(),
            undo: Undo::default(),
            records: Records::default(),
            survey: None,
            graveyard: Vec::new(),
            garbage: VecDeque::new(),
            pages: PageCache::continuing(get(&stats.buckets)),
            entries: EntryCache::continuing(get(&stats.entries)),
            scratch: Vec::new(),
            text: Vec::new(),
            ready: ReadyKeys::default(),
            notes: VecDeque::new(),
            expire_at: 0,
            sample_at: 0,
            pool: Pool::default(),
        };
        Self { ks, w }
    }

    /// The keyspace.
    #[inline]
    pub fn keyspace(&self) -> &Arc<Keyspace> {
        &self.ks
    }

    /// The worker's number; a further Access has one from [`Keyspace::workers`] on.
    pub fn number(&self) -> usize {
        self.w.index
    }

    /// Goes inside, to execute a batch. False if the gate is closed, even by this worker: then only
    /// the closer executes, under [`Access::world`].
    #[inline]
    pub fn enter(&mut self) -> bool {
        let inside = self.enter_or_stay_beside();
        if !inside {
            self.leave();
        }
        inside
    }

    /// Goes inside. If the gate is closed, stays beside it and returns false: then the batch
    /// executes only what needs no slot. Either way the batch must read [`crate::Fences::latest`]
    /// before its first command, and ends with [`Access::leave`].
    #[inline]
    pub fn enter_or_stay_beside(&mut self) -> bool {
        let inside = self.w.stand.enter(&self.ks.gate, self.w.index);
        // Behind the gate: whoever enters after a cut, which is made under World, sees it.
        self.w.follow(&self.ks);
        if !inside {
            self.step_beside();
        }
        inside
    }

    /// Leaves the section within a batch, to take World.
    pub fn step_beside(&mut self) {
        self.finish_forgotten();
        if self.w.stand.step_beside(&self.ks.gate, self.w.index) {
            self.ks.parking.release(Parked::Section(self.w.index));
        }
    }

    /// Leaves the section after a batch; harmless outside.
    #[inline]
    pub fn leave(&mut self) {
        self.finish_forgotten();
        if self.w.stand.leave(&self.ks.gate, self.w.index) {
            self.ks.parking.release(Parked::Section(self.w.index));
        }
    }

    /// Commits the changes of a guard that was forgotten (`mem::forget`) instead of dropped, and
    /// releases its lock set. Called before anything is released on which such changes rely: the
    /// section, World, a part of a lock set. The lock of a single slot and the growth token stay
    /// taken for ever.
    #[inline]
    pub(crate) fn finish_forgotten(&mut self) {
        if !(self.w.undo.is_empty() && self.w.held.is_empty() && self.w.graveyard.is_empty()) {
            self.finish_forgotten_changes();
        }
        if !self.w.records.batch.is_empty() {
            self.hand_over();
        }
    }

    /// Hands the records of this section over to the journal's writer.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.w.records.batch);
        self.w.records.batch = self.ks.journal.hand_over(batch);
    }

    #[cold]
    fn finish_forgotten_changes(&mut self) {
        let mut guard = Guard::over_forgotten(&self.ks, &mut self.w);
        guard.finish();
        drop(guard);
    }

    /// Closes the World gate and waits briefly until every other worker has left its section. Then
    /// the gate stays closed, even across turns of this worker, until [`Access::open_world`].
    ///
    /// A worker that is inside but not marked long is waited for a little longer with each try. So
    /// an endless sequence of batches cannot prevent World.
    ///
    /// # Errors
    /// [`Parked::Gate`] if the gate is closed, [`Parked::Section`] if a worker is inside for long.
    /// The gate is as it was; the caller parks and waits for a turn ([`crate::Turn::wait`]).
    pub fn try_world(&mut self) -> Result<(), Parked> {
        match self.ks.gate.close(self.w.index, self.w.me, self.w.world_tries) {
            Ok(()) => {
                self.w.world_tries = 0;
                self.w.follow(&self.ks);
                add(&self.ks.stats(self.w.index).worlds, 1);
                Ok(())
            }
            Err(Refused::Closed) => Err(Parked::Gate),
            Err(Refused::Inside(number)) => {
                if self.holds_world() {
                    self.w.world_tries = (self.w.world_tries + 1).min(WORLD_DOUBLED_MAX);
                    self.open_world();
                }
                Err(Parked::Section(number))
            }
        }
    }

    /// Sets whether the next commands may be long even while others wait for a turn: commands that
    /// have waited for a turn or for its end, and commands that have begun.
    pub fn set_exempt_from_turns(&mut self, exempt: bool) {
        self.w.exempt_from_turns = exempt;
    }

    /// Sets whether changes under this Access leave no records, and draw no numbers while others
    /// leave records: whoever loads data which the journal has already. Slots keep the numbers of
    /// the changes which the data shows. Called while there is no guard.
    pub fn set_exempt_from_records(&mut self, exempt: bool) {
        self.w.records.is_exempt = exempt;
        self.w.records.is_on = self.ks.journal.is_recording() && !exempt;
    }

    /// Asked before locking by a command that will be long.
    ///
    /// # Errors
    /// [`Parked::Turn`] while others wait for a turn.
    pub fn may_be_long(&self) -> Result<(), Parked> {
        self.w.may_be_long(&self.ks)
    }

    /// True if this worker closed the gate.
    #[inline]
    pub fn holds_world(&self) -> bool {
        self.ks.gate.is_closed_by(self.w.me)
    }

    /// True if anybody closed the gate.
    #[inline]
    pub fn is_world_closed(&self) -> bool {
        self.ks.gate.is_closed()
    }

    /// Opens the gate and wakes the sessions that are parked at it.
    pub fn open_world(&mut self) {
        self.finish_forgotten();
        if self.ks.gate.open(self.w.me) {
            self.ks.parking.release(Parked::Gate);
        }
    }

    /// Parks a session where its command could not continue. When it can be retried, the waker is
    /// called with `token`. False: it can be retried now. Only workers park.
    pub fn park(&mut self, at: Parked, token: u64) -> bool {
        assert!(!self.is_further(), "only workers are woken");
        let ks = &*self.ks;
        let parked = ks.parking.park(at, self.w.index, token, || match at {
            Parked::Slot(slot) => ks.slot(slot).lock.mark_parked(),
            Parked::Gate => ks.gate.mark_parked(),
            Parked::Section(number) => ks.gate.mark_awaited(number),
            // The end of a turn releases afterwards, under the same mutex.
            Parked::Turn => ks.turns.are_awaited(),
            Parked::Growth => ks.growth.mark_parked(),
            // A thaw releases afterwards, under the same mutex.
            Parked::Frozen(slot) => ks.is_frozen(slot),
            Parked::Thaw => ks.has_frozen(),
            Parked::Freeze => ks.turns.are_thaws_awaited(),
        });
        if parked {
            add(&ks.stats(self.w.index).parks, 1);
        }
        parked
    }

    /// Locks one slot for one command, which uses its keys as `intent` says. The caller is inside
    /// its section.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder, or as [`Keyspace::may`].
    #[inline]
    pub fn lock_one(
        &mut self,
        slot: SlotId,
        now: UnixMs,
        intent: Intent,
    ) -> Result<Guard<'_>, Parked> {
        self.ks.may(slot, intent)?;
        self.lock_unchecked(slot, now)
    }

    #[inline(always)]
    pub(crate) fn lock_unchecked(
        &mut self,
        slot: SlotId,
        now: UnixMs,
    ) -> Result<Guard<'_>, Parked> {
        self.w.set_now(now);
        let line = self.ks.slot(slot);
        if !self.w.try_lock(line) {
            self.w.lock_slow(&self.ks, slot)?;
        }
        self.w.seq_max = line.last_seq();
        Ok(Guard::new(&self.ks, &mut self.w, Mode::One(slot)))
    }

    /// Locks several slots, ascending and each once. The caller is inside its section.
    ///
    /// # Errors
    /// As [`Access::lock_one`].
    pub fn lock(
        &mut self,
        slots: &[SlotId],
        now: UnixMs,
        intent: Intent,
    ) -> Result<Guard<'_>, Parked> {
        self.ks.may_all(slots, intent)?;
        self.lock_many(slots, now)
    }

    pub(crate) fn lock_many(&mut self, slots: &[SlotId], now: UnixMs) -> Result<Guard<'_>, Parked> {
        self.lock_all(slots, now)?;
        Ok(Guard::new(&self.ks, &mut self.w, Mode::Many))
    }

    fn lock_all(&mut self, slots: &[SlotId], now: UnixMs) -> Result<(), Parked> {
        assert!(slots.is_sorted_by(|a, b| a < b), "slots are locked ascending and once");
        self.w.assert_inside(&self.ks);
        self.finish_forgotten();
        self.w.set_now(now);
        self.w.seq_max = 0;
        for &slot in slots {
            let line = self.ks.slot(slot);
            if !self.w.try_lock(line)
                && let Err(parked) = self.w.lock_slow(&self.ks, slot)
            {
                self.w.unlock_held(&self.ks);
                return Err(parked);
            }
            self.w.seq_max = self.w.seq_max.max(line.last_seq());
            self.w.held.push(slot);
        }
        Ok(())
    }

    /// Takes the growth token and locks the slots that are known before the command runs, ascending
    /// and each once; [`Guard::cover`] locks more. The caller is inside its section. `growth.rs`
    /// explains why there is no deadlock.
    ///
    /// # Errors
    /// [`Parked::Growth`] behind another grower, [`Parked::Turn`] while others wait for a turn, and
    /// as [`Access::lock`].
    pub fn grow(
        &mut self,
        slots: &[SlotId],
        now: UnixMs,
        intent: Intent,
    ) -> Result<Guard<'_>, Parked> {
        self.ks.may_all(slots, intent)?;
        self.may_be_long()?;
        self.w.assert_inside(&self.ks);
        if !self.ks.growth.try_take(self.w.me) {
            return Err(Parked::Growth);
        }
        if let Err(parked) = self.lock_all(slots, now) {
            release_growth(&self.ks, self.w.me);
            return Err(parked);
        }
        let mut guard = Guard::new(&self.ks, &mut self.w, Mode::Growing);
        guard.mark_long();
        Ok(guard)
    }

    /// A guard over all slots, while this worker holds World.
    pub fn world(&mut self, now: UnixMs) -> Guard<'_> {
        assert!(self.holds_world(), "World is taken before it is used");
        self.w.set_now(now);
        self.w.seq_max = self.ks.numbers.last().0;
        Guard::new(&self.ks, &mut self.w, Mode::World)
    }

    /// A guard over no slot: for commands without keys, and for walks, which lock one slot at a
    /// time (then the caller is inside its section).
    #[inline]
    pub fn free(&mut self, now: UnixMs) -> Guard<'_> {
        debug_assert!(self.w.stand != Stand::Outside || self.holds_world(), "within a batch");
        self.w.set_now(now);
        self.w.seq_max = 0;
        Guard::new(&self.ks, &mut self.w, Mode::Free)
    }

    /// Frees about `entries_max` allocations of what FLUSHALL and FLUSHDB detached. True if there
    /// is more. Needs no lock.
    pub fn reclaim(&mut self, entries_max: usize) -> bool {
        let mut left = entries_max as i64;
        while left > 0 {
            let Some(detached) = self.w.garbage.front_mut() else { return false };
            let stats = self.ks.stats(self.w.index);
            let Some((_, table)) = detached.tables.last_mut() else {
                add(&stats.flushed, -detached.bytes); // (what empty tables kept for new entries)
                self.w.garbage.pop_front();
                continue;
            };
            let before = stats.taken();
            let mut work = Workspace {
                mem: &self.ks.mem,
                pages: &mut self.w.pages,
                hasher: &self.ks.hasher,
                scratch: &mut self.w.scratch,
            };
            left -= 1;
            let mut source = Source { mem: &self.ks.entries, cache: &mut self.w.entries };
            let more = HeldTable::of_mut(table).pop_bucket(&mut work, |entry| {
                left -= free_entry(entry, &mut source, stats, &self.ks.reclaimer) as i64;
            });
            if !more {
                detached.tables.pop();
            }
            set(&stats.buckets, self.w.pages.buckets);
            add(&stats.flushed, -detached.note_freed(before - stats.taken()));
        }
        true
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        if self.holds_world() {
            self.open_world();
        }
        self.leave();
        while self.reclaim(usize::MAX >> 1) {}
        self.w.pages.return_all(&self.ks.mem);
        self.w.entries.return_all(&self.ks.entries);
        self.ks.claims.release(&self.ks.gate, self.w.index);
    }
}

/// Releases the growth token and wakes the sessions that wait for it.
pub(crate) fn release_growth(ks: &Keyspace, me: Owner) {
    if ks.growth.release(me) {
        ks.parking.release(Parked::Growth);
    }
}

/// Frees an entry that is in no table; the reclaimer frees a value of many parts. Returns the work
/// in allocations.
fn free_entry(
    gone: Gone,
    source: &mut Source<'_>,
    stats: &WorkerStats,
    reclaimer: &Reclaimer,
) -> usize {
    let entry = gone.entry();
    add(&stats.used, -(entry.memory() as i64));
    let nodes = if entry.header().is_big() {
        free_outside(gone, source, reclaimer)
    } else {
        gone.free(source);
        1
    };
    set(&stats.entries, source.cache.bytes);
    nodes
}

/// As [`free_entry`], of an entry whose value is outside.
fn free_outside(mut gone: Gone, source: &mut Source<'_>, reclaimer: &Reclaimer) -> usize {
    let entry = gone.entry();
    let nodes = entry.big().map_or(0, Big::node_count) + entry.blob().map_or(0, Blob::page_count);
    if nodes <= NODES_MAX {
        gone.free(source);
        return 1 + nodes;
    }
    let string = entry.blob().cloned();
    if let Some(big) = gone.take_box() {
        reclaimer.reclaim(*big);
    }
    gone.free(source);
    if let Some(string) = string {
        reclaimer.reclaim_string(string); // last: whoever drops the last reference frees the pages
    }
    NODES_MAX
}

impl Worker {
    /// Sets the time of the next command.
    #[inline(always)]
    fn set_now(&mut self, now: UnixMs) {
        if now != self.now {
            self.now = now;
            self.uses_now = self.uses.word(now);
        }
    }

    /// Moves the time forward, never back.
    pub fn advance(&mut self, now: UnixMs) {
        if now > self.now {
            self.set_now(now);
        }
    }

    /// Records a use of an entry; writes nothing if the bits stay the same.
    #[inline(always)]
    pub fn touch(&mut self, entry: EntryPtr) {
        let before = entry.uses();
        if before != self.uses_now {
            entry.set_uses(self.used(before));
        }
    }

    /// The bits of an entry that is used now and had `before`.
    #[inline(always)]
    pub fn used(&mut self, before: u32) -> u32 {
        if self.uses_now & COUNTING == 0 { self.uses_now } else { self.count_use(before) }
    }

    #[cold]
    fn count_use(&mut self, before: u32) -> u32 {
        self.uses.counted(before, self.now, self.dice.draw())
    }

    /// Adopts what is recorded about uses, and the snapshot that runs, if either has changed.
    #[inline]
    pub fn follow(&mut self, ks: &Keyspace) {
        let version = ks.uses.version();
        if version != self.uses_version {
            self.adopt(ks, version);
        }
    }

    #[cold]
    fn adopt(&mut self, ks: &Keyspace, version: u32) {
        self.uses_version = version;
        self.uses = ks.uses.get();
        self.uses_now = self.uses.word(self.now);
        self.undo.adopt_snapshot(ks.snapshot.running());
        if self.undo.events.sink.is_some() {
            self.undo.select_events(ks.events.get());
        }
        self.records.is_on = ks.journal.is_recording() && !self.records.is_exempt;
    }

    #[inline(always)]
    pub fn try_lock(&self, line: &Slot) -> bool {
        self.stand.try_lock(&line.lock, self.me)
    }

    /// [`Parked::Turn`] while others wait for a turn and this command is not exempt.
    pub fn may_be_long(&self, ks: &Keyspace) -> Result<(), Parked> {
        if !self.exempt_from_turns && ks.turns.are_awaited() { Err(Parked::Turn) } else { Ok(()) }
    }

    /// Slots are locked inside the section, or with World. [`Worker::try_lock`] succeeds only
    /// inside.
    fn assert_inside(&self, ks: &Keyspace) {
        let may_lock = self.stand.is_inside() || ks.gate.is_closed_by(self.me);
        assert!(may_lock, "slots are locked inside the section");
    }

    #[cold]
    fn lock_slow(&self, ks: &Keyspace, slot: SlotId) -> Result<(), Parked> {
        self.assert_inside(ks);
        let stats = ks.stats(self.index);
        add(&stats.waits, 1);
        Self::waited(stats, ks.slot(slot).lock.lock_slow(self.me), slot)
    }

    fn waited(
        stats: &WorkerStats,
        waited: Result<Waited, HeldLong>,
        slot: SlotId,
    ) -> Result<(), Parked> {
        match waited {
            Ok(waited) => {
                add(&stats.sleeps, i64::from(waited.sleeps));
                Ok(())
            }
            Err(HeldLong) => Err(Parked::Slot(slot)),
        }
    }

    /// Releases one slot; true if sessions are parked behind it.
    #[inline(always)]
    pub fn unlock(&self, line: &Slot) -> bool {
        self.stand.unlock(&line.lock, self.me)
    }

    /// Locks one slot for a step of a walk; waits briefly at most.
    pub fn lock_step(&self, ks: &Keyspace, slot: SlotId) -> Result<(), Parked> {
        let line = ks.slot(slot);
        if self.try_lock(line) {
            return Ok(());
        }
        self.assert_inside(ks);
        let stats = ks.stats(self.index);
        add(&stats.waits, 1);
        Self::waited(stats, line.lock.lock_briefly(self.me), slot)
    }

    /// Locks one more slot for a grower and marks it long. Waits like every acquirer, so not behind
    /// a long holder.
    pub fn lock_grown(&mut self, ks: &Keyspace, slot: SlotId) -> Result<(), Parked> {
        let line = ks.slot(slot);
        if self.stand == Stand::Alone {
            line.lock.lock_alone(self.me);
        } else {
            let sleeps = ks.growth.lock(&line.lock, self.me).map_err(|_| Parked::Slot(slot))?;
            add(&ks.stats(self.index).sleeps, i64::from(sleeps));
        }
        self.seq_max = self.seq_max.max(line.last_seq());
        self.held.push(slot);
        Ok(())
    }

    /// Releases all slots of the lock set, the last one first.
    pub fn unlock_held(&mut self, ks: &Keyspace) {
        let mut any_parked = false;
        let mut parked = [false; 8];
        for (i, &slot) in self.held.iter().enumerate().rev() {
            let waiting = self.unlock(ks.slot(slot));
            any_parked |= waiting;
            if let Some(flag) = parked.get_mut(i) {
                *flag = waiting;
            }
        }
        if any_parked {
            for (i, &slot) in self.held.iter().enumerate() {
                if parked.get(i).copied().unwrap_or(true) {
                    ks.parking.release(Parked::Slot(slot));
                }
            }
        }
        self.held.clear();
    }

    /// Frees the entries that the commands of the dropped guard have replaced or removed.
    #[cold]
    pub fn free_graveyard(&mut self, ks: &Keyspace) {
        let stats = ks.stats(self.index);
        let mut source = Source { mem: &ks.entries, cache: &mut self.entries };
        for entry in self.graveyard.drain(..) {
            free_entry(entry, &mut source, stats, &ks.reclaimer);
        }
    }
}
