//! How much memory is in use, as `maxmemory` sees it. INFO asks the allocator, which takes
//! microseconds; the counters of keys and buffers cost nothing. So the difference between the two
//! is measured now and then, and the counts are added to it:
//!
//! ```text
//! keys       entries and buckets, without what is being freed or kept for a save     counted
//! buffers    of clients and producers                                                counted
//! messages   on their way to subscribers: no key goes for them                       counted
//! gap        what the allocator rounds up, and what nobody counts                    measured
//! reserve    by how much gap and buffers were larger in the last second              measured
//! ```

use crate::figures::limits::most_lately;
use crate::shared::Shared;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;

/// Buffers take this part of the limit from keys at most: beyond it clients are closed
/// (`maxmemory-clients`), and no more keys go.
const BUFFERS_PART: u64 = 4;
/// What is counted may change by this part of the limit while it is compared.
const EXACT_PART: u64 = 256;
/// How often it is compared before the next time.
const TRIES: usize = 3;

impl Shared {
    /// Bytes held for clients and producers.
    fn buffers(&self) -> u64 {
        self.client_memory() + self.ingest.producers.bytes() as u64
    }

    /// What keys are evicted for, beside a limit: the memory in use without what is being freed,
    /// kept for a save, or on its way to the append-only file; with a reserve, because buffers come
    /// and go faster than keys can.
    pub fn evictable_memory(&self, limit: u64) -> u64 {
        let others = self.limits.measured.gap.load(Relaxed) + self.evicting_buffers(limit);
        let others = others.max(self.limits.measured.others_most.load(Relaxed));
        self.keyspace.evictable_bytes().saturating_add_signed(others)
    }

    fn evicting_buffers(&self, limit: u64) -> i64 {
        self.buffers().min(limit / BUFFERS_PART).cast_signed()
    }

    /// What `maxmemory` bounds: the memory in use. As in Redis, where a child has them, the copies
    /// for a save are not counted, nor what waits for the append-only file.
    pub fn used_memory(&self) -> u64 {
        let buffers = self.buffers() + self.listening_bytes();
        let counted = self.keyspace.evictable_bytes() + buffers;
        let gap = self.limits.measured.gap.load(Relaxed);
        counted.saturating_add_signed(gap) + self.keyspace.freeing_bytes()
    }

    /// What is held for clients that listen: messages on their way, and keys that they have read.
    /// No key is evicted for it.
    fn listening_bytes(&self) -> u64 {
        self.pubsub.message_bytes() + self.tracking.bytes()
    }

    /// Measures the gap, unless that was done less than `every_ns` ago. Asks the allocator, which
    /// takes some microseconds.
    pub fn measure_memory(&self, limit: u64, now: MonoNs, every_ns: u64) {
        let measured = &self.limits.measured;
        let before = measured.at_ns.load(Relaxed);
        let passed_ns = now.since(MonoNs(before));
        let is_due = before == 0 || passed_ns >= every_ns;
        let claim = || measured.at_ns.compare_exchange(before, now.0.max(1), Relaxed, Relaxed);
        // One of those who find it due.
        if !is_due || claim().is_err() {
            return;
        }
        let Some(gap) = (0..TRIES).find_map(|_| self.memory_gap(limit / EXACT_PART)) else {
            return;
        };
        measured.gap.store(gap, Relaxed);
        let others = gap + self.evicting_buffers(limit);
        let most = measured.others_most.load(Relaxed);
        measured.others_most.store(most_lately(most, others, limit, passed_ns), Relaxed);
    }

    /// What is in use beside what is counted. `None` if the counts changed by more than `exact`
    /// meanwhile, because this thread was not running, or if there is no such allocator.
    fn memory_gap(&self, exact: u64) -> Option<i64> {
        let counted = || {
            let for_files = self.journal.memory.load(Relaxed) + self.memory_of_saves();
            self.keyspace.used_bytes() + self.buffers() + for_files + self.listening_bytes()
        };
        let before = counted();
        let (allocated, _) = (self.facts.allocator)();
        let data = self.keyspace.memory();
        let used = allocated + data.places + data.buckets;
        let known = counted();
        let is_exact = allocated > 0 && before.abs_diff(known) <= exact;
        is_exact.then(|| used.cast_signed() - known.cast_signed())
    }

    /// What a save holds beside the entries: it is gone soon, so no key is evicted for it.
    pub(crate) fn memory_of_saves(&self) -> u64 {
        self.keyspace.capture_list_bytes() + self.saves.buffer_bytes.load(Relaxed)
    }
}
