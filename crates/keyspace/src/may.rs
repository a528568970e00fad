//! The check before locking: may these slots be used for this purpose? It refuses slots that are
//! closed for longer than a command lasts. Today these are frozen slots (`freeze.rs`).
//!
//! A permission stays valid until the caller leaves its section, because slots are closed only
//! under World.

use crate::access::Access;
use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::parking::Parked;
use base::{SlotId, UnixMs};

/// The purpose for which slots are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To read keys. Due keys may still be removed, where [`Intent::Expire`] may.
    Read,
    /// To change keys.
    Write,
    /// To remove due keys.
    Expire,
}

impl Keyspace {
    /// Checks whether a slot may be used.
    ///
    /// # Errors
    /// [`Parked::Frozen`]: where to wait.
    #[inline]
    pub fn may(&self, slot: SlotId, intent: Intent) -> Result<(), Parked> {
        if intent == Intent::Read || !self.is_restricted() { Ok(()) } else { self.ask(slot) }
    }

    /// Checks whether all these slots may be used.
    ///
    /// # Errors
    /// As [`Keyspace::may`], for the first slot that may not.
    pub fn may_all(&self, slots: &[SlotId], intent: Intent) -> Result<(), Parked> {
        slots.iter().try_for_each(|&slot| self.may(slot, intent))
    }

    /// Checks whether every slot may be used.
    ///
    /// # Errors
    /// [`Parked::Thaw`] if some slots may not.
    pub fn may_everything(&self, intent: Intent) -> Result<(), Parked> {
        if intent == Intent::Read || !self.is_restricted() { Ok(()) } else { Err(Parked::Thaw) }
    }

    /// Checks whether more slots may be frozen now.
    ///
    /// # Errors
    /// [`Parked::Freeze`] while a command waits for a thaw.
    pub fn may_freeze(&self) -> Result<(), Parked> {
        if self.turns.are_thaws_awaited() { Err(Parked::Freeze) } else { Ok(()) }
    }

    /// True if [`Keyspace::may`] may refuse a slot. One load of a line that rarely changes.
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
    /// As [`Access::lock_one`] without the check: for callers that have found, since they went
    /// inside, that nothing is restricted ([`Keyspace::is_restricted`]).
    #[inline]
    pub fn lock_plain(&mut self, slot: SlotId, now: UnixMs) -> Result<Guard<'_>, Parked> {
        debug_assert!(
            !self.ks.is_restricted(),
            "the short path is closed while anything is restricted"
        );
        self.lock_unchecked(slot, now)
    }

    /// As [`Access::lock`], for frozen slots: for the caller that froze them, before it thaws them.
    ///
    /// # Errors
    /// As there.
    pub fn lock_frozen(&mut self, slots: &[SlotId], now: UnixMs) -> Result<Guard<'_>, Parked> {
        assert!(
            slots.iter().all(|&slot| self.ks.is_frozen(slot)),
            "the caller has frozen these slots"
        );
        self.lock_many(slots, now)
    }
}
