//! Growing lock sets: a command that finds its keys while it runs takes their slots as it comes
//! upon them, in any order, and releases them at its end.
//!
//! One worker grows at a time, the holder of the token. Each of its slots is held long from the
//! moment it has it. Everybody else takes all locks before executing, in ascending order, and who
//! meets a long holder drops what it has and parks ([`crate::Parked`]). So those who have slots
//! never wait for the grower, and the grower waits for short ones among them: a circle of waiting
//! cannot close, and commands on other slots run on.
//!
//! A grower that meets a long holder gives everything back and parks, too. It has changed nothing
//! by then. Until it has had its turn nobody begins to be long ([`crate::Turn`]), so it gets there:
//! it can be turned back only by those who were long already, each once.

use crate::lock::{HeldLong, Owner, SlotLock};

/// The growth token. Its holder is always a long one, so nobody waits for it: sessions park.
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

    /// Locks one more slot for the holder of the token, unless it is held for long; returns how
    /// often it slept. Whoever has not said that it is long is waited for, as everybody does: who
    /// serves under a growing guard has changed something already, and nobody may come between.
    pub fn lock(&self, slot: &SlotLock, me: Owner) -> Result<u32, HeldLong> {
        debug_assert!(self.0.is_held_by(me), "who grows has the token");
        let sleeps = if slot.try_lock(me) { 0 } else { slot.lock_slow(me)?.sleeps };
        slot.mark_long(me);
        Ok(sleeps)
    }

    /// Gives the token back, after the slots; true if sessions are parked behind it.
    pub fn release(&self, me: Owner) -> bool {
        self.0.unlock(me).parked
    }

    /// Notes that a session is queued for the token; false if it is free by now. The caller holds
    /// the queue's mutex, as the releaser will.
    pub fn mark_parked(&self) -> bool {
        self.0.mark_parked()
    }
}
