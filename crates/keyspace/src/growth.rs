//! Growing lock sets: a command that finds its keys while it runs (SORT BY, transactions with SCAN)
//! locks their slots in any order, and releases them when it ends.
//!
//! ```text
//!                    waits for                          on a long holder
//! grower (one)       short holders, in any order        releases all, parks, waits for a turn
//! all others         short holders, in ascending order  release all, park
//! ```
//!
//! Only the holder of the token grows, and it is a long holder of each of its slots. Others lock
//! all slots before they execute, and never wait for a long holder. So no holder of a slot waits
//! for the grower, and there is no deadlock. Commands on other slots continue.
//!
//! A grower that is refused has changed nothing yet. Until it has had its turn no other command
//! becomes long ([`crate::Turn`]), so it is refused only by those that are long already, each once.

use crate::lock::{HeldLong, Owner, SlotLock};

/// The growth token. Its holder is always long, so nobody waits for it: sessions park.
#[derive(Debug, Default)]
pub struct Growth(SlotLock);

impl Growth {
    /// Takes the token; false if another worker grows.
    pub fn try_take(&self, me: Owner) -> bool {
        let taken = self.0.try_lock(me);
        if taken {
            self.0.mark_long(me);
        }
        taken
    }

    /// Locks one more slot for the holder of the token, unless it has a long holder; returns how
    /// often it slept. It waits for short holders without a limit, because a command that serves
    /// waiters under a growing guard has made changes already.
    pub fn lock(&self, slot: &SlotLock, me: Owner) -> Result<u32, HeldLong> {
        debug_assert!(self.0.is_held_by(me), "a grower has the token");
        let sleeps = if slot.try_lock(me) { 0 } else { slot.lock_slow(me)?.sleeps };
        slot.mark_long(me);
        Ok(sleeps)
    }

    /// Releases the token, after the slots; true if sessions are parked behind it.
    pub fn release(&self, me: Owner) -> bool {
        self.0.unlock(me).parked
    }

    /// Marks that a session is parked for the token; false if it is free by now. The caller holds
    /// the mutex of the parking queues, which the releaser takes, too.
    pub fn mark_parked(&self) -> bool {
        self.0.mark_parked()
    }
}
