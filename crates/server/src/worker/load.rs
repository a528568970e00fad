//! How busy each worker is, and which of its clients it works for most: whether one of them should
//! move to another worker, which one, and where to (`moving` does it).
//!
//! ```text
//! busy   a worker was not in its poll for 80 % of each of the last 3 periods of 100 ms
//! idle   less than 50 % of its last period; the least busy one is asked
//! who    of the busy worker's clients the one with the most weight that may move, has not moved
//!        within 5 s, and is not so heavy that the other worker would be the busy one then
//! ```
//!
//! All figures exist anyway: the driver sums the time of its polls, a client's card counts its
//! commands and bytes, and its quota has what it was charged with. They are read in housekeeping.
//! A worker that had nothing to do in a period publishes 0. After a period without a command it
//! rests.

use base::MonoNs;
use base::sync::CachePadded;
use base::sync::atomic::Ordering::{Relaxed, SeqCst};
use base::sync::atomic::{AtomicBool, AtomicU32};

/// What is shorter is no period: housekeeping came early.
const PERIOD_MIN_NS: u64 = 50_000_000;
/// From so many percent on a worker is busy.
pub const BUSY_PERCENT: u32 = 80;
/// Below so many percent it takes clients of others.
pub const IDLE_PERCENT: u32 = 50;
/// For so many periods in a row a worker must be busy before a client moves.
pub const BUSY_PERIODS: u32 = 3;
/// For so long a client stays where it has moved to.
pub const STAY_NS: u64 = 5_000_000_000;
/// Clients that are looked at in one period, and compared with each other; the others have their
/// turn in later ones. Looking at so many takes about a millisecond.
pub const LOOKED_MAX: usize = 8_192;
/// A client with less weight is not worth a move, nanoseconds of a period: a worker that is busy
/// with something else has no heavy clients.
pub(super) const WORTH_NS: u64 = 200_000;
/// So many percent the other worker must be less busy than this one was, after the move.
const MARGIN_PERCENT: u32 = 20;
/// A client with less of the weight is not worth a move, percent.
pub(super) const WORTH_PERCENT: u64 = 5;
/// How many clients are tried if the heaviest turn out to have something under way.
pub(super) const TRIES_MAX: usize = 8;
/// What stands for a worker that must not be asked; nobody is so busy.
const FULL_PERCENT: u32 = 101;

/// What the workers know of each other.
#[derive(Debug)]
pub struct Loads {
    workers: Vec<CachePadded<Published>>,
    /// DEBUG MOVE-CLIENTS: clients move all the time, whatever the load.
    pub is_forced: AtomicBool,
}

#[derive(Debug, Default)]
struct Published {
    /// How busy it was in its last period, percent.
    busy: AtomicU32,
    /// Clients on their way to it.
    arriving: AtomicU32,
}

/// A worker that takes a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Its number.
    pub worker: usize,
    /// How busy it is, percent.
    pub busy: u32,
}

impl Loads {
    /// Of so many workers, of which none is busy.
    pub fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| CachePadded::default()).collect();
        Self { workers, is_forced: AtomicBool::new(false) }
    }

    /// A worker says how busy it is. Nobody else is sent to it while somebody is on the way.
    pub fn publish(&self, worker: usize, percent: u32) {
        let percent = if self.expects_any(worker) { FULL_PERCENT } else { percent };
        self.workers[worker].busy.store(percent, Relaxed);
    }

    /// The least busy worker but `me`, if it takes clients.
    pub fn idle_other(&self, me: usize) -> Option<Idle> {
        let others = (0..self.workers.len()).filter(|worker| *worker != me);
        let all =
            others.map(|worker| Idle { worker, busy: self.workers[worker].busy.load(Relaxed) });
        all.min_by_key(|idle| idle.busy).filter(|idle| idle.busy < IDLE_PERCENT)
    }

    /// Has nobody else send a client there until that worker has published a further period. False
    /// if it has published one meanwhile, or somebody else was faster.
    pub fn claim(&self, idle: Idle) -> bool {
        let busy = &self.workers[idle.worker].busy;
        busy.compare_exchange(idle.busy, FULL_PERCENT, Relaxed, Relaxed).is_ok()
    }

    /// Takes the claim back: no client was sent.
    pub fn release(&self, idle: Idle) {
        let busy = &self.workers[idle.worker].busy;
        // (If it has published a period, that counts.)
        _ = busy.compare_exchange(FULL_PERCENT, idle.busy, Relaxed, Relaxed);
    }

    /// A client is to be sent to this worker, which does not end before it has come.
    pub fn expect(&self, worker: usize) {
        self.workers[worker].arriving.fetch_add(1, SeqCst);
    }

    /// It has come, or was not sent.
    pub fn has_come(&self, worker: usize) {
        self.workers[worker].arriving.fetch_sub(1, SeqCst);
    }

    /// True while some are on their way to this worker.
    pub fn expects_any(&self, worker: usize) -> bool {
        self.workers[worker].arriving.load(SeqCst) > 0
    }
}

/// What a worker remembers of its last periods.
#[derive(Debug)]
pub struct Load {
    /// When the period began, and what the driver's polls had taken until then.
    since: MonoNs,
    poll_ns: u64,
    /// Commands that the worker had executed then.
    pub(super) processed: u64,
    /// Busy periods in a row.
    pub(super) busy_periods: u32,
    /// The first place of the clients that are looked at.
    pub(super) from: usize,
    /// Their weights were noted at the end of the last period.
    pub(super) is_noted: bool,
}

impl Load {
    /// A period begins.
    pub fn new(now: MonoNs) -> Self {
        Self { since: now, poll_ns: 0, processed: 0, busy_periods: 0, from: 0, is_noted: false }
    }

    /// A client has come or left: what was measured says nothing about what is.
    pub fn restart(&mut self, now: MonoNs, poll_ns: u64) {
        (self.since, self.poll_ns) = (now, poll_ns);
        (self.busy_periods, self.is_noted) = (0, false);
    }

    /// Ends the period, if it was long enough. Returns how busy the worker was, percent: not at all
    /// if it had nothing to do.
    pub(super) fn measure(&mut self, now: MonoNs, poll_ns: u64, is_active: bool) -> Option<u32> {
        let elapsed = now.since(self.since);
        if elapsed < PERIOD_MIN_NS {
            return None;
        }
        let idle = poll_ns.saturating_sub(self.poll_ns).min(elapsed);
        let percent = if is_active { (elapsed - idle) * 100 / elapsed } else { 0 } as u32;
        (self.since, self.poll_ns) = (now, poll_ns);
        if percent >= BUSY_PERCENT {
            self.busy_periods += 1;
        } else {
            (self.busy_periods, self.is_noted) = (0, false);
        }
        Some(percent)
    }
}

/// How much of its weight a worker that is `busy` percent may hand over to one that is `idle`
/// percent, in percent. Otherwise the other one would be as busy as this one is, and nothing won.
pub(super) fn share_max(busy: u32, idle: u32) -> u64 {
    u64::from(busy.saturating_sub(idle + MARGIN_PERCENT)) * 100 / u64::from(busy.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_worker_is_busy_when_it_was_not_in_its_poll() {
        let mut load = Load::new(MonoNs(0));
        assert_eq!(load.measure(MonoNs(PERIOD_MIN_NS - 1), 0, true), None, "no period");
        assert_eq!(load.measure(MonoNs(100 * MS), 20 * MS, true), Some(80));
        assert_eq!(load.busy_periods, 1);
        assert_eq!(load.measure(MonoNs(200 * MS), 20 * MS, true), Some(100));
        assert_eq!(load.busy_periods, 2);
        assert_eq!(load.measure(MonoNs(300 * MS), 41 * MS, true), Some(79));
        assert_eq!(load.busy_periods, 0);
        assert_eq!(load.measure(MonoNs(400 * MS), 41 * MS, false), Some(0), "nothing executed");
        assert_eq!(load.measure(MonoNs(500 * MS), 999 * MS, true), Some(0));
    }

    #[test]
    fn the_least_busy_worker_takes_one_client_in_a_period() {
        let loads = Loads::new(3);
        [100, 49, 50].iter().enumerate().for_each(|(worker, busy)| loads.publish(worker, *busy));
        let idle = loads.idle_other(0).expect("worker 1");
        assert_eq!(idle, Idle { worker: 1, busy: 49 });
        assert_eq!(loads.idle_other(1), None, "50 percent is not idle");
        assert!(loads.claim(idle) && !loads.claim(idle));
        assert_eq!(loads.idle_other(0), None);
        loads.release(idle);
        assert_eq!(loads.idle_other(2), Some(idle));
        assert!(loads.claim(idle));
        loads.publish(1, 30);
        loads.release(idle);
        assert_eq!(loads.idle_other(0), Some(Idle { worker: 1, busy: 30 }), "the newer counts");
    }

    #[test]
    fn a_client_that_would_make_the_other_worker_the_busy_one_stays() {
        assert_eq!(share_max(100, 0), 80);
        assert_eq!(share_max(100, 49), 31);
        assert_eq!(share_max(80, 49), 13);
        assert_eq!((share_max(80, 60), share_max(0, 0)), (0, 0));
    }
}
