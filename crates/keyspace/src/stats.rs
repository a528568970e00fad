//! Counters of the keyspace: one block per Access, which is its only writer; readers sum them.

use crate::memory::BUCKET_BYTES;
use base::sync::hint::{AtomicI64, Ordering};

/// One Access's counters.
pub(crate) struct WorkerStats {
    /// Bytes of entries and blobs.
    pub used: AtomicI64,
    /// Buckets taken from bucket memory.
    pub buckets: AtomicI64,
    /// Bytes of allocated places for entries.
    pub entries: AtomicI64,
    /// Of entries, blobs and buckets, the bytes of flushed databases that are not freed yet.
    pub flushed: AtomicI64,
    /// The same, of those that a snapshot walks first.
    pub inherited: AtomicI64,
    /// Keys removed because they had expired.
    pub expired: AtomicI64,
    /// Keys removed to make room.
    pub evicted: AtomicI64,
    /// Fields of hashes removed because they had expired.
    pub expired_fields: AtomicI64,
    /// The longest time from an expiry to its removal, in milliseconds.
    pub lag_max_ms: AtomicI64,
    /// The time from expiry to removal of the last one, in milliseconds.
    pub lag_last_ms: AtomicI64,
    /// Slot locks that were not free at once.
    pub waits: AtomicI64,
    /// Sleeps for a slot lock.
    pub sleeps: AtomicI64,
    /// Commands parked, behind a long holder or at the gate.
    pub parks: AtomicI64,
    /// Times World was taken.
    pub worlds: AtomicI64,
    /// Keys with waiting clients; negative if other workers added what this one removed.
    pub waited: AtomicI64,
    /// Keys with a client that is answered when the key is deleted; may be negative, too.
    pub waited_ending: AtomicI64,
    /// Per physical database.
    pub databases: Box<[DatabaseStats]>,
    /// Keys removed to make room, per logical database: they count for its name, not its content.
    pub evicted_from: Box<[AtomicI64]>,
    /// Changes that were committed.
    pub changes: AtomicI64,
}

/// One Access's counters of a physical database. All of them are negative if other workers created
/// what this one removed.
#[derive(Default)]
pub(crate) struct DatabaseStats {
    /// Keys.
    pub keys: AtomicI64,
    /// Bytes of the entries in its tables, of their values outside, and of the tables' buckets.
    /// What a table without keys keeps for its next ones is left out: it could not be evicted.
    pub bytes: AtomicI64,
    /// Keys with an expiry.
    pub expires: AtomicI64,
    /// Hashes with a field that expires.
    pub with_fields: AtomicI64,
    /// Sum of the expiry times of keys.
    pub due: WideSum,
}

/// A sum of times that may exceed 64 bits, because clients choose the times. Two parts are summed
/// separately, so that a reader that sees half of a change is wrong by at most one time.
#[derive(Default)]
pub(crate) struct WideSum {
    high: AtomicI64,
    low: AtomicI64,
}

impl WideSum {
    /// Adds to a sum that only the caller's thread writes; a negative `delta` subtracts.
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
    /// The counters of a physical database.
    #[inline(always)]
    pub fn of(&self, physical: u16) -> &DatabaseStats {
        &self.databases[physical as usize]
    }

    pub fn new(databases: u16) -> Self {
        let zeros = || (0..databases).map(|_| AtomicI64::new(0)).collect();
        Self {
            used: AtomicI64::new(0),
            buckets: AtomicI64::new(0),
            entries: AtomicI64::new(0),
            flushed: AtomicI64::new(0),
            inherited: AtomicI64::new(0),
            expired: AtomicI64::new(0),
            evicted: AtomicI64::new(0),
            expired_fields: AtomicI64::new(0),
            lag_max_ms: AtomicI64::new(0),
            lag_last_ms: AtomicI64::new(0),
            waits: AtomicI64::new(0),
            sleeps: AtomicI64::new(0),
            parks: AtomicI64::new(0),
            worlds: AtomicI64::new(0),
            waited: AtomicI64::new(0),
            waited_ending: AtomicI64::new(0),
            databases: (0..databases).map(|_| DatabaseStats::default()).collect(),
            evicted_from: zeros(),
            changes: AtomicI64::new(0),
        }
    }
}

impl WorkerStats {
    /// The bytes of entries, blobs and buckets that this Access has taken and not freed.
    pub fn taken(&self) -> i64 {
        get(&self.used) + get(&self.buckets) * BUCKET_BYTES
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

/// How often workers waited for each other.
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
    /// Keys removed because they had expired.
    pub expired: u64,
    /// Fields of hashes removed because they had expired.
    pub expired_fields: u64,
    /// The longest time from an expiry to its removal, in milliseconds.
    pub lag_max_ms: u64,
    /// The same for the last removal.
    pub lag_last_ms: u64,
}

/// Memory that the keyspace uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Entries and big values, in usable bytes.
    pub entries: u64,
    /// Tables: bucket pages in use.
    pub buckets: u64,
    /// Slots and indexes, which exist even in an empty keyspace.
    pub fixed: u64,
    /// The part of `entries` in the slab: the entries themselves.
    pub places: u64,
}

impl Memory {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.entries + self.buckets + self.fixed
    }
}
