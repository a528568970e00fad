//! What defragmentation has done, for INFO. Worker 0 writes it.

use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use base::sync::atomic::{AtomicBool, AtomicU64};

/// The counters of defragmentation, since the last CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub struct DefragCounters {
    /// Percent of a processor's time that it takes, 0 while it rests.
    pub running: AtomicU64,
    /// Entries moved.
    pub moved: AtomicU64,
    /// Entries that were met and stayed.
    pub stayed: AtomicU64,
    /// The longest step, nanoseconds.
    pub step_max_ns: AtomicU64,
    /// Since when too much memory stands between entries, 0 for not.
    since_ns: AtomicU64,
    /// For how long it did before that.
    total_ns: AtomicU64,
    /// The thread that frees memory was asked to return some.
    pub is_returning: AtomicBool,
}

/// The figures of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefragFigures {
    /// Percent of a processor's time, 0 while it rests.
    pub running: u64,
    /// Entries moved.
    pub moved: u64,
    /// Entries that were met and stayed.
    pub stayed: u64,
    /// The longest step, microseconds.
    pub step_max_us: u64,
    /// For how long the thresholds are exceeded now, milliseconds.
    pub current_ms: u64,
    /// The same, in all.
    pub total_ms: u64,
}

impl DefragCounters {
    /// Notes whether the thresholds are exceeded. Called by worker 0 alone.
    pub fn set_exceeded(&self, is_exceeded: bool, now: MonoNs) {
        let since = self.since_ns.load(Relaxed);
        if is_exceeded == (since != 0) {
            return;
        }
        self.since_ns.store(if is_exceeded { now.0.max(1) } else { 0 }, Relaxed);
        if !is_exceeded {
            self.total_ns.fetch_add(now.since(MonoNs(since)), Relaxed);
        }
    }

    /// The figures.
    pub fn figures(&self, now: MonoNs) -> DefragFigures {
        let since = self.since_ns.load(Relaxed);
        let current_ns = if since == 0 { 0 } else { now.since(MonoNs(since)) };
        DefragFigures {
            running: self.running.load(Relaxed),
            moved: self.moved.load(Relaxed),
            stayed: self.stayed.load(Relaxed),
            step_max_us: self.step_max_ns.load(Relaxed) / 1_000,
            current_ms: current_ns / 1_000_000,
            total_ms: (self.total_ns.load(Relaxed) + current_ns) / 1_000_000,
        }
    }

    /// CONFIG RESETSTAT: counts and times begin anew.
    pub fn reset(&self, now: MonoNs) {
        for counter in [&self.moved, &self.stayed, &self.step_max_ns, &self.total_ns] {
            counter.store(0, Relaxed);
        }
        if self.since_ns.load(Relaxed) != 0 {
            self.since_ns.store(now.0.max(1), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_above_the_thresholds_add_up_until_they_are_reset() {
        const MS: u64 = 1_000_000;
        let at = |ms: u64| MonoNs(ms * MS);
        let counters = DefragCounters::default();
        let times = |ms| {
            let figures = counters.figures(at(ms));
            (figures.current_ms, figures.total_ms)
        };
        counters.set_exceeded(true, at(10));
        counters.set_exceeded(true, at(15));
        assert_eq!(times(30), (20, 20));
        counters.set_exceeded(false, at(40));
        assert_eq!(times(50), (0, 30));
        counters.set_exceeded(true, at(60));
        assert_eq!(times(65), (5, 35));
        counters.reset(at(70));
        assert_eq!(times(73), (3, 3));
    }
}
