//! Slot locks, the gate, the growth token and turns together, each as the keyspace uses it.

use super::{Bells, Fragile, check, spawn_all};
use crate::gate::{Gate, Refused};
use crate::growth::Growth;
use crate::lock::{Owner, SlotLock};
use crate::parking::{Parked, Parking};
use crate::turn::Turns;
use base::SlotId;
use base::sync::Arc;
use base::sync::atomic::{AtomicU32, Ordering};

/// Slots, the gate, the token and turns: a keyspace without keys. Each of its threads retries one
/// command until it succeeds, and parks in between where it was refused.
struct Frame {
    gate: Gate,
    growth: Growth,
    slots: Vec<(SlotLock, Fragile)>,
    parking: Parking,
    turns: Turns,
    bells: Arc<Bells>,
    bumps: AtomicU32,
    /// How often World was refused because of a thread that had marked itself as long.
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

    /// Retries `command` until it succeeds.
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
                Parked::Frozen(_) | Parked::Thaw | Parked::Freeze => {
                    unreachable!("nothing is frozen")
                }
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

    /// A grower, which locks its slots in any order.
    fn grow(&self, i: usize, set: &[usize], passes: bool) -> Result<(), Parked> {
        let me = Owner::numbered(i);
        self.inside(i, || {
            self.may_be_long(passes)?;
            if !self.growth.try_take(me) {
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

    /// Checks the final state.
    fn is_whole(&self) {
        let bumped: u32 = self.slots.iter().map(|(_, counter)| counter.value()).sum();
        assert_eq!(bumped, self.bumps.load(Ordering::SeqCst), "one at a time in each slot");
        assert!(!self.gate.is_closed() && !self.turns.are_awaited());
    }
}

/// Runs one command in each thread; a lost wake-up is a deadlock.
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

/// Two growers that lock the same slots in opposite order, and two ordinary commands with lock sets
/// that overlap theirs: all of them run, one at a time in each slot.
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

/// A grower meets long holders: it releases everything, and gets its turn.
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

/// Walks meet a long holder and a short one: they park while another thread sleeps on the same
/// slot.
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

/// World and long holders, two of which arrive while it waits.
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

/// Two threads that want World, a grower and a long holder: all of them get their turn.
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

/// Two workers are long repeatedly. Once World has been refused because of both, they are kept out.
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
            // Once before it waited, and once for each worker that was long by then or had passed
            // its check.
            let gave_way = shared.gave_way.load(Ordering::SeqCst);
            assert!(gave_way <= 3, "turned back {gave_way} times");
        });
        frame.is_whole();
    });
}
