//! The World gate. A worker is *inside* its section while it executes a batch. A command that needs
//! the whole keyspace closes the gate and waits until all others have left their sections. The
//! closed gate stops commands, not threads: a worker that finds it closed parks its sessions and
//! keeps polling.
//!
//! ```text
//! the gate, one word         31   30      29      28       16 15            0
//!                           +---+-------+--------+-----------+---------------+
//!                           |   | ALONE | PARKED |  0        | owner         |  0: open
//!                           +---+-------+--------+-----------+---------------+
//!                             |       |        |               number of the closer's Access + 1
//!                             |       |        sessions are parked until it opens
//!                             |       there is no Access except that of the one worker
//!
//! a section, one word each   29       3        2      1         0
//!                           +--------+--------+------+---------+--------+
//!                           | PARKED | BESIDE | LONG | AWAITED | INSIDE |   0: outside
//!                           +--------+--------+------+---------+--------+
//!                             |        |        |      the closer sleeps until this worker leaves
//!                             |        |        inside for long: the closer does not wait
//!                             |        executes a batch without slots: outside for the closer
//!                             sessions are parked until this worker leaves
//! ```
//!
//! There is a section for each worker and for each further Access (`further.rs`). While one
//! worker's is the only Access (ALONE), it enters and leaves without writing its section
//! (`stand.rs`).
//!
//! The closer does not wait for a worker that is inside for long ([`Gate::mark_long`]): it opens
//! the gate again, and its session is parked until that worker leaves.
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
/// Executes commands but uses no slot: while the gate is closed, or as the closer. It is outside
/// for the closer of the gate, but not for a fence.
const BESIDE: u32 = 8;
/// How often the closer reads a section before it sleeps.
const SPINS_MAX: u32 = if cfg!(shuttle) { 1 } else { 200 };

/// Why the gate could not be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is closed already.
    Closed,
    /// The Access with this number is inside, for long or for longer than the closer waits. The
    /// gate may be closed now: the caller opens it.
    Inside(usize),
}

/// The gate and all sections.
#[derive(Debug)]
pub struct Gate {
    word: CachePadded<AtomicU32>,
    sections: Box<[CachePadded<AtomicU32>]>,
    /// The number of sections that were ever used: the closer reads no others.
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

    /// Makes closers read this section, too. Called before its owner enters for the first time.
    pub fn add_section(&self, index: usize) {
        // SeqCst: a closer that misses this has closed the gate before, and the owner's `enter`
        // sees that.
        self.used.fetch_max(index + 1, Ordering::SeqCst);
    }

    /// The number of sections.
    pub fn sections_max(&self) -> usize {
        self.sections.len()
    }

    /// True if the gate is open for the only Access there is. Acquires everything that further
    /// Accesses did.
    #[inline(always)]
    pub fn is_open_for_one(&self) -> bool {
        self.word.load(Ordering::Acquire) == ALONE
    }

    /// The last further Access has ended: the one worker is alone from its next `enter` on.
    pub fn begin_alone(&self) {
        self.word.fetch_or(ALONE, Ordering::Release);
    }

    /// Ends the state of being alone for the one worker, and publishes its `stand`. Only that
    /// worker calls this, before there is another Access.
    pub(crate) fn end_alone(&self, worker: usize, stand: Stand) {
        let section = match stand {
            Stand::Outside => OUTSIDE,
            Stand::Beside => BESIDE,
            Stand::Inside | Stand::Alone => INSIDE,
        };
        self.sections[worker].store(section, Ordering::SeqCst);
        self.word.fetch_and(!ALONE, Ordering::SeqCst);
    }

    /// Goes inside, from outside or beside the gate. False if the gate is closed: then the caller
    /// calls [`Gate::step_beside`] or [`Gate::leave`]. Sections do not nest: a worker that entered
    /// twice would be outside after the first leave, and a closer's AWAITED would be lost.
    /// [`crate::Fences::latest`] is read after this.
    #[inline]
    pub fn enter(&self, worker: usize) -> bool {
        let section = &self.sections[worker];
        // A worker that finds the gate closed does not set INSIDE: entering and leaving again would
        // delay the closer.
        if self.word.load(Ordering::Relaxed) & OWNER != 0 {
            let was = section.swap(BESIDE, Ordering::SeqCst);
            assert!(was & INSIDE == 0, "number {worker} is inside already");
            return false;
        }
        let was = section.swap(INSIDE, Ordering::SeqCst);
        assert!(was & INSIDE == 0, "number {worker} is inside already");
        self.word.load(Ordering::SeqCst) & OWNER == 0
    }

    /// Leaves; harmless outside. True if sessions are parked until this and must be woken.
    #[inline]
    #[must_use]
    pub fn leave(&self, worker: usize) -> bool {
        self.exchange(worker, OUTSIDE)
    }

    /// Leaves within a batch, to close the gate or because it is closed; the batch continues beside
    /// it. True as for [`Gate::leave`].
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

    /// Marks a section that is inside as long: a closer that waits for it gives up.
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
        // SeqCst: the publisher's half of the handshake of fences. Also acquires what the worker
        // wrote before it left.
        self.sections[worker].load(Ordering::SeqCst) == OUTSIDE
    }

    /// Closes the gate and waits until all others are outside: for [`BRIEF`], `doubled` so often,
    /// in all, and not for a worker that is inside for long. The caller holds no slot.
    pub fn close(&self, worker: usize, me: Owner, doubled: u32) -> Result<(), Refused> {
        let others = || {
            let used = &self.sections[..self.used.load(Ordering::SeqCst)];
            used.iter().enumerate().filter(|(other, _)| *other != worker)
        };
        // Checked before the gate is closed, which would stop the others.
        if let Some((long, _)) = others().find(|(_, s)| s.load(Ordering::Relaxed) & LONG != 0) {
            return Err(Refused::Inside(long));
        }
        if !self.try_close(me) {
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
    fn try_close(&self, me: Owner) -> bool {
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
            // SeqCst: the second half of the handshake. Also acquires what the worker wrote before
            // it left.
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

    /// Marks that a session is parked until `worker` leaves; false if it is outside. The caller
    /// holds the mutex of the parking queues, which the leaver takes, too.
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
