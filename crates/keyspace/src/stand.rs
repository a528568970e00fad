//! The position of an Access relative to the gate, as its owner knows it.
//!
//! *Alone* means: a worker is inside its section and there is no other Access, that is, one worker
//! and no further Access (`further.rs`). Then locks are plain stores, and the section's word is not
//! written. The state ends when that worker makes a further Access, before anybody can use it. It
//! begins with the worker's first `enter` after the last further Access has ended. So it changes
//! only while no lock is held.

use crate::gate::Gate;
use crate::lock::{Owner, SlotLock};

/// The position. Its number is the lock word that [`Stand::try_lock`] expects of a free slot: 0
/// inside, otherwise a value that no word has. So an Access outside locks nothing, and the check
/// costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stand {
    /// It may lock slots.
    Inside = 0,
    /// It executes, but touches no slot unless it holds World.
    Beside = u32::MAX,
    /// It executes nothing.
    Outside = u32::MAX - 1,
    /// It may lock slots, and nobody else has an Access.
    Alone = u32::MAX - 2,
}

impl Stand {
    /// Goes inside. False if the gate is closed: then the caller steps beside, or leaves.
    #[inline]
    pub fn enter(&mut self, gate: &Gate, index: usize) -> bool {
        debug_assert!(!self.is_inside(), "number {index} is inside already");
        if gate.is_open_for_one() {
            *self = Self::Alone;
            return true;
        }
        // Even if the gate is closed: then the caller leaves, which resets the section's word.
        let inside = gate.enter(index);
        *self = Self::Inside;
        inside
    }

    /// Leaves; harmless outside. True if sessions are parked until this and must be woken.
    #[inline]
    #[must_use]
    pub fn leave(&mut self, gate: &Gate, index: usize) -> bool {
        let stood = std::mem::replace(self, Self::Outside);
        matches!(stood, Self::Beside | Self::Inside) && gate.leave(index)
    }

    /// Leaves, but the batch continues beside the gate. True as for [`Stand::leave`].
    #[must_use]
    pub fn step_beside(&mut self, gate: &Gate, index: usize) -> bool {
        *self = Self::Beside;
        gate.step_beside(index)
    }

    /// This Access makes a further one: it is no longer alone.
    pub fn end_alone(&mut self, gate: &Gate, index: usize) {
        gate.end_alone(index, *self);
        if *self == Self::Alone {
            *self = Self::Inside;
        }
    }

    /// True if it may lock slots.
    #[inline(always)]
    pub fn is_inside(self) -> bool {
        matches!(self, Self::Inside | Self::Alone)
    }

    /// Locks a slot if it is free and this Access is inside.
    #[inline(always)]
    pub fn try_lock(self, lock: &SlotLock, me: Owner) -> bool {
        if self == Self::Alone {
            lock.lock_alone(me);
            true
        } else {
            lock.try_lock_if(self as u32, me)
        }
    }

    /// Releases a slot; true if sessions are parked behind it.
    #[inline(always)]
    pub fn unlock(self, lock: &SlotLock, me: Owner) -> bool {
        if self == Self::Alone {
            lock.unlock_alone();
            false
        } else {
            lock.unlock(me).parked
        }
    }
}
