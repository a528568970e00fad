//! Reaching ahead: who is about to fill keys takes, before it changes anything, every slot that
//! serving those who wait for them may need (`BLMOVE a b` waits for `a` and needs `b`; another one
//! waits for `b`, and so on). Then it changes and serves under the same locks, and nobody can come
//! in between.
//!
//! ```text
//! lock the command's slots, ascending
//! look: walk from the keys to be filled over the further keys of who waits for them
//!   a slot that is free is taken on the way, which needs no waiting, so its order does not matter
//!   all of them are held             -> go on
//!   one is held by somebody else     -> release all, lock everything seen so far, ascending, look again
//!   after ROUNDS_MAX looks, or where more than FURTHER_MAX slots would be needed
//!                                    -> release all and grow, which waits for slots in any order; of more than
//!                                       FURTHER_MAX the rest are taken as serving comes upon them
//!   one is frozen                    -> release all: the session parks
//! ```
//!
//! What was seen holds for as long as the slots are held: nobody enters their queues meanwhile, and
//! who leaves them (a timeout) only makes less of it necessary. Nothing of this is done where
//! nobody in the slots needs a further key, which one word of each tells.

use crate::access::Access;
use crate::guard::{Guard, Mode};
use crate::may::Intent;
use crate::parking::Parked;
use base::{SlotId, UnixMs};
use std::collections::BTreeSet;

/// How often everything is locked anew before the command grows.
const ROUNDS_MAX: usize = 4;

/// More further slots are not taken ahead: where so many wait, the few that are served are found by
/// growing.
const FURTHER_MAX: usize = 16;

/// What a look at the waiters has shown.
enum Look {
    /// Everything that serving may need is held, or will be taken as it is needed.
    Reached,
    /// Something is held by somebody else.
    Missing,
    /// Too many slots would be needed.
    TooMany,
    /// What would have to be changed may not be, or a grower met a long holder.
    Refused(Parked),
}

impl Access {
    /// As [`Access::lock`], or [`Access::grow`] if the command `grows`, for one that may put lists
    /// into the keys that `filled` tells, in whichever database: the guard covers also what serving
    /// those who wait for them needs. `filled` is asked only if somebody who waits in these slots
    /// needs a further key.
    ///
    /// # Errors
    /// As those; [`Parked::Frozen`] also for a slot that serving would change; [`Parked::Growth`]
    /// also for a command that does not grow by itself.
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
        // Asked while the guard holds the locks: it gives them back if that panics.
        let filled = guard.has_movers().then(filled);
        let mut mode = guard.keep();
        if let Some(filled) = filled {
            mode = self.reach(mode, slots, now, &filled)?;
        }
        Ok(Guard::new(&self.ks, &mut self.w, mode))
    }

    /// Looks and locks anew until everything is held. The slots of `mode` are held by this worker
    /// already.
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
            let look = guard.look(filled, &mut wanted);
            if let Look::Reached = look {
                return Ok(guard.keep());
            }
            drop(guard);
            mode = match look {
                Look::Refused(parked) => return Err(parked),
                Look::Missing if rounds < ROUNDS_MAX => {
                    wanted.sort_unstable();
                    wanted.dedup();
                    self.lock(&wanted, now, Intent::Write)?.keep()
                }
                _ => self.grow(slots, now, Intent::Write)?.keep(),
            };
            rounds += 1;
        }
    }
}

impl Guard<'_> {
    /// True if somebody who waits for a key in one of the covered slots needs a further key.
    fn has_movers(&self) -> bool {
        self.w.held.iter().any(|&slot| self.ks.slot(slot).has_movers())
    }

    /// True if somebody who waits for a key of this slot needs a further key to be served: then who
    /// fills one must have come by [`Access::lock_to_fill`].
    #[inline(always)]
    pub fn slot_has_movers(&self, slot: SlotId) -> bool {
        self.ks.slot(slot).has_movers()
    }

    /// Ends the guard, but not its locks: they are in the worker's lock set, and the next guard of
    /// the same mode has them.
    fn keep(self) -> Mode {
        let mode = self.mode();
        std::mem::forget(self);
        mode
    }

    /// Walks from `filled` over the further keys of who waits, and takes their slots where that
    /// needs no waiting. All further slots that it comes upon are added to `wanted`.
    fn look(&mut self, filled: &[&[u8]], wanted: &mut Vec<SlotId>) -> Look {
        let grows = self.mode() == Mode::Growing;
        let may_stop = grows && !self.ks.is_restricted();
        let mut seen: BTreeSet<Box<[u8]>> = filled.iter().map(|&key| key.into()).collect();
        let mut next: Vec<Box<[u8]>> = seen.iter().cloned().collect();
        let (mut missing, mut further) = (false, 0);
        while let Some(bytes) = next.pop() {
            let key = self.ks.key(&bytes);
            if !self.covers(key.slot) {
                continue; // seen in the next round
            }
            // Where too many wait, no more is looked at than shows it; what restrictions say is
            // asked of all.
            let most = if self.ks.is_restricted() { usize::MAX } else { FURTHER_MAX + 1 };
            let mut uncovered = 0;
            let found: Vec<(Box<[u8]>, SlotId)> = self
                .owned(key.slot)
                .with_parts_if_any(|_, parts| {
                    let unseen = parts.waiters.further(&key).filter(|&bytes| !seen.contains(bytes));
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
                    return Look::Refused(parked);
                }
                if !self.covers(slot) {
                    further += 1;
                    if further > FURTHER_MAX {
                        if may_stop {
                            return Look::Reached;
                        } else if !grows {
                            return Look::TooMany;
                        }
                    }
                    wanted.push(slot);
                    match self.take(slot) {
                        Ok(taken) => missing |= !taken,
                        Err(parked) => return Look::Refused(parked),
                    }
                }
                seen.insert(bytes.clone());
                next.push(bytes);
            }
            if too_many {
                return if grows { Look::Reached } else { Look::TooMany };
            }
        }
        if missing { Look::Missing } else { Look::Reached }
    }

    /// Takes one more slot: a grower waits for it, anybody else only looks whether it is free.
    fn take(&mut self, slot: SlotId) -> Result<bool, Parked> {
        if self.mode() == Mode::Growing {
            self.cover(slot)?;
            return Ok(true);
        }
        let line = self.ks.slot(slot);
        let taken = self.w.try_lock(line);
        if taken {
            self.w.seen = self.w.seen.max(line.last_seq());
            self.w.held.push(slot);
        }
        Ok(taken)
    }
}
