//! Locks for serving blocked clients. A command that pushes to a key serves the clients which wait
//! for it, and serving may need more slots: `BLMOVE a b` waits for `a` and pushes to `b`, for which
//! another client may wait, and so on. All these slots are locked before the command changes
//! anything. So it pushes and serves under the same locks, and no other command runs in between.
//!
//! ```text
//! lock the command's slots, ascending
//! walk from the keys that are pushed to over the destination keys of their waiters
//!   a free slot is locked at once: that never waits, so the order of slots does not matter
//!
//!   result of the walk                  what follows
//!   all slots are locked                the command runs
//!   a slot is held by another worker    release all, lock all found so far, walk again
//!   ROUNDS_MAX walks were not enough,   release all and grow (`growth.rs`): waits for slots in
//!   or more than DESTINATIONS_MAX       any order; those above DESTINATIONS_MAX are locked when
//!   slots are needed                    serving comes to them
//!   a slot is frozen                    release all; the session parks
//! ```
//!
//! The result stays valid while the slots are locked: nobody can join their queues, and a client
//! which leaves one (a timeout) only makes fewer slots necessary. The walk is skipped if no waiter
//! in the command's slots has a destination key; one bit per slot says so.

use crate::access::Access;
use crate::guard::{Guard, Mode};
use crate::may::Intent;
use crate::parking::Parked;
use base::{SlotId, UnixMs};
use std::collections::BTreeSet;

/// How many walks are tried before the command grows.
const ROUNDS_MAX: usize = 4;

/// More additional slots than this are not locked ahead. Where so many clients wait, only few are
/// served; growing finds their slots.
const DESTINATIONS_MAX: usize = 16;

/// The result of a walk over the waiters.
enum Walked {
    /// All slots that serving may need are locked, or will be when serving comes to them.
    Covered,
    /// A slot is held by another worker.
    Missing,
    /// Too many slots would be needed.
    TooMany,
    /// A slot must not be changed now, or a grower met a long holder.
    Refused(Parked),
}

impl Access {
    /// As [`Access::lock`], or [`Access::grow`] if the command `grows`, for a command that may push
    /// to the keys which `filled` returns, in any database: the guard also covers the slots that
    /// serving the clients which wait for these keys needs. `filled` is called only if a waiter in
    /// these slots has a destination key.
    ///
    /// # Errors
    /// As [`Access::lock`] or [`Access::grow`]. [`Parked::Frozen`] also for a slot that serving
    /// would change, [`Parked::Growth`] also if `grows` is false.
    pub fn lock_to_fill<'k>(
        &mut self,
        slots: &[SlotId],
        grows: bool,
        now: UnixMs,
        filled: impl FnOnce() -> Vec<&'k [u8]>,
    ) -> Result<Guard<'_>, Parked> {
        let guard = if grows {
            self.grow(slots, now, Intent::Write)?
        } else {
            self.lock(slots, now, Intent::Write)?
        };
        // Called while the guard holds the locks: it releases them if `filled` panics.
        let filled = guard.has_movers().then(filled);
        let mut mode = guard.into_mode();
        if let Some(filled) = filled {
            mode = self.reach(mode, slots, now, &filled)?;
        }
        Ok(Guard::new(&self.ks, &mut self.w, mode))
    }

    /// Walks and locks again until every slot is locked. This worker already holds the slots of
    /// `mode`.
    #[cold]
    fn reach(
        &mut self,
        mut mode: Mode,
        slots: &[SlotId],
        now: UnixMs,
        filled: &[&[u8]],
    ) -> Result<Mode, Parked> {
        let mut wanted = slots.to_vec();
        let mut rounds = 1;
        loop {
            let mut guard = Guard::new(&self.ks, &mut self.w, mode);
            let walked = guard.walk_waiters(filled, &mut wanted);
            if let Walked::Covered = walked {
                return Ok(guard.into_mode());
            }
            drop(guard);
            mode = match walked {
                Walked::Refused(parked) => return Err(parked),
                Walked::Missing if rounds < ROUNDS_MAX => {
                    wanted.sort_unstable();
                    wanted.dedup();
                    self.lock(&wanted, now, Intent::Write)?.into_mode()
                }
                _ => self.grow(slots, now, Intent::Write)?.into_mode(),
            };
            rounds += 1;
        }
    }
}

impl Guard<'_> {
    /// True if a client which waits for a key in one of the covered slots has a destination key.
    fn has_movers(&self) -> bool {
        self.w.held.iter().any(|&slot| self.ks.slot(slot).has_movers())
    }

    /// True if a client which waits for a key of this slot has a destination key. Then a command
    /// that pushes to such a key must be locked by [`Access::lock_to_fill`].
    #[inline(always)]
    pub fn slot_has_movers(&self, slot: SlotId) -> bool {
        self.ks.slot(slot).has_movers()
    }

    /// Ends the guard but not its locks, which stay in the worker's lock set for the next guard of
    /// the same mode.
    fn into_mode(self) -> Mode {
        let mode = self.mode();
        std::mem::forget(self);
        mode
    }

    /// Walks from `filled` over the destination keys of waiters, and locks their slots if they are
    /// free. Adds every slot that it finds to `wanted`.
    fn walk_waiters(&mut self, filled: &[&[u8]], wanted: &mut Vec<SlotId>) -> Walked {
        let grows = self.mode() == Mode::Growing;
        let may_stop = grows && !self.ks.is_restricted();
        let mut seen: BTreeSet<Box<[u8]>> = filled.iter().map(|&key| key.into()).collect();
        let mut next: Vec<Box<[u8]>> = seen.iter().cloned().collect();
        let (mut missing, mut further) = (false, 0);
        while let Some(bytes) = next.pop() {
            let key = self.ks.key(&bytes);
            if !self.covers(key.slot) {
                continue; // the next walk finds it
            }
            // One more than the limit proves that there are too many. But every slot is asked
            // whether it may be changed.
            let most = if self.ks.is_restricted() { usize::MAX } else { DESTINATIONS_MAX + 1 };
            let mut uncovered = 0;
            let found: Vec<(Box<[u8]>, SlotId)> = self
                .owned(key.slot)
                .with_parts_if_any(|_, parts| {
                    let unseen =
                        parts.waiters.destinations(&key).filter(|&bytes| !seen.contains(bytes));
                    let slots = unseen.map(|bytes| (bytes.into(), self.ks.key(bytes).slot));
                    let counted = slots.take_while(|&(_, slot)| {
                        uncovered += usize::from(!self.covers(slot));
                        uncovered <= most
                    });
                    counted.collect()
                })
                .unwrap_or_default();
            let too_many = uncovered > most;
            for (bytes, slot) in found {
                if let Err(parked) = self.ks.may(slot, Intent::Write) {
                    return Walked::Refused(parked);
                }
                if !self.covers(slot) {
                    further += 1;
                    if further > DESTINATIONS_MAX {
                        if may_stop {
                            return Walked::Covered;
                        } else if !grows {
                            return Walked::TooMany;
                        }
                    }
                    wanted.push(slot);
                    match self.try_cover(slot) {
                        Ok(taken) => missing |= !taken,
                        Err(parked) => return Walked::Refused(parked),
                    }
                }
                seen.insert(bytes.clone());
                next.push(bytes);
            }
            if too_many {
                return if grows { Walked::Covered } else { Walked::TooMany };
            }
        }
        if missing { Walked::Missing } else { Walked::Covered }
    }

    /// Locks one more slot. A grower waits for it; otherwise returns false if it is not free.
    fn try_cover(&mut self, slot: SlotId) -> Result<bool, Parked> {
        if self.mode() == Mode::Growing {
            self.cover(slot)?;
            return Ok(true);
        }
        let line = self.ks.slot(slot);
        let taken = self.w.try_lock(line);
        if taken {
            self.w.seq_max = self.w.seq_max.max(line.last_seq());
            self.w.held.push(slot);
        }
        Ok(taken)
    }
}
