//! The synchronisation kernels under the model checker:
//! `RUSTFLAGS='--cfg shuttle' cargo test -p sheafdb-keyspace --target-dir target/shuttle models`.
//!
//! A wake-up that is lost is a deadlock of the model, and a broken exclusion a lost update.

use crate::gate::Gate;
use crate::growth::Growth;
use crate::lock::{Owner, SlotLock};
use crate::parking::{Parked, Parking, Waker};
use base::SlotId;
use base::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use base::sync::{Arc, Mutex, thread};

const ITERATIONS: usize = 20_000;
const STEPS_MAX: usize = 3;

fn check(model: impl Fn() + Send + Sync + 'static) {
    shuttle::check_pct(model, ITERATIONS, STEPS_MAX);
}

/// A counter whose increment is two steps, so that it shows who was not excluded.
#[derive(Default)]
struct Fragile(AtomicU32);

impl Fragile {
    fn bump(&self) {
        let n = self.0.load(Ordering::Relaxed);
        thread::yield_now();
        self.0.store(n + 1, Ordering::Relaxed);
    }

    fn value(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

fn spawn_all(n: usize, f: impl Fn(usize) + Send + Sync + 'static) {
    let f = Arc::new(f);
    let threads: Vec<_> = (0..n)
        .map(|i| {
            let f = Arc::clone(&f);
            thread::spawn(move || f(i))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics");
    }
}

#[test]
fn slot_lock_excludes_and_wakes() {
    check(|| {
        let lock = Arc::new((SlotLock::new(), Fragile::default()));
        let shared = Arc::clone(&lock);
        spawn_all(3, move |i| {
            let me = Owner::of_worker(i);
            for _ in 0..2 {
                if !shared.0.try_lock(me) {
                    shared.0.lock_slow(me).expect("nobody is long");
                }
                shared.1.bump();
                assert!(!shared.0.unlock(me).parked);
            }
        });
        assert_eq!(lock.1.value(), 6);
    });
}

#[derive(Default)]
struct Woken(Mutex<Vec<(usize, u64)>>);

struct Tell(Arc<Woken>);

impl Waker for Tell {
    fn wake(&self, worker: usize, token: u64) {
        self.0.0.lock().expect("no panic under it").push((worker, token));
    }
}

/// A long holder among others: everybody who meets it is told so, is queued or finds the way free,
/// and nobody who was queued is forgotten.
#[test]
fn behind_a_long_holder_sessions_park_and_all_are_woken() {
    check(|| {
        let slot = SlotId::new(7);
        let woken = Arc::new(Woken::default());
        let parking = Arc::new(Parking::default());
        parking.set_waker(Box::new(Tell(Arc::clone(&woken))));
        let lock = Arc::new(SlotLock::new());
        let parked = Arc::new(AtomicUsize::new(0));
        let (lock2, parking2, parked2) =
            (Arc::clone(&lock), Arc::clone(&parking), Arc::clone(&parked));
        spawn_all(3, move |i| {
            let me = Owner::of_worker(i);
            if !lock2.try_lock(me) && lock2.lock_slow(me).is_err() {
                let at = Parked::Slot(slot);
                if parking2.park(at, i, 100 + i as u64, || lock2.mark_parked()) {
                    parked2.fetch_add(1, Ordering::SeqCst);
                }
                return;
            }
            if i == 0 {
                lock2.mark_long(me);
                thread::yield_now();
            }
            if lock2.unlock(me).parked {
                parking2.release(Parked::Slot(slot));
            }
        });
        let woken = woken.0.lock().expect("no panic under it");
        assert_eq!(woken.len(), parked.load(Ordering::SeqCst), "every parked session was woken");
        assert!(woken.iter().all(|&(worker, token)| token == 100 + worker as u64));
    });
}

/// While the gate is closed and everybody is out, nobody is inside.
#[test]
fn world_excludes_sections() {
    check(|| {
        let gate = Arc::new(Gate::new(3));
        let inside = Arc::new(Fragile::default());
        let entered = Arc::new(AtomicU32::new(0));
        let (gate2, inside2, entered2) =
            (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&entered));
        spawn_all(3, move |i| {
            let me = Owner::of_worker(i);
            if i == 0 {
                // World: alone with the counter.
                if gate2.close(0, me) {
                    inside2.bump();
                    entered2.fetch_add(1, Ordering::SeqCst);
                    gate2.open(me);
                }
                return;
            }
            // Sections exclude World, not each other: only worker 1 touches the counter.
            if gate2.enter(i) {
                if i == 1 {
                    inside2.bump();
                    entered2.fetch_add(1, Ordering::SeqCst);
                }
                gate2.leave(i);
            }
        });
        assert_eq!(inside.value(), entered.load(Ordering::SeqCst));
    });
}

/// Two workers, both inside, both want World: one gets it, the other is parked or finds it open,
/// and nobody waits for ever.
#[test]
fn two_closers_do_not_deadlock() {
    check(|| {
        let gate = Arc::new(Gate::new(2));
        let woken = Arc::new(Woken::default());
        let parking = Arc::new(Parking::default());
        parking.set_waker(Box::new(Tell(Arc::clone(&woken))));
        let parked = Arc::new(AtomicUsize::new(0));
        let (gate2, parking2, parked2) =
            (Arc::clone(&gate), Arc::clone(&parking), Arc::clone(&parked));
        spawn_all(2, move |i| {
            let me = Owner::of_worker(i);
            let was_inside = gate2.enter(i);
            if gate2.close(i, me) {
                if gate2.open(me) {
                    parking2.release(Parked::Gate);
                }
            } else if parking2.park(Parked::Gate, i, i as u64, || gate2.mark_parked()) {
                parked2.fetch_add(1, Ordering::SeqCst);
            }
            if was_inside {
                gate2.leave(i);
            }
        });
        assert!(!gate.is_closed());
        let woken = woken.0.lock().expect("no panic under it").len();
        assert_eq!(woken, parked.load(Ordering::SeqCst));
    });
}

/// Lock sets that overlap, taken in ascending order.
#[test]
fn ascending_sets_do_not_deadlock() {
    check(|| {
        let locks: Arc<Vec<(SlotLock, Fragile)>> =
            Arc::new((0..3).map(|_| (SlotLock::new(), Fragile::default())).collect());
        let sets: [&[usize]; 3] = [&[0, 1], &[1, 2], &[0, 2]];
        let shared = Arc::clone(&locks);
        spawn_all(3, move |i| {
            let me = Owner::of_worker(i);
            for &at in sets[i] {
                if !shared[at].0.try_lock(me) {
                    shared[at].0.lock_slow(me).expect("nobody is long");
                }
            }
            for &at in sets[i] {
                shared[at].1.bump();
            }
            for &at in sets[i] {
                shared[at].0.unlock(me);
            }
        });
        assert!(locks.iter().all(|(_, counter)| counter.value() == 2));
    });
}

/// Two growers that take the same slots in opposite order, and two ordinary commands with lock sets
/// that lie across theirs: everybody ends, one at a time in each slot, and who was parked is woken.
#[test]
fn growers_and_lock_sets_do_not_deadlock() {
    let ordinary: [&[usize]; 2] = [&[0, 1], &[1, 2]];
    growth_model([&[2, 0], &[0, 2]], move |i| ordinary[i], false);
}

/// A grower meets a long holder, who has all its locks: it waits, and the holder never for it.
#[test]
fn a_grower_waits_behind_a_long_holder() {
    let ordinary: [&[usize]; 2] = [&[0, 2], &[0, 1]];
    growth_model([&[1, 0], &[2, 1]], move |i| ordinary[i], true);
}

fn growth_model(
    growers: [&'static [usize]; 2],
    ordinary: impl Fn(usize) -> &'static [usize] + Copy + Send + Sync + 'static,
    long: bool,
) {
    check(move || {
        let woken = Arc::new(Woken::default());
        let parking = Arc::new(Parking::default());
        parking.set_waker(Box::new(Tell(Arc::clone(&woken))));
        let growth = Arc::new(Growth::default());
        let slots: Arc<Vec<(SlotLock, Fragile)>> =
            Arc::new((0..3).map(|_| (SlotLock::new(), Fragile::default())).collect());
        let (parked, bumps) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU32::new(0)));
        let shared = (Arc::clone(&growth), Arc::clone(&slots), Arc::clone(&parking));
        let counted = (Arc::clone(&parked), Arc::clone(&bumps));
        spawn_all(4, move |i| {
            let ((growth, slots, parking), (parked, bumps)) = (&shared, &counted);
            let me = Owner::of_worker(i);
            let unlock = |set: &[usize]| {
                for &at in set {
                    if slots[at].0.unlock(me).parked {
                        parking.release(Parked::Slot(SlotId::new(at as u16)));
                    }
                }
            };
            let park = |at: Parked, mark: &dyn Fn() -> bool| {
                if parking.park(at, i, i as u64, mark) {
                    parked.fetch_add(1, Ordering::SeqCst);
                }
            };
            let set = if i < 2 { growers[i] } else { ordinary(i - 2) };
            if i < 2 {
                if !growth.take(me) {
                    return park(Parked::Growth, &|| growth.mark_parked());
                }
                for &at in set {
                    growth.lock(&slots[at].0, me);
                    slots[at].1.bump();
                }
            } else {
                for (n, &at) in set.iter().enumerate() {
                    if !slots[at].0.try_lock(me) && slots[at].0.lock_slow(me).is_err() {
                        unlock(&set[..n]);
                        let slot = SlotId::new(at as u16);
                        return park(Parked::Slot(slot), &|| slots[at].0.mark_parked());
                    }
                }
                if long {
                    set.iter().for_each(|&at| slots[at].0.mark_long(me));
                }
                set.iter().for_each(|&at| slots[at].1.bump());
            }
            bumps.fetch_add(set.len() as u32, Ordering::SeqCst);
            unlock(set);
            if i < 2 && growth.release(me) {
                parking.release(Parked::Growth);
            }
        });
        let bumped: u32 = slots.iter().map(|(_, counter)| counter.value()).sum();
        assert_eq!(bumped, bumps.load(Ordering::SeqCst), "one at a time in each slot");
        let woken = woken.0.lock().expect("no panic under it").len();
        assert_eq!(woken, parked.load(Ordering::SeqCst), "every parked session was woken");
    });
}

// Who fills keys that movers wait for (`reach.rs`), with its steps as they are there.

const NOBODY: usize = usize::MAX;
const ROUNDS_MAX: usize = 2;

struct Place {
    lock: SlotLock,
    counter: Fragile,
    /// Where who waits here moves on to; only under the lock.
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

    /// Walks from `own` over the movers; the first slot that is not to be had, if any.
    fn look(&self, me: Owner, own: usize, grows: bool, held: &mut Vec<usize>) -> Option<usize> {
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
                self.growth.lock(&self.places[at].lock, me);
            } else if !self.places[at].lock.try_lock(me) {
                return Some(at);
            }
            held.push(at);
        }
    }

    /// Holds `own` and all that serving needs in `held`; true if by growing.
    fn reach(&self, me: Owner, own: usize, held: &mut Vec<usize>) -> Result<bool, Parked> {
        let mut wanted = vec![own];
        for _ in 0..ROUNDS_MAX {
            self.lock_all(me, &wanted, held)?;
            let missing = self.look(me, own, false, held);
            let Some(missing) = missing else { return Ok(false) };
            wanted.clone_from(held);
            wanted.push(missing);
            wanted.sort_unstable();
            self.unlock_all(me, held);
        }
        if !self.growth.take(me) {
            return Err(Parked::Growth);
        }
        if let Err(parked) = self.lock_all(me, &[own], held) {
            self.release_growth(me);
            return Err(parked);
        }
        self.places[own].lock.mark_long(me);
        self.look(me, own, true, held);
        Ok(true)
    }

    fn release_growth(&self, me: Owner) {
        if self.growth.release(me) {
            self.parking.release(Parked::Growth);
        }
    }

    fn fill(&self, i: usize, own: usize) {
        let (me, mut held) = (Owner::of_worker(i), Vec::new());
        match self.reach(me, own, &mut held) {
            Ok(grown) => {
                // Serving: along the movers, every slot of which is held now.
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

    /// Somebody comes to wait at `from`, and needs `to`.
    fn wait(&self, i: usize, from: usize, to: usize) {
        let (me, mut held) = (Owner::of_worker(i), Vec::new());
        if self.lock_all(me, &[from], &mut held).is_ok() {
            self.places[from].mover.store(to, Ordering::Relaxed);
        }
        self.unlock_all(me, &mut held);
    }
}

/// Three who fill slots whose movers lie across each other, and one who comes to wait meanwhile: everybody ends, and
/// each serves along the whole chain under its own locks.
#[test]
fn who_fills_reaches_all_that_serving_needs() {
    check(|| {
        let woken = Arc::new(Woken::default());
        let parking = Parking::default();
        parking.set_waker(Box::new(Tell(Arc::clone(&woken))));
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
