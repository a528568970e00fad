//! Fences: after a change of what commands may do (CLIENT PAUSE, a password, MONITOR), when does no
//! worker execute by the old rules? Only the reply to the change waits for that.
//!
//! ```text
//! publisher                               worker
//!   writes the new rules                    enters its section (gate.rs)
//!   draws number n: latest = n              reads `latest`
//!   reads the section of each worker          n is new: adopts the rules, passes n
//!     idle:     it has passed n             executes a batch
//!     executes: asks it by a message        between two batches, or at the message: passes n
//!
//! all workers have passed n: the last one wakes the workers whose replies wait
//! ```
//!
//! Drawing and reading the sections, entering and reading `latest`, are the two halves of a Dekker
//! handshake, all sequentially consistent: either the publisher sees that the worker executes, or
//! the worker sees the number.
//!
//! Further Accesses have no place here. Whoever executes commands of a client through one does so
//! in the name of a worker, which does not pass before the last of them has ended, like within
//! EXEC.

use crate::gate::Gate;
use base::FenceNo;
use base::sync::CachePadded;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// The fences of a server.
#[derive(Debug)]
pub struct Fences {
    latest: CachePadded<AtomicU64>,
    workers: Box<[CachePadded<Place>]>,
}

/// A worker among them.
#[derive(Debug, Default)]
struct Place {
    /// The worker executes nothing by rules older than those of this fence. Only rises.
    passed: AtomicU64,
    /// Replies of its sessions wait for a fence: it is to be woken.
    waits: AtomicBool,
    /// A message that asks it to pass has been posted.
    asked: AtomicBool,
}

impl Fences {
    /// Fences for so many workers; nothing has been published.
    pub fn new(workers: usize) -> Self {
        let latest = CachePadded(AtomicU64::new(0));
        Self { latest, workers: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    /// The latest fence. A worker reads this after [`Gate::enter`], so it misses no fence whose
    /// publisher has found it idle.
    #[inline]
    pub fn latest(&self) -> FenceNo {
        FenceNo(self.latest.load(SeqCst))
    }

    /// Publishes a change of rules by worker `me`. `ask` is called for each worker that must be
    /// asked to [`Fences::pass`], `wake` for each whose waiting replies may now leave. The worker
    /// itself passes like the others: between two commands, after it has adopted the rules of all
    /// fences.
    pub fn publish(
        &self,
        me: usize,
        gate: &Gate,
        ask: impl FnMut(usize),
        wake: impl FnMut(usize),
    ) -> FenceNo {
        self.publish_unless(me, |other| gate.is_idle(other), ask, wake)
    }

    /// The same, but an idle worker is asked, too, and passes when it has adopted the rules: what
    /// it keeps for its sessions follows them.
    pub fn publish_to_all(
        &self,
        me: usize,
        ask: impl FnMut(usize),
        wake: impl FnMut(usize),
    ) -> FenceNo {
        self.publish_unless(me, |_| false, ask, wake)
    }

    fn publish_unless(
        &self,
        me: usize,
        passes: impl Fn(usize) -> bool,
        mut ask: impl FnMut(usize),
        mut wake: impl FnMut(usize),
    ) -> FenceNo {
        // Before the number exists: a worker that passes it must see that this one waits.
        self.workers[me].waits.store(true, SeqCst);
        let no = FenceNo(self.latest.fetch_add(1, SeqCst) + 1);
        for (other, place) in self.workers.iter().enumerate().filter(|(other, _)| *other != me) {
            if passes(other) {
                self.raise(other, no, me, &mut wake);
            } else if !place.asked.swap(true, SeqCst) {
                ask(other);
            }
        }
        no
    }

    /// Worker `me` has received the message that asks it to pass, and will read [`Fences::latest`].
    pub fn acknowledge(&self, me: usize) {
        self.workers[me].asked.store(false, SeqCst);
    }

    /// Worker `me` is between two commands and has adopted the rules of every fence up to `no`.
    /// `wake` is called for each worker whose waiting replies may now leave.
    pub fn pass(&self, me: usize, no: FenceNo, mut wake: impl FnMut(usize)) {
        self.raise(me, no, me, &mut wake);
    }

    fn raise(&self, worker: usize, no: FenceNo, me: usize, wake: &mut impl FnMut(usize)) {
        let before = self.passed();
        self.workers[worker].passed.fetch_max(no.0, SeqCst);
        // Of several workers that pass at once, the last one sees all of them.
        if self.passed() == before {
            return;
        }
        for (other, place) in self.workers.iter().enumerate() {
            if other != me && place.waits.load(SeqCst) {
                wake(other);
            }
        }
    }

    /// The latest fence that every worker has passed.
    pub fn passed(&self) -> FenceNo {
        let passed = self.workers.iter().map(|place| place.passed.load(SeqCst));
        FenceNo(passed.min().unwrap_or(u64::MAX))
    }

    /// Replies of this worker's sessions wait for a fence. The caller reads [`Fences::passed`]
    /// afterwards, because a worker that passed before this has woken nobody.
    pub fn start_waiting(&self, me: usize) {
        self.workers[me].waits.store(true, SeqCst);
    }

    /// No reply of this worker's sessions waits for a fence any longer.
    pub fn stop_waiting(&self, me: usize) {
        self.workers[me].waits.store(false, SeqCst);
    }

    /// This worker ends: it has passed all fences.
    pub fn retire(&self, me: usize, mut wake: impl FnMut(usize)) {
        self.raise(me, FenceNo(u64::MAX), me, &mut wake);
    }
}

#[cfg(all(test, shuttle))]
pub(crate) mod models;
