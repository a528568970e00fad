//! A panic at each place where it could affect other threads. The threads have real Accesses and
//! guards; one of them unwinds ([`unwind`]) up to the place where the server catches panics. The
//! others see the keyspace as if the panicking command never ran, and no thread hangs.

mod exec;
mod further;
mod growing;
mod locks;
mod sweep;
mod thaws;
mod waiting;
mod walks;
mod world;

use super::{Bells, check_often as check, spawn_each};
use crate::further::FURTHER_MAX;
use crate::lock::Owner;
use crate::stats::{WorkerStats, get};
use crate::{Access, Event, EventClass, Guard, Intent, Keyspace, Options, Parked, Turn, WatchCell};
use base::sync::{Arc, Unwound, net, thread, unwind};
use base::{DbIndex, SlotId, UnixMs};
use shuttle::rand::{Rng, thread_rng};
use value::{NewStr, Str};

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
const TOLD: Event = Event::new(&(EventClass::Generic, "told"));
const A: &[u8] = b"a";
const B: &[u8] = b"b";
const C: &[u8] = b"c";

/// Panics at one of `places` numbered places, chosen anew in each run.
fn place(places: u32) -> impl Fn(u32) {
    let chosen = thread_rng().gen_range(0..places);
    move |here| {
        if here == chosen {
            unwind();
        }
    }
}

/// What one worker does.
type Thread = Box<dyn FnOnce(&Model, Worker) + Send>;

/// A keyspace of some workers.
struct Model {
    ks: Arc<Keyspace>,
    bells: Arc<Bells>,
}

impl Model {
    fn new(workers: usize) -> Arc<Self> {
        let options = Options { databases: 2, hash_secret: 7, workers };
        let ks = Arc::new(Keyspace::with_table_bytes(&options, 1 << 16));
        let bells = Bells::new(workers);
        ks.set_waker(Box::new(Arc::clone(&bells)));
        Arc::new(Self { ks, bells })
    }

    fn worker(&self, index: usize) -> Worker {
        let access = Access::new(Arc::clone(&self.ks), index);
        Worker { access, bells: Arc::clone(&self.bells), turn: None, passes: false }
    }

    /// Runs `f` under World, before the threads start or after they have ended.
    fn with_all<R>(&self, f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
        let mut access = Access::new(Arc::clone(&self.ks), 0);
        access.try_world().expect("nobody is inside");
        let mut guard = access.world(NOW);
        let result = f(&mut guard);
        guard.commit();
        drop(guard);
        access.open_world();
        while access.reclaim(usize::MAX >> 1) {}
        result
    }

    /// Watches a key; the cell is marked when the key changes.
    fn watch(&self, key: &[u8]) -> Arc<WatchCell> {
        let cell = WatchCell::new();
        self.with_all(|guard| guard.watch(DB, &self.ks.key(key), &cell));
        cell
    }

    /// Runs each function in a thread of its own, with a worker of its own.
    fn run_all(self: &Arc<Self>, threads: Vec<Thread>) {
        spawn_each(threads.into_iter().enumerate().map(|(index, run)| {
            let model = Arc::clone(self);
            move || run(&model, model.worker(index))
        }));
    }

    /// Checks the final state: no lock is held, the gate is open, no session waits, and the
    /// counters match the content: they are zero after everything is deleted.
    fn is_whole(&self) {
        let (ks, other) = (&self.ks, Owner::numbered(self.ks.workers() + 1));
        assert!(!ks.gate.is_closed() && !ks.turns.are_awaited(), "the ways are free");
        assert!(ks.growth.try_take(other) && !ks.growth.release(other), "nobody grows");
        for slot in SlotId::all() {
            let lock = &ks.slot(slot).lock;
            assert!(lock.try_lock(other) && !lock.unlock(other).parked, "{slot:?} is free");
        }
        for number in 0..ks.workers() {
            assert!(ks.gate.is_idle(number), "number {number} is outside");
        }
        self.with_all(|guard| _ = guard.flush_all());
        // Sums over all workers are never negative.
        let sum = |counter: &dyn Fn(&WorkerStats) -> i64| -> i64 {
            (0..ks.workers() + FURTHER_MAX).map(|number| counter(ks.stats(number))).sum()
        };
        assert_eq!((sum(&|stats| get(&stats.used)), sum(&|stats| get(&stats.waited))), (0, 0));
        for physical in 0..2 {
            let keys = sum(&|stats| get(&stats.of(physical).keys));
            assert_eq!((keys, sum(&|stats| get(&stats.of(physical).expires))), (0, 0));
            assert_eq!((ks.due_sum(physical), ks.bytes_sum(physical)), (0, 0));
        }
    }
}

/// A worker with one session.
struct Worker {
    access: Access,
    bells: Arc<Bells>,
    turn: Option<Turn>,
    passes: bool,
}

impl Worker {
    /// Retries a command until it succeeds or panics, as a window of the server does.
    fn run(
        &mut self,
        mut command: impl FnMut(&mut Access) -> Result<(), Parked>,
    ) -> Result<(), Unwound> {
        for _ in 0..100 {
            let inside = self.access.enter_or_stay_beside();
            self.access.set_exempt_from_turns(self.passes || self.turn.is_some());
            let ran =
                if inside { net(|| command(&mut self.access)) } else { Ok(Err(Parked::Gate)) };
            // `Core::after_panic`, which ends the session, and so its turn.
            if ran.is_err() && self.access.holds_world() {
                self.access.open_world();
                self.access.enter_or_stay_beside();
            }
            let parks = match ran {
                Ok(Err(at)) => self.park(at),
                _ => false,
            };
            self.access.leave();
            match ran {
                Ok(Err(_)) if parks => self.bells.wait(self.access.number()),
                Ok(Err(_)) => {}
                Ok(Ok(())) | Err(_) => {
                    (self.turn, self.passes) = (None, false);
                    return ran.map(|_| ());
                }
            }
        }
        panic!("turned back each time");
    }

    /// As `Core::park`: a session that was refused because of a long holder waits for a turn.
    fn park(&mut self, at: Parked) -> bool {
        match at {
            Parked::Section(_) | Parked::Slot(_) => {
                self.turn.get_or_insert_with(|| Turn::wait(&self.access.ks));
            }
            Parked::Turn => self.passes = true,
            _ => {}
        }
        self.access.park(at, 0)
    }

    /// A command that adds to keys.
    fn add(&mut self, keys: &[&[u8]]) {
        self.run(|access| with_keys(access, keys, |guard| keys.iter().for_each(|k| add(guard, k))))
            .expect("it does not panic");
    }
}

/// Runs a command with the slots of these keys locked, and commits it.
fn with_keys(
    access: &mut Access,
    keys: &[&[u8]],
    command: impl FnOnce(&mut Guard<'_>),
) -> Result<(), Parked> {
    let mut slots: Vec<_> = keys.iter().map(|key| access.ks.key(key).slot).collect();
    slots.sort_unstable();
    slots.dedup();
    let mut guard = match slots[..] {
        [slot] => access.lock_one(slot, NOW, Intent::Write)?,
        _ => access.lock(&slots, NOW, Intent::Write)?,
    };
    command(&mut guard);
    guard.commit();
    Ok(())
}

/// A command on everything.
fn with_world(access: &mut Access, command: impl FnOnce(&mut Guard<'_>)) -> Result<(), Parked> {
    access.step_beside();
    let result = access.try_world().map(|()| {
        let mut guard = access.world(NOW);
        command(&mut guard);
        guard.commit();
        drop(guard);
        access.open_world();
    });
    access.enter_or_stay_beside();
    result
}

fn number(guard: &mut Guard<'_>, key: &[u8]) -> Option<i64> {
    let key = guard.keyspace().key(key);
    guard.read(DB, &key).map(|entry| match entry.str() {
        Str::Int(number) => number,
        _ => panic!("a number"),
    })
}

fn set(guard: &mut Guard<'_>, key: &[u8], number: i64, expiry: Option<UnixMs>) {
    let key = guard.keyspace().key(key);
    guard.insert(TOLD, DB, &key, NewStr::Int(number), expiry);
}

/// Adds one in two steps, so that missing exclusion loses an update.
fn add(guard: &mut Guard<'_>, key: &[u8]) {
    let before = number(guard, key).unwrap_or(0);
    thread::yield_now();
    set(guard, key, before + 1, None);
}
