//! Fences: how whoever changes what commands may do (a pause, a password, who monitors) learns that
//! nobody executes by the old rules any more. Nobody waits for that but the reply to the change.
//!
//! A publisher writes the new rules, draws the next number, and then looks at every worker. A
//! worker that executes nothing at that moment has *passed*: it reads the number before it executes
//! again. Any other one passes when it has taken over the rules between two commands, and says so:
//! when its next batch begins, or when it takes the message that the publisher has posted. Whoever
//! makes the last worker pass wakes those who wait.
//!
//! Further Accesses have no place here: only workers take over rules. Who executes a client's
//! commands through one does it in the name of a worker, which does not pass before the last of
//! them has ended, as it does not within EXEC.
//!
//! Drawing and looking, entering and reading are the two halves of a Dekker handshake, all
//! sequentially consistent: the publisher sees that the worker executes, or the worker sees the
//! number.

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
    /// It executes nothing by rules older than this fence's. Only rises.
    passed: AtomicU64,
    /// Replies of its sessions wait for a fence: it wants to be woken.
    waits: AtomicBool,
    /// A message that asks it to pass is on its way.
    asked: AtomicBool,
}

impl Fences {
    /// For so many workers; nothing has been published.
    pub fn new(workers: usize) -> Self {
        let latest = CachePadded(AtomicU64::new(0));
        Self { latest, workers: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    /// The latest fence. A worker that reads this after [`Gate::enter`] misses no fence that takes
    /// it for passed.
    #[inline]
    pub fn latest(&self) -> FenceNo {
        FenceNo(self.latest.load(SeqCst))
    }

    /// Worker `me` has changed what commands may do. `ask` is called for each worker that must be
    /// told to [`Fences::pass`], `wake` for each that may find replies free to leave. The worker
    /// itself passes like the others: between two commands, with the rules of everybody's fences
    /// taken over.
    pub fn publish(
        &self,
        me: usize,
        gate: &Gate,
        mut ask: impl FnMut(usize),
        mut wake: impl FnMut(usize),
    ) -> FenceNo {
        // Before the number exists: who passes it must find that somebody waits.
        self.workers[me].waits.store(true, SeqCst);
        let no = FenceNo(self.latest.fetch_add(1, SeqCst) + 1);
        for (other, place) in self.workers.iter().enumerate().filter(|(other, _)| *other != me) {
            if gate.is_idle(other) {
                self.raise(other, no, me, &mut wake);
            } else if !place.asked.swap(true, SeqCst) {
                ask(other);
            }
        }
        no
    }

    /// Worker `me` has taken the message that asks it to pass, and will read [`Fences::latest`].
    pub fn acknowledge(&self, me: usize) {
        self.workers[me].asked.store(false, SeqCst);
    }

    /// Worker `me` stands between two commands and has taken over the rules of every fence up to
    /// `no`. `wake` is called for each worker that may find replies free to leave.
    pub fn pass(&self, me: usize, no: FenceNo, mut wake: impl FnMut(usize)) {
        self.raise(me, no, me, &mut wake);
    }

    fn raise(&self, worker: usize, no: FenceNo, me: usize, wake: &mut impl FnMut(usize)) {
        let before = self.passed();
        self.workers[worker].passed.fetch_max(no.0, SeqCst);
        // Of several that pass, the last one sees all of them.
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

    /// Replies of this worker's sessions wait for a fence, perhaps of another worker. The caller
    /// looks at [`Fences::passed`] again afterwards: who raised it before has woken nobody.
    pub fn start_waiting(&self, me: usize) {
        self.workers[me].waits.store(true, SeqCst);
    }

    /// No reply of this worker's sessions waits for a fence.
    pub fn stop_waiting(&self, me: usize) {
        self.workers[me].waits.store(false, SeqCst);
    }

    /// This worker ends: nobody waits for it.
    pub fn retire(&self, me: usize, mut wake: impl FnMut(usize)) {
        self.raise(me, FenceNo(u64::MAX), me, &mut wake);
    }
}

#[cfg(all(test, shuttle))]
pub(crate) mod models;
