//! What writers and the walker of a snapshot share.

use crate::entry::Gone;
use crate::keyspace::Keyspace;
use crate::snapshot::SnapshotRuns;
use crate::snapshot::item::Item;
use crate::snapshot::walk::Walk;
use crate::stats::{WorkerStats, add};
use crate::table::Table;
use crate::undo::{Detached, Place};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::hint::{AtomicU32, AtomicU64};
use base::sync::{Arc, CachePadded, Mutex, MutexGuard, PoisonError};
use base::{DbIndex, SLOTS, SlotId};
use std::collections::{BTreeSet, VecDeque};

/// The position of a slot that was walked to its end.
const WALKED: u64 = u64::MAX;
/// A writer adds up all captured bytes when it has captured so many more.
const CHECKED_BYTES: u64 = 64 << 10;

/// The snapshot that runs.
pub(crate) struct Running {
    /// Per slot the position that the walker visits next: 0 at first. Read and written under the
    /// slot's lock.
    ///
    /// ```text
    /// 63     49 48                 32 31                                       0
    /// +--------+---------------------+------------------------------------------+
    /// |   0    | physical database   | upper 32 bits of a bit-reversed hash     |   all ones:
    /// +--------+---------------------+------------------------------------------+   walked
    /// ```
    positions: Box<[AtomicU64]>,
    /// By physical database the logical one at the cut.
    logical: Box<[DbIndex]>,
    /// Captured entries: one lane per Access, so that writers do not wait for each other.
    lanes: Box<[CachePadded<Lane>]>,
    /// The number of lanes that were ever used, which are the first ones.
    lanes_used: AtomicU32,
    /// Bytes that the walker's own list takes.
    walkers_list: AtomicU64,
    /// Tables that were flushed before the walker had passed them.
    inherited: Mutex<VecDeque<Inherited>>,
    /// Physical databases that were flushed since the cut: nothing of the cut is left in them.
    flushed: Mutex<BTreeSet<u16>>,
    /// Captured bytes that the sink has taken, or that were freed.
    done_bytes: AtomicU64,
    /// Of the bytes that writers have copied, those which count no more: at least those which they
    /// had copied when the walker last had no value outside an entry, and at most all.
    done_copied: AtomicU64,
    /// Bytes of values which were removed while the snapshot had them: the snapshot alone holds
    /// what nobody has copied of them, and when it frees that, no copy is paid back.
    removed: AtomicU64,
    captured_max: u64,
    /// Its number among those of the keyspace, from 1 on ([`base::shared::set_copy_epoch`]).
    pub epoch: u32,
}

#[derive(Default)]
struct Lane {
    items: Mutex<Vec<Item>>,
    /// Bytes captured so far; only the owner of the lane writes it.
    bytes: AtomicU64,
    /// Bytes that the owner has copied because the snapshot, or a reader, shares the value that it
    /// has changed.
    copied: AtomicU64,
    /// Bytes that the list takes; written with it.
    listed: AtomicU64,
}

impl Lane {
    fn note_listed(&self, items: &Vec<Item>) {
        self.listed.store((items.capacity() * size_of::<Item>()) as u64, Ordering::Relaxed);
    }
}

/// The tables of a flushed database, each with the position at which the walker was.
pub(crate) struct Inherited {
    pub physical: u16,
    pub tables: Vec<(u64, Table)>,
    /// What else belongs to it: the expiry indexes, to be freed with the tables, and its bytes.
    pub rest: Detached,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each holder makes one move of values, so a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The position of a key.
fn position_of(place: Place) -> u64 {
    position_at(place.physical, place.hash.reverse_bits())
}

/// The position of a point (a bit-reversed hash) that begins a bucket. Buckets share at most 32
/// bits of a hash, so no bit of their beginnings is lost.
pub(crate) fn position_at(physical: u16, point: u64) -> u64 {
    u64::from(physical) << 32 | point >> 32
}

impl Running {
    pub fn new(ks: &Keyspace, captured_max: u64) -> Self {
        Self {
            positions: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            logical: (0..ks.databases()).map(|physical| ks.logical(physical)).collect(),
            lanes: (0..ks.gate.sections_max()).map(|_| CachePadded::default()).collect(),
            lanes_used: AtomicU32::new(0),
            walkers_list: AtomicU64::new(0),
            inherited: Mutex::default(),
            flushed: Mutex::default(),
            done_bytes: AtomicU64::new(0),
            done_copied: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            captured_max,
            epoch: ks.snapshot.next_epoch(),
        }
    }

    /// The logical database at the cut.
    pub fn logical(&self, physical: u16) -> DbIndex {
        self.logical[physical as usize]
    }

    /// The position of a slot that the caller holds; none if it was walked.
    pub fn position(&self, slot: SlotId) -> Option<u64> {
        let position = self.positions[slot.index()].load(Ordering::Relaxed);
        (position != WALKED).then_some(position)
    }

    /// Sets the position of a slot that the caller holds; none: it was walked.
    pub fn set_position(&self, slot: SlotId, position: Option<u64>) {
        self.positions[slot.index()].store(position.unwrap_or(WALKED), Ordering::Relaxed);
    }

    /// True if the walker has not passed this place. The caller holds its slot.
    pub fn is_ahead(&self, place: Place) -> bool {
        self.position(place.slot).is_some_and(|position| position_of(place) >= position)
    }

    /// Queues captured entries for the walker, for the Access with this number, which has copied so
    /// many bytes of values outside.
    pub fn capture(
        &self,
        ks: &Keyspace,
        index: usize,
        items: impl Iterator<Item = Item>,
        copied: u64,
    ) {
        let lane = &self.lanes[index];
        if index >= self.used().len() {
            self.lanes_used.fetch_max(index as u32 + 1, Ordering::Relaxed);
        }
        let bytes = lane.bytes.load(Ordering::Relaxed);
        let of_copies = lane.copied.load(Ordering::Relaxed);
        let (before, mut after) = (bytes + of_copies, bytes);
        {
            let mut queue = lock(&lane.items);
            queue.extend(items.inspect(|item| after += item.bytes));
            lane.note_listed(&queue);
            // With the queue: who has seen these bytes finds what they belong to.
            lane.copied.store(of_copies + copied, Ordering::Relaxed);
        }
        lane.bytes.store(after, Ordering::Relaxed);
        if before / CHECKED_BYTES != (after + of_copies + copied) / CHECKED_BYTES {
            self.check_bound(ks);
        }
    }

    /// The lanes in use. Who holds a slot sees those of everybody who held it before.
    fn used(&self) -> &[CachePadded<Lane>] {
        &self.lanes[..self.lanes_used.load(Ordering::Relaxed) as usize]
    }

    /// Passes all captured entries to `take`.
    pub fn drain(&self, mut take: impl FnMut(Item)) {
        for lane in self.used() {
            let mut queue = lock(&lane.items);
            let items = std::mem::take(&mut *queue);
            lane.note_listed(&queue);
            drop(queue);
            items.into_iter().for_each(&mut take);
        }
    }

    /// Notes what the walker's own list takes.
    pub fn note_walkers_list(&self, bytes: usize) {
        self.walkers_list.store(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the lists of captured entries, without these.
    pub fn list_bytes(&self) -> u64 {
        let lanes = self.used().iter().map(|lane| lane.listed.load(Ordering::Relaxed));
        lanes.sum::<u64>() + self.walkers_list.load(Ordering::Relaxed)
    }

    /// Bytes that writers have copied since the cut.
    pub fn copied_in_all(&self) -> u64 {
        self.used().iter().map(|lane| lane.copied.load(Ordering::Relaxed)).sum()
    }

    /// Notes that no value outside an entry waits, or is with the sink, which writers had copied
    /// parts of when [`Running::copied_in_all`] returned `copied`.
    pub fn finish_copied(&self, ks: &Keyspace, copied: u64) {
        self.removed.store(0, Ordering::Relaxed);
        if self.done_copied.fetch_max(copied, Ordering::Relaxed) < copied {
            self.check_bound(ks);
        }
    }

    /// Notes that copies of so many bytes count no more: the sink has freed what they were made of,
    /// or a writer has freed them. No more is taken off than was copied.
    pub fn release_copied(&self, ks: &Keyspace, bytes: u64, by_sink: bool) {
        let mut bytes = bytes;
        if by_sink {
            let uncounted = |removed: u64| Some(removed.saturating_sub(bytes));
            let (relaxed, removed) = (Ordering::Relaxed, &self.removed);
            let before = removed.fetch_update(relaxed, relaxed, uncounted).unwrap_or_default();
            bytes = bytes.saturating_sub(before);
        }
        if bytes == 0 {
            return;
        }
        let all = self.copied_in_all();
        let more = |done: u64| (done < all).then(|| all.min(done + bytes));
        if self.done_copied.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            self.check_bound(ks);
        }
    }

    /// Notes that values outside were removed which the snapshot may hold.
    pub fn note_removed(&self, bytes: usize) {
        if bytes > 0 {
            self.removed.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Puts items back of which the walker has passed on none.
    pub fn put_back(&self, items: impl Iterator<Item = Item>) {
        self.lanes_used.fetch_max(1, Ordering::Relaxed);
        lock(&self.lanes[0].items).extend(items);
    }

    /// Notes that so many captured bytes were taken by the sink, or freed.
    pub fn finish_bytes(&self, ks: &Keyspace, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let done = self.done_bytes.load(Ordering::Relaxed);
        self.done_bytes.store(done + bytes, Ordering::Relaxed);
        self.check_bound(ks);
    }

    /// Compares the captured bytes with their bound. The walker does so in every step while the
    /// bound is exceeded, because a writer compares only now and then.
    pub fn check_bound(&self, ks: &Keyspace) {
        if self.is_over_bound() != ks.snapshot.is_over_bound() {
            ks.snapshot.update_over_bound(self);
        }
    }

    fn is_over_bound(&self) -> bool {
        self.captured_bytes() > self.captured_max
    }

    /// Bytes captured since the cut, and copied by writers.
    pub fn captured_in_all(&self) -> u64 {
        self.entries_in_all() + self.copied_in_all()
    }

    fn entries_in_all(&self) -> u64 {
        self.used().iter().map(|lane| lane.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Bytes of captured entries that wait or are with the sink, and of copies that writers have
    /// made of what these share with them.
    pub fn captured_bytes(&self) -> u64 {
        let done_copied = self.done_copied.load(Ordering::Relaxed);
        self.entry_bytes() + self.copied_in_all().saturating_sub(done_copied)
    }

    /// Bytes of captured entries that wait or are with the sink.
    pub fn entry_bytes(&self) -> u64 {
        self.entries_in_all().saturating_sub(self.done_bytes.load(Ordering::Relaxed))
    }

    /// Takes over the tables of a flushed database that the walker has not passed. The caller holds
    /// World. Returns what it does not need: all of it, if the database was flushed before since
    /// the cut, because then all its entries are newer.
    pub fn inherit(&self, mut detached: Detached, stats: &WorkerStats) -> Detached {
        let physical = detached.physical;
        if !lock(&self.flushed).insert(physical) {
            return detached;
        }
        let end = position_at(physical, u64::MAX);
        let (mut tables, mut rest) = (Vec::new(), Vec::new());
        for (slot, table) in detached.tables.drain(..) {
            match self.position(slot) {
                Some(position) if position <= end => tables.push((position, table)),
                _ => rest.push((slot, table)),
            }
        }
        if tables.is_empty() {
            detached.tables = rest;
            return detached;
        }
        let mut passed = Detached { physical, tables: rest, ..Detached::default() };
        passed.keys = passed.tables.iter().map(|(_, table)| i64::from(table.len())).sum();
        // Bytes are counted for the whole database: each key has its share.
        let share = i128::from(detached.bytes) * i128::from(passed.keys);
        passed.bytes = share.checked_div(i128::from(detached.keys)).unwrap_or_default() as i64;
        detached.bytes -= passed.bytes;
        add(&stats.inherited, detached.bytes);
        lock(&self.inherited).push_back(Inherited { physical, tables, rest: detached });
        passed
    }

    /// The next flushed database.
    pub fn next_inherited(&self) -> Option<Inherited> {
        lock(&self.inherited).pop_front()
    }

    /// Puts back one that was not walked to its end.
    pub fn put_back_inherited(&self, inherited: Inherited) {
        lock(&self.inherited).push_front(inherited);
    }

    /// Passes everything that waits to those who free it, when the keyspace ends.
    pub fn drain_last(&self, mut entry: impl FnMut(Gone), mut table: impl FnMut(Table)) {
        self.drain(|item| entry(item.into_last()));
        while let Some(inherited) = self.next_inherited() {
            for (_, inner) in inherited.tables {
                table(inner);
            }
        }
    }
}

/// Which snapshot runs. Every Access adopts it when it goes inside (`Worker::follow`).
#[derive(Default)]
pub(crate) struct Current {
    running: Mutex<Option<Arc<Running>>>,
    /// The walk of a snapshot that was dropped before its end.
    abandoned: Mutex<Option<Box<Walk>>>,
    is_over_bound: AtomicBool,
    /// Snapshots so far.
    epochs: AtomicU32,
}

impl Current {
    fn next_epoch(&self) -> u32 {
        self.epochs.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn running(&self) -> Option<Arc<Running>> {
        lock(&self.running).clone()
    }

    /// Begins a snapshot, if none runs.
    pub fn begin(&self, snapshot: &Arc<Running>) -> Result<(), SnapshotRuns> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return Err(SnapshotRuns);
        }
        *running = Some(Arc::clone(snapshot));
        Ok(())
    }

    /// The walker has passed everything.
    pub fn end(&self) {
        let mut running = lock(&self.running);
        *running = None;
        self.is_over_bound.store(false, Ordering::Relaxed);
    }

    pub fn abandon(&self, walk: Box<Walk>) {
        *lock(&self.abandoned) = Some(walk);
    }

    pub fn take_abandoned(&self) -> Option<(Arc<Running>, Box<Walk>)> {
        let walk = lock(&self.abandoned).take()?;
        let running = self.running().expect("an abandoned snapshot runs");
        Some((running, walk))
    }

    pub fn is_over_bound(&self) -> bool {
        self.is_over_bound.load(Ordering::Relaxed)
    }

    /// Takes over whether this snapshot is over its bound, unless it has ended: a writer which was
    /// inside its section at that time commits later, and nobody would correct what it says.
    #[cold]
    fn update_over_bound(&self, of: &Running) {
        let running = lock(&self.running);
        if running.as_deref().is_some_and(|running| std::ptr::eq(running, of)) {
            self.is_over_bound.store(of.is_over_bound(), Ordering::Relaxed);
        }
    }
}
