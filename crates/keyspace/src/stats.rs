//! Counters of the keyspace: one block per worker, written by that worker alone, summed by readers.

use base::sync::hint::{AtomicI64, Ordering};

/// One worker's counters.
pub(crate) struct WorkerStats {
    /// Bytes of entries and blobs.
    pub used: AtomicI64,
    /// Buckets taken from bucket memory.
    pub buckets: AtomicI64,
    /// Keys removed because their time had come.
    pub expired: AtomicI64,
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
    /// Keys per physical database; negative where others made what this worker removed.
    pub keys: Box<[AtomicI64]>,
    /// Keys with an expiry per physical database.
    pub expires: Box<[AtomicI64]>,
}

impl WorkerStats {
    pub fn new(databases: u16) -> Self {
        let zeros = || (0..databases).map(|_| AtomicI64::new(0)).collect();
        Self {
            used: AtomicI64::new(0),
            buckets: AtomicI64::new(0),
            expired: AtomicI64::new(0),
            lag_max_ms: AtomicI64::new(0),
            lag_last_ms: AtomicI64::new(0),
            waits: AtomicI64::new(0),
            sleeps: AtomicI64::new(0),
            parks: AtomicI64::new(0),
            worlds: AtomicI64::new(0),
            keys: zeros(),
            expires: zeros(),
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
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.entries + self.buckets + self.fixed
    }
}
