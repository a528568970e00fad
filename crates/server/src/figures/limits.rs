//! What is known of `maxmemory`: how much is in use beside what is counted, and for how long the
//! limit was exceeded. [`super::used`] fills it.

use base::MonoNs;
use base::sync::atomic::Ordering::{AcqRel, Relaxed};
use base::sync::atomic::{AtomicI64, AtomicU64};

/// The reserve is this part of the limit at most.
const RESERVE_PART: u64 = 16;
/// How fast the reserve is given up.
const RESERVE_NS: u64 = 1_000_000_000;

/// The state of the limits of memory.
#[derive(Debug)]
pub struct MemoryLimits {
    /// What is in use beside what is counted.
    pub measured: MeasuredMemory,
    /// For how long `maxmemory` was exceeded.
    pub exceeded: Exceeded,
    /// Clients closed because of `maxmemory-clients`.
    pub evicted_clients: AtomicU64,
}

impl MemoryLimits {
    /// Before the first key, when so many bytes are in use.
    pub fn new(startup_bytes: u64) -> Self {
        Self {
            measured: MeasuredMemory::new(startup_bytes),
            exceeded: Exceeded::default(),
            evicted_clients: AtomicU64::new(0),
        }
    }
}

/// What was measured last.
#[derive(Debug)]
pub struct MeasuredMemory {
    pub(super) gap: AtomicI64,
    /// Gap and buffers as they were at most lately.
    pub(super) others_most: AtomicI64,
    pub(super) at_ns: AtomicU64,
}

impl MeasuredMemory {
    /// Before the first key.
    fn new(startup_bytes: u64) -> Self {
        Self {
            gap: AtomicI64::new(startup_bytes.cast_signed()),
            others_most: AtomicI64::new(0),
            at_ns: AtomicU64::new(0),
        }
    }
}

/// For how long `maxmemory` was exceeded.
#[derive(Debug, Default)]
pub struct Exceeded {
    /// Since when, 0 for not.
    since_ns: AtomicU64,
    /// Before that.
    total_ns: AtomicU64,
}

impl Exceeded {
    pub(crate) fn set(&self, is_exceeded: bool, now: MonoNs) {
        let since = self.since_ns.load(Relaxed);
        if is_exceeded == (since != 0) {
            return;
        }
        let next = if is_exceeded { now.0.max(1) } else { 0 };
        // Whoever is first counts.
        if self.since_ns.compare_exchange(since, next, AcqRel, Relaxed).is_ok() && !is_exceeded {
            self.total_ns.fetch_add(now.since(MonoNs(since)), Relaxed);
        }
    }

    /// For how long now, and in all, in milliseconds.
    pub fn ms(&self, now: MonoNs) -> (u64, u64) {
        let since = self.since_ns.load(Relaxed);
        let current = if since == 0 { 0 } else { now.since(MonoNs(since)) };
        (current / 1_000_000, (self.total_ns.load(Relaxed) + current) / 1_000_000)
    }
}

/// What there was at most lately: it sinks to what there is within a second, evenly.
pub(super) fn most_lately(most: i64, now: i64, limit: u64, passed_ns: u64) -> i64 {
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
