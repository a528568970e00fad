//! The only worker under the model checker: it executes while further Accesses are created, lock,
//! close World and are dropped. Missing exclusion shows as a lost update. Each part of the protocol
//! has a variant without it, which the model must find. (The model has no weak memory: it cannot
//! check that the drop of the last further Access is a Release.)

use super::Claims;
use crate::gate::Gate;
use crate::lock::{HeldLong, Owner, SlotLock};
use crate::models::check_often;
use crate::stand::Stand;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Arc, futex_wait, futex_wake, thread};
use std::panic::catch_unwind;

const ITERATIONS: usize = 10_000;

/// The part of the protocol which a variant leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// A worker which creates a further Access continues as if it were alone.
    LeavingAlone,
    /// The gate still reports that there is only one worker.
    TellingTheGate,
    /// A worker which creates a further Access inside its section is not marked as inside.
    MarkingTheSection,
    /// The first further Access which is dropped makes the worker alone again, although another one
    /// exists.
    WaitingForTheLast,
    /// A further Access releases its number while it holds a lock.
    UnlockingFirst,
    /// A long holder of the only worker does not mark itself as long.
    AskingTheStand,
}

struct Keyspace {
    gate: Gate,
    claims: Claims,
    lock: SlotLock,
    /// Its increment takes two steps.
    counter: AtomicU32,
    bumps: AtomicU32,
    without: Without,
}

impl Keyspace {
    fn of_one_worker(without: Without) -> Arc<Self> {
        Arc::new(Self {
            gate: Gate::new(1),
            claims: Claims::new(1),
            lock: SlotLock::new(),
            counter: AtomicU32::new(0),
            bumps: AtomicU32::new(0),
            without,
        })
    }

    fn bump(&self) {
        let n = self.counter.load(Ordering::Relaxed);
        thread::yield_now();
        self.counter.store(n + 1, Ordering::Relaxed);
        self.bumps.fetch_add(1, Ordering::SeqCst);
    }

    fn is_whole(&self) {
        let bumps = self.bumps.load(Ordering::SeqCst);
        assert_eq!(self.counter.load(Ordering::Relaxed), bumps, "an update is lost");
    }
}

/// As [`crate::Access`].
struct Access {
    ks: Arc<Keyspace>,
    index: usize,
    stand: Stand,
}

impl Access {
    fn worker(ks: &Arc<Keyspace>) -> Self {
        ks.claims.claim_worker(0);
        Self { ks: Arc::clone(ks), index: 0, stand: Stand::Outside }
    }

    fn further(&mut self) -> Self {
        let ks = &self.ks;
        let stood = self.stand;
        let index = ks.claims.claim_further(&ks.gate, self.index, &mut self.stand);
        match ks.without {
            Without::LeavingAlone => {
                assert!(!ks.gate.leave(self.index), "nobody waits yet");
                self.stand = stood;
            }
            Without::TellingTheGate => ks.gate.begin_alone(),
            Without::MarkingTheSection => assert!(!ks.gate.leave(self.index), "nobody waits yet"),
            _ => {}
        }
        Self { ks: Arc::clone(ks), index: index.expect("there is room"), stand: Stand::Outside }
    }

    fn me(&self) -> Owner {
        Owner::numbered(self.index)
    }

    fn lock(&self) -> Result<(), HeldLong> {
        if !self.stand.try_lock(&self.ks.lock, self.me()) {
            self.ks.lock.lock_slow(self.me())?;
        }
        Ok(())
    }

    fn unlock(&self) {
        assert!(!self.stand.unlock(&self.ks.lock, self.me()), "nobody parks in this model");
    }

    /// A command on the slot.
    fn command(&self) {
        self.lock().expect("no long holder");
        self.ks.bump();
        self.unlock();
    }

    fn enter(&mut self) -> bool {
        let inside = self.stand.enter(&self.ks.gate, self.index);
        if !inside {
            self.leave();
        }
        inside
    }

    fn leave(&mut self) {
        assert!(!self.stand.leave(&self.ks.gate, self.index), "nobody parks in this model");
    }

    fn batch(&mut self) {
        if self.enter() {
            self.command();
            self.leave();
        }
    }

    /// A command under World, if it gets World.
    fn world(&mut self) {
        let ks = &self.ks;
        let parked = self.stand.step_beside(&ks.gate, self.index);
        assert!(!parked, "nobody parks in this model");
        if ks.gate.close(self.index, self.me(), 0).is_ok() {
            ks.bump();
        }
        if ks.gate.is_closed_by(self.me()) {
            assert!(!ks.gate.open(self.me()), "nobody parks in this model");
        }
        self.leave();
    }

    fn end(mut self) {
        let Keyspace { gate, claims, without, .. } = &*self.ks;
        if *without == Without::UnlockingFirst && self.stand.enter(gate, self.index) {
            // As if the Access were dropped before its guard.
            self.lock().expect("no long holder");
            claims.release(gate, self.index);
            self.ks.bump();
            self.unlock();
            self.leave();
            return;
        }
        self.leave();
        let Keyspace { gate, claims, without, .. } = &*self.ks;
        claims.release(gate, self.index);
        if *without == Without::WaitingForTheLast {
            gate.begin_alone();
        }
    }
}

/// The worker creates a further Access in a batch or between two batches. That one creates another
/// one and takes World.
fn model(without: Without) {
    let ks = Keyspace::of_one_worker(without);
    let mut worker = Access::worker(&ks);
    worker.batch();
    assert!(worker.enter() && worker.stand == Stand::Alone, "nobody else is there");
    worker.command();
    let mut first = worker.further();
    let other = thread::spawn(move || {
        let mut second = first.further();
        let another = thread::spawn(move || {
            second.batch();
            second.end();
        });
        first.world();
        first.batch();
        first.end();
        another.join().expect("no thread panics");
    });
    worker.command();
    worker.leave();
    worker.batch();
    worker.world();
    worker.batch();
    worker.batch();
    other.join().expect("no thread panics");
    assert!(worker.enter() && worker.stand == Stand::Alone, "it is alone again");
    worker.command();
    worker.leave();
    // Once more, outside a section.
    let mut third = worker.further();
    let other = thread::spawn(move || {
        third.batch();
        third.end();
    });
    worker.batch();
    worker.batch();
    other.join().expect("no thread panics");
    ks.is_whole();
}

fn check(without: Without) {
    check_often(ITERATIONS, move || model(without));
}

#[test]
fn a_worker_is_alone_only_without_further_accesses() {
    check(Without::Nothing);
}

/// Two threads which hold the slot at the same time lose an update, or one of them unlocks the
/// other's lock and misses a sleeper.
fn assert_found(without: Without) {
    let found = catch_unwind(move || check(without)).expect_err("it is found");
    let message = found.downcast_ref::<String>().expect("an assertion with its values");
    let signs = ["an update is lost", "only the holder unlocks", "deadlock"];
    assert!(signs.iter().any(|sign| message.contains(sign)), "{message}");
}

#[test]
fn the_model_finds_a_worker_which_continues_alone() {
    assert_found(Without::LeavingAlone);
}

#[test]
fn the_model_finds_a_gate_which_reports_one_worker() {
    assert_found(Without::TellingTheGate);
}

#[test]
fn the_model_finds_an_unmarked_section() {
    assert_found(Without::MarkingTheSection);
}

#[test]
fn the_model_finds_a_worker_alone_beside_a_further_access() {
    assert_found(Without::WaitingForTheLast);
}

#[test]
fn the_model_finds_a_number_released_under_a_lock() {
    assert_found(Without::UnlockingFirst);
}

/// The only worker is a long holder of a slot until a further Access has met it.
fn long_holder(without: Without) {
    let ks = Keyspace::of_one_worker(without);
    let mut worker = Access::worker(&ks);
    assert!(worker.enter());
    let mut further = worker.further();
    worker.lock().expect("it is free");
    let met = Arc::new(AtomicU32::new(0));
    let tell = Arc::clone(&met);
    let other = thread::spawn(move || {
        assert!(further.enter());
        assert_eq!(further.lock(), Err(HeldLong));
        assert!(further.ks.gate.close(further.index, further.me(), 0).is_err());
        tell.store(1, Ordering::SeqCst);
        futex_wake(&tell, 1);
        further.leave();
        further.end();
    });
    // As `Guard::mark_long`.
    let tells = match without {
        Without::AskingTheStand => ks.claims.workers() > 1,
        _ => worker.stand != Stand::Alone,
    };
    if tells {
        ks.gate.mark_long(0);
        ks.lock.mark_long(worker.me());
    }
    while met.load(Ordering::SeqCst) == 0 {
        futex_wait(&met, 0);
    }
    worker.unlock();
    worker.leave();
    other.join().expect("no thread panics");
}

#[test]
fn an_access_does_not_sleep_behind_the_only_worker() {
    check_often(ITERATIONS, || long_holder(Without::Nothing));
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_long_holder_which_checks_the_worker_count() {
    check_often(ITERATIONS, || long_holder(Without::AskingTheStand));
}
