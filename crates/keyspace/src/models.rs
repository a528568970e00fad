//! The synchronisation kernels under the model checker:
//! `RUSTFLAGS='--cfg shuttle' cargo test -p sheafdb-keyspace --target-dir target/shuttle models`.
//!
//! A wake-up that is lost is a deadlock of the model, and a broken exclusion a lost update.

use crate::gate::{Gate, Refused};
use crate::growth::Growth;
use crate::lock::{Owner, SlotLock};
use crate::parking::{Parked, Parking, Waker};
use crate::turn::Turns;
use base::SlotId;
use base::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use base::sync::{Arc, Mutex, futex_wait, futex_wake, thread};

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
            let me = Owner::numbered(i);
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
            let me = Owner::numbered(i);
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

/// As `Access::try_world`, which opens what it could not close altogether.
fn try_world(gate: &Gate, worker: usize, doubled: u32) -> Result<(), Refused> {
    let me = Owner::numbered(worker);
    let closed = gate.close(worker, me, doubled);
    if closed.is_err() && gate.is_closed_by(me) {
        assert!(!gate.open(me), "nobody parks at the gate in these models");
    }
    closed
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
            let me = Owner::numbered(i);
            if i == 0 {
                // World: alone with the counter.
                if try_world(&gate2, 0, 0).is_ok() {
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
            }
            assert!(!gate2.leave(i), "nobody parks in this model");
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
            let me = Owner::numbered(i);
            let was_inside = gate2.enter(i);
            let closed = gate2.close(i, me, 0);
            if gate2.is_closed_by(me) {
                if gate2.open(me) {
                    parking2.release(Parked::Gate);
                }
            } else if closed == Err(Refused::Closed)
                && parking2.park(Parked::Gate, i, i as u64, || gate2.mark_parked())
            {
                parked2.fetch_add(1, Ordering::SeqCst);
            }
            assert!(!gate2.leave(i), "nobody waits for a section");
            assert!(was_inside || closed.is_ok() || closed.is_err());
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
            let me = Owner::numbered(i);
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

/// Wakes a thread of the model that waits for its session.
struct Bells(Vec<AtomicU32>);

impl Bells {
    fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self((0..threads).map(|_| AtomicU32::new(0)).collect()))
    }

    /// Until it is woken, once for each time that it has parked.
    fn wait(&self, thread: usize) {
        while self.0[thread].load(Ordering::SeqCst) == 0 {
            futex_wait(&self.0[thread], 0);
        }
        self.0[thread].fetch_sub(1, Ordering::SeqCst);
    }
}

impl Waker for Arc<Bells> {
    fn wake(&self, worker: usize, _: u64) {
        self.0[worker].fetch_add(1, Ordering::SeqCst);
        futex_wake(&self.0[worker], 1);
    }
}

/// Slots, the gate, the token and turns: a keyspace without keys. Each of its threads runs one command until it has
/// run; what it is turned back by it parks at.
struct Frame {
    gate: Gate,
    growth: Growth,
    slots: Vec<(SlotLock, Fragile)>,
    parking: Parking,
    turns: Turns,
    bells: Arc<Bells>,
    bumps: AtomicU32,
    /// How often World was turned back by who had said that it is long.
    gave_way: AtomicU32,
}

impl Frame {
    fn new(threads: usize, slots: usize) -> Arc<Self> {
        let (parking, bells) = (Parking::default(), Bells::new(threads));
        parking.set_waker(Box::new(Arc::clone(&bells)));
        Arc::new(Self {
            gate: Gate::new(threads),
            growth: Growth::default(),
            slots: (0..slots).map(|_| (SlotLock::new(), Fragile::default())).collect(),
            parking,
            turns: Turns::default(),
            bells,
            bumps: AtomicU32::new(0),
            gave_way: AtomicU32::new(0),
        })
    }

    /// Runs `command` until it has run.
    fn run(&self, i: usize, command: impl Fn(&Self, bool) -> Result<(), Parked>) {
        let (mut tries, mut awaits, mut passes) = (0, false, false);
        while let Err(at) = command(self, passes || awaits) {
            tries += 1;
            assert!(tries < 100, "turned back each time");
            passes |= at == Parked::Turn;
            if matches!(at, Parked::Section(_) | Parked::Slot(_)) && !awaits {
                awaits = true;
                self.turns.begin();
            }
            let waits = self.parking.park(at, i, 0, || match at {
                Parked::Slot(slot) => self.slots[slot.index()].0.mark_parked(),
                Parked::Gate => self.gate.mark_parked(),
                Parked::Section(worker) => self.gate.mark_awaited(worker),
                Parked::Turn => self.turns.are_awaited(),
                Parked::Growth => self.growth.mark_parked(),
                Parked::Frozen(_) | Parked::Thaw => unreachable!("nothing is frozen"),
            });
            if waits {
                self.bells.wait(i);
            }
        }
        if awaits {
            self.turns.end();
            self.parking.release(Parked::Turn);
        }
    }

    fn leave(&self, i: usize) {
        if self.gate.leave(i) {
            self.parking.release(Parked::Section(i));
        }
    }

    fn inside(&self, i: usize, f: impl FnOnce() -> Result<(), Parked>) -> Result<(), Parked> {
        let result = if self.gate.enter(i) { f() } else { Err(Parked::Gate) };
        self.leave(i);
        result
    }

    fn unlock(&self, i: usize, set: &[usize]) {
        for &at in set {
            if self.slots[at].0.unlock(Owner::numbered(i)).parked {
                self.parking.release(Parked::Slot(SlotId::new(at as u16)));
            }
        }
    }

    fn bump(&self, set: &[usize]) {
        set.iter().for_each(|&at| self.slots[at].1.bump());
        self.bumps.fetch_add(set.len() as u32, Ordering::SeqCst);
    }

    fn may_be_long(&self, passes: bool) -> Result<(), Parked> {
        if !passes && self.turns.are_awaited() { Err(Parked::Turn) } else { Ok(()) }
    }

    /// A command with a lock set, long or not.
    fn lock_set(&self, i: usize, set: &[usize], long: bool, passes: bool) -> Result<(), Parked> {
        let me = Owner::numbered(i);
        self.inside(i, || {
            if long {
                self.may_be_long(passes)?;
            }
            for (n, &at) in set.iter().enumerate() {
                let lock = &self.slots[at].0;
                if !lock.try_lock(me) && lock.lock_slow(me).is_err() {
                    self.unlock(i, &set[..n]);
                    return Err(Parked::Slot(SlotId::new(at as u16)));
                }
            }
            if long {
                self.gate.mark_long(i);
                set.iter().for_each(|&at| self.slots[at].0.mark_long(me));
            }
            self.bump(set);
            self.unlock(i, set);
            Ok(())
        })
    }

    /// A grower, which comes upon its slots in any order.
    fn grow(&self, i: usize, set: &[usize], passes: bool) -> Result<(), Parked> {
        let me = Owner::numbered(i);
        self.inside(i, || {
            self.may_be_long(passes)?;
            if !self.growth.take(me) {
                return Err(Parked::Growth);
            }
            self.gate.mark_long(i);
            let cover = |&at: &usize| self.growth.lock(&self.slots[at].0, me).is_ok();
            let covered = set.iter().take_while(|at| cover(at)).count();
            if covered == set.len() {
                self.bump(set);
            }
            self.unlock(i, &set[..covered]);
            if self.growth.release(me) {
                self.parking.release(Parked::Growth);
            }
            let missing = set.get(covered);
            missing.map_or(Ok(()), |&at| Err(Parked::Slot(SlotId::new(at as u16))))
        })
    }

    /// A walk over some slots, one at a time.
    fn walk(&self, i: usize, set: &[usize]) -> Result<(), Parked> {
        let me = Owner::numbered(i);
        self.inside(i, || {
            for &at in set {
                let lock = &self.slots[at].0;
                if !lock.try_lock(me) && lock.lock_briefly(me).is_err() {
                    return Err(Parked::Slot(SlotId::new(at as u16)));
                }
                self.unlock(i, &[at]);
            }
            Ok(())
        })
    }

    /// A command on everything.
    fn world(&self, i: usize, doubled: u32) -> Result<(), Parked> {
        let me = Owner::numbered(i);
        let closed = self.gate.close(i, me, doubled);
        if closed.is_ok() {
            self.bump(&(0..self.slots.len()).collect::<Vec<_>>());
        }
        if !self.gate.is_closed_by(me) {
            self.gave_way.fetch_add((closed != Err(Refused::Closed)).into(), Ordering::SeqCst);
        } else if self.gate.open(me) {
            self.parking.release(Parked::Gate);
        }
        closed.map_err(|refused| match refused {
            Refused::Closed => Parked::Gate,
            Refused::Inside(worker) => Parked::Section(worker),
        })
    }

    /// When all have run.
    fn is_whole(&self) {
        let bumped: u32 = self.slots.iter().map(|(_, counter)| counter.value()).sum();
        assert_eq!(bumped, self.bumps.load(Ordering::SeqCst), "one at a time in each slot");
        assert!(!self.gate.is_closed() && !self.turns.are_awaited());
    }
}

/// Runs one command in each thread, each until it has run: a wake-up that is lost is a deadlock.
fn frame(slots: usize, commands: &'static [fn(&Frame, usize, bool) -> Result<(), Parked>]) {
    check(move || {
        let frame = Frame::new(commands.len(), slots);
        let shared = Arc::clone(&frame);
        spawn_all(commands.len(), move |i| {
            shared.run(i, |frame, passes| commands[i](frame, i, passes));
        });
        frame.is_whole();
    });
}

/// Two growers that take the same slots in opposite order, and two ordinary commands with lock sets
/// that lie across theirs: everybody has its turn, one at a time in each slot.
#[test]
fn growers_and_lock_sets_do_not_deadlock() {
    frame(
        3,
        &[
            |f, i, passes| f.grow(i, &[2, 0], passes),
            |f, i, passes| f.grow(i, &[0, 2], passes),
            |f, i, passes| f.lock_set(i, &[0, 1], false, passes),
            |f, i, passes| f.lock_set(i, &[1, 2], false, passes),
        ],
    );
}

/// A grower meets long holders: it gives everything back, and has its turn.
#[test]
fn a_grower_gives_back_behind_long_holders() {
    frame(
        3,
        &[
            |f, i, passes| f.grow(i, &[1, 0], passes),
            |f, i, passes| f.grow(i, &[2, 1], passes),
            |f, i, passes| f.lock_set(i, &[0, 2], true, passes),
            |f, i, passes| f.lock_set(i, &[0, 1], true, passes),
        ],
    );
}

/// Walks meet a long holder and a short one: they park, beside one who sleeps on the same slot.
#[test]
fn walks_park_behind_holders() {
    frame(
        2,
        &[
            |f, i, _| f.walk(i, &[0, 1]),
            |f, i, _| f.walk(i, &[0]),
            |f, i, passes| f.lock_set(i, &[0], true, passes),
            |f, i, passes| f.lock_set(i, &[0, 1], false, passes),
        ],
    );
}

/// World beside long holders, two of which come when it waits already.
#[test]
fn world_has_its_turn_among_long_holders() {
    frame(
        2,
        &[
            |f, i, _| f.world(i, 0),
            |f, i, passes| f.lock_set(i, &[0], true, passes),
            |f, i, passes| f.lock_set(i, &[0, 1], true, passes),
            |f, i, passes| f.lock_set(i, &[1], false, passes),
        ],
    );
}

/// Two who want World, a grower and a long holder: everybody has its turn.
#[test]
fn everybody_has_its_turn() {
    frame(
        2,
        &[
            |f, i, _| f.world(i, 1),
            |f, i, _| f.world(i, 0),
            |f, i, passes| f.grow(i, &[1, 0], passes),
            |f, i, passes| f.lock_set(i, &[0], true, passes),
        ],
    );
}

/// Two workers are long again and again. Once World has been turned back by both, they are kept out.
#[test]
fn a_world_that_waits_keeps_new_long_holders_out() {
    const ROUNDS: u32 = 8;
    check(|| {
        let frame = Frame::new(3, 2);
        let shared = Arc::clone(&frame);
        spawn_all(3, move |i| {
            if i > 0 {
                for _ in 0..ROUNDS {
                    shared.run(i, |f, passes| f.lock_set(i, &[i - 1], true, passes));
                }
                return;
            }
            shared.run(i, |f, _| f.world(i, 0));
            // By one before it waited, and by each of them that was long, or past asking, by then.
            let gave_way = shared.gave_way.load(Ordering::SeqCst);
            assert!(gave_way <= 3, "turned back {gave_way} times");
        });
        frame.is_whole();
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

    /// Walks from `own` over the movers; the first slot that is not to be had, if any. A grower may meet a long holder.
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
                if self.growth.lock(&self.places[at].lock, me).is_err() {
                    return Some(at);
                }
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
        if let Some(missing) = self.look(me, own, true, held) {
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
        let (me, mut held) = (Owner::numbered(i), Vec::new());
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
