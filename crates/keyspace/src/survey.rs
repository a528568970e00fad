//! SCAN and RANDOMKEY inside a transaction, whose locks stay until it ends.
//!
//! Before its first command the transaction locks the slots that its walks may need: the *survey*.
//! It is a grower (`growth.rs`): it holds each slot as a long holder, waits for short holders in
//! any order, and may release everything and retry, because no command has run. After the survey no
//! walk takes a lock.
//!
//! ```text
//! repeat
//!   copy the bitmap of slots that have keys, as of one moment
//!   all SCANs, one sweep: from each cursor on lock slots with keys, until COUNT keys are covered
//!     a slot has a long holder     the SCANs end before it;
//!                                  a SCAN that would get no slot at all: the session parks
//!   each RANDOMKEY: lock some slot. For all of them together lock one with a key that the
//!     transaction does not name, or else all slots
//!     all others have long holders   the session parks
//! until nothing more was locked
//!   (after FULL_SWEEPS_MAX rounds SCANs end before slots that got keys meanwhile)
//! ```
//!
//! So the transaction sees the moment of the last copy: the slots that it holds were locked before,
//! and those between them were empty then. Keys that are created in other slots later belong to
//! the time after the transaction.

use crate::due::Due;
use crate::guard::{Guard, Mode};
use crate::may::Intent;
use crate::occupancy::SlotSet;
use crate::parking::Parked;
use crate::scan::{CURSOR_END, cursor_at, slot_of};
use base::{DbIndex, SLOTS, SlotId};
use std::collections::VecDeque;
use std::ops::Range;

/// How many slots are tried for each RANDOMKEY, until one can be locked.
const DRAWS_MAX: usize = 3;

/// In how many rounds SCANs also lock slots that got keys meanwhile. In later rounds a SCAN ends
/// before such a slot, unless it begins there.
const FULL_SWEEPS_MAX: usize = 4;

/// A walk of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// SCAN from a cursor on, for about `count` elements.
    From {
        /// The cursor.
        cursor: u64,
        /// Elements.
        count: u64,
    },
    /// RANDOMKEY.
    Anywhere,
}

/// The slots that walks may visit.
#[derive(Default)]
pub(crate) struct Survey {
    /// Ranges of slots whose content is known, ascending: slots in `held`, and empty ones.
    known: Vec<Range<usize>>,
    /// Slots that the transaction holds.
    held: SlotSet,
    /// The held slots in which RANDOMKEY searches: the others have no live key.
    alive: SlotSet,
    /// The slots for the RANDOMKEYs, in their order.
    drawn: VecDeque<SlotId>,
    /// The number of slots that were examined.
    examined: usize,
}

/// A SCAN whose slots are to be locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ScanRequest {
    from: usize,
    count: u64,
    /// It begins in the middle of its first slot, so it is unknown how many keys of that slot it
    /// still covers.
    begins_within: bool,
}

/// The elements that slots still have to cover for the SCANs.
#[derive(Default)]
struct Demand {
    /// Elements wanted, counted from the next slot on.
    elements: u64,
    /// Elements wanted, counted from the slot after the next one on.
    behind: u64,
    /// Some SCAN has no slot yet.
    is_new: bool,
}

impl Demand {
    fn add(&mut self, want: ScanRequest, slot: usize) {
        let at = if want.begins_within && want.from == slot {
            &mut self.behind
        } else {
            &mut self.elements
        };
        *at = want.count.max(*at);
        self.is_new = true;
    }

    fn subtract(&mut self, elements: u64) {
        self.elements = self.elements.saturating_sub(elements).max(self.behind);
        (self.behind, self.is_new) = (0, false);
    }
}

/// The slots for RANDOMKEY.
struct Draws {
    /// How many are still to be drawn.
    left: usize,
    /// A held slot has a key that no command of the transaction can remove, or no RANDOMKEY needs
    /// one.
    has_lasting_key: bool,
    /// Slots in which the transaction may remove or add keys.
    own: SlotSet,
    /// Other held slots, without a live key.
    dead: SlotSet,
    /// Other held slots, with a live key.
    alive: SlotSet,
}

impl Guard<'_> {
    /// Locks the slots that these walks over `db` may need. The transaction has not run a command
    /// yet and holds the slots of all keys that its commands name ([`crate::Access::grow`]), with
    /// `intent`. Returns the number of slots it has examined.
    ///
    /// # Errors [`Parked::Slot`] if a walk needs the slot of a long holder to find anything: the
    /// transaction releases everything, parks and waits for its turn.
    pub fn survey(
        &mut self,
        db: DbIndex,
        walks: &[Walk],
        intent: Intent,
        mut random: impl FnMut() -> u64,
    ) -> Result<usize, Parked> {
        assert!(self.mode() == Mode::Growing, "who surveys may take slots in any order");
        let physical = self.ks.physical(db);
        let wants = scan_requests(walks);
        let left = walks.iter().filter(|walk| **walk == Walk::Anywhere).count();
        let changed = if intent == Intent::Read { &[] } else { &*self.w.held };
        let (own, none) = (changed.iter().copied().collect(), SlotSet::default());
        let mut draws =
            Draws { left, has_lasting_key: left == 0, own, dead: none.clone(), alive: none };
        let mut survey = Survey::default();
        for round in 0.. {
            let before = self.w.held.len();
            let occupied = self.ks.occupied_slots(physical);
            let takes_all = round < FULL_SWEEPS_MAX;
            self.lock_scans(physical, &occupied, &wants, takes_all, &mut survey)?;
            self.lock_draws(physical, &occupied, &mut draws, &mut survey, &mut random);
            self.lock_lasting_key(physical, &occupied, &mut draws, &mut survey)?;
            if self.w.held.len() == before {
                break;
            }
        }
        let alive = |slot: &SlotId| !draws.dead.contains(*slot);
        survey.held = self.w.held.iter().copied().collect();
        survey.alive = self.w.held.iter().copied().filter(alive).collect();
        let examined = survey.examined;
        self.w.survey = Some(Box::new(survey));
        Ok(examined)
    }

    /// Locks the slots of all SCANs, in one pass.
    fn lock_scans(
        &mut self,
        physical: u16,
        occupied: &SlotSet,
        wants: &[ScanRequest],
        takes_all: bool,
        survey: &mut Survey,
    ) -> Result<(), Parked> {
        survey.known.clear();
        let mut wants = wants.iter().copied().peekable();
        while let Some(first) = wants.peek() {
            let from = first.from;
            let (mut at, mut demand) = (from, Demand::default());
            let end = loop {
                let slot = occupied.next(at);
                let index = slot.map_or(SLOTS, SlotId::index);
                while let Some(want) = wants.next_if(|want| want.from <= index) {
                    demand.add(want, index);
                }
                let Some(slot) = slot.filter(|_| demand.elements.max(demand.behind) > 0) else {
                    break index;
                };
                survey.examined += 1;
                let takes = takes_all || demand.is_new || self.covers(slot);
                match if takes { self.cover(slot) } else { Err(Parked::Slot(slot)) } {
                    Err(parked) if demand.is_new => return Err(parked),
                    Err(_) => break index,
                    Ok(()) => demand.subtract(self.len_of(physical, slot)),
                }
                at = index + 1;
            };
            survey.known.push(from..end);
        }
        Ok(())
    }

    /// The number of keys in a held slot. Clears the bit of an empty slot, so that no later survey
    /// locks it in vain.
    fn len_of(&self, physical: u16, slot: SlotId) -> u64 {
        let len = self.owned(slot).table(physical).map_or(0, |table| table.len());
        if len == 0 {
            self.ks.mark_empty(physical, slot);
        }
        len.into()
    }

    /// Locks a slot for each RANDOMKEY.
    fn lock_draws(
        &mut self,
        physical: u16,
        occupied: &SlotSet,
        draws: &mut Draws,
        survey: &mut Survey,
        random: &mut impl FnMut() -> u64,
    ) {
        for _ in 0..std::mem::take(&mut draws.left) {
            for _ in 0..DRAWS_MAX {
                let start = random() as usize % SLOTS;
                let next = |from| [occupied.next(from), draws.own.next(from)].into_iter().flatten();
                let Some(slot) = next(start).min().or_else(|| next(0).min()) else { return };
                survey.examined += usize::from(!draws.alive.contains(slot));
                let is_own = draws.own.contains(slot);
                if is_own || self.cover(slot).is_ok() && self.is_alive(physical, slot, draws) {
                    draws.has_lasting_key |= !is_own;
                    survey.drawn.push_back(slot);
                    break;
                }
            }
        }
    }

    /// Locks a slot with a live key that the transaction cannot remove; if there is none, locks all
    /// slots that have keys.
    fn lock_lasting_key(
        &mut self,
        physical: u16,
        occupied: &SlotSet,
        draws: &mut Draws,
        survey: &mut Survey,
    ) -> Result<(), Parked> {
        let (mut at, mut missing) = (0, Ok(()));
        while !draws.has_lasting_key
            && let Some(slot) = occupied.next(at)
        {
            at = slot.index() + 1;
            if draws.own.contains(slot) || draws.dead.contains(slot) {
                continue;
            }
            survey.examined += 1;
            match self.cover(slot) {
                Ok(()) => draws.has_lasting_key = self.is_alive(physical, slot, draws),
                Err(parked) => missing = missing.and(Err(parked)),
            }
        }
        if draws.has_lasting_key { Ok(()) } else { missing }
    }

    /// True if the slot has a key that has not expired. The slot is not one of `draws.own`.
    fn is_alive(&self, physical: u16, slot: SlotId, draws: &mut Draws) -> bool {
        if !draws.alive.contains(slot) && !draws.dead.contains(slot) {
            let seen =
                if self.has_alive(physical, slot) { &mut draws.alive } else { &mut draws.dead };
            seen.insert(slot);
        }
        draws.alive.contains(slot)
    }

    fn has_alive(&self, physical: u16, slot: SlotId) -> bool {
        let has_keys = self.len_of(physical, slot) > 0;
        let table = self.owned(slot).table(physical).filter(|_| has_keys);
        let Some(table) = table else { return false };
        let ignores = self.due_rule(slot) == Due::Ignore;
        let (mut is_alive, mut point) = (false, Some(0));
        while !is_alive && let Some(at) = point {
            point = table.visit(&self.ks.mem, at, |entry| {
                is_alive |= ignores || !self.is_all_due(entry);
            });
        }
        is_alive
    }

    fn survey_mut(&mut self) -> &mut Survey {
        self.w.survey.as_mut().expect("a walk beside locks was surveyed")
    }

    /// The end of the known range that contains this slot: how far a walk from it may go.
    pub(crate) fn known_until(&mut self, from: usize) -> usize {
        let known = &self.survey_mut().known;
        let range = known.get(known.partition_point(|range| range.end <= from));
        range.filter(|range| range.contains(&from)).expect("this walk was surveyed").end
    }

    /// The slot for the next RANDOMKEY.
    pub(crate) fn next_drawn(&mut self) -> Option<SlotId> {
        self.survey_mut().drawn.pop_front()
    }

    /// The first slot from `from` on in which SCAN may find keys.
    pub(crate) fn next_surveyed(&mut self, physical: u16, from: usize) -> Option<SlotId> {
        let ks = self.ks;
        ks.next_occupied_of(physical, &self.survey_mut().held, from)
    }

    /// The first slot from `from` on in which RANDOMKEY may find a key.
    pub(crate) fn next_alive(&mut self, physical: u16, from: usize) -> Option<SlotId> {
        let ks = self.ks;
        ks.next_occupied_of(physical, &self.survey_mut().alive, from)
    }
}

/// The SCANs among walks, by where they begin.
fn scan_requests(walks: &[Walk]) -> Vec<ScanRequest> {
    let want = |walk: &Walk| match *walk {
        Walk::From { cursor, count } if cursor < CURSOR_END => {
            let from = slot_of(cursor);
            Some(ScanRequest {
                from,
                count: count.max(1),
                begins_within: cursor != cursor_at(from, 0),
            })
        }
        Walk::From { .. } | Walk::Anywhere => None,
    };
    let mut wants: Vec<_> = walks.iter().filter_map(want).collect();
    wants.sort_unstable();
    wants
}
