//! The [`Keyspace`]: 16,384 slots and everything that they share. It is `Sync`; each worker uses it
//! through its own [`crate::Access`].

use crate::bucket::WORDS;
use crate::entry::Gone;
use crate::event::KeptClasses;
use crate::expire::DueIndex;
use crate::fence::Fences;
use crate::freeze::Frozen;
use crate::further::{Claims, FURTHER_MAX};
use crate::gate::Gate;
use crate::growth::Growth;
use crate::journal::Handover;
use crate::lock::WORKERS_MAX;
use crate::memory::{BUCKET_BYTES, BucketMem, PageCache};
use crate::numbers::Numbers;
use crate::occupancy::{Occupancy, SlotSet};
use crate::parking::{Parked, Parking, Waker};
use crate::reclaim::{Captured, Reclaimer};
use crate::slab::{EntryCache, EntryMem, EntryPages, Source};
use crate::slot::{Held, Slot};
use crate::slots::Slots;
use crate::snapshot::Current;
use crate::stats::{self, Contention, ExpiryStats, Memory, WorkerStats};
use crate::table::HeldTable;
use crate::turn::Turns;
use crate::uses::{Uses, UsesKept};
use crate::workspace::Workspace;
use base::crc16::key_slot;
use base::hash::KeyHasher;
use base::prefetch::prefetch;
use base::sync::atomic::AtomicBool;
use base::sync::hint::{AtomicI64, AtomicU16, Ordering as HintOrdering};
use base::sync::{Arc, CachePadded, OnceLock};
use base::{DbIndex, FenceNo, SLOTS, SlotId, UnixMs};
use value::Big;

/// Huge pages whose memory is returned to the system at a time, in the background.
const SURPLUS_CHUNKS: usize = 16;

/// How to make a keyspace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of databases.
    pub databases: u16,
    /// The secret of the hash of keys; from the driver, so that a run of the simulation can be
    /// repeated.
    pub hash_secret: u128,
    /// Number of workers that will have an [`crate::Access`].
    pub workers: usize,
}

/// A key with its hash and slot, computed once.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their hash under this keyspace's seed.
    pub hash: u64,
    /// Its slot.
    pub slot: SlotId,
}

/// Where a key is probably found: its bucket and tag, read without the lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrefetchTarget {
    /// Bucket 0 is always empty.
    bucket: u32,
    tag: u16,
}

/// All data of a server.
pub struct Keyspace {
    slots: Slots,
    pub(crate) mem: BucketMem,
    pub(crate) entries: EntryMem,
    pub(crate) hasher: KeyHasher,
    pub(crate) gate: Gate,
    pub(crate) fences: Fences,
    pub(crate) numbers: CachePadded<Numbers>,
    pub(crate) journal: CachePadded<Handover>,
    pub(crate) growth: CachePadded<Growth>,
    pub(crate) parking: Parking,
    pub(crate) turns: Turns,
    pub(crate) frozen: Frozen,
    /// Until when nothing that is due is removed.
    pub(crate) expiry_held: AtomicI64,
    /// Import mode: nothing that is due is removed.
    pub(crate) importing: AtomicBool,
    pub(crate) due: DueIndex,
    pub(crate) reclaimer: Arc<Reclaimer>,
    /// Logical to physical database; changes only under World.
    physical: Box<[AtomicU16]>,
    /// Physical to logical.
    logical: Box<[AtomicU16]>,
    /// Which keys of a logical database may be evicted: an [`crate::Evictable`].
    pub(crate) evictable: Box<[AtomicU16]>,
    occupied: Box<[OnceLock<Box<Occupancy>>]>,
    workers: Box<[CachePadded<WorkerStats>]>,
    /// Of further Accesses, each made with the first that has its number: the first few.
    further: Box<[OnceLock<Box<CachePadded<WorkerStats>>>]>,
    pub(crate) claims: Claims,
    pub(crate) uses: UsesKept,
    pub(crate) events: KeptClasses,
    pub(crate) snapshot: Box<Current>,
}

impl Keyspace {
    /// An empty keyspace.
    pub fn new(options: &Options) -> Self {
        Self::with_memory(options, BucketMem::new())
    }

    /// An empty keyspace whose tables may take at most `bytes` (a power of two).
    pub fn with_table_bytes(options: &Options, bytes: usize) -> Self {
        Self::with_memory(options, BucketMem::with_bytes(bytes))
    }

    fn with_memory(options: &Options, mem: BucketMem) -> Self {
        let Options { databases, hash_secret, workers } = *options;
        assert!(databases > 0, "at least one database");
        assert!((1..=WORKERS_MAX).contains(&workers), "1 to {WORKERS_MAX} workers");
        let identity = || (0..databases).map(AtomicU16::new).collect();
        Self {
            slots: Slots::new(),
            mem,
            entries: EntryMem::new(),
            hasher: KeyHasher::new(hash_secret),
            gate: Gate::new(workers),
            fences: Fences::new(workers),
            numbers: CachePadded::default(),
            journal: CachePadded::default(),
            growth: CachePadded(Growth::default()),
            parking: Parking::default(),
            turns: Turns::default(),
            frozen: Frozen::default(),
            expiry_held: AtomicI64::new(i64::MIN),
            importing: AtomicBool::new(false),
            due: DueIndex::new(workers),
            reclaimer: Arc::default(),
            physical: identity(),
            logical: identity(),
            evictable: (0..databases).map(|_| AtomicU16::new(0)).collect(),
            occupied: (0..databases).map(|_| OnceLock::new()).collect(),
            workers: (0..workers).map(|_| CachePadded(WorkerStats::new(databases))).collect(),
            further: (0..FURTHER_MAX).map(|_| OnceLock::new()).collect(),
            claims: Claims::new(workers),
            uses: UsesKept::default(),
            events: KeptClasses::default(),
            snapshot: Box::default(),
        }
    }

    /// The fences for changes of what commands may do.
    #[inline]
    pub fn fences(&self) -> &Fences {
        &self.fences
    }

    /// Numbers of changes.
    #[inline]
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// [`Fences::publish`] for worker `me`.
    pub fn publish_fence(
        &self,
        me: usize,
        ask: impl FnMut(usize),
        wake: impl FnMut(usize),
    ) -> FenceNo {
        self.fences.publish(me, &self.gate, ask, wake)
    }

    /// [`Fences::publish_to_all`] for worker `me`.
    pub fn publish_fence_to_all(
        &self,
        me: usize,
        ask: impl FnMut(usize),
        wake: impl FnMut(usize),
    ) -> FenceNo {
        self.fences.publish_to_all(me, ask, wake)
    }

    /// Sets what is notified when a parked session can be retried; once, before anything is parked.
    pub fn set_waker(&self, waker: Box<dyn Waker>) {
        self.parking.set_waker(waker);
    }

    /// Sets what is recorded about the uses of keys. Workers adopt it when they go inside next.
    /// From then on the bits in headers are read as the new kind.
    pub fn set_uses(&self, uses: Uses) {
        self.uses.set(uses);
    }

    /// Sets whether tables shrink when entries are removed; they do by default. A table that stayed
    /// large shrinks with later removals.
    pub fn set_shrinking(&self, shrink: bool) {
        self.mem.keep_buckets(!shrink);
    }

    /// Where values of many parts are freed.
    pub fn reclaimer(&self) -> &Arc<Reclaimer> {
        &self.reclaimer
    }

    /// A snapshot of a value, to be read after its guard has dropped.
    pub fn capture(&self, value: &Big) -> Captured {
        Captured::new(value.clone(), Arc::clone(&self.reclaimer))
    }

    /// A new value that is built in steps. The reclaimer frees it unless it becomes a key's value.
    pub fn capture_owned(&self, value: Big) -> Captured {
        Captured::new(value, Arc::clone(&self.reclaimer))
    }

    /// Something else that is built in steps. The reclaimer frees it.
    pub fn reclaim_on_drop<T: crate::Parts>(&self, parts: T) -> crate::ReclaimOnDrop<T> {
        crate::ReclaimOnDrop::new(parts, Arc::clone(&self.reclaimer))
    }

    /// Number of databases.
    pub fn databases(&self) -> u16 {
        self.physical.len() as u16
    }

    /// The addresses of the slots, for tools that watch which memory is written.
    pub fn slot_lines(&self) -> std::ops::Range<usize> {
        let slots = self.slots.as_ptr_range();
        slots.start.addr()..slots.end.addr()
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.claims.workers()
    }

    /// The key with its hash and slot.
    #[inline(always)]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: self.hasher.hash(bytes), slot: key_slot(bytes) }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.index()]
    }

    /// The physical database behind a logical one. Stable inside a worker's section.
    #[inline(always)]
    pub(crate) fn physical(&self, db: DbIndex) -> u16 {
        self.physical[db.index()].load(HintOrdering::Relaxed)
    }

    pub(crate) fn logical(&self, physical: u16) -> DbIndex {
        DbIndex::new(self.logical[physical as usize].load(HintOrdering::Relaxed))
    }

    /// Exchanges two databases; only under World.
    pub(crate) fn swap_map(&self, a: DbIndex, b: DbIndex) {
        let (pa, pb) = (self.physical(a), self.physical(b));
        self.physical[a.index()].store(pb, HintOrdering::Relaxed);
        self.physical[b.index()].store(pa, HintOrdering::Relaxed);
        self.logical[pa as usize].store(b.0 as u16, HintOrdering::Relaxed);
        self.logical[pb as usize].store(a.0 as u16, HintOrdering::Relaxed);
    }

    /// Prefetches the slot's cache line.
    #[inline(always)]
    pub fn prefetch_slot(&self, slot: SlotId) {
        prefetch(std::ptr::from_ref(self.slot(slot)).addr());
    }

    /// Prefetches the bucket of a key. Reads the slot without its lock: the target may be stale,
    /// and then the prefetch is wasted.
    #[inline(always)]
    pub fn prefetch_bucket(&self, slot: SlotId, hash: u64, db: DbIndex) -> PrefetchTarget {
        self.prefetch_bucket_of(slot, hash, self.physical(db))
    }

    /// The same of a physical database.
    #[inline(always)]
    pub(crate) fn prefetch_bucket_of(
        &self,
        slot: SlotId,
        hash: u64,
        physical: u16,
    ) -> PrefetchTarget {
        let table = self.slot(slot).table_unheld(physical);
        match table.and_then(|table| table.prefetch_target(&self.mem, hash)) {
            Some((bucket, tag)) => {
                prefetch(self.mem.bucket(bucket).address());
                PrefetchTarget { bucket, tag }
            }
            None => PrefetchTarget::default(),
        }
    }

    /// Prefetches buckets of a slot from a point on ([`Table::prefetch_from`]), and notes which.
    pub(crate) fn prefetch_buckets(
        &self,
        slot: SlotId,
        physical: u16,
        point: u64,
        buckets: &mut [u32],
    ) {
        if let Some(table) = self.slot(slot).table_unheld(physical) {
            table.prefetch_from(&self.mem, point, buckets);
            for bucket in buckets {
                prefetch(self.mem.bucket(*bucket).address());
            }
        }
    }

    /// Prefetches the headers of a bucket's entries; reads the bucket without the lock.
    pub(crate) fn prefetch_entries(&self, bucket: u32) {
        let bucket = self.mem.bucket(bucket);
        for address in (0..WORDS).filter_map(|at| bucket.word(at).address()) {
            prefetch(address as usize);
        }
    }

    /// Prefetches the entry; reads the bucket without the lock.
    #[inline(always)]
    pub fn prefetch_entry(&self, target: PrefetchTarget) {
        let word = self.mem.bucket(target.bucket).candidate(target.tag);
        if let Some(address) = word.address() {
            let address = address as usize;
            // The lines of an entry of 88 bytes, wherever in a line it begins: two, or three.
            prefetch(address);
            prefetch(address + 40);
            prefetch(address + 80);
        } else if word.is_link() {
            self.prefetch_overflow(word.link_id());
        }
    }

    #[cold]
    fn prefetch_overflow(&self, bucket: u32) {
        prefetch(self.mem.bucket(bucket).address());
    }

    /// Number of keys of a database.
    pub fn db_len(&self, db: DbIndex) -> u64 {
        let physical = self.physical(db);
        self.sum(|w| &w.of(physical).keys)
    }

    /// Bytes that a database takes: its entries, their values, and the buckets of its tables which
    /// have keys. O(1) per worker.
    pub fn db_bytes(&self, db: DbIndex) -> u64 {
        let physical = self.physical(db);
        self.sum(|w| &w.of(physical).bytes)
    }

    /// Slots in which a key is watched, read without their locks.
    pub fn watched_slots(&self) -> usize {
        SlotId::all().filter(|id| self.slot(*id).is_watched()).count()
    }

    /// Number of keys of a database that have an expiry.
    pub fn db_expires(&self, db: DbIndex) -> u64 {
        let physical = self.physical(db);
        self.sum(|w| &w.of(physical).expires)
    }

    /// Number of hashes of a database that have a field with an expiry.
    pub fn db_with_fields_that_expire(&self, db: DbIndex) -> u64 {
        let physical = self.physical(db);
        self.sum(|w| &w.of(physical).with_fields)
    }

    /// The average time to live of the keys of a database that have an expiry.
    pub fn average_ttl_ms(&self, db: DbIndex, now: UnixMs) -> u64 {
        let keys = i128::from(self.db_expires(db));
        let left = self.due_sum(self.physical(db)) - keys * i128::from(now.0);
        left.checked_div(keys).map_or(0, |average| u64::try_from(average).unwrap_or(0))
    }

    /// The sum of the times at which keys of a physical database expire.
    pub(crate) fn due_sum(&self, physical: u16) -> i128 {
        self.all_stats().map(|w| w.of(physical).due.get()).sum()
    }

    /// The bytes of a physical database; exact under World.
    pub(crate) fn bytes_sum(&self, physical: u16) -> i64 {
        self.all_stats().map(|w| stats::get(&w.of(physical).bytes)).sum()
    }

    /// Changes by commands since the start: keys created, changed or removed. Expired keys do not
    /// count.
    pub fn changes(&self) -> u64 {
        self.sum(|w| &w.changes)
    }

    /// The sum of a counter over all Accesses, present and past. A reader may see one half of a
    /// change that two of them made, so a negative sum counts as 0.
    pub(crate) fn sum(&self, counter: impl Fn(&WorkerStats) -> &AtomicI64) -> u64 {
        self.all_stats().map(|w| stats::get(counter(w))).sum::<i64>().max(0) as u64
    }

    pub(crate) fn all_stats(&self) -> impl Iterator<Item = &WorkerStats> {
        let further = self.further.iter().filter_map(|w| w.get().map(|w| &***w));
        self.workers.iter().map(|w| &**w).chain(further)
    }

    /// Memory taken by the data.
    pub fn memory(&self) -> Memory {
        let tables = self.memory_in_tables();
        Memory { entries: tables.entries + self.reclaimer.pending_bytes(), ..tables }
    }

    /// The same without what is being freed.
    fn memory_in_tables(&self) -> Memory {
        Memory {
            places: self.sum(|w| &w.entries),
            entries: self.sum(|w| &w.used),
            buckets: self.sum(|w| &w.buckets) * BUCKET_BYTES as u64,
            fixed: (size_of::<[Slot; SLOTS]>() + self.due.memory()) as u64,
        }
    }

    /// The memory in which entries stand. Takes a short mutex.
    pub fn entry_pages(&self) -> EntryPages {
        self.entries.pages()
    }

    /// Returns the free memory of entries and tables to the system, as far as no worker has it in
    /// its cache.
    pub fn purge(&self) {
        self.entries.trim(true);
        self.mem.trim();
    }

    /// True if free spans of entries hold more memory than is kept for coming entries.
    pub fn has_surplus(&self) -> bool {
        self.entries.has_surplus()
    }

    /// Returns that memory to the system: for a thread that no client waits for. Workers may take
    /// spans meanwhile.
    pub fn return_surplus(&self) {
        while self.entries.trim_some(SURPLUS_CHUNKS) {}
    }

    /// Bytes of free bucket pages that may be resident. Takes a short mutex.
    pub fn free_bucket_bytes(&self) -> u64 {
        self.mem.free_bytes()
    }

    /// Returns memory of free bucket pages to the system, and how many bytes: for a thread that no
    /// client waits for.
    pub fn trim_buckets(&self) -> u64 {
        self.mem.trim()
    }

    /// Bytes of entries and tables: the cheap form of [`Keyspace::memory`] for `maxmemory`.
    pub fn used_bytes(&self) -> u64 {
        self.memory().total()
    }

    /// As [`Keyspace::used_bytes`], without what nobody can make more room of: entries which are
    /// being freed, and those which are kept for a snapshot.
    pub fn evictable_bytes(&self) -> u64 {
        let Memory { entries, buckets, fixed, .. } = self.memory_in_tables();
        let flushed = self.sum(|w| &w.flushed) + self.sum(|w| &w.inherited);
        (entries + buckets + fixed).saturating_sub(self.captured_entry_bytes() + flushed)
    }

    /// Bytes of what is being freed, by the reclaimer or, after a flush, in steps.
    pub fn freeing_bytes(&self) -> u64 {
        self.reclaimer.pending_bytes() + self.sum(|w| &w.flushed)
    }

    /// How often this worker had to wait for others.
    pub fn contention(&self, worker: usize) -> Contention {
        let w = &self.workers[worker];
        Contention {
            waits: stats::get(&w.waits) as u64,
            sleeps: stats::get(&w.sleeps) as u64,
            parks: stats::get(&w.parks) as u64,
            worlds: stats::get(&w.worlds) as u64,
        }
    }

    /// Keys that blocked sessions wait for.
    pub fn waited_keys(&self) -> u64 {
        self.sum(|w| &w.waited)
    }

    /// Those of them for which a session waits that is answered when the key is gone.
    pub fn waited_keys_ending(&self) -> u64 {
        self.sum(|w| &w.waited_ending)
    }

    /// What expiry has done, all workers together.
    pub fn expiry(&self) -> ExpiryStats {
        let most = |f: fn(&WorkerStats) -> &AtomicI64| {
            self.all_stats().map(|w| stats::get(f(w))).max().unwrap_or(0) as u64
        };
        ExpiryStats {
            expired: self.sum(|w| &w.expired),
            expired_fields: self.sum(|w| &w.expired_fields),
            lag_max_ms: most(|w| &w.lag_max_ms),
            lag_last_ms: most(|w| &w.lag_last_ms),
        }
    }

    /// Removes a parked session from its queue; false if it is not there.
    pub fn forget_parked(&self, at: Parked, worker: usize, token: u64) -> bool {
        self.parking.forget(at, worker, token)
    }

    /// The counters of the Access with this number, which alone writes them.
    #[inline(always)]
    pub(crate) fn stats(&self, index: usize) -> &WorkerStats {
        match self.workers.get(index) {
            Some(stats) => stats,
            None => self.further_stats(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn further_stats(&self, index: usize) -> &WorkerStats {
        let stats = || Box::new(CachePadded(WorkerStats::new(self.databases())));
        self.further[index - self.workers.len()].get_or_init(stats)
    }

    /// Notes that the slot holds keys of this physical database.
    #[inline]
    pub(crate) fn mark_occupied(&self, physical: u16, slot: SlotId) {
        self.occupied[physical as usize].get_or_init(Box::default).set(slot);
    }

    /// Notes that the slot, which the caller holds, has no keys of this physical database.
    pub(crate) fn mark_empty(&self, physical: u16, slot: SlotId) {
        self.numbers.pass_over(self.slot(slot).last_seq());
        if let Some(map) = self.occupied[physical as usize].get() {
            map.clear(slot);
        }
    }

    /// The first slot from `from` on that may hold keys of this physical database.
    pub(crate) fn next_occupied(&self, physical: u16, from: usize) -> Option<SlotId> {
        self.occupied[physical as usize].get()?.next(from)
    }

    /// Whether a slot may hold keys of this physical database.
    pub(crate) fn is_occupied(&self, physical: u16, slot: SlotId) -> bool {
        self.occupied[physical as usize].get().is_some_and(|map| map.has(slot))
    }

    /// As [`Keyspace::next_occupied`], of these slots alone.
    pub(crate) fn next_occupied_of(
        &self,
        physical: u16,
        slots: &SlotSet,
        from: usize,
    ) -> Option<SlotId> {
        self.occupied[physical as usize].get()?.next_of(slots, from)
    }

    /// All slots that may hold keys of this physical database, at one moment.
    pub(crate) fn occupied_slots(&self, physical: u16) -> SlotSet {
        let map = self.occupied[physical as usize].get();
        map.map_or_else(SlotSet::default, |map| map.at_one_moment())
    }

    /// True if this physical database ever had a key.
    pub(crate) fn is_used(&self, physical: u16) -> bool {
        self.occupied[physical as usize].get().is_some()
    }
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        let (mut pages, mut scratch) = (PageCache::new(), Vec::new());
        let mut cache = EntryCache::continuing(0);
        let mut source = Source { mem: &self.entries, cache: &mut cache };
        let mut free = |entry: Gone| entry.free(&mut source);
        let mut flushed = Vec::new();
        if let Some(running) = self.snapshot.running() {
            running.drain_last(&mut free, |table| flushed.push(table));
        }
        let mut work = Workspace {
            mem: &self.mem,
            pages: &mut pages,
            hasher: &self.hasher,
            scratch: &mut scratch,
        };
        let mut end = |table: HeldTable<'_>| while table.pop_bucket(&mut work, &mut free) {};
        for table in &mut flushed {
            end(HeldTable::of_mut(table));
        }
        for slot in self.slots.iter_mut() {
            for (_, table) in Held::of_mut(slot).tables() {
                end(table);
            }
        }
    }
}
