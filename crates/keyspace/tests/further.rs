//! Further Accesses with real threads, next to a worker which first ran without them: each rolls
//! back only its own changes, and no update is lost.
#![cfg(not(shuttle))]

use base::sync::{Arc, Mutex, thread};
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Access, Due, Event, Guard, Intent, Key, Keyspace, Options, Parked, Waker};
use std::time::{Duration, Instant};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
const KEYS: usize = 3;
/// Rounds of every thread.
const ROUNDS: usize = 3_000;
/// How long a thread waits for others before the test fails.
const PATIENCE: Duration = Duration::from_secs(40);

fn one_worker() -> (Arc<Keyspace>, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 5, workers: 1 }));
    let access = Access::new(Arc::clone(&ks), 0);
    (ks, access)
}

fn name(n: usize) -> String {
    format!("counter{n}")
}

/// Runs one command on this slot in a batch of its own. Retries behind a long holder or a closed
/// gate.
fn with<R>(access: &mut Access, slot: SlotId, mut f: impl FnMut(&mut Guard<'_>) -> R) -> R {
    let began = Instant::now();
    loop {
        if access.enter() {
            let result = access.lock_one(slot, NOW, Intent::Write).map(|mut guard| f(&mut guard));
            access.leave();
            if let Ok(result) = result {
                return result;
            }
        }
        assert!(began.elapsed() < PATIENCE, "it does not get in");
        thread::yield_now();
    }
}

fn number(guard: &mut Guard<'_>, key: &Key<'_>) -> i64 {
    guard.peek(DB, key).map_or(0, |entry| entry.str().as_int().expect("a number"))
}

fn increment(guard: &mut Guard<'_>, key: &Key<'_>) {
    let next = number(guard, key) + 1;
    guard.insert(Event::SILENT, DB, key, NewStr::Int(next), None);
}

/// Increments, some of which are rolled back, and texts which allocate and free memory. Returns the
/// number of committed increments.
fn work(access: &mut Access, rounds: usize, seed: usize) -> i64 {
    let ks = Arc::clone(access.keyspace());
    let mut stand = 0;
    for round in 0..rounds {
        let name = name((round + seed) % KEYS);
        let key = ks.key(name.as_bytes());
        let keeps = !(round + seed).is_multiple_of(7);
        with(access, key.slot, |guard| {
            increment(guard, &key);
            if round.is_multiple_of(64) {
                thread::yield_now();
            }
            if keeps {
                guard.commit();
            } else {
                guard.rollback();
            }
        });
        stand += i64::from(keeps);
        let text = format!("text{}", round % 50);
        let key = ks.key(text.as_bytes());
        let bytes = vec![b'x'; round % 700];
        with(access, key.slot, |guard| {
            guard.insert(Event::SILENT, DB, &key, NewStr::Raw(&bytes), None);
        });
    }
    stand
}

fn sum(access: &mut Access) -> i64 {
    let ks = Arc::clone(access.keyspace());
    let of = |n: usize| {
        let name = name(n);
        let key = ks.key(name.as_bytes());
        with(access, key.slot, |guard| number(guard, &key))
    };
    (0..KEYS).map(of).sum()
}

fn empty(ks: &Keyspace, mut access: Access) {
    access.try_world().expect("nobody else is inside");
    access.world(NOW).flush_all();
    access.open_world();
    drop(access);
    assert_eq!((ks.memory().entries, ks.memory().buckets, ks.memory().places), (0, 0, 0));
    assert_eq!((ks.entry_pages().active, ks.db_len(DB)), (0, 0));
}

/// One worker and three further Accesses on the same keys, with World in between. The Accesses are
/// created and dropped while the worker runs, two of them in the middle of its batches.
#[test]
fn a_worker_and_three_further_accesses_lose_no_update() {
    let (ks, mut worker) = one_worker();
    let mut expected = work(&mut worker, 100, 0);
    for turn in 0..4 {
        let made: Vec<Access> = if turn % 2 == 0 {
            assert!(worker.enter());
            let key = ks.key(b"counter0");
            let made = (0..3).map(|_| worker.further().expect("there is room")).collect();
            let mut guard = worker.lock_one(key.slot, NOW, Intent::Write).expect("it is free");
            increment(&mut guard, &key);
            drop(guard);
            worker.leave();
            expected += 1;
            made
        } else {
            let mut first = worker.further().expect("there is room");
            let mut second = first.further().expect("there is room");
            let third = second.further().expect("there is room");
            vec![first, second, third]
        };
        expected += thread::scope(|scope| {
            let threads: Vec<_> = made
                .into_iter()
                .enumerate()
                .map(|(i, mut access)| {
                    scope.spawn(move || {
                        let mut stand = work(&mut access, ROUNDS / 2, i + 1);
                        let began = Instant::now();
                        while access.try_world().is_err() {
                            assert!(began.elapsed() < PATIENCE, "it does not get World");
                            thread::yield_now();
                        }
                        let key = access.keyspace().clone();
                        let key = key.key(b"counter1");
                        increment(&mut access.world(NOW), &key);
                        access.open_world();
                        stand += 1 + work(&mut access, ROUNDS / 2, i + 5);
                        stand
                    })
                })
                .collect();
            let own = work(&mut worker, ROUNDS, 9);
            own + threads.into_iter().map(|t| t.join().expect("no panic")).sum::<i64>()
        });
        // The worker is the only Access again.
        expected += work(&mut worker, 100, turn);
        assert_eq!(sum(&mut worker), expected, "turn {turn}");
    }
    let total = expected as u64;
    assert!(ks.changes() > total, "increments and texts");
    empty(&ks, worker);
}

/// A worker, and a further Access, on one thread.
fn worker_and_access() -> (Arc<Keyspace>, Access, Access) {
    let (ks, mut worker) = one_worker();
    let further = worker.further().expect("there is room");
    (ks, worker, further)
}

fn is_refused(f: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err()
}

#[test]
fn a_rollback_or_panic_affects_only_its_own_access() {
    let (ks, mut worker, mut further) = worker_and_access();
    let [a, b] = [ks.key(b"a"), ks.key(b"b")];
    assert!(worker.enter() && further.enter());
    let mut mine = worker.lock_one(a.slot, NOW, Intent::Write).expect("free");
    mine.insert(Event::SILENT, DB, &a, NewStr::Int(1), None);
    let mut other = further.lock_one(b.slot, NOW, Intent::Write).expect("free");
    other.insert(Event::SILENT, DB, &b, NewStr::Int(2), None);
    other.rollback();
    drop(other);
    drop(mine);
    assert!(is_refused(|| {
        let mut other = further.lock_one(a.slot, NOW, Intent::Write).expect("free");
        increment(&mut other, &a);
        panic!("in the middle of a command");
    }));
    assert_eq!(number(&mut worker.lock_one(a.slot, NOW, Intent::Write).expect("free"), &a), 1);
    assert_eq!(ks.db_len(DB), 1);
    drop(further);
    worker.leave();
    empty(&ks, worker);
}

struct Log(Arc<Mutex<Vec<(usize, u64)>>>);

impl Waker for Log {
    fn wake(&self, worker: usize, token: u64) {
        self.0.lock().expect("no panic under it").push((worker, token));
    }
}

/// Fails if `f` does not end: a thread which waits for its own lock is never woken.
fn assert_finishes(f: impl FnOnce() + Send + 'static) {
    let (thread, began) = (thread::spawn(f), Instant::now());
    while !thread.is_finished() {
        assert!(began.elapsed() < PATIENCE, "it sleeps behind a long holder");
        thread::sleep(Duration::from_millis(1));
    }
    thread.join().expect("it has ended well");
}

/// When a further Access is a long holder, the only worker parks and is woken, and vice versa.
#[test]
fn a_worker_and_a_further_access_park_behind_each_other() {
    assert_finishes(park_behind_each_other);
}

fn park_behind_each_other() {
    let (ks, mut worker, mut further) = worker_and_access();
    let log = Arc::new(Mutex::default());
    ks.set_waker(Box::new(Log(Arc::clone(&log))));
    let slot = SlotId::new(7);
    assert!(worker.enter() && further.enter());
    let mut guard = further.lock_one(slot, NOW, Intent::Write).expect("free");
    guard.mark_long();
    assert_eq!(worker.lock_one(slot, NOW, Intent::Write).err(), Some(Parked::Slot(slot)));
    assert!(worker.park(Parked::Slot(slot), 1));
    worker.leave();
    let at = worker.try_world().expect_err("somebody is inside for long");
    assert_eq!(at, Parked::Section(1));
    assert!(worker.park(at, 2));
    drop(guard);
    assert_eq!(*log.lock().expect("whole"), [(0, 1)]);
    further.leave();
    assert_eq!(*log.lock().expect("whole"), [(0, 1), (0, 2)]);
    worker.try_world().expect("nobody is inside");
    assert!(!further.enter() && further.is_world_closed(), "it waits outside");
    worker.open_world();
    assert!(worker.enter() && further.enter());
    let mut guard = worker.lock_one(slot, NOW, Intent::Write).expect("free");
    guard.mark_long();
    assert_eq!(further.lock_one(slot, NOW, Intent::Write).err(), Some(Parked::Slot(slot)));
    assert_eq!(further.free(NOW).visit(slot, Intent::Read, |_| ()), Err(Parked::Slot(slot)));
    further.leave();
    assert_eq!(further.try_world(), Err(Parked::Section(0)));
    assert!(!further.is_world_closed(), "the gate was not even shut");
    drop(guard);
    worker.leave();
    further.try_world().expect("nobody is inside");
    assert!(!worker.enter());
    assert!(worker.park(Parked::Gate, 3));
    drop(further);
    assert_eq!(log.lock().expect("whole").last(), Some(&(0, 3)), "its end opens the gate");
    assert!(worker.enter());
}

#[test]
fn access_numbers_are_reused_and_bounded() {
    let (ks, mut worker) = one_worker();
    assert_eq!((worker.number(), worker.is_further()), (0, false));
    let mut all = Vec::new();
    let error = loop {
        match worker.further() {
            Ok(access) => all.push(access),
            Err(error) => break error,
        }
    };
    let count = all.len();
    assert!(count >= 64, "{count}");
    assert_eq!(error.to_string(), format!("all {count} further accesses are in use"));
    let numbers: Vec<usize> = all.iter().map(Access::number).collect();
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    assert!(all.iter().all(Access::is_further));
    assert!(all[5].further().is_err());
    drop(all.remove(5));
    let again = all[0].further().expect("one has ended");
    assert_eq!(again.number(), 6);
    // Each Access has its own section. World waits for all of them.
    all.push(again);
    assert!(all[count - 2].enter());
    assert_eq!(worker.try_world(), Err(Parked::Section(count)));
    all.clear();
    worker.try_world().expect("all have ended");
    worker.open_world();
    assert_eq!(ks.workers(), 1);
}

/// The counters of a number continue where its last owner left them, and are part of the sums while
/// the number has no owner.
#[test]
fn accounts_outlive_a_further_access() {
    let (ks, mut worker) = one_worker();
    for round in 0..3 {
        let mut further = worker.further().expect("there is room");
        for n in 0..500 {
            let name = format!("{round}:{n}");
            let key = ks.key(name.as_bytes());
            let due = Some(UnixMs(NOW.0 + 1_000));
            with(&mut further, key.slot, |g| {
                g.insert(Event::SILENT, DB, &key, NewStr::Int(n), due);
            });
        }
        drop(further);
        let keys = 500 * (round + 1);
        assert_eq!((ks.db_len(DB), ks.db_expires(DB), ks.changes()), (keys, keys, keys));
        assert_eq!(ks.average_ttl_ms(DB, NOW), 1_000);
    }
    empty(&ks, worker);
    assert_eq!((ks.db_expires(DB), ks.average_ttl_ms(DB, NOW)), (0, 0));
}

#[test]
fn a_further_access_can_be_created_and_dropped_under_world() {
    let (ks, mut worker) = one_worker();
    let key = ks.key(b"k");
    worker.try_world().expect("no other worker is inside");
    let mut further = worker.further().expect("there is room");
    assert!(!further.enter());
    increment(&mut worker.world(NOW), &key);
    worker.open_world();
    with(&mut further, key.slot, |guard| increment(guard, &key));
    with(&mut worker, key.slot, |guard| increment(guard, &key));
    worker.try_world().expect("nobody is inside");
    drop(further);
    increment(&mut worker.world(NOW), &key);
    worker.open_world();
    assert_eq!(with(&mut worker, key.slot, |guard| number(guard, &key)), 4);
    // A further Access which holds World creates one, too.
    let mut first = worker.further().expect("there is room");
    first.try_world().expect("nobody is inside");
    let mut second = first.further().expect("there is room");
    assert!(!second.enter() && !worker.enter());
    increment(&mut first.world(NOW), &key);
    first.open_world();
    with(&mut second, key.slot, |guard| increment(guard, &key));
    assert_eq!(with(&mut worker, key.slot, |guard| number(guard, &key)), 6);
}

/// Only workers sweep. A further Access removes the expired keys which it finds.
#[test]
fn a_further_access_does_not_sweep() {
    let (ks, mut worker, mut further) = worker_and_access();
    let key = ks.key(b"k");
    with(&mut worker, key.slot, |g| g.insert(Event::SILENT, DB, &key, NewStr::Int(1), Some(NOW)));
    assert_eq!((worker.next_due(), further.next_due()), (Some(NOW), None));
    assert!(further.enter());
    let clock = || base::MonoNs(0);
    assert_eq!(further.expire_step(UnixMs(NOW.0 + 1), 1_000_000, clock).expired, 0);
    further.leave();
    let hidden = with(&mut further, key.slot, |guard| {
        guard.set_due(Due::Hide);
        !guard.contains(DB, &key)
    });
    assert!(hidden && ks.db_len(DB) == 1);
    assert!(with(&mut further, key.slot, |guard| !guard.contains(DB, &key)));
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (0, 1));
    assert!(is_refused(|| _ = further.park(Parked::Gate, 1)), "nobody would be woken");
}

/// A further Access can be dropped even inside its section, once its guards are dropped.
#[test]
fn a_further_access_dropped_inside_its_section_blocks_nobody() {
    let (ks, mut worker, mut further) = worker_and_access();
    let key = ks.key(b"k");
    assert!(further.enter());
    drop(further);
    worker.try_world().expect("it has left");
    worker.open_world();
    let mut panicking = worker.further().expect("there is room");
    let shared = Arc::clone(&ks);
    let ended = thread::spawn(move || {
        assert!(panicking.enter());
        let key = shared.key(b"k");
        let mut guard = panicking.lock_one(key.slot, NOW, Intent::Write).expect("free");
        increment(&mut guard, &key);
        panic!("in the middle of a command");
    });
    assert!(ended.join().is_err());
    assert_eq!(with(&mut worker, key.slot, |guard| number(guard, &key)), 0);
    worker.try_world().expect("it has left");
    worker.open_world();
    empty(&ks, worker);
}

/// Outside the section no slot can be locked.
#[test]
fn slots_are_locked_inside_the_section() {
    let (_, mut worker, mut further) = worker_and_access();
    let slots = [SlotId::new(3), SlotId::new(4)];
    for access in [&mut worker, &mut further] {
        assert!(is_refused(|| drop(access.lock(&slots, NOW, Intent::Write))));
        assert!(is_refused(|| drop(access.lock(&[], NOW, Intent::Write))));
        assert!(is_refused(|| drop(access.grow(&[], NOW, Intent::Write))));
        assert!(access.enter());
        drop(access.lock(&slots, NOW, Intent::Write).expect("free"));
        drop(access.grow(&slots, NOW, Intent::Write).expect("free"));
        access.leave();
        assert!(is_refused(|| drop(access.lock_one(slots[0], NOW, Intent::Write))));
        assert!(is_refused(|| drop(access.lock_plain(slots[0], NOW))));
        assert!(is_refused(|| _ = access.free(NOW).visit(slots[0], Intent::Read, |_| ())));
        access.step_beside();
        assert!(is_refused(|| drop(access.lock_one(slots[0], NOW, Intent::Write))));
        assert!(is_refused(|| _ = access.free(NOW).visit(slots[0], Intent::Read, |_| ())));
        access.leave();
    }
}
