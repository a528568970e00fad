//! Where an Access stands relative to the gate, as its owner knows it.
//!
//! *Alone* is the stand of a worker inside its section while nobody else has an Access: a keyspace
//! of one worker, without a further Access (`further.rs`). Then locks are plain stores, and the
//! section's word is not written. That is a state and no property of the keyspace. It ends when
//! that worker makes a further Access, by its own hand and before anybody can use that. It begins
//! at the worker's first `enter` behind the end of the last further Access: until then the worker
//! locks like everybody. So it changes only while no lock is held.

use crate::gate::Gate;
use crate::lock::{Owner, SlotLock};

/// Where it stands. The number is what the lock word of a free slot has to be for it to take the
/// slot: 0 inside, and else one that no word ever is. So who is outside gets no slot by
/// [`Stand::try_lock`], and the check costs nothing.
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
    /// Goes inside; false if the gate is closed: then the caller steps beside, or leaves.
    #[inline]
    pub fn enter(&mut self, gate: &Gate, index: usize) -> bool {
        debug_assert!(!self.is_inside(), "number {index} is inside already");
        if gate.is_open_for_one() {
            *self = Self::Alone;
            return true;
        }
        // Also if the gate turns out to be closed: the section's word says inside then.
        let inside = gate.enter(index);
        *self = Self::Inside;
        inside
    }

    /// Leaves; harmless if outside. True if sessions are parked until then and must be woken.
    #[inline]
    #[must_use]
    pub fn leave(&mut self, gate: &Gate, index: usize) -> bool {
        let stood = std::mem::replace(self, Self::Outside);
        matches!(stood, Self::Beside | Self::Inside) && gate.leave(index)
    }

    /// Leaves, but the batch goes on beside the gate. True as for [`Stand::leave`].
    #[must_use]
    pub fn step_beside(&mut self, gate: &Gate, index: usize) -> bool {
        *self = Self::Beside;
        gate.step_beside(index)
    }

    /// Whoever made this Access has made another one: nobody is alone any more.
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

    /// Takes a slot if it is free, and this is inside.
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
