//! The lock of one slot: a word that a worker takes with one compare-and-swap, waited for by a
//! short spin and then a futex. A holder that will take long says so, and then nobody waits:
//! the acquirer is told to park its session and go on with others.
//!
//! ```text
//! 31 LONG      the holder said it will be long
//! 30 SLEEPERS  somebody may sleep on the word
//! 29 PARKED    sessions are queued for the release of the holder
//! 15..0        the holder: owner number + 1, 0 = free
//! ```

use crate::further::FURTHER_MAX;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Deadline, futex_wait, futex_wait_until, futex_wake, spin_loop};
use std::time::Duration;

const OWNER: u32 = 0xFFFF;
const PARKED: u32 = 1 << 29;
const SLEEPERS: u32 = 1 << 30;
const LONG: u32 = 1 << 31;
/// How often an acquirer looks again before it sleeps: about 2 us.
const SPINS_MAX: u32 = if cfg!(shuttle) { 1 } else { 100 };

/// How long who may give everything back waits for a holder that has not said that it is long: the
/// grower and walks for a slot, the closer of the World gate for a section.
pub(crate) const BRIEF: Duration = Duration::from_micros(50);

/// The most workers.
pub(crate) const WORKERS_MAX: usize = 1024;
/// Their numbers, and those of further Accesses, fit the lock word.
const OWNERS_MAX: usize = WORKERS_MAX + FURTHER_MAX;
const _: () = assert!(OWNERS_MAX < OWNER as usize - 2, "and leave some that are nobody's");

/// Who takes locks: the number of its Access + 1.
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

/// The holder said it will be long, or was for longer than the acquirer waits.
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

    /// Takes the lock if its word is `free`: 0, or for who may not have it a number that no word
    /// is.
    #[inline(always)]
    pub fn try_lock_if(&self, free: u32, me: Owner) -> bool {
        debug_assert!(free == 0 || (free & OWNER) as usize > OWNERS_MAX, "nobody's lock is taken");
        self.0.compare_exchange(free, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes a lock that nobody else can take, because nobody else has an Access
    /// ([`crate::stand::Stand::Alone`]).
    #[inline(always)]
    pub fn lock_alone(&self, me: Owner) {
        self.0.store(me.0, Ordering::Relaxed);
    }

    /// Releases what [`SlotLock::lock_alone`] took.
    #[inline(always)]
    pub fn unlock_alone(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Waits for a lock that [`SlotLock::try_lock`] did not get.
    #[cold]
    pub fn lock_slow(&self, me: Owner) -> Result<Waited, HeldLong> {
        self.wait_for(me, None)
    }

    /// As [`SlotLock::lock_slow`], but waits for [`BRIEF`] at most, whatever the holder says.
    #[cold]
    pub fn lock_briefly(&self, me: Owner) -> Result<Waited, HeldLong> {
        self.wait_for(me, Some(BRIEF))
    }

    fn wait_for(&self, me: Owner, limit: Option<Duration>) -> Result<Waited, HeldLong> {
        let mut waited = Waited { sleeps: 0 };
        let mut until = None;
        let mut spins = 0;
        // Once asleep, we take the lock with SLEEPERS set: others may still sleep behind us.
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
                    // We may have eaten the wake-up of another sleeper, who must hear of LONG too.
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
                        // The wake-up that we may have had was another sleeper's.
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
        debug_assert_eq!(was & OWNER, me.0, "unlock by who does not hold it");
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

    /// The holder will be long: who comes now is told so, and who sleeps is woken to hear it.
    pub fn mark_long(&self, me: Owner) {
        assert!(self.is_held_by(me), "only the holder says how long it takes");
        let was = self.0.fetch_or(LONG, Ordering::Relaxed);
        if was & SLEEPERS != 0 {
            futex_wake(&self.0, i32::MAX as u32);
        }
    }

    /// Notes that a session is queued for the release of the holder; false if there is none
    /// any more. The caller holds the queue's mutex, as the releaser will.
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
