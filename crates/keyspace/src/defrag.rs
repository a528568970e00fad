//! Moving entries out of spans which the entries of their class do not need (`slab/leaving.rs`), so
//! that the memory of these spans becomes free.
//!
//! ```text
//! Choosing ---> Walking ---> Ending       a round
//! marks spans   moves        what was not left is used again
//! ```
//!
//! The memory of a span that became free goes back to the system by [`Keyspace::return_surplus`],
//! in another thread: a step makes no system call.
//!
//! One worker drives a round, by steps of bounded time ([`Access::defrag_step`]). The walk passes
//! every slot once, in each database. It takes a slot's lock for some moves at a time, and only if
//! that is free: slots that are locked, held for long or frozen are skipped in this round. It ends
//! its step when somebody waits for World. A round does not go on while a snapshot runs: it would
//! keep places from being used for as long as that takes.
//!
//! A move copies the bytes of an entry and replaces its address in its bucket. So it keeps value,
//! expiry, uses and flags. Whatever else belongs to a key (expiry index, watches, tickets) names
//! it by its hash or its bytes. Addresses of entries stand in three other places, which a move
//! need not know: the undo log and captured entries belong to a guard that holds the slot;
//! candidates for eviction are looked up again under the lock; a prefetch reads nothing. A move is
//! no change: nobody is notified, no record is written and no number is drawn.
#![allow(unsafe_code)]

use crate::access::Access;
use crate::guard::{Guard, Mode};
use crate::keyspace::Keyspace;
use crate::may::Intent;
use crate::slab::{Choice, Leaving, Source};
use crate::stats::set;
use crate::table::Found;
use base::prefetch::prefetch;
use base::sync::Arc;
use base::{MonoNs, SlotId, UnixMs};

/// Work between two reads of the clock, and under one lock: moves, buckets and slots, in units of
/// about a cache miss or two.
const BURST: usize = 16;
/// So many buckets without an entry to move are one unit.
const BUCKETS_PER_UNIT: usize = 2;
/// Bytes of an entry which are one more unit.
const BYTES_PER_UNIT: usize = 1024;

/// A round. It is driven to its end by [`Access::defrag_step`].
pub struct Defrag {
    stage: Stage,
    /// Spans chosen to be left.
    chosen: u32,
}

enum Stage {
    Choosing(Choice),
    Walking(Walk),
    /// The first span that was not examined.
    Ending(u32),
}

/// The position of the walk.
struct Walk {
    leaving: Arc<Leaving>,
    physical: u16,
    slot: usize,
    /// A bit-reversed hash.
    point: u64,
}

/// What follows a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefragNext {
    /// Another step.
    #[default]
    More,
    /// Another step, later: somebody waits for World.
    Waits,
    /// The round is over.
    Complete,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefragReport {
    /// Entries moved.
    pub moved: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Entries that were met and stayed.
    pub stayed: u64,
    /// Slots that were skipped.
    pub skipped: u64,
    /// What follows.
    pub next: DefragNext,
}

impl Defrag {
    /// Ends the round with the next steps, although entries may be left to be moved.
    pub fn end_early(&mut self) {
        if !matches!(self.stage, Stage::Ending(_)) {
            self.stage = Stage::Ending(0);
        }
    }

    /// Spans chosen to be left.
    pub fn chosen(&self) -> u32 {
        self.chosen
    }
}

impl Access {
    /// Begins a round; `None` if every class needs its spans. After a round that was dropped before
    /// its end, the new one only ends that. One round at a time, in all of the keyspace.
    /// O(size classes), and a bit for each span.
    pub fn begin_defrag(&mut self) -> Option<Defrag> {
        let stage = if self.ks.entries.leaving().is_some() {
            Stage::Ending(0)
        } else {
            Stage::Choosing(self.ks.entries.begin_choice()?)
        };
        Some(Defrag { stage, chosen: 0 })
    }

    /// Does a part of the round, for about `budget_ns` by `clock`, which is read every few moves.
    /// The caller is inside its section and holds no guard.
    pub fn defrag_step(
        &mut self,
        round: &mut Defrag,
        now: UnixMs,
        budget_ns: u64,
        mut clock: impl FnMut() -> MonoNs,
    ) -> DefragReport {
        let until = clock().plus(budget_ns);
        let mut report = DefragReport::default();
        if self.ks.is_snapshot_running() {
            round.end_early();
        }
        let ks = Arc::clone(&self.ks);
        loop {
            match &mut round.stage {
                Stage::Choosing(choice) => {
                    let more = ks.entries.choose(choice);
                    round.chosen = choice.chosen;
                    if !more {
                        let leaving = Arc::clone(&choice.leaving);
                        let walk = Walk { leaving, physical: 0, slot: 0, point: 0 };
                        round.stage = Stage::Walking(walk);
                    }
                }
                Stage::Walking(walk) => {
                    report.next =
                        self.walk_to_move(&ks, walk, (now, until), &mut clock, &mut report);
                    if report.next != DefragNext::Complete {
                        return report;
                    }
                    (round.stage, report.next) = (Stage::Ending(0), DefragNext::More);
                }
                Stage::Ending(from) => {
                    let Some(next) = ks.entries.end_leaving(*from) else {
                        report.next = DefragNext::Complete;
                        return report;
                    };
                    *from = next;
                }
            }
            if clock() >= until {
                return report;
            }
        }
    }

    /// Walks slots until the time is over.
    fn walk_to_move(
        &mut self,
        ks: &Keyspace,
        walk: &mut Walk,
        (now, until): (UnixMs, MonoNs),
        clock: &mut impl FnMut() -> MonoNs,
        report: &mut DefragReport,
    ) -> DefragNext {
        self.return_left_to(&Arc::clone(&walk.leaving));
        let mut left = Vec::with_capacity(BURST);
        let mut next = DefragNext::More;
        // At least one burst, however slow the machine is.
        loop {
            if ks.gate.is_closed() {
                next = DefragNext::Waits;
                break;
            }
            let mut units = BURST;
            while units > 0 {
                let Some(slot) = walk.slot(ks) else {
                    next = DefragNext::Complete;
                    break;
                };
                self.move_in_slot(walk, slot, now, &mut units, &mut left, report);
            }
            ks.entries.free_left(&mut left);
            if next != DefragNext::More || clock() >= until {
                break;
            }
        }
        set(&ks.stats(self.w.index).entries, self.w.entries.bytes);
        next
    }

    /// Moves entries of one slot, from the walk's point on, until the units are used up.
    fn move_in_slot(
        &mut self,
        walk: &mut Walk,
        slot: SlotId,
        now: UnixMs,
        units: &mut usize,
        left: &mut Vec<u64>,
        report: &mut DefragReport,
    ) {
        let point = if let Some(mut guard) = self.try_lock_to_move(slot, now) {
            guard.move_out(walk, slot, units, left, report)
        } else {
            report.skipped += 1;
            None
        };
        if let Some(point) = point {
            walk.point = point;
        } else {
            (walk.slot, walk.point) = (slot.index() + 1, 0);
        }
        *units = units.saturating_sub(1);
    }

    /// Locks a slot if that is possible at once.
    fn try_lock_to_move(&mut self, slot: SlotId, now: UnixMs) -> Option<Guard<'_>> {
        self.ks.may(slot, Intent::Write).ok()?;
        if !self.w.try_lock(self.ks.slot(slot)) {
            return None;
        }
        self.w.advance(now);
        self.w.seq_max = self.ks.slot(slot).last_seq();
        Some(Guard::new(&self.ks, &mut self.w, Mode::One(slot)))
    }

    /// Returns the free places in this worker's cache whose spans are being left. Every worker
    /// calls it now and then while a round is on: cached places keep a span from becoming free.
    pub fn return_left(&mut self) {
        if let Some(leaving) = self.ks.entries.leaving() {
            self.return_left_to(&leaving);
        }
    }

    /// Returns all free places and bucket pages in this worker's cache: for a worker that has
    /// become idle. They keep spans from becoming free.
    pub fn return_cached(&mut self) {
        self.w.entries.return_all(&self.ks.entries);
        self.w.pages.return_all(&self.ks.mem);
    }

    fn return_left_to(&mut self, leaving: &Leaving) {
        self.w.entries.return_left(&self.ks.entries, leaving);
    }
}

impl Walk {
    /// The slot where the walk is, or the next one with keys; `None` at the end.
    fn slot(&mut self, ks: &Keyspace) -> Option<SlotId> {
        loop {
            if let Some(slot) = ks.next_occupied(self.physical, self.slot) {
                if slot.index() != self.slot {
                    (self.slot, self.point) = (slot.index(), 0);
                }
                return Some(slot);
            }
            (self.slot, self.point) = (0, 0);
            self.physical += 1;
            while self.physical < ks.databases() && !ks.is_used(self.physical) {
                self.physical += 1;
            }
            if self.physical >= ks.databases() {
                self.physical = ks.databases() - 1;
                self.slot = base::SLOTS;
                return None;
            }
        }
    }
}

impl Guard<'_> {
    /// Moves the entries of a covered slot that stand in spans which are being left, from the
    /// walk's point on. Returns the next point, `None` at the end of the table.
    fn move_out(
        &mut self,
        walk: &Walk,
        slot: SlotId,
        units: &mut usize,
        left: &mut Vec<u64>,
        report: &mut DefragReport,
    ) -> Option<u64> {
        let ks = self.ks;
        let (mut point, mut buckets) = (walk.point, 0);
        let mut found: Vec<Found<'_>> = Vec::new();
        loop {
            let table = self.owned(slot).table(walk.physical).filter(|table| table.len() > 0)?;
            let next = table.visit_found(&ks.mem, point, |each| {
                let address = each.entry.address();
                if ks.entries.is_left(&walk.leaving, address) {
                    prefetch(address as usize);
                    prefetch(address as usize + 64);
                    found.push(each);
                } else {
                    report.stayed += 1;
                }
            });
            for each in found.drain(..) {
                let bytes = each.entry.class();
                if self.move_away(&each, left) {
                    report.moved += 1;
                    report.moved_bytes += bytes as u64;
                } else {
                    report.stayed += 1;
                }
                *units = units.saturating_sub(1 + bytes / BYTES_PER_UNIT);
            }
            buckets += 1;
            *units = units.saturating_sub(usize::from(buckets % BUCKETS_PER_UNIT == 0));
            point = next?;
            if *units == 0 {
                return Some(point);
            }
        }
    }

    /// Moves an entry to another place of its class; false if there is none.
    fn move_away(&mut self, found: &Found<'_>, left: &mut Vec<u64>) -> bool {
        let old = found.entry;
        let bytes = old.class();
        let mut source = Source { mem: &self.ks.entries, cache: &mut self.w.entries };
        let Some(place) = source.alloc_place(bytes) else { return false };
        source.vacate(bytes);
        // SAFETY: 1. It was just allocated for this class. 2. The guard holds the slot and has made
        // no change, so no log knows the entry; references into it would borrow the guard. The
        // bucket gets the copy's address below, under the same lock.
        let new = unsafe { old.move_to(place) };
        found.replace(new);
        left.push(old.address());
        true
    }
}

#[cfg(all(test, shuttle))]
mod models;
