//! Threads that fill keys for which movers wait, with the steps of `reach.rs`.

use super::{Fragile, WakeRecorder, Woken, check, spawn_all};
use crate::growth::Growth;
use crate::lock::{Owner, SlotLock};
use crate::parking::{Parked, Parking};
use base::SlotId;
use base::sync::Arc;
use base::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const NOBODY: usize = usize::MAX;
const ROUNDS_MAX: usize = 2;

struct Place {
    lock: SlotLock,
    counter: Fragile,
    /// The place to which a client that waits here moves elements; only used under the lock.
    mover: AtomicUsize,
}

struct Filling {
    places: Vec<Place>,
    growth: Growth,
    parking: Parking,
    parked: AtomicUsize,
    bumps: AtomicU32,
}

impl Filling {
    fn lock_all(&self, me: Owner, wanted: &[usize], held: &mut Vec<usize>) -> Result<(), Parked> {
        for &at in wanted {
            if !self.places[at].lock.try_lock(me) && self.places[at].lock.lock_slow(me).is_err() {
                return Err(Parked::Slot(SlotId::new(at as u16)));
            }
            held.push(at);
        }
        Ok(())
    }

    fn unlock_all(&self, me: Owner, held: &mut Vec<usize>) {
        for at in held.drain(..) {
            if self.places[at].lock.unlock(me).parked {
                self.parking.release(Parked::Slot(SlotId::new(at as u16)));
            }
        }
    }

    /// Follows the movers from `own` and locks their slots; returns the first slot that cannot be
    /// locked, if any. A grower may meet a long holder.
    fn lock_movers(
        &self,
        me: Owner,
        own: usize,
        grows: bool,
        held: &mut Vec<usize>,
    ) -> Option<usize> {
        let (mut at, mut seen) = (own, vec![own]);
        loop {
            at = self.places[at].mover.load(Ordering::Relaxed);
            if at == NOBODY || seen.contains(&at) {
                return None;
            }
            seen.push(at);
            if held.contains(&at) {
                continue;
            }
            if grows {
                if self.growth.lock(&self.places[at].lock, me).is_err() {
                    return Some(at);
                }
            } else if !self.places[at].lock.try_lock(me) {
                return Some(at);
            }
            held.push(at);
        }
    }

    /// Locks `own` and all slots that serving needs; true if it had to grow.
    fn reach(&self, me: Owner, own: usize, held: &mut Vec<usize>) -> Result<bool, Parked> {
        let mut wanted = vec![own];
        for _ in 0..ROUNDS_MAX {
            self.lock_all(me, &wanted, held)?;
            let missing = self.lock_movers(me, own, false, held);
            let Some(missing) = missing else { return Ok(false) };
            wanted.clone_from(held);
            wanted.push(missing);
            wanted.sort_unstable();
            self.unlock_all(me, held);
        }
        if !self.growth.try_take(me) {
            return Err(Parked::Growth);
        }
        if let Err(parked) = self.lock_all(me, &[own], held) {
            self.release_growth(me);
            return Err(parked);
        }
        self.places[own].lock.mark_long(me);
        if let Some(missing) = self.lock_movers(me, own, true, held) {
            self.release_growth(me);
            return Err(Parked::Slot(SlotId::new(missing as u16)));
        }
        Ok(true)
    }

    fn release_growth(&self, me: Owner) {
        if self.growth.release(me) {
            self.parking.release(Parked::Growth);
        }
    }

    fn fill(&self, i: usize, own: usize) {
        let (me, mut held) = (Owner::numbered(i), Vec::new());
        match self.reach(me, own, &mut held) {
            Ok(grown) => {
                // Serving follows the movers; all their slots are held.
                let mut at = own;
                loop {
                    assert!(held.contains(&at), "served under the locks of who filled it");
                    self.places[at].counter.bump();
                    self.bumps.fetch_add(1, Ordering::SeqCst);
                    at = self.places[at].mover.swap(NOBODY, Ordering::Relaxed);
                    if at == NOBODY {
                        break;
                    }
                }
                self.unlock_all(me, &mut held);
                if grown {
                    self.release_growth(me);
                }
            }
            Err(parked) => {
                self.unlock_all(me, &mut held);
                let mark = || match parked {
                    Parked::Slot(slot) => self.places[slot.index()].lock.mark_parked(),
                    _ => self.growth.mark_parked(),
                };
                if self.parking.park(parked, i, i as u64, mark) {
                    self.parked.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }

    /// A client starts to wait at `from`; serving it needs `to`.
    fn wait(&self, i: usize, from: usize, to: usize) {
        let (me, mut held) = (Owner::numbered(i), Vec::new());
        if self.lock_all(me, &[from], &mut held).is_ok() {
            self.places[from].mover.store(to, Ordering::Relaxed);
        }
        self.unlock_all(me, &mut held);
    }
}

/// Three threads fill slots whose movers cross each other, and a fourth adds a waiting client
/// meanwhile. All of them end, and each serves along the whole chain under its own locks.
#[test]
fn who_fills_reaches_all_that_serving_needs() {
    check(|| {
        let woken = Arc::new(Woken::default());
        let parking = Parking::default();
        parking.set_waker(Box::new(WakeRecorder(Arc::clone(&woken))));
        let place = |to| Place {
            lock: SlotLock::new(),
            counter: Fragile::default(),
            mover: AtomicUsize::new(to),
        };
        let model = Arc::new(Filling {
            places: vec![place(2), place(0), place(1)],
            growth: Growth::default(),
            parking,
            parked: AtomicUsize::new(0),
            bumps: AtomicU32::new(0),
        });
        let shared = Arc::clone(&model);
        spawn_all(4, move |i| if i == 3 { shared.wait(i, 1, 2) } else { shared.fill(i, i) });
        let bumped: u32 = model.places.iter().map(|place| place.counter.value()).sum();
        assert_eq!(bumped, model.bumps.load(Ordering::SeqCst), "one at a time in each slot");
        let woken = woken.0.lock().expect("no panic under it").len();
        assert_eq!(woken, model.parked.load(Ordering::SeqCst), "every parked session was woken");
    });
}
