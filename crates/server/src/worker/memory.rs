//! Memory that comes back: what each worker does for it now and then, and the rounds of
//! defragmentation, which worker 0 drives (`docs/design/0025-memory-that-comes-back.md`).
//!
//! | who | what | when |
//! |---|---|---|
//! | each worker | returns cached places of spans that are being left | while a round is on |
//! | each worker | empties its caches of places and of its thread | once when it becomes idle |
//! | each worker | empties its caches of free places | while there are more gaps than entries |
//! | worker 0 | begins a round, and makes its steps | while the thresholds are exceeded |
//! | worker 0 | asks the reclaimer's thread to return free memory | while there is much of it |
//!
//! All of it is looked at in the expiry tick, so an idle server wakes no more often for it.

use crate::execute::panics::Panicked;
use crate::figures::defrag::DefragCounters;
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use driver::Driver;
use keyspace::{Access, DefragNext, DefragReport, Parts};
use observe::SpikeEvent;

const MS: u64 = 1_000_000;
/// How often memory is looked at.
const TEND_NS: u64 = 250 * MS;
/// What a step of defragmentation plans. It is exceeded by its last moves.
const STEP_NS: u64 = 150_000;
/// After a step behind a closed gate, or one that gave way to it.
const WAIT_NS: u64 = MS;
/// After a round that has moved nothing.
const REST_NS: u64 = 10_000 * MS;
/// Gaps above which workers return the places that they have cached, busy or not: more than all of
/// the entries, and so many bytes.
const SPARSE_PERCENT: u64 = 100;
const SPARSE_MIN: u64 = 4 << 20;
/// Free pages of the allocator, or of tables, that are no reason to return any.
const FREE_MIN: u64 = 8 << 20;
/// Gaps of more than this part of `maxmemory` are not ignored: a small cache would take twice its
/// limit.
const IGNORED_PART: u64 = 8;

/// How much memory stands free between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gaps {
    bytes: u64,
    /// Of the bytes of entries.
    percent: u64,
}

/// The thresholds, as they are set.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    ignored_bytes: u64,
    lower: u64,
    upper: u64,
    least: u64,
    most: u64,
}

impl Thresholds {
    /// The percent of a processor's time for these gaps; 0 if they are too small.
    fn effort(&self, gaps: Gaps) -> u64 {
        if gaps.bytes < self.ignored_bytes || gaps.percent < self.lower {
            return 0;
        }
        let (least, most) = (self.least.min(self.most), self.most);
        if gaps.percent >= self.upper || self.upper <= self.lower {
            return most;
        }
        least + (most - least) * (gaps.percent - self.lower) / (self.upper - self.lower)
    }
}

/// The gaps that are ignored, with this `active-defrag-ignore-bytes` and `maxmemory`.
fn ignored_bytes(setting: u64, limit: u64) -> u64 {
    if limit == 0 { setting } else { setting.min(limit / IGNORED_PART) }
}

fn gaps(shared: &Shared) -> Gaps {
    let (active, places) = (shared.keyspace.entry_pages().active, shared.keyspace.memory().places);
    let bytes = active.saturating_sub(places);
    Gaps { bytes, percent: bytes.saturating_mul(100) / places.max(1) }
}

/// A request to the reclaimer's thread: to be dropped there is all that it does.
struct ReturnMemory(Arc<Shared>);

impl Parts for ReturnMemory {
    fn memory(&self) -> usize {
        0
    }
}

impl Drop for ReturnMemory {
    fn drop(&mut self) {
        self.0.keyspace.return_surplus();
        self.0.keyspace.trim_buckets();
        (self.0.facts.tools.decay)();
        self.0.defrag.is_returning.store(false, Relaxed);
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Looks at memory, if it is time to. Called in the expiry tick.
    pub(super) fn tend_memory(&mut self) {
        let core = &mut self.core;
        let now = core.turn.now();
        if now < core.timers.memory_at || core.shared.cron_paused.load(Relaxed) {
            return;
        }
        core.timers.memory_at = now.plus(TEND_NS);
        if core.shared.defrag.running.load(Relaxed) > 0 {
            self.access.return_left();
        }
        let gaps = gaps(&core.shared);
        core.empty_caches(&mut self.access, gaps);
        if core.id == 0 {
            core.follow_gaps(&mut self.access, gaps);
            core.return_free_memory();
        }
    }

    /// One step of the round that is under way, if it is time for one.
    pub(super) fn step_defrag(&mut self) {
        let now = self.core.turn.now();
        if self.core.tending.step_at.is_none_or(|at| at > now) {
            return;
        }
        if !self.access.enter() {
            self.core.tending.step_at = Some(now.plus(WAIT_NS));
            return;
        }
        self.core.follow();
        self.core.make_step(&mut self.access);
        self.access.leave();
    }
}

impl Core {
    /// Empties the worker's caches of places, and its thread's in the allocator, when the worker
    /// has become idle: what is cached there keeps pages from becoming free. Behind a FLUSHALL
    /// each cached place has a span of its own; then busy workers return them, too.
    fn empty_caches(&mut self, access: &mut Access, gaps: Gaps) {
        let processed = self.counters().processed.get();
        let is_idle = processed == self.tending.processed;
        self.tending.processed = processed;
        let is_first = is_idle && !self.tending.is_emptied;
        if is_first || gaps.bytes > SPARSE_MIN && gaps.percent > SPARSE_PERCENT {
            access.return_cached();
        }
        if is_first {
            (self.shared.facts.tools.empty_thread_cache)();
        }
        self.tending.is_emptied = is_idle;
    }

    fn thresholds(&self) -> Thresholds {
        let s = &self.settings;
        Thresholds {
            ignored_bytes: ignored_bytes(s.defrag_ignore_bytes, s.memory_limit),
            lower: s.defrag_lower_percent,
            upper: s.defrag_upper_percent,
            least: s.defrag_cycle_min,
            most: s.defrag_cycle_max,
        }
    }

    /// Begins a round if the thresholds are exceeded, and ends it early if it is not wanted.
    fn follow_gaps(&mut self, access: &mut Access, gaps: Gaps) {
        let now = self.turn.now();
        let effort = self.thresholds().effort(gaps);
        let is_on = self.settings.activedefrag;
        self.shared.defrag.set_exceeded(is_on && effort > 0, now);
        let must_rest = !is_on || self.shutdown.has_begun() || self.shared.load.is_on();
        if let Some(round) = &mut self.tending.round {
            if must_rest {
                round.end_early();
            } else if effort > 0 {
                self.set_effort(effort);
            }
            return;
        }
        let waits = now < self.tending.rest_until || self.shared.keyspace.is_snapshot_running();
        if must_rest || effort == 0 || waits {
            return;
        }
        let Some(round) = access.begin_defrag() else { return };
        (self.tending.round, self.tending.moved) = (Some(Box::new(round)), 0);
        self.tending.step_at = Some(now);
        self.set_effort(effort);
    }

    fn set_effort(&mut self, percent: u64) {
        self.shared.defrag.running.store(percent, Relaxed);
        self.tending.pause_percent = (100 - percent) * 100 / percent;
    }

    /// The step itself. A panic costs nothing but the rest of the round.
    fn make_step(&mut self, access: &mut Access) {
        let Some(mut round) = self.tending.round.take() else {
            self.tending.step_at = None;
            return;
        };
        let started = self.clock.now();
        let stepped = self.catch(|core| {
            let clock = || core.clock.now();
            access.defrag_step(&mut round, core.turn.unix_ms(), STEP_NS, clock)
        });
        let report = stepped.unwrap_or_else(|Panicked(_)| {
            crate::log::warning(format_args!("Panic while entries were moved"));
            DefragReport { next: DefragNext::Complete, ..DefragReport::default() }
        });
        let ended = self.clock.now();
        let ns = ended.since(started);
        self.count_step(&report, ns);
        let now = self.turn.now();
        match report.next {
            DefragNext::Complete => return self.end_round(),
            DefragNext::Waits => self.tending.step_at = Some(now.plus(WAIT_NS)),
            DefragNext::More => {
                self.tending.step_at = Some(ended.plus(ns * self.tending.pause_percent / 100));
            }
        }
        self.tending.round = Some(round);
    }

    fn end_round(&mut self) {
        let now = self.turn.now();
        self.tending.step_at = None;
        self.shared.defrag.running.store(0, Relaxed);
        if self.tending.moved == 0 {
            self.tending.rest_until = now.plus(REST_NS);
        }
        self.timers.memory_at = now;
    }

    fn count_step(&mut self, report: &DefragReport, ns: u64) {
        let counters: &DefragCounters = &self.shared.defrag;
        counters.moved.fetch_add(report.moved, Relaxed);
        counters.stayed.fetch_add(report.stayed, Relaxed);
        counters.step_max_ns.fetch_max(ns, Relaxed);
        self.tending.moved += report.moved;
        if self.settings.is_spike(ns) {
            self.record_spike(SpikeEvent::ActiveDefragCycle, ns);
        }
    }

    /// Asks the reclaimer's thread to return free memory of tables and of the allocator, if there
    /// is much: no worker waits for the system calls.
    fn return_free_memory(&self) {
        let shared = &self.shared;
        let (_, resident) = (shared.facts.allocator)();
        let free = resident.saturating_sub((shared.facts.tools.active)());
        let of_tables = shared.keyspace.free_bucket_bytes();
        let used = shared.keyspace.memory().buckets;
        let has_much =
            free > FREE_MIN || of_tables > FREE_MIN.max(used / 8) || shared.keyspace.has_surplus();
        if has_much && !shared.defrag.is_returning.swap(true, Relaxed) {
            let request = Box::new(ReturnMemory(Arc::clone(shared)));
            shared.keyspace.reclaimer().reclaim_parts(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effort_grows_with_the_gaps_between_two_thresholds() {
        let thresholds =
            Thresholds { ignored_bytes: 100, lower: 10, upper: 110, least: 1, most: 26 };
        let effort = |bytes, percent| thresholds.effort(Gaps { bytes, percent });
        assert_eq!((effort(99, 500), effort(100, 9)), (0, 0));
        assert_eq!((effort(100, 10), effort(100, 60), effort(100, 110)), (1, 13, 26));
        assert_eq!(effort(1 << 40, 1 << 40), 26);
        assert_eq!((ignored_bytes(100, 0), ignored_bytes(100, 4_000)), (100, 100));
        assert_eq!(ignored_bytes(100, 400), 50, "an eighth of the limit");
        let odd = Thresholds { upper: 10, least: 50, ..thresholds };
        assert_eq!(odd.effort(Gaps { bytes: 100, percent: 10 }), 26);
    }
}
