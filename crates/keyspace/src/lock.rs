//! The lock of one slot: a word that a worker takes with one compare-and-swap. A worker that finds
//! it taken spins briefly and then sleeps on a futex. A holder that will take long marks the word
//! LONG: then nobody waits, and the acquirer parks its session and serves others.
//!
//! ```text
//!    31      30         29       28             16 15              0
//!   +------+----------+--------+------------------+-----------------+
//!   | LONG | SLEEPERS | PARKED |  0               | owner           |   0: free
//!   +------+----------+--------+------------------+-----------------+
//!     |      |          |                           number of the holder's Access + 1
//!     |      |          sessions are parked until the release: wake them
//!     |      a worker may sleep on the word: the release calls futex_wake
//!     the holder will be long: do not wait
//!
//!   try_lock     0 -> owner                            one compare-and-swap
//!   lock_slow    spins SPINS_MAX times, sets SLEEPERS, sleeps; LONG: Err(HeldLong)
//!   mark_long    sets LONG, wakes all sleepers, so that they park
//!   unlock       swaps in 0; any flag: the slow path wakes sleepers and parked sessions
//! ```

use crate::further::FURTHER_MAX;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Deadline, futex_wait, futex_wait_until, futex_wake, spin_loop};
use std::time::Duration;

const OWNER: u32 = 0xFFFF;
const PARKED: u32 = 1 << 29;
const SLEEPERS: u32 = 1 << 30;
const LONG: u32 = 1 << 31;
/// How often an acquirer reads the word before it sleeps: about 2 us.
const SPINS_MAX: u32 = if cfg!(shuttle) { 1 } else { 100 };

/// How long an acquirer that can release everything and retry waits for a holder that is not marked
/// long: growers and walks wait for a slot, the closer of the World gate for a section.
pub(crate) const BRIEF: Duration = Duration::from_micros(50);

/// The most workers.
pub(crate) const WORKERS_MAX: usize = 1024;
/// The numbers of all Accesses fit into the lock word.
const OWNERS_MAX: usize = WORKERS_MAX + FURTHER_MAX;
const _: () = assert!(OWNERS_MAX < OWNER as usize - 2, "some numbers stay unused");

/// The owner of locks: the number of an Access + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    pub(crate) fn numbered(index: usize) -> Self {
        assert!(index < OWNERS_MAX, "owner {index} of at most {OWNERS_MAX}");
        Self(index as u32 + 1)
    }

    /// The bits of a lock word that name this owner.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

/// The holder is marked long, or held the lock for longer than the acquirer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLong;

/// How an acquisition went, for the contention counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// How often the waiter slept.
    pub sleeps: u32,
}

/// What an unlock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Sessions are queued and must be woken.
    pub parked: bool,
}

/// The lock word.
#[derive(Debug)]
#[repr(transparent)]
pub struct SlotLock(AtomicU32);

impl SlotLock {
    /// A free lock.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub fn try_lock(&self, me: Owner) -> bool {
        self.try_lock_if(0, me)
    }

    /// Takes the lock if its word equals `free`. That is 0, or for a caller that must not lock a
    /// value that no word has (`stand.rs`).
    #[inline(always)]
    pub fn try_lock_if(&self, free: u32, me: Owner) -> bool {
        debug_assert!(free == 0 || (free & OWNER) as usize > OWNERS_MAX, "nobody's lock is taken");
        self.0.compare_exchange(free, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes a lock for which nobody can compete, because there is no other Access
    /// ([`crate::stand::Stand::Alone`]).
    #[inline(always)]
    pub fn lock_alone(&self, me: Owner) {
        self.0.store(me.0, Ordering::Relaxed);
    }

    /// Releases a lock that [`SlotLock::lock_alone`] took.
    #[inline(always)]
    pub fn unlock_alone(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Waits for a lock that [`SlotLock::try_lock`] did not get.
    #[cold]
    pub fn lock_slow(&self, me: Owner) -> Result<Waited, HeldLong> {
        self.wait_for(me, None)
    }

    /// As [`SlotLock::lock_slow`], but waits for [`BRIEF`] at most.
    #[cold]
    pub fn lock_briefly(&self, me: Owner) -> Result<Waited, HeldLong> {
        self.wait_for(me, Some(BRIEF))
    }

    fn wait_for(&self, me: Owner, limit: Option<Duration>) -> Result<Waited, HeldLong> {
        let mut waited = Waited { sleeps: 0 };
        let mut until = None;
        let mut spins = 0;
        // After a sleep the lock is taken with SLEEPERS set: other workers may still sleep.
        let mut mine = me.0;
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            if seen == 0 {
                if self.0.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Ok(waited);
                }
                continue;
            }
            assert!(seen & OWNER != me.0, "an owner waits for a slot that it holds");
            if seen & LONG != 0 {
                if mine & SLEEPERS != 0 {
                    // This wake-up may have been meant for another sleeper, which must see LONG.
                    futex_wake(&self.0, i32::MAX as u32);
                }
                return Err(HeldLong);
            }
            if spins < SPINS_MAX {
                spins += 1;
                spin_loop();
                continue;
            }
            let marked = seen | SLEEPERS;
            if seen != marked
                && self
                    .0
                    .compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            waited.sleeps += 1;
            match limit {
                None => futex_wait(&self.0, marked),
                Some(limit) => {
                    let until = until.get_or_insert_with(|| Deadline::after(limit));
                    if !futex_wait_until(&self.0, marked, until) {
                        // Pass on a wake-up that came at the same time as the timeout.
                        futex_wake(&self.0, 1);
                        return Err(HeldLong);
                    }
                }
            }
            mine = me.0 | SLEEPERS;
        }
    }

    /// Releases the lock and wakes one sleeper.
    #[inline(always)]
    pub fn unlock(&self, me: Owner) -> Released {
        let was = self.0.swap(0, Ordering::Release);
        debug_assert_eq!(was & OWNER, me.0, "only the holder unlocks");
        if was == me.0 { Released { parked: false } } else { self.unlock_slow(was) }
    }

    #[cold]
    fn unlock_slow(&self, was: u32) -> Released {
        if was & SLEEPERS != 0 {
            futex_wake(&self.0, 1);
        }
        Released { parked: was & PARKED != 0 }
    }

    /// True if `me` holds the lock.
    #[inline(always)]
    pub fn is_held_by(&self, me: Owner) -> bool {
        self.0.load(Ordering::Relaxed) & OWNER == me.0
    }

    /// Marks the holder long: later acquirers do not wait, and sleeping ones are woken to park.
    pub fn mark_long(&self, me: Owner) {
        assert!(self.is_held_by(me), "only the holder marks itself long");
        let was = self.0.fetch_or(LONG, Ordering::Relaxed);
        if was & SLEEPERS != 0 {
            futex_wake(&self.0, i32::MAX as u32);
        }
    }

    /// Marks that a session is parked until the release; false if the lock is free by now. The
    /// caller holds the mutex of the parking queues, which the releaser takes, too.
    pub fn mark_parked(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & OWNER != 0 {
            match self.0.compare_exchange(seen, seen | PARKED, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }
}

impl Default for SlotLock {
    fn default() -> Self {
        Self::new()
    }
}
