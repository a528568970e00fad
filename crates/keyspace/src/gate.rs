//! The World gate: a worker is *inside* while it executes a batch; whoever needs the whole
//! keyspace closes the gate and waits until everybody else has left. Closed, it stops commands,
//! not threads: a worker that finds it closed parks its sessions and keeps polling.
//!
//! Entering and closing are the two halves of a Dekker handshake: `enter` stores "inside" and then
//! reads the gate, `close` stores the gate and then reads every "inside", all sequentially
//! consistent, so at least one of the two sees the other.

use crate::lock::Owner;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{CachePadded, futex_wait, futex_wake, spin_loop};

const OWNER: u32 = 0xFFFF;
const PARKED: u32 = 1 << 29;
const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;
/// Inside, and the closer of the gate sleeps until we leave.
const AWAITED: u32 = 2;
/// Executes commands but touches no slot: behind the closed gate, or about to hold World, or holding
/// it. Who closes the gate takes it for outside, a fence does not.
const BESIDE: u32 = 3;
/// How often the closer looks at a worker before it sleeps.
const SPINS_MAX: u32 = if cfg!(shuttle) { 1 } else { 200 };

/// The gate and everybody's place relative to it.
#[derive(Debug)]
pub struct Gate {
    /// 0 = open, else the owner who closed it and whether sessions are parked at it.
    word: CachePadded<AtomicU32>,
    sections: Box<[CachePadded<AtomicU32>]>,
}

impl Gate {
    /// An open gate for `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            word: CachePadded(AtomicU32::new(0)),
            sections: (0..workers).map(|_| CachePadded(AtomicU32::new(OUTSIDE))).collect(),
        }
    }

    /// Goes inside; false if the gate is closed, by whomever: then the worker is beside the gate
    /// until it leaves. What is read behind it of a fence ([`crate::Fences::latest`]) is as new as
    /// any publisher can expect. Sections do not nest: who is inside already would be taken for outside by
    /// the first leave, and a closer's wish to be woken would be lost.
    #[inline]
    pub fn enter(&self, worker: usize) -> bool {
        if self.sections.len() == 1 {
            // Nobody else can close the gate or wait for us.
            return self.word.load(Ordering::Relaxed) == 0;
        }
        let section = &self.sections[worker];
        // Who finds the gate closed does not go inside: going in and out again would keep
        // the closer waiting for a worker that does nothing but try.
        if self.word.load(Ordering::Relaxed) != 0 {
            section.swap(BESIDE, Ordering::SeqCst);
            return false;
        }
        let was = section.swap(INSIDE, Ordering::SeqCst);
        assert!(was == OUTSIDE, "worker {worker} is inside already");
        if self.word.load(Ordering::SeqCst) == 0 {
            return true;
        }
        self.step_beside(worker);
        false
    }

    /// Leaves; harmless if outside.
    #[inline]
    pub fn leave(&self, worker: usize) {
        self.exchange(worker, OUTSIDE);
    }

    /// Leaves in the middle of a batch, to close the gate: the batch goes on beside it.
    pub fn step_beside(&self, worker: usize) {
        self.exchange(worker, BESIDE);
    }

    #[inline]
    fn exchange(&self, worker: usize, to: u32) {
        let section = &self.sections[worker];
        if self.sections.len() > 1 && section.swap(to, Ordering::Release) == AWAITED {
            futex_wake(section, 1);
        }
    }

    /// True if the worker executes nothing: it is neither inside nor beside the gate.
    pub fn is_idle(&self, worker: usize) -> bool {
        // SeqCst: the publisher's half of the fence's handshake; it also acquires what the leaver wrote.
        self.sections[worker].load(Ordering::SeqCst) == OUTSIDE
    }

    /// Closes the gate and waits until everybody else is outside; false if it is closed already.
    /// The caller holds no slot.
    pub fn close(&self, worker: usize, me: Owner) -> bool {
        if self.word.compare_exchange(0, me.bits(), Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        for (other, section) in self.sections.iter().enumerate() {
            if other != worker {
                Self::wait_outside(section);
            }
        }
        true
    }

    fn wait_outside(section: &AtomicU32) {
        let mut spins = 0;
        loop {
            // SeqCst: the second half of the handshake; it also acquires what the leaver wrote.
            let seen = section.load(Ordering::SeqCst);
            if seen == OUTSIDE || seen == BESIDE {
                return;
            }
            if spins < SPINS_MAX {
                spins += 1;
                spin_loop();
                continue;
            }
            if seen == AWAITED
                || section
                    .compare_exchange(INSIDE, AWAITED, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
            {
                futex_wait(section, AWAITED);
            }
        }
    }

    /// True if `me` closed the gate.
    #[inline]
    pub fn is_closed_by(&self, me: Owner) -> bool {
        self.word.load(Ordering::Relaxed) & OWNER == me.bits()
    }

    /// True if somebody closed the gate.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Opens the gate; true if sessions are parked at it and must be woken.
    pub fn open(&self, me: Owner) -> bool {
        assert!(self.is_closed_by(me), "only who closed the gate opens it");
        self.word.swap(0, Ordering::SeqCst) & PARKED != 0
    }

    /// Notes that a session is queued at the closed gate; false if it is open. The caller holds
    /// the queue's mutex, as the opener will.
    pub fn mark_parked(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen != 0 {
            match self.word.compare_exchange(
                seen,
                seen | PARKED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }
}
