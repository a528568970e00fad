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

/// How many slots are looked at for each RANDOMKEY, until one is to be had.
const DRAWS_MAX: usize = 3;

/// How often all slots that have keys by then are taken. Where others go on filling slots a SCAN
/// ends before one that came later, unless it begins there.
const FULL_SWEEPS_MAX: usize = 4;

/// A walk of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// SCAN from a cursor on, for about so many elements.
    From {
        /// Where it begins.
        cursor: u64,
        /// Elements.
        count: u64,
    },
    /// RANDOMKEY.
    Anywhere,
}

/// What walks may see.
#[derive(Default)]
pub(crate) struct Survey {
    /// Slots of which it is known what they hold, ascending: those of `held`, and others that are
    /// empty.
    known: Vec<Range<usize>>,
    /// Slots that the transaction holds.
    held: SlotSet,
    /// Those of them in which RANDOMKEY looks: in the others nothing is alive.
    alive: SlotSet,
    /// Slots for RANDOMKEY, one after the other.
    drawn: VecDeque<SlotId>,
    /// Slots that were looked at.
    looks: usize,
}

/// A SCAN whose slots are to be taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Want {
    from: usize,
    count: u64,
    /// It begins within its first slot, and nobody knows how much of that is left.
    begins_within: bool,
}

/// What the walks are still to find.
#[derive(Default)]
struct Demand {
    /// Elements, in the slots from here on.
    elements: u64,
    /// Elements behind the next slot.
    behind: u64,
    /// A SCAN has no slot yet.
    is_new: bool,
}

impl Demand {
    fn add(&mut self, want: Want, slot: usize) {
        let at = if want.begins_within && want.from == slot {
            &mut self.behind
        } else {
            &mut self.elements
        };
        *at = want.count.max(*at);
        self.is_new = true;
    }

    fn take(&mut self, elements: u64) {
        self.elements = self.elements.saturating_sub(elements).max(self.behind);
        (self.behind, self.is_new) = (0, false);
    }
}

/// The slots for RANDOMKEY.
struct Draws {
    /// How many are still to be drawn.
    left: usize,
    /// A key stays whatever the queue does, or none is needed.
    is_sure: bool,
    /// Slots whose keys the queue may remove, or to which it may add some.
    own: SlotSet,
    /// Other slots that are held, and in which nothing is alive.
    dead: SlotSet,
    /// Other slots that are held, with a live key.
    alive: SlotSet,
}

impl Guard<'_> {
    /// Takes what these walks over `db` may need, for a transaction that has run nothing yet and
    /// holds the slots of all keys that its commands name ([`crate::Access::grow`]), for what
    /// `intent` says. Returns how many slots it has looked at.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder, without which a walk would find nothing: the
    /// transaction gives everything back, parks and waits for a turn.
    pub fn survey(
        &mut self,
        db: DbIndex,
        walks: &[Walk],
        intent: Intent,
        mut random: impl FnMut() -> u64,
    ) -> Result<usize, Parked> {
        assert!(self.mode() == Mode::Growing, "who surveys may take slots in any order");
        let physical = self.ks.physical(db);
        let wants = wants_of(walks);
        let left = walks.iter().filter(|walk| **walk == Walk::Anywhere).count();
        let changed = if intent == Intent::Read { &[] } else { &*self.w.held };
        let (own, none) = (changed.iter().copied().collect(), SlotSet::default());
        let mut draws = Draws { left, is_sure: left == 0, own, dead: none.clone(), alive: none };
        let mut survey = Survey::default();
        for round in 0.. {
            let before = self.w.held.len();
            let occupied = self.ks.occupied_slots(physical);
            let takes_all = round < FULL_SWEEPS_MAX;
            self.sweep(physical, &occupied, &wants, takes_all, &mut survey)?;
            self.draw(physical, &occupied, &mut draws, &mut survey, &mut random);
            self.make_sure(physical, &occupied, &mut draws, &mut survey)?;
            if self.w.held.len() == before {
                break;
            }
        }
        let alive = |slot: &SlotId| !draws.dead.contains(*slot);
        survey.held = self.w.held.iter().copied().collect();
        survey.alive = self.w.held.iter().copied().filter(alive).collect();
        let looks = survey.looks;
        self.w.survey = Some(Box::new(survey));
        Ok(looks)
    }

    /// Takes the slots of all SCANs, in one sweep.
    fn sweep(
        &mut self,
        physical: u16,
        occupied: &SlotSet,
        wants: &[Want],
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
                survey.looks += 1;
                let takes = takes_all || demand.is_new || self.covers(slot);
                match if takes { self.cover(slot) } else { Err(Parked::Slot(slot)) } {
                    Err(parked) if demand.is_new => return Err(parked),
                    Err(_) => break index,
                    Ok(()) => demand.take(self.len_of(physical, slot)),
                }
                at = index + 1;
            };
            survey.known.push(from..end);
        }
        Ok(())
    }

    /// How many keys are in a slot that is held. Of one without any the bit is cleared, so that
    /// nobody takes it for nothing again.
    fn len_of(&self, physical: u16, slot: SlotId) -> u64 {
        let len = self.owned(slot).table(physical).map_or(0, |table| table.len());
        if len == 0 {
            self.ks.mark_empty(physical, slot);
        }
        len.into()
    }

    /// Takes a slot for each RANDOMKEY.
    fn draw(
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
                survey.looks += usize::from(!draws.alive.contains(slot));
                let is_own = draws.own.contains(slot);
                if is_own || self.cover(slot).is_ok() && self.is_alive(physical, slot, draws) {
                    draws.is_sure |= !is_own;
                    survey.drawn.push_back(slot);
                    break;
                }
            }
        }
    }

    /// Takes a slot with a key that stays; where there is none, all that have keys.
    fn make_sure(
        &mut self,
        physical: u16,
        occupied: &SlotSet,
        draws: &mut Draws,
        survey: &mut Survey,
    ) -> Result<(), Parked> {
        let (mut at, mut missing) = (0, Ok(()));
        while !draws.is_sure
            && let Some(slot) = occupied.next(at)
        {
            at = slot.index() + 1;
            if draws.own.contains(slot) || draws.dead.contains(slot) {
                continue;
            }
            survey.looks += 1;
            match self.cover(slot) {
                Ok(()) => draws.is_sure = self.is_alive(physical, slot, draws),
                Err(parked) => missing = missing.and(Err(parked)),
            }
        }
        if draws.is_sure { Ok(()) } else { missing }
    }

    /// True if a key of the slot, which is not an own one, has not expired.
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

    /// Up to where a walk from this slot may go.
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
fn wants_of(walks: &[Walk]) -> Vec<Want> {
    let want = |walk: &Walk| match *walk {
        Walk::From { cursor, count } if cursor < CURSOR_END => {
            let from = slot_of(cursor);
            Some(Want { from, count: count.max(1), begins_within: cursor != cursor_at(from, 0) })
        }
        Walk::From { .. } | Walk::Anywhere => None,
    };
    let mut wants: Vec<_> = walks.iter().filter_map(want).collect();
    wants.sort_unstable();
    wants
}
