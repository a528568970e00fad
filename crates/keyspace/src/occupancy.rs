//! Which slots may hold keys of one physical database: a bit for each. It is set under the slot's
//! lock with the first key, and cleared under that lock by a scan that finds the slot empty, so
//! that churn on one key writes nothing.
//!
//! A reader of one bit may see it late, but never misses a slot with keys that was released before.
//! A copy of all bits reads one word after another. Bits that are set meanwhile do no harm: a bit
//! that is 0 in the copy was 0 when the copy began. A bit that is cleared meanwhile, after another
//! one was set, would make the copy show a state that never existed. So clears are counted when
//! they begin and when they end, and a copy that overlaps with a clear is repeated.

use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{hint, spin_loop};
use base::{SLOTS, SlotId};

const WORDS: usize = SLOTS / 64;

/// The bits.
#[derive(Default)]
pub(crate) struct Occupancy {
    bits: Bits,
    clears: Clears,
}

struct Bits([hint::AtomicU64; WORDS]);

impl Default for Bits {
    fn default() -> Self {
        Self(std::array::from_fn(|_| hint::AtomicU64::new(0)))
    }
}

/// Some slots.
#[derive(Clone)]
pub(crate) struct SlotSet(Box<[u64; WORDS]>);

impl Occupancy {
    /// The slot, which the caller holds, has keys.
    #[inline]
    pub fn set(&self, slot: SlotId) {
        let (at, bit) = place(slot);
        let word = &self.bits.0[at];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The slot, which the caller holds, has no keys.
    pub fn clear(&self, slot: SlotId) {
        let (at, bit) = place(slot);
        let word = &self.bits.0[at];
        if word.load(Ordering::Relaxed) & bit != 0 {
            self.clears.clear(|| word.fetch_and(!bit, Ordering::AcqRel));
        }
    }

    /// Whether a slot may have keys.
    pub fn has(&self, slot: SlotId) -> bool {
        let (at, bit) = place(slot);
        self.bits.0[at].load(Ordering::Relaxed) & bit != 0
    }

    /// The first slot from `from` on.
    pub fn next(&self, from: usize) -> Option<SlotId> {
        first(from, |at| self.bits.0[at].load(Ordering::Relaxed))
    }

    /// The first slot from `from` on that is one of these, too.
    pub fn next_of(&self, slots: &SlotSet, from: usize) -> Option<SlotId> {
        first(from, |at| self.bits.0[at].load(Ordering::Relaxed) & slots.0[at])
    }

    /// All of them, as they were at one moment.
    pub fn at_one_moment(&self) -> SlotSet {
        let mut copy = SlotSet::default();
        self.clears.read(|| {
            for (to, from) in copy.0.iter_mut().zip(&self.bits.0) {
                *to = from.load(Ordering::Acquire);
            }
        });
        copy
    }
}

impl Default for SlotSet {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl SlotSet {
    pub fn insert(&mut self, slot: SlotId) {
        let (at, bit) = place(slot);
        self.0[at] |= bit;
    }

    pub fn contains(&self, slot: SlotId) -> bool {
        let (at, bit) = place(slot);
        self.0[at] & bit != 0
    }

    /// The first slot from `from` on.
    pub fn next(&self, from: usize) -> Option<SlotId> {
        first(from, |at| self.0[at])
    }
}

impl FromIterator<SlotId> for SlotSet {
    fn from_iter<I: IntoIterator<Item = SlotId>>(slots: I) -> Self {
        let mut set = Self::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

/// The word of a slot, and its bit there.
fn place(slot: SlotId) -> (usize, u64) {
    (slot.index() / 64, 1 << (slot.index() % 64))
}

/// The first slot from `from` on whose bit is set in these words.
fn first(from: usize, word: impl Fn(usize) -> u64) -> Option<SlotId> {
    let mut at = from;
    while at < SLOTS {
        let rest = word(at / 64) >> (at % 64);
        if rest != 0 {
            return Some(SlotId::new((at + rest.trailing_zeros() as usize) as u16));
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

/// How many clears have begun, and how many have ended.
#[derive(Debug, Default)]
pub(crate) struct Clears {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Clears {
    /// Clears something. It does not panic.
    pub fn clear<R>(&self, clear: impl FnOnce() -> R) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        clear();
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Reads until nothing was cleared meanwhile: neither was a clear under way at the beginning,
    /// nor has one begun. Who sees what a clear has written sees that it has begun.
    pub fn read<R>(&self, mut read: impl FnMut() -> R) -> R {
        loop {
            let ended = self.ended.load(Ordering::SeqCst);
            let result = read();
            if self.begun.load(Ordering::SeqCst) == ended {
                return result;
            }
            spin_loop();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::{Occupancy, SlotSet};
    use base::{SLOTS, SlotId};

    #[test]
    fn the_next_occupied_slot_is_found_from_any_position() {
        let map = Occupancy::default();
        let some = [0, 63, 64, 200, SLOTS - 1].map(|n| SlotId::new(n as u16));
        for slot in some {
            map.set(slot);
        }
        let mut from = 0;
        for slot in some {
            assert_eq!(map.next(from), Some(slot));
            from = slot.index() + 1;
        }
        assert_eq!(map.next(from), None);
        let set: SlotSet = [some[1], some[3]].into_iter().collect();
        assert_eq!((map.next_of(&set, 0), map.next_of(&set, 64)), (Some(some[1]), Some(some[3])));
        map.clear(some[3]);
        assert_eq!(map.next_of(&set, 64), None);
        let copy = map.at_one_moment();
        assert!(copy.contains(some[4]) && !copy.contains(some[3]));
        assert_eq!((set.next(64), set.next(201)), (Some(some[3]), None));
    }
}

#[cfg(all(test, shuttle))]
mod models {
    use super::Clears;
    use crate::models::{check_often, spawn_all};
    use base::sync::Arc;
    use base::sync::atomic::{AtomicU32, Ordering};

    /// Two bits: the first is set, then the second is cleared. So they are never both 0, and a copy
    /// must not show them so.
    fn model(reads_at_once: bool) {
        check_often(5_000, move || {
            let bits = Arc::new((AtomicU32::new(0), AtomicU32::new(1), Clears::default()));
            let shared = Arc::clone(&bits);
            spawn_all(2, move |i| {
                let (first, second, clears) = &*shared;
                if i == 0 {
                    first.store(1, Ordering::SeqCst);
                    clears.clear(|| second.store(0, Ordering::SeqCst));
                    return;
                }
                let copy = || (first.load(Ordering::SeqCst), second.load(Ordering::SeqCst));
                let copied = if reads_at_once { clears.read(copy) } else { copy() };
                assert_ne!(copied, (0, 0), "a copy of what never was");
            });
        });
    }

    #[test]
    fn an_atomic_copy_shows_a_state_which_existed() {
        model(true);
    }

    #[test]
    #[should_panic(expected = "a copy of what never was")]
    fn a_plain_copy_during_a_clear_can_be_torn() {
        model(false);
    }
}
