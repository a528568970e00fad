//! The synchronisation kernels under the model checker:
//! `RUSTFLAGS='--cfg shuttle' cargo test -p sheafdb-keyspace --target-dir target/shuttle models`.
//!
//! A lost wake is a deadlock of the model, and a broken exclusion a lost update.

mod filling;
mod frame;
mod journal;
mod panics;

use crate::gate::{Gate, Refused};
use crate::lock::{Owner, SlotLock};
use crate::parking::{Parked, Parking, Waker};
use base::SlotId;
use base::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use base::sync::{Arc, Mutex, futex_wait, futex_wake, thread};
use shuttle::scheduler::PctScheduler;
use shuttle::{Config, Runner};

const ITERATIONS: usize = 20_000;
/// How often the scheduler preempts a thread which could continue.
const STEPS_MAX: usize = 3;
/// Unwinding needs more stack than shuttle's default.
const STACK_BYTES: usize = 1 << 18;

/// Runs a model on `iterations` schedules.
pub(crate) fn check_often(iterations: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(PctScheduler::new(STEPS_MAX, iterations), config).run(model);
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    check_often(ITERATIONS, model);
}

/// A counter whose increment takes two steps, so that missing exclusion loses an update.
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

/// Runs `f` in `n` threads. Its argument is the thread's number.
pub(crate) fn spawn_all(n: usize, f: impl Fn(usize) + Send + Sync + 'static) {
    let f = Arc::new(f);
    spawn_each((0..n).map(|i| {
        let f = Arc::clone(&f);
        move || f(i)
    }));
}

/// Runs each of these in its own thread.
fn spawn_each(each: impl IntoIterator<Item = impl FnOnce() + Send + 'static>) {
    let threads: Vec<_> = each.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().expect("no panic leaves a thread");
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
                    shared.0.lock_slow(me).expect("no long holder");
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

struct WakeRecorder(Arc<Woken>);

impl Waker for WakeRecorder {
    fn wake(&self, worker: usize, token: u64) {
        self.0.0.lock().expect("no panic under it").push((worker, token));
    }
}

/// A long holder among other threads: each thread which meets it gets an error, and is then queued
/// or finds the slot free. Every queued session is woken.
#[test]
fn sessions_parked_behind_a_long_holder_are_all_woken() {
    check(|| {
        let slot = SlotId::new(7);
        let woken = Arc::new(Woken::default());
        let parking = Arc::new(Parking::default());
        parking.set_waker(Box::new(WakeRecorder(Arc::clone(&woken))));
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

/// Like `Access::try_world`: opens the gate again if closing did not succeed.
fn try_world(gate: &Gate, worker: usize, doubled: u32) -> Result<(), Refused> {
    let me = Owner::numbered(worker);
    let closed = gate.close(worker, me, doubled);
    if closed.is_err() && gate.is_closed_by(me) {
        assert!(!gate.open(me), "nobody parks at the gate in these models");
    }
    closed
}

/// While World is held no thread is inside.
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

/// Two workers inside their sections both want World: one gets it, the other parks or finds the
/// gate open, and neither waits forever.
#[test]
fn two_closers_do_not_deadlock() {
    check(|| {
        let gate = Arc::new(Gate::new(2));
        let woken = Arc::new(Woken::default());
        let parking = Arc::new(Parking::default());
        parking.set_waker(Box::new(WakeRecorder(Arc::clone(&woken))));
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

/// Overlapping lock sets, taken in ascending order.
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
                    shared[at].0.lock_slow(me).expect("no long holder");
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

/// Wakes a model thread which waits for its session.
struct Bells(Vec<AtomicU32>);

impl Bells {
    fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self((0..threads).map(|_| AtomicU32::new(0)).collect()))
    }

    /// Waits until the thread is woken. Called once each time it has parked.
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
