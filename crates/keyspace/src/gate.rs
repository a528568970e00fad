//! The World gate: a worker is *inside* while it executes a batch; whoever needs the whole
//! keyspace closes the gate and waits until everybody else has left. Closed, it stops commands,
//! not threads: a worker that finds it closed parks its sessions and keeps polling.
//!
//! There is a section for each worker, and for each further Access (`further.rs`). While one worker
//! is all there is, the gate's word says so, and that worker goes in and out without writing its
//! section (`stand.rs`).
//!
//! The closer does not wait for who is inside for long. It opens the gate again, and its session
//! waits until that worker leaves. Who is inside for long says so as soon as a holder of slots does
//! ([`Gate::mark_long`]).
//!
//! ```text
//! a section:  0 INSIDE
//!             1 AWAITED  the closer of the gate sleeps until we leave
//!             2 LONG     inside for long
//!             3 BESIDE   outside for the closer of the gate, but a batch goes on
//!            29 PARKED   sessions are queued until we leave
//!
//! the gate:   15..0      who closed it: owner number + 1, 0 = open
//!            29 PARKED   sessions are queued until it opens
//!            30 ALONE    nobody has an Access but the one worker
//! ```
//!
//! Entering and closing are the two halves of a Dekker handshake: `enter` stores "inside" and then
//! reads the gate, `close` stores the gate and then reads every "inside", all sequentially
//! consistent, so at least one of the two sees the other.

use crate::further::FURTHER_MAX;
use crate::lock::{BRIEF, Owner};
use crate::stand::Stand;
use base::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use base::sync::{CachePadded, Deadline, futex_wait_until, futex_wake, spin_loop};

const OWNER: u32 = 0xFFFF;
const PARKED: u32 = 1 << 29;
const ALONE: u32 = 1 << 30;
const OUTSIDE: u32 = 0;
const INSIDE: u32 = 1;
const AWAITED: u32 = 2;
const LONG: u32 = 4;
/// Executes commands but touches no slot: behind the closed gate, or about to hold World, or
/// holding it. Who closes the gate takes it for outside, a fence does not.
const BESIDE: u32 = 8;
/// How often the closer looks at a worker before it sleeps.
const SPINS_MAX: u32 = if cfg!(shuttle) { 1 } else { 200 };

/// Why the gate could not be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody has closed it.
    Closed,
    /// The one with this number is inside, for long or for longer than the closer waits. The gate
    /// may be closed: the caller opens it.
    Inside(usize),
}

/// The gate and everybody's place relative to it.
#[derive(Debug)]
pub struct Gate {
    word: CachePadded<AtomicU32>,
    sections: Box<[CachePadded<AtomicU32>]>,
    /// How many sections anybody ever had: the closer looks at no others.
    used: AtomicUsize,
}

impl Gate {
    /// An open gate for `workers` workers, and [`FURTHER_MAX`] further Accesses. A single worker is
    /// alone.
    pub fn new(workers: usize) -> Self {
        let places = workers + FURTHER_MAX;
        Self {
            word: CachePadded(AtomicU32::new(if workers == 1 { ALONE } else { 0 })),
            sections: (0..places).map(|_| CachePadded(AtomicU32::new(OUTSIDE))).collect(),
            used: AtomicUsize::new(workers),
        }
    }

    /// From now on a closer looks at this section, too. Before its owner enters for the first time.
    pub fn add_section(&self, index: usize) {
        // SeqCst: a closer that misses this has closed the gate before, and the owner's `enter`
        // sees that.
        self.used.fetch_max(index + 1, Ordering::SeqCst);
    }

    /// True if the gate is open, and the one worker is all there is. What all others did has
    /// happened before.
    #[inline(always)]
    pub fn is_open_for_one(&self) -> bool {
        self.word.load(Ordering::Acquire) == ALONE
    }

    /// The last further Access has ended: from its next `enter` on the one worker is alone.
    pub fn begin_alone(&self) {
        self.word.fetch_or(ALONE, Ordering::Release);
    }

    /// The one worker is not alone any more, and stands there. Only that worker calls this, before
    /// anybody else has an Access.
    pub(crate) fn end_alone(&self, worker: usize, stand: Stand) {
        let section = match stand {
            Stand::Outside => OUTSIDE,
            Stand::Beside => BESIDE,
            Stand::Inside | Stand::Alone => INSIDE,
        };
        self.sections[worker].store(section, Ordering::SeqCst);
        self.word.fetch_and(!ALONE, Ordering::SeqCst);
    }

    /// Goes inside; false if the gate is closed, by whomever: then the caller calls
    /// [`Gate::step_beside`] or [`Gate::leave`]. What is read behind it of a fence
    /// ([`crate::Fences::latest`]) is as new as any publisher can expect. Sections do not nest: who
    /// is inside already would be taken for outside by the first leave, and a closer's wish to be
    /// woken would be lost. From beside the gate one may enter.
    #[inline]
    pub fn enter(&self, worker: usize) -> bool {
        let section = &self.sections[worker];
        // Who finds the gate closed does not go inside: going in and out again would keep
        // the closer waiting for a worker that does nothing but try.
        if self.word.load(Ordering::Relaxed) & OWNER != 0 {
            let was = section.swap(BESIDE, Ordering::SeqCst);
            assert!(was & INSIDE == 0, "number {worker} is inside already");
            return false;
        }
        let was = section.swap(INSIDE, Ordering::SeqCst);
        assert!(was & INSIDE == 0, "number {worker} is inside already");
        self.word.load(Ordering::SeqCst) & OWNER == 0
    }

    /// Leaves; harmless if outside. True if sessions are parked until then and must be woken.
    #[inline]
    #[must_use]
    pub fn leave(&self, worker: usize) -> bool {
        self.exchange(worker, OUTSIDE)
    }

    /// Leaves in the middle of a batch, to close the gate, or because it is closed: the batch goes
    /// on beside it. True as for [`Gate::leave`].
    #[must_use]
    pub fn step_beside(&self, worker: usize) -> bool {
        self.exchange(worker, BESIDE)
    }

    #[inline]
    fn exchange(&self, worker: usize, to: u32) -> bool {
        let section = &self.sections[worker];
        let was = section.swap(to, Ordering::Release);
        was > INSIDE && Self::after_leaving(section, was)
    }

    #[cold]
    fn after_leaving(section: &AtomicU32, was: u32) -> bool {
        if was & AWAITED != 0 {
            futex_wake(section, 1);
        }
        was & PARKED != 0
    }

    /// Says that who is inside here will be for long: a closer that waits for it gives up.
    pub fn mark_long(&self, worker: usize) {
        let section = &self.sections[worker];
        if section.load(Ordering::Relaxed) & INSIDE != 0
            && section.fetch_or(LONG, Ordering::Relaxed) & AWAITED != 0
        {
            futex_wake(section, 1);
        }
    }

    /// True if the worker executes nothing: it is neither inside nor beside the gate.
    pub fn is_idle(&self, worker: usize) -> bool {
        // SeqCst: the publisher's half of the fence's handshake; it also acquires what the leaver
        // wrote.
        self.sections[worker].load(Ordering::SeqCst) == OUTSIDE
    }

    /// Closes the gate and waits until everybody else is outside. The caller holds no slot.
    ///
    /// It waits for nobody who is inside for long, and for all others together for [`BRIEF`],
    /// doubled so often.
    pub fn close(&self, worker: usize, me: Owner, doubled: u32) -> Result<(), Refused> {
        let others = || {
            let used = &self.sections[..self.used.load(Ordering::SeqCst)];
            used.iter().enumerate().filter(|(other, _)| *other != worker)
        };
        // Nobody needs to be stopped to see that.
        if let Some((long, _)) = others().find(|(_, s)| s.load(Ordering::Relaxed) & LONG != 0) {
            return Err(Refused::Inside(long));
        }
        if !self.take(me) {
            return Err(Refused::Closed);
        }
        let mut until = None;
        for (other, section) in others() {
            if !Self::wait_outside(section, doubled, &mut until) {
                return Err(Refused::Inside(other));
            }
        }
        Ok(())
    }

    /// Closes the gate if it is open.
    fn take(&self, me: Owner) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed) & ALONE;
        while seen & OWNER == 0 {
            let closed = seen | me.bits();
            match self.word.compare_exchange(seen, closed, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                // Closed by somebody, or the last further Access has just ended.
                Err(now) => seen = now,
            }
        }
        false
    }

    fn wait_outside(section: &AtomicU32, doubled: u32, until: &mut Option<Deadline>) -> bool {
        let mut spins = 0;
        loop {
            // SeqCst: the second half of the handshake; it also acquires what the leaver wrote.
            let seen = section.load(Ordering::SeqCst);
            if seen & INSIDE == 0 {
                return true;
            }
            if seen & LONG != 0 {
                return false;
            }
            if spins < SPINS_MAX {
                spins += 1;
                spin_loop();
                continue;
            }
            let marked = seen | AWAITED;
            if seen != marked
                && section
                    .compare_exchange(seen, marked, Ordering::SeqCst, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            let until = until.get_or_insert_with(|| Deadline::after(BRIEF * (1 << doubled)));
            if !futex_wait_until(section, marked, until) {
                return false;
            }
        }
    }

    /// Notes that a session is queued until `worker` leaves; false if it is outside. The caller
    /// holds the queue's mutex, as the leaver will.
    pub fn mark_awaited(&self, worker: usize) -> bool {
        let section = &self.sections[worker];
        let mut seen = section.load(Ordering::Relaxed);
        while seen & INSIDE != 0 {
            match section.compare_exchange(
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

    /// True if `me` closed the gate.
    #[inline]
    pub fn is_closed_by(&self, me: Owner) -> bool {
        self.word.load(Ordering::Relaxed) & OWNER == me.bits()
    }

    /// True if somebody closed the gate.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & OWNER != 0
    }

    /// Opens the gate; true if sessions are parked at it and must be woken.
    pub fn open(&self, me: Owner) -> bool {
        assert!(self.is_closed_by(me), "only who closed the gate opens it");
        self.word.fetch_and(ALONE, Ordering::SeqCst) & PARKED != 0
    }

    /// Notes that a session is queued at the closed gate; false if it is open. The caller holds
    /// the queue's mutex, as the opener will.
    pub fn mark_parked(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & OWNER != 0 {
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
