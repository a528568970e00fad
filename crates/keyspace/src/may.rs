//! May this be touched? One question, asked before anything is locked, for whoever closes parts of
//! the keyspace to some uses for longer than a command lasts. Frozen slots are the first that do.
//!
//! The answer holds until the asker leaves its section: what closes a part does so under World, and
//! opens it at any time.

use crate::access::Access;
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::parking::Parked;
use base::{SlotId, UnixMs};

/// What a slot's keys are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To be read. What is due may be removed all the same, if [`Intent::Expire`] may.
    Read,
    /// To be changed.
    Write,
    /// To remove what is due.
    Expire,
}

impl Keyspace {
    /// Whether a slot's keys may be touched.
    ///
    /// # Errors
    /// Where to wait until they may: [`Parked::Frozen`].
    #[inline]
    pub fn may(&self, slot: SlotId, intent: Intent) -> Result<(), Parked> {
        if intent == Intent::Read || !self.is_restricted() { Ok(()) } else { self.ask(slot) }
    }

    /// Whether the keys of these slots may be touched.
    ///
    /// # Errors
    /// As [`Keyspace::may`], of the first that may not.
    pub fn may_all(&self, slots: &[SlotId], intent: Intent) -> Result<(), Parked> {
        slots.iter().try_for_each(|&slot| self.may(slot, intent))
    }

    /// Whether any key may be touched.
    ///
    /// # Errors
    /// [`Parked::Thaw`]: a part may not.
    pub fn may_everything(&self, intent: Intent) -> Result<(), Parked> {
        if intent == Intent::Read || !self.is_restricted() { Ok(()) } else { Err(Parked::Thaw) }
    }

    /// Whether more may be frozen now.
    ///
    /// # Errors
    /// [`Parked::Freeze`]: somebody waits for a thaw.
    pub fn may_freeze(&self) -> Result<(), Parked> {
        if self.turns.are_thaws_awaited() { Err(Parked::Freeze) } else { Ok(()) }
    }

    /// True if [`Keyspace::may`] refuses anything. One load of a line that hardly ever changes.
    #[inline(always)]
    pub fn is_restricted(&self) -> bool {
        self.has_frozen()
    }

    #[cold]
    fn ask(&self, slot: SlotId) -> Result<(), Parked> {
        if self.is_frozen(slot) { Err(Parked::Frozen(slot)) } else { Ok(()) }
    }
}

impl Access {
    /// As [`Access::lock_one`], for whatever is wanted: for who has looked, since it went inside,
    /// and knows that nothing is restricted ([`Keyspace::is_restricted`]).
    #[inline]
    pub fn lock_plain(&mut self, slot: SlotId, now: UnixMs) -> Result<Guard<'_>, Parked> {
        debug_assert!(
            !self.ks.is_restricted(),
            "the short path is closed while anything is restricted"
        );
        self.lock_unchecked(slot, now)
    }

    /// As [`Access::lock`] of frozen slots, for who has frozen them, to change what is there and
    /// then to thaw them.
    ///
    /// # Errors
    /// As there.
    pub fn lock_frozen(&mut self, slots: &[SlotId], now: UnixMs) -> Result<Guard<'_>, Parked> {
        assert!(
            slots.iter().all(|&slot| self.ks.is_frozen(slot)),
            "who freezes changes what is frozen"
        );
        self.lock_many(slots, now)
    }
}
