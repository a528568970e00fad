//! How much memory is in use, as `maxmemory` sees it. INFO asks the allocator, which takes
//! microseconds; the counters of keys and buffers cost nothing. So the difference between the two is
//! measured now and then, and the counts are added to it:
//!
//! ```text
//! keys       entries and buckets, without what is being freed or kept for a save     counted
//! buffers    of clients and producers                                                counted
//! gap        what the allocator rounds up, and what nobody counts                    measured
//! reserve    by how much gap and buffers were larger in the last second              measured
//! ```

use crate::shared::Shared;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicI64, AtomicU64};

/// Buffers take this part of the limit from keys at most: beyond it clients are closed
/// (`maxmemory-clients`) or writes fail, and no more keys go.
const BUFFERS_PART: u64 = 4;
/// The reserve is this part of the limit at most.
const RESERVE_PART: u64 = 16;
/// What is counted may change by this part of the limit while it is compared.
const EXACT_PART: u64 = 256;
/// How often it is compared before the next time.
const TRIES: usize = 3;
/// How fast the reserve is given up.
const RESERVE_NS: u64 = 1_000_000_000;

/// What was measured last.
#[derive(Debug)]
pub struct MeasuredMemory {
    gap: AtomicI64,
    /// Gap and buffers as they were at most lately.
    others_most: AtomicI64,
    at_ns: AtomicU64,
}

impl MeasuredMemory {
    /// Before the first key.
    pub fn new(startup_bytes: u64) -> Self {
        Self {
            gap: AtomicI64::new(startup_bytes.cast_signed()),
            others_most: AtomicI64::new(0),
            at_ns: AtomicU64::new(0),
        }
    }
}

impl Shared {
    /// Bytes held for clients and producers.
    fn buffers(&self) -> u64 {
        self.client_memory() + self.ingest.producers.bytes() as u64
    }

    /// What keys are evicted for, beside a limit: the memory in use without what is being freed,
    /// kept for a save, or on its way to the append-only file; with a reserve, because buffers come
    /// and go faster than keys can.
    pub fn evictable_memory(&self, limit: u64) -> u64 {
        let others = self.memory.gap.load(Relaxed) + self.evicting_buffers(limit);
        let others = others.max(self.memory.others_most.load(Relaxed));
        self.keyspace.evictable_bytes().saturating_add_signed(others)
    }

    fn evicting_buffers(&self, limit: u64) -> i64 {
        self.buffers().min(limit / BUFFERS_PART).cast_signed()
    }

    /// What `maxmemory` bounds: the memory in use. As in Redis, where a child has them, the copies
    /// for a save are not counted, nor what waits for the append-only file.
    pub fn used_memory(&self) -> u64 {
        let counted = self.keyspace.evictable_bytes() + self.buffers();
        let gap = self.memory.gap.load(Relaxed);
        counted.saturating_add_signed(gap) + self.keyspace.reclaimer().pending_bytes()
    }

    /// Measures the gap, unless that was done less than `every_ns` ago. Asks the allocator, which
    /// takes some microseconds.
    pub fn measure_memory(&self, limit: u64, now: MonoNs, every_ns: u64) {
        let before = self.memory.at_ns.load(Relaxed);
        let passed_ns = now.since(MonoNs(before));
        let is_due = before == 0 || passed_ns >= every_ns;
        // One of those who find it due.
        if !is_due
            || self.memory.at_ns.compare_exchange(before, now.0.max(1), Relaxed, Relaxed).is_err()
        {
            return;
        }
        let Some(gap) = (0..TRIES).find_map(|_| self.memory_gap(limit / EXACT_PART)) else {
            return;
        };
        self.memory.gap.store(gap, Relaxed);
        let others = gap + self.evicting_buffers(limit);
        let most = self.memory.others_most.load(Relaxed);
        let most = most_lately(most, others, limit, passed_ns);
        self.memory.others_most.store(most, Relaxed);
    }
}

impl Shared {
    /// What is in use beside what is counted. `None` if the counts changed by more than `exact`
    /// meanwhile, because this thread was not running, or if there is no such allocator.
    fn memory_gap(&self, exact: u64) -> Option<i64> {
        let counted =
            || self.keyspace.used_bytes() + self.buffers() + self.journal.memory.load(Relaxed);
        let before = counted();
        let (allocated, _) = (self.facts.allocator)();
        let data = self.keyspace.memory();
        let used = allocated + data.places + data.buckets;
        let known = counted();
        let is_exact = allocated > 0 && before.abs_diff(known) <= exact;
        is_exact.then(|| used.cast_signed() - known.cast_signed())
    }
}

/// What there was at most lately: it sinks to what there is within a second, evenly.
fn most_lately(most: i64, now: i64, limit: u64, passed_ns: u64) -> i64 {
    let above = most.saturating_sub(now).clamp(0, (limit / RESERVE_PART).cast_signed());
    let kept = i128::from(RESERVE_NS - passed_ns.min(RESERVE_NS)) * i128::from(above);
    now + (kept / i128::from(RESERVE_NS)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_bounded_and_sinks() {
        const LIMIT: u64 = 16_000;
        assert_eq!(most_lately(0, 500, LIMIT, 1), 500, "more than before counts at once");
        assert_eq!(most_lately(900, 500, LIMIT, 0), 900);
        assert_eq!(most_lately(900, 500, LIMIT, RESERVE_NS / 4), 800);
        assert_eq!(most_lately(900, 500, LIMIT, u64::MAX), 500);
        assert_eq!(most_lately(9_000, 500, LIMIT, 0), 1_500, "a sixteenth of the limit at most");
    }
}
