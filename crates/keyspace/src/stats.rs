//! Counters of the keyspace: one block for each Access, which alone writes it, summed by readers.

use base::sync::hint::{AtomicI64, Ordering};

/// One Access's counters.
pub(crate) struct WorkerStats {
    /// Bytes of entries and blobs.
    pub used: AtomicI64,
    /// Buckets taken from bucket memory.
    pub buckets: AtomicI64,
    /// Bytes of places for entries.
    pub entries: AtomicI64,
    /// Keys removed because their time had come.
    pub expired: AtomicI64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: AtomicI64,
    /// How late the latest of them was, in milliseconds.
    pub lag_max_ms: AtomicI64,
    /// How late the last one was, in milliseconds.
    pub lag_last_ms: AtomicI64,
    /// Slot locks that were not free.
    pub waits: AtomicI64,
    /// Sleeps for a slot lock.
    pub sleeps: AtomicI64,
    /// Commands parked, behind a long holder or at the gate.
    pub parks: AtomicI64,
    /// Times World was taken.
    pub worlds: AtomicI64,
    /// Keys that somebody waits for; negative where others began what this worker ended.
    pub waited: AtomicI64,
    /// Those of them for which somebody waits who is answered when the key is gone; likewise.
    pub waited_ending: AtomicI64,
    /// Keys per physical database; negative where others made what this worker removed.
    pub keys: Box<[AtomicI64]>,
    /// Keys with an expiry per physical database.
    pub expires: Box<[AtomicI64]>,
    /// Hashes with a field that expires per physical database; likewise.
    pub with_fields: Box<[AtomicI64]>,
    /// Sum of the times at which keys expire.
    pub due: Box<[WideSum]>,
    /// Changes that were committed.
    pub changes: AtomicI64,
}

/// A sum of times that 64 bits would not hold: any of them is one that a client chose. In two parts
/// that are summed apart, so that a reader who sees half of a change is wrong by one time at most.
#[derive(Default)]
pub(crate) struct WideSum {
    high: AtomicI64,
    low: AtomicI64,
}

impl WideSum {
    /// Adds to a sum that only the caller's thread writes; what was added is taken back by adding
    /// its negative.
    pub fn add(&self, delta: i128) {
        const PART: i128 = 1 << 32;
        add(&self.high, (delta / PART) as i64);
        add(&self.low, (delta % PART) as i64);
    }

    pub fn get(&self) -> i128 {
        (i128::from(get(&self.high)) << 32) + i128::from(get(&self.low))
    }
}

impl WorkerStats {
    pub fn new(databases: u16) -> Self {
        let zeros = || (0..databases).map(|_| AtomicI64::new(0)).collect();
        Self {
            used: AtomicI64::new(0),
            buckets: AtomicI64::new(0),
            entries: AtomicI64::new(0),
            expired: AtomicI64::new(0),
            expired_fields: AtomicI64::new(0),
            lag_max_ms: AtomicI64::new(0),
            lag_last_ms: AtomicI64::new(0),
            waits: AtomicI64::new(0),
            sleeps: AtomicI64::new(0),
            parks: AtomicI64::new(0),
            worlds: AtomicI64::new(0),
            waited: AtomicI64::new(0),
            waited_ending: AtomicI64::new(0),
            keys: zeros(),
            expires: zeros(),
            with_fields: zeros(),
            due: (0..databases).map(|_| WideSum::default()).collect(),
            changes: AtomicI64::new(0),
        }
    }
}

/// Adds to a counter that only the caller's thread writes.
#[inline(always)]
pub(crate) fn add(counter: &AtomicI64, delta: i64) {
    counter.store(counter.load(Ordering::Relaxed) + delta, Ordering::Relaxed);
}

pub(crate) fn set(counter: &AtomicI64, value: i64) {
    counter.store(value, Ordering::Relaxed);
}

pub(crate) fn get(counter: &AtomicI64) -> i64 {
    counter.load(Ordering::Relaxed)
}

/// How often workers were in each other's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Slot locks that were not free at once.
    pub waits: u64,
    /// Sleeps until a slot was released.
    pub sleeps: u64,
    /// Commands that were parked.
    pub parks: u64,
    /// Times the whole keyspace was taken.
    pub worlds: u64,
}

/// What expiry has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryStats {
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: u64,
    /// The longest time that one of them outlived its moment in memory, in milliseconds.
    pub lag_max_ms: u64,
    /// The same of the last one.
    pub lag_last_ms: u64,
}

/// Memory that the keyspace has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Entries and big values, in usable bytes.
    pub entries: u64,
    /// Tables: bucket pages in use.
    pub buckets: u64,
    /// Slots and indexes that are there even when empty.
    pub fixed: u64,
    /// Of `entries`, what is not from the process's allocator: the entries themselves.
    pub places: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.entries + self.buckets + self.fixed
    }
}
