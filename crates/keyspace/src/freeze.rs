//! Frozen slots: their keys may be read but not changed, for longer than a command lasts. MIGRATE
//! freezes the slots of its keys while their values travel.
//!
//! A slot is frozen under World, so every worker that enters a section afterwards sees it; it may
//! be thawed at any time. A command that would change a frozen slot is refused ([`Keyspace::may`])
//! and parks until the slot is thawed ([`crate::Parked::Frozen`]). One that needs all slots parks
//! until any thaw ([`crate::Parked::Thaw`]). Keys that are due in a frozen slot are hidden
//! ([`crate::Due`]).

use crate::guard::Guard;
use crate::keyspace::Keyspace;
use crate::parking::Parked;
use base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use base::{SLOTS, SlotId};

/// A bit per slot, and how many are set: 2 KiB.
#[derive(Debug)]
pub(crate) struct Frozen {
    count: AtomicU32,
    bits: Box<[AtomicU64]>,
}

impl Default for Frozen {
    fn default() -> Self {
        let bits = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        Self { count: AtomicU32::new(0), bits }
    }
}

impl Frozen {
    fn word(&self, slot: SlotId) -> (&AtomicU64, u64) {
        (&self.bits[slot.index() / 64], 1 << (slot.index() % 64))
    }

    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    pub fn contains(&self, slot: SlotId) -> bool {
        let (word, bit) = self.word(slot);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn set(&self, slot: SlotId) {
        let (word, bit) = self.word(slot);
        let was = word.fetch_or(bit, Ordering::AcqRel);
        assert!(was & bit == 0, "a slot is frozen once at a time");
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    fn clear(&self, slot: SlotId) {
        let (word, bit) = self.word(slot);
        let was = word.fetch_and(!bit, Ordering::AcqRel);
        assert!(was & bit != 0, "only a frozen slot is thawed");
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Keyspace {
    /// True if any slot is frozen. One load of a line that hardly ever changes.
    #[inline(always)]
    pub fn has_frozen(&self) -> bool {
        self.frozen.is_any()
    }

    /// True if the keys of this slot may not be changed now.
    #[inline]
    pub fn is_frozen(&self, slot: SlotId) -> bool {
        self.frozen.contains(slot)
    }

    /// The first of these slots that is frozen.
    #[inline]
    pub fn first_frozen(&self, slots: &[SlotId]) -> Option<SlotId> {
        if !self.has_frozen() {
            return None;
        }
        slots.iter().copied().find(|&slot| self.is_frozen(slot))
    }

    /// Thaws slots that [`Guard::freeze`] froze, and wakes the sessions that wait for it. The
    /// caller holds none of the slots.
    pub fn thaw(&self, slots: &[SlotId]) {
        for &slot in slots {
            self.frozen.clear(slot);
        }
        for &slot in slots {
            self.parking.release(Parked::Frozen(slot));
        }
        self.parking.release(Parked::Thaw);
    }
}

impl Guard<'_> {
    /// Freezes slots, each once and none of them frozen, until [`Keyspace::thaw`].
    pub fn freeze(&mut self, slots: &[SlotId]) {
        assert!(self.is_world(), "slots are frozen under World");
        let keyspace = self.keyspace();
        for &slot in slots {
            keyspace.frozen.set(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Access, Keyspace, Options, Parked, ThawTurn, Turn, Waker};
    use base::sync::{Arc, Mutex};
    use base::{SlotId, UnixMs};

    struct Woken(Arc<Mutex<Vec<u64>>>);

    impl Waker for Woken {
        fn wake(&self, _: usize, token: u64) {
            self.0.lock().expect("nobody panics here").push(token);
        }
    }

    /// Regression: a waiter for a state without frozen slots starved while new freezes followed
    /// each other.
    #[test]
    fn new_freezes_wait_while_a_thaw_is_awaited() {
        let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 2 }));
        let woken = Arc::new(Mutex::new(Vec::new()));
        ks.set_waker(Box::new(Woken(woken.clone())));
        let mut access = Access::new(ks.clone(), 0);
        assert!(ks.may_freeze().is_ok() && !access.park(Parked::Freeze, 1), "nothing to wait for");
        let (first, second) = (ThawTurn::wait(&ks), ThawTurn::wait(&ks));
        assert_eq!(ks.may_freeze(), Err(Parked::Freeze));
        assert!(access.park(Parked::Freeze, 2));
        drop(Turn::wait(&ks));
        let take = || std::mem::take(&mut *woken.lock().expect("nobody panics here"));
        assert_eq!(take(), [], "another kind of turn");
        // Each turn's end admits those who waited for it, so consecutive turns starve nobody.
        drop(first);
        assert_eq!(take(), [2]);
        assert!(ks.may_freeze().is_err() && access.park(Parked::Freeze, 3));
        drop(second);
        assert_eq!(take(), [3]);
        assert!(ks.may_freeze().is_ok() && !access.park(Parked::Freeze, 4));
    }

    #[test]
    fn a_thaw_wakes_the_waiters_of_its_slots_and_the_last_thaw_all() {
        let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 2 }));
        let woken = Arc::new(Mutex::new(Vec::new()));
        ks.set_waker(Box::new(Woken(woken.clone())));
        let mut access = Access::new(ks.clone(), 0);
        let [a, b, c] = [3, 64, 16_383].map(SlotId::new);
        access.try_world().expect("no other worker is inside");
        access.world(UnixMs(1)).freeze(&[a, b]);
        access.world(UnixMs(1)).freeze(&[c]);
        access.open_world();
        assert!(ks.has_frozen() && ks.is_frozen(b) && !ks.is_frozen(SlotId::new(4)));
        assert_eq!(ks.first_frozen(&[SlotId::new(4), c, a]), Some(c));
        assert!(!access.park(Parked::Frozen(SlotId::new(4)), 1), "nothing to wait for");
        assert!(access.park(Parked::Frozen(a), 2));
        assert!(access.park(Parked::Frozen(c), 3));
        assert!(access.park(Parked::Thaw, 4));
        let take = || std::mem::take(&mut *woken.lock().expect("nobody panics here"));
        ks.thaw(&[a, b]);
        assert_eq!(take(), [2, 4]);
        assert!(access.park(Parked::Thaw, 5), "one slot is frozen still");
        ks.thaw(&[c]);
        assert_eq!(take(), [3, 5]);
        assert!(!ks.has_frozen() && !access.park(Parked::Thaw, 6));
    }
}
