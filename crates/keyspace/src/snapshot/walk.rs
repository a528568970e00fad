//! The walker: the steps of a snapshot.
//!
//! A step does one of these, in this order: it passes captured entries to the sink; it takes a
//! bucket of a flushed table apart; it walks slots, each under its lock. So what costs memory goes
//! first. What the sink may not get under a lock (a value outside its entry, a long one inside) is
//! copied by its root, or by its bytes, and passed like a captured entry.

use crate::access::Access;
use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::may::Intent;
use crate::memory::BUCKET_BYTES;
use crate::snapshot::item::Item;
use crate::snapshot::running::{Inherited, Running, position_at};
use crate::snapshot::{Progress, Root, SMALL_MAX, Sink, Snapshot, Step};
use crate::stats::{add, set};
use crate::table::HeldTable;
use crate::view::Entry;
use crate::workspace::Workspace;
use base::{SLOTS, SlotId};
use std::collections::VecDeque;

/// Entries after which a slot is released; a bucket is walked to its end.
const BURST: usize = 16;
/// Slots that a step visits.
const SLOTS_MAX: usize = 64;
/// Captured entries that a step passes to the sink.
const CAPTURED_MAX: usize = 64;

/// Where the walker is. The positions within slots are in [`Running`].
#[derive(Default)]
pub(crate) struct Walk {
    /// The first slot that was not visited yet.
    next: usize,
    /// Slots that were held for long.
    later: VecDeque<SlotId>,
    /// What the next steps pass to the sink.
    queue: Queue,
    /// Captured bytes in all when the lanes were emptied.
    collected: u64,
    /// Captured bytes that were passed to the sink in the last step.
    passed_bytes: u64,
    /// In that step a value was passed which a writer may change.
    passed_copy: bool,
    /// A flushed database that is taken apart.
    inherited: Option<Inherited>,
    /// No sink is there any more.
    pub is_aborted: bool,
    /// Reused: the entries of a bucket.
    bucket: Vec<EntryPtr>,
}

/// Entries for the sink, those whose values are outside first: writers copy what they change of
/// these until the sink has them.
#[derive(Default)]
struct Queue {
    big: VecDeque<Item>,
    small: VecDeque<Item>,
}

impl Queue {
    fn push(&mut self, item: Item) {
        if item.is_big() { self.big.push_back(item) } else { self.small.push_back(item) }
    }

    fn memory(&self) -> usize {
        (self.big.capacity() + self.small.capacity()) * size_of::<Item>()
    }

    fn front(&self) -> Option<&Item> {
        self.big.front().or(self.small.front())
    }

    fn pop(&mut self) -> Option<Item> {
        self.big.pop_front().or_else(|| self.small.pop_front())
    }
}

impl Walk {
    /// Walks these slots alone.
    #[cfg(all(test, shuttle))]
    pub fn of(slots: &[SlotId]) -> Self {
        Self { next: SLOTS, later: slots.iter().copied().collect(), ..Self::default() }
    }

    /// The sink has freed so many bytes of the value that it got in the last step. If that was
    /// moved out of its table, it counts by its own bytes, and nothing was copied of it.
    pub fn release(&mut self, running: &Running, ks: &Keyspace, bytes: u64) {
        if self.passed_copy {
            running.release_copied(ks, bytes, true);
        } else {
            let bytes = bytes.min(self.passed_bytes);
            self.passed_bytes -= bytes;
            running.finish_bytes(ks, bytes);
        }
    }

    /// Returns everything that it has taken to the queues.
    fn put_back(&mut self, running: &Running) {
        let Queue { big, small } = std::mem::take(&mut self.queue);
        running.put_back(big.into_iter().chain(small));
        self.collected = u64::MAX; // that many never are: the queues are emptied again
        if let Some(inherited) = self.inherited.take() {
            running.put_back_inherited(inherited);
        }
    }
}

/// What a step works with.
struct Stride<'s, S> {
    running: &'s Running,
    walk: &'s mut Walk,
    progress: &'s mut Progress,
    sink: &'s mut S,
}

impl Snapshot {
    /// Does a bounded part of the walk: about 16 entries under one slot's lock, or 64 captured
    /// entries. `access` is outside its section, where it is again afterwards; it is a further
    /// Access ([`Access::further`]) if the caller has its own thread.
    ///
    /// A panic of the sink costs the snapshot, not the data: drop it, and walk
    /// [`Access::abandoned_snapshot`] to its end.
    pub fn step(&mut self, access: &mut Access, sink: &mut impl Sink) -> Step {
        let Some(walk) = &mut self.walk else { return Step::Complete };
        let (running, progress) = (&*self.running, &mut self.progress);
        let mut stride = Stride { running, walk, progress, sink };
        stride.collect(&self.ks);
        if stride.pass_items(access) || stride.take_apart(access) {
            return Step::More;
        }
        let step = stride.walk_slots(access);
        if step == Step::Complete {
            self.walk = None;
            self.ks.snapshot.end();
            self.ks.uses.raise();
        }
        step
    }

    /// Returns what the walker has taken to the queues, when it ends early.
    pub(super) fn put_back(&self, walk: &mut Walk) {
        walk.put_back(&self.running);
    }
}

impl<S: Sink> Stride<'_, S> {
    /// Takes what writers have captured. The sink is done with what it got in the step before.
    fn collect(&mut self, ks: &Keyspace) {
        let (running, walk) = (self.running, &mut *self.walk);
        running.finish_bytes(ks, std::mem::take(&mut walk.passed_bytes));
        let (all, copied) = (running.captured_in_all(), running.copied_in_all());
        if std::mem::replace(&mut walk.collected, all) != all {
            running.drain(|item| walk.queue.push(item));
            running.note_walkers_list(walk.queue.memory());
        }
        if walk.queue.big.is_empty() {
            running.finish_copied(ks, copied);
        }
        if ks.is_capture_over_bound() {
            running.check_bound(ks);
        }
    }

    /// Passes captured entries to the sink, and those that wait for the end of a lock: one whose
    /// value is outside, or many others. False if there are none.
    fn pass_items(&mut self, access: &mut Access) -> bool {
        if self.walk.queue.front().is_none() {
            return false;
        }
        let count = if self.walk.queue.big.is_empty() { CAPTURED_MAX } else { 1 };
        for _ in 0..count {
            let Some(item) = self.walk.queue.front() else { break };
            if !self.walk.is_aborted {
                let entry = item.entry();
                pass(access, self.sink, self.running, item.physical, entry);
                self.progress.entries += 1;
                self.progress.captured += u64::from(item.bytes > 0);
            }
            if let Some(item) = self.walk.queue.pop() {
                self.walk.passed_bytes += item.bytes;
                self.walk.passed_copy = item.is_copy();
                let gone = item.into_gone(access.ks.stats(access.w.index));
                access.w.graveyard.push(gone);
            }
        }
        access.w.free_graveyard(&access.ks);
        true
    }

    /// Takes buckets of flushed tables apart. False if there are none.
    fn take_apart(&mut self, access: &mut Access) -> bool {
        let walk = &mut *self.walk;
        if walk.inherited.is_none() {
            walk.inherited = self.running.next_inherited();
        }
        let Some(inherited) = &mut walk.inherited else { return false };
        let (ks, w, physical) = (&*access.ks, &mut access.w, inherited.physical);
        let stats = ks.stats(w.index);
        for _ in 0..BURST {
            let Some((from, table)) = inherited.tables.last_mut() else {
                add(&stats.inherited, -inherited.rest.bytes);
                walk.inherited = None;
                break;
            };
            let (before, mut bytes) = (w.pages.buckets, 0);
            let (pages, scratch) = (&mut w.pages, &mut w.scratch);
            let mut work = Workspace { mem: &ks.mem, pages, hasher: &ks.hasher, scratch };
            let more = HeldTable::of_mut(table).pop_bucket(&mut work, |gone| {
                let entry = gone.entry();
                bytes += entry.memory() as i64;
                let point = ks.hasher.hash(entry.key()).reverse_bits();
                if entry.is_skipped() || position_at(physical, point) < *from {
                    w.graveyard.push(gone);
                } else {
                    walk.queue.push(Item::moved(physical, gone));
                }
            });
            if !more {
                inherited.tables.pop();
            }
            bytes += (before - w.pages.buckets) * BUCKET_BYTES;
            add(&stats.inherited, -inherited.rest.note_freed(bytes));
        }
        set(&stats.buckets, w.pages.buckets);
        w.free_graveyard(ks);
        true
    }

    /// Walks slots until it has met enough entries.
    fn walk_slots(&mut self, access: &mut Access) -> Step {
        if self.walk.next == SLOTS && self.walk.later.is_empty() {
            return Step::Complete;
        }
        if !access.enter() {
            return Step::Waits;
        }
        let mut step = Step::More;
        let (mut left, mut refused) = (BURST, 0);
        for _ in 0..SLOTS_MAX {
            let Some(slot) = self.walk.slot() else { break };
            let now = access.w.now;
            let walked = access
                .free(now)
                .visit(slot, Intent::Read, |guard| self.walk_slot(guard, slot, &mut left));
            match walked {
                Ok(true) => {
                    self.walk.pass_slot();
                    self.progress.slots += 1;
                }
                Ok(false) => break,
                Err(_) => {
                    self.walk.pass_slot();
                    self.walk.later.push_back(slot);
                    refused += 1;
                    if self.walk.next == SLOTS && refused >= self.walk.later.len() {
                        step = Step::Waits;
                        break;
                    }
                }
            }
        }
        access.leave();
        step
    }

    /// Walks a slot that the guard covers until `left` entries were met. True at its end.
    fn walk_slot(&mut self, guard: &mut Guard<'_>, slot: SlotId, left: &mut usize) -> bool {
        let line = guard.owned(slot);
        while let Some(position) = self.running.position(slot) {
            let ahead = |physical: u16| position_at(physical, u64::MAX) >= position;
            let tables = line.tables().filter(|(p, table)| ahead(*p) && table.len() > 0);
            let Some((physical, table)) = tables.min_by_key(|(physical, _)| *physical) else {
                self.running.set_position(slot, None);
                break;
            };
            if *left == 0 {
                return false;
            }
            let start = position_at(physical, 0);
            let point = position.saturating_sub(start) << 32;
            let next = self.walk_bucket(guard, physical, table, point, left);
            let next = next.map_or(start + (1 << 32), |next| position_at(physical, next));
            self.running.set_position(slot, Some(next));
        }
        true
    }

    /// Walks the bucket at a point of a table. Returns the next point.
    fn walk_bucket(
        &mut self,
        guard: &mut Guard<'_>,
        physical: u16,
        table: HeldTable<'_>,
        point: u64,
        left: &mut usize,
    ) -> Option<u64> {
        // A bucket that was merged since the last step begins behind the walker.
        let is_cut = point > table.bucket_start(point);
        let ks = guard.keyspace();
        let mut bucket = std::mem::take(&mut self.walk.bucket);
        bucket.clear();
        table.fetch(&ks.mem, point);
        let next = table.visit(&ks.mem, point, |entry| bucket.push(entry));
        for &entry in &bucket {
            if is_cut && ks.hasher.hash(entry.key()).reverse_bits() < point {
                continue;
            }
            *left = left.saturating_sub(1);
            if entry.is_skipped() {
                entry.set_skipped(false);
            } else if self.walk.is_aborted {
                // Nobody gets it.
            } else if entry.header().is_big() || entry.class() > SMALL_MAX {
                self.walk.queue.push(Item::copy_of(guard, physical, entry));
            } else {
                self.sink.small(self.running.logical(physical), Entry::new(entry));
                self.progress.entries += 1;
            }
        }
        self.walk.bucket = bucket;
        next
    }
}

impl Walk {
    /// The slot that is visited now.
    fn slot(&self) -> Option<SlotId> {
        if self.next < SLOTS {
            Some(SlotId::new(self.next as u16))
        } else {
            self.later.front().copied()
        }
    }

    /// Goes to the next slot.
    fn pass_slot(&mut self) {
        if self.next < SLOTS {
            self.next += 1;
        } else {
            self.later.pop_front();
        }
    }
}

/// Passes an entry that is in no table to the sink.
fn pass(access: &Access, sink: &mut impl Sink, running: &Running, physical: u16, entry: EntryPtr) {
    let db = running.logical(physical);
    let view = Entry::new(entry);
    if let Some(big) = entry.big() {
        sink.large(db, view, Root::Collection(access.ks.capture(big)));
    } else if let Some(string) = entry.blob() {
        sink.large(db, view, Root::String(string.clone()));
    } else {
        sink.small(db, view);
    }
}
