//! More real threads than cores on one keyspace: no increment is lost, no reader sees a partial
//! write to several keys, World excludes writers, and lock sets never deadlock.
#![cfg(not(shuttle))]

use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Arc, Mutex, thread};
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Access, Event, Guard, Intent, Keyspace, Options, Parked, Turn, Waker};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
const WORKERS: usize = 4;
const RUN: Duration = Duration::from_millis(400);

fn keyspace(workers: usize) -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 21, workers }))
}

/// A xorshift generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

/// Fails the whole test binary if the threads do not end, so that a deadlock is not taken for
/// slowness.
fn run_all(workers: usize, f: impl Fn(usize) + Send + Sync) {
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while running.load(Ordering::Relaxed) {
                if start.elapsed() > Duration::from_secs(60) {
                    eprintln!("deadlock: the threads have not ended after a minute");
                    std::process::abort();
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let threads: Vec<_> = (0..workers)
            .map(|i| {
                let f = &f;
                scope.spawn(move || f(i))
            })
            .collect();
        let failed = threads.into_iter().find_map(|t| t.join().err());
        running.store(false, Ordering::Relaxed);
        if let Some(failed) = failed {
            std::panic::resume_unwind(failed);
        }
    });
}

/// Runs one command on these slots in a batch of its own.
fn with<R>(access: &mut Access, slots: &[SlotId], f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
    while !access.enter() {
        thread::yield_now();
    }
    let result = {
        let mut guard = if let [slot] = slots {
            access.lock_one(*slot, NOW, Intent::Write).expect("no long holder")
        } else {
            access.lock(slots, NOW, Intent::Write).expect("no long holder")
        };
        let result = f(&mut guard);
        guard.commit();
        result
    };
    access.leave();
    result
}

/// INCR from all workers. The values returned for a key are all different, each worker sees them
/// only grow, and no increment is lost.
#[test]
fn increments_are_linearizable() {
    let ks = keyspace(WORKERS);
    let names: Vec<String> = (0..5).map(|n| format!("counter{n}")).collect();
    let returned: Vec<Mutex<Vec<i64>>> = names.iter().map(|_| Mutex::default()).collect();
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        let mut random = Random(worker as u64 + 1);
        let mut last = vec![0; names.len()];
        let mut mine: Vec<Vec<i64>> = vec![Vec::new(); names.len()];
        let start = Instant::now();
        while start.elapsed() < RUN {
            let n = random.below(names.len());
            let key = ks.key(names[n].as_bytes());
            let value = with(&mut access, &[key.slot], |guard| {
                if let Some(mut entry) = guard.entry_mut(Event::SILENT, DB, &key) {
                    let value = entry.str().as_int().expect("a number") + 1;
                    entry.set_int(value);
                    value
                } else {
                    guard.insert(Event::SILENT, DB, &key, NewStr::Int(1), None);
                    1
                }
            });
            assert!(value > last[n], "a counter went back");
            last[n] = value;
            mine[n].push(value);
        }
        for (all, mine) in returned.iter().zip(mine) {
            all.lock().expect("no panic under it").extend(mine);
        }
    });
    let mut access = Access::new(Arc::clone(&ks), 0);
    for (name, returned) in names.iter().zip(&returned) {
        let mut returned = returned.lock().expect("no panic under it").clone();
        returned.sort_unstable();
        let expected: Vec<i64> = (1..=returned.len() as i64).collect();
        assert_eq!(returned, expected, "every increment returned a value of its own");
        let key = ks.key(name.as_bytes());
        let last = with(&mut access, &[key.slot], |g| g.read(DB, &key)?.str().as_int());
        assert_eq!(last, expected.last().copied());
    }
    let waits: u64 = (0..WORKERS).map(|w| ks.contention(w).waits).sum();
    assert!(waits > 0, "five keys and four workers: they were in each other's way");
}

/// MSET against MGET of the same keys. Other keys in the same slots are added and removed
/// meanwhile.
#[test]
fn writes_to_many_keys_are_atomic() {
    let ks = keyspace(WORKERS);
    let names: Vec<String> = (0..6).map(|n| format!("part{n}")).collect();
    let mut slots: Vec<SlotId> = names.iter().map(|n| ks.key(n.as_bytes()).slot).collect();
    slots.sort_unstable();
    slots.dedup();
    let reads = AtomicU64::new(0);
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        let mut random = Random(worker as u64 + 77);
        let start = Instant::now();
        let mut turn = 0;
        while start.elapsed() < RUN {
            turn += 1;
            if worker % 2 == 0 {
                let text = format!("{worker}:{turn}:{}", "x".repeat(random.below(300)));
                let delete = random.below(10) == 0;
                with(&mut access, &slots, |guard| {
                    for name in &names {
                        let key = ks.key(name.as_bytes());
                        if delete {
                            guard.remove(Event::SILENT, DB, &key);
                        } else {
                            guard.insert(
                                Event::SILENT,
                                DB,
                                &key,
                                NewStr::Raw(text.as_bytes()),
                                None,
                            );
                        }
                    }
                });
                // Other keys in the same slots, so that the tables grow and shrink meanwhile.
                let name = format!("{{{}}}{}", names[random.below(6)], random.below(200));
                let key = ks.key(name.as_bytes());
                with(&mut access, &[key.slot], |guard| {
                    if !guard.remove(Event::SILENT, DB, &key) {
                        guard.insert(Event::SILENT, DB, &key, NewStr::Int(1), None);
                    }
                });
            } else {
                let seen: Vec<Option<Vec<u8>>> = with(&mut access, &slots, |guard| {
                    let read = |name: &String| {
                        let key = ks.key(name.as_bytes());
                        let guess = ks.prefetch_bucket(key.slot, key.hash, DB);
                        ks.prefetch_entry(guess);
                        guard.read(DB, &key).map(|e| e.str().to_vec())
                    };
                    names.iter().map(read).collect()
                });
                assert!(seen.windows(2).all(|two| two[0] == two[1]), "half of a write was seen");
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert!(reads.load(Ordering::Relaxed) > 100);
}

/// Sets or removes a random key.
fn write_somewhere(access: &mut Access, random: &mut Random) {
    let ks = Arc::clone(access.keyspace());
    let name = format!("k{}", random.below(3000));
    let key = ks.key(name.as_bytes());
    let db = DbIndex::new(random.below(2) as u16);
    let due = UnixMs(NOW.0 + 1 + random.below(50) as i64);
    with(access, &[key.slot], |guard| {
        if random.below(4) == 0 {
            guard.remove(Event::SILENT, db, &key);
        } else {
            guard.insert(Event::SILENT, db, &key, NewStr::Raw(name.as_bytes()), Some(due));
        }
    });
}

/// Under World: counters and walks agree, two databases are swapped, and sometimes everything is
/// flushed.
fn swap_and_flush(access: &mut Access, random: &mut Random) {
    assert!(access.holds_world());
    let ks = Arc::clone(access.keyspace());
    let lens = || [0, 1].map(|db| ks.db_len(DbIndex::new(db)));
    let mut guard = access.world(NOW);
    let (counts, mut walked) = (lens(), [0, 0]);
    for db in 0..2 {
        let mut cursor = 0;
        loop {
            let next = guard.scan(DbIndex::new(db), cursor, 1000, |_| walked[db as usize] += 1);
            cursor = next.expect("World holds everything");
            if cursor == 0 {
                break;
            }
        }
    }
    assert_eq!(counts, walked, "the counters are exact while the world stands still");
    guard.swap_db(DB, DbIndex(1));
    assert_eq!(lens(), [counts[1], counts[0]]);
    guard.commit();
    if random.below(3) == 0 {
        assert_eq!(guard.flush_all(), counts[0] + counts[1]);
        assert_eq!(lens(), [0, 0]);
        guard.commit();
    }
}

/// FLUSHALL and SWAPDB against writers: under World no other thread changes the keyspace.
#[test]
fn world_excludes_writers() {
    let ks = keyspace(WORKERS);
    let worlds = AtomicU64::new(0);
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        let mut random = Random(worker as u64 + 5);
        let start = Instant::now();
        while start.elapsed() < RUN {
            if random.below(50) != 0 {
                write_somewhere(&mut access, &mut random);
                continue;
            }
            while !access.enter() {
                thread::yield_now();
            }
            if access.try_world().is_ok() {
                swap_and_flush(&mut access, &mut random);
                access.open_world();
                worlds.fetch_add(1, Ordering::Relaxed);
            }
            access.leave();
            access.reclaim(200);
        }
    });
    assert!(worlds.load(Ordering::Relaxed) > 10);
    let mut access = Access::new(Arc::clone(&ks), 0);
    access.try_world().expect("nobody else is there");
    access.world(NOW).flush_all();
    access.open_world();
    while access.reclaim(1000) {}
    assert_eq!((ks.memory().entries, ks.memory().buckets), (0, 0));
}

/// The server's part: a list per worker of the sessions to run again.
struct Wakeups(Vec<Mutex<VecDeque<u64>>>);

struct Post(Arc<Wakeups>);

impl Waker for Post {
    fn wake(&self, worker: usize, token: u64) {
        self.0.0[worker].lock().expect("no panic under it").push_back(token);
    }
}

/// Up to five of the first slots, ascending.
fn some_slots(random: &mut Random, among: usize) -> Vec<SlotId> {
    let mut slots: Vec<SlotId> =
        (0..=random.below(4)).map(|_| SlotId::new(random.below(among) as u16)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Locks slots, perhaps as a long holder, and checks that no other thread holds any of them.
fn hold_alone(
    access: &mut Access,
    slots: &[SlotId],
    held: &[AtomicBool],
    is_long: bool,
) -> Result<(), Parked> {
    let mut guard = access.lock(slots, NOW, Intent::Write)?;
    for slot in slots {
        assert!(!held[slot.index()].swap(true, Ordering::Relaxed), "held twice");
    }
    if is_long {
        guard.mark_long();
        thread::sleep(Duration::from_micros(50));
    }
    for slot in slots {
        held[slot.index()].store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// Random lock sets, some by long holders, some at the gate: every session is served, and a slot
/// has one holder at a time.
#[test]
fn random_lock_sets_never_deadlock() {
    let ks = keyspace(WORKERS);
    let wakeups = Arc::new(Wakeups((0..WORKERS).map(|_| Mutex::default()).collect()));
    ks.set_waker(Box::new(Post(Arc::clone(&wakeups))));
    let held: Vec<AtomicBool> = (0..16).map(|_| AtomicBool::new(false)).collect();
    let parked = AtomicU64::new(0);
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        let mut random = Random(worker as u64 + 31);
        let mut waiting: Vec<(u64, Vec<SlotId>)> = Vec::new();
        let mut token = 0;
        let start = Instant::now();
        loop {
            let ready = wakeups.0[worker].lock().expect("no panic under it").pop_front();
            let (token, slots) = if let Some(token) = ready {
                let at = waiting.iter().position(|(t, _)| *t == token).expect("it was parked");
                waiting.swap_remove(at)
            } else if start.elapsed() < RUN && waiting.len() < 50 {
                token += 1;
                (token, some_slots(&mut random, held.len()))
            } else if waiting.is_empty() {
                break;
            } else {
                // Each parked session waits for a holder which will wake it.
                thread::yield_now();
                continue;
            };
            let at_gate = !access.enter();
            let result = if at_gate {
                Err(Parked::Gate)
            } else if random.below(100) == 0 {
                access.try_world().map(|()| {
                    let guard = access.world(NOW);
                    assert!(held.iter().all(|h| !h.load(Ordering::Relaxed)));
                    drop(guard);
                    access.open_world();
                })
            } else {
                hold_alone(&mut access, &slots, &held, random.below(5) == 0)
            };
            if let Err(at) = result {
                if access.park(at, token) {
                    parked.fetch_add(1, Ordering::Relaxed);
                    waiting.push((token, slots));
                } else {
                    // No need to park: retry through the list.
                    wakeups.0[worker].lock().expect("no panic under it").push_back(token);
                    waiting.push((token, slots));
                }
            }
            access.leave();
        }
        assert!(waiting.is_empty());
    });
    assert!(parked.load(Ordering::Relaxed) > 0, "somebody met a long holder");
    let counted: u64 = (0..WORKERS).map(|w| ks.contention(w).parks).sum();
    assert_eq!(counted, parked.load(Ordering::Relaxed));
}

/// Behind one long holder, sessions are woken in the order in which they parked.
#[test]
fn parked_sessions_are_woken_in_order() {
    let ks = keyspace(2);
    let wakeups = Arc::new(Wakeups((0..2).map(|_| Mutex::default()).collect()));
    ks.set_waker(Box::new(Post(Arc::clone(&wakeups))));
    let mut holder = Access::new(Arc::clone(&ks), 0);
    let mut other = Access::new(Arc::clone(&ks), 1);
    assert!(holder.enter() && other.enter());
    let slot = SlotId::new(3);
    let mut guard = holder.lock_one(slot, NOW, Intent::Write).expect("free");
    guard.mark_long();
    for token in [30, 10, 20, 40] {
        let at = other.lock_one(slot, NOW, Intent::Write).err().expect("a long holder is there");
        assert_eq!(at, Parked::Slot(slot));
        assert!(other.park(at, token));
    }
    assert!(ks.forget_parked(Parked::Slot(slot), 1, 20), "its client has gone");
    assert!(!ks.forget_parked(Parked::Slot(slot), 1, 99));
    assert!(wakeups.0[1].lock().expect("whole").is_empty());
    drop(guard);
    assert_eq!(*wakeups.0[1].lock().expect("whole"), [30, 10, 40]);
    assert!(other.lock_one(slot, NOW, Intent::Write).is_ok());
    assert!(!other.park(Parked::Slot(slot), 50), "the way is free");
    // The same at the gate, which may stay closed across turns.
    other.leave();
    holder.try_world().expect("the other is outside");
    holder.leave();
    assert!(!other.enter() && !holder.enter(), "closed for all");
    assert!(other.park(Parked::Gate, 7) && other.park(Parked::Gate, 6));
    assert!(other.try_world().is_err());
    drop(holder.world(NOW));
    assert!(!other.enter(), "a guard's end does not open the gate");
    holder.open_world();
    assert_eq!(*wakeups.0[1].lock().expect("whole"), [30, 10, 40, 7, 6]);
    assert!(other.enter() && holder.enter());
}

/// A worker's number may be claimed again. Its counters continue where the last owner left them.
#[test]
fn accounts_outlive_an_access() {
    let ks = keyspace(2);
    let fill = |worker: usize| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        for n in 0..500 {
            let name = format!("{worker}:{n}");
            let key = ks.key(name.as_bytes());
            with(&mut access, &[key.slot], |g| {
                g.insert(Event::SILENT, DB, &key, NewStr::Int(n), None);
            });
        }
        ks.memory().buckets
    };
    let first = fill(0);
    let second = fill(1);
    assert!(0 < first && first < second);
    // With new Accesses of both workers, worker 1 frees what worker 0 has allocated.
    for worker in [0, 1] {
        drop(Access::new(Arc::clone(&ks), worker));
        assert_eq!(ks.memory().buckets, second);
    }
    let mut access = Access::new(Arc::clone(&ks), 1);
    access.try_world().expect("nobody else is there");
    access.world(NOW).flush_db(DB);
    access.open_world();
    assert!(access.reclaim(1));
    assert!(ks.memory().buckets < second);
    drop(access);
    assert_eq!((ks.memory().entries, ks.memory().buckets), (0, 0), "and its end frees the rest");
    assert_eq!((ks.memory().places, ks.entry_pages().active), (0, 0));
    let mut again = Access::new(Arc::clone(&ks), 1);
    let key = ks.key(b"k");
    with(&mut again, &[key.slot], |g| g.insert(Event::SILENT, DB, &key, NewStr::Int(1), None));
    assert_eq!(ks.memory().buckets, 64, "one bucket");
    assert_eq!(ks.memory().places, ks.memory().entries);
}

/// Growers which lock four slots one by one in any order, among commands which lock two before they
/// begin. Transfers between keys keep the sum, and no thread waits forever.
#[test]
fn growers_and_lock_sets_keep_the_sum() {
    let ks = keyspace(WORKERS);
    let names: Vec<String> = (0..6).map(|n| format!("account{n}")).collect();
    let moves = AtomicU64::new(0);
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        let mut random = Random(worker as u64 + 77);
        let start = Instant::now();
        // On a busy machine the yields take long. Then the test runs until enough transfers have
        // been made. Only a deadlock fails it.
        let goes_on = || {
            let few = moves.load(Ordering::Relaxed) <= 100;
            start.elapsed() < RUN || few && start.elapsed() < 100 * RUN
        };
        while goes_on() {
            let grows = worker < 2;
            let picked: Vec<usize> =
                (0..if grows { 4 } else { 2 }).map(|_| random.below(names.len())).collect();
            let keys: Vec<_> = picked.iter().map(|&n| ks.key(names[n].as_bytes())).collect();
            let mut slots: Vec<SlotId> = keys.iter().map(|key| key.slot).collect();
            slots.sort_unstable();
            slots.dedup();
            while !access.enter() {
                thread::yield_now();
            }
            let take = if grows { Access::grow } else { Access::lock };
            let known = if grows { &slots[..1] } else { &slots };
            if let Ok(mut guard) = take(&mut access, known, NOW, Intent::Write) {
                let mut turned_back = false;
                for (n, key) in keys.iter().enumerate() {
                    turned_back = guard.cover(key.slot).is_err();
                    if turned_back {
                        break;
                    }
                    let sign = if n % 2 == 0 { 1 } else { -1 };
                    let old =
                        guard.peek(DB, key).map_or(0, |e| e.str().as_int().expect("a number"));
                    thread::yield_now();
                    guard.insert(Event::SILENT, DB, key, NewStr::Int(old + sign), None);
                }
                if turned_back {
                    guard.rollback();
                } else {
                    moves.fetch_add(1, Ordering::Relaxed);
                }
            }
            access.leave();
        }
    });
    let mut access = Access::new(Arc::clone(&ks), 0);
    let sum: i64 = names
        .iter()
        .map(|name| {
            let key = ks.key(name.as_bytes());
            with(&mut access, &[key.slot], |guard| {
                guard.peek(DB, &key).map_or(0, |e| e.str().as_int().expect("a number"))
            })
        })
        .sum();
    assert_eq!(sum, 0, "every move took from one what it gave to another");
    assert!(moves.into_inner() > 100, "the moves went on");
}

/// A session which cannot get the token or a declared slot learns where to park, holds nothing, and
/// is woken.
#[test]
fn sessions_park_behind_a_grower() {
    struct Log(Arc<Mutex<Vec<(usize, u64)>>>);
    impl Waker for Log {
        fn wake(&self, worker: usize, token: u64) {
            self.0.lock().expect("no panic under it").push((worker, token));
        }
    }
    let ks = keyspace(2);
    let log = Arc::new(Mutex::default());
    ks.set_waker(Box::new(Log(Arc::clone(&log))));
    let [mut a, mut b] = [0, 1].map(|worker| Access::new(Arc::clone(&ks), worker));
    let [one, two] = [SlotId::new(5), SlotId::new(9)];
    assert!(a.enter() && b.enter());
    let mut guard = a.grow(&[two], NOW, Intent::Write).expect("nobody else grows");
    assert_eq!(b.grow(&[], NOW, Intent::Write).err(), Some(Parked::Growth));
    assert!(b.park(Parked::Growth, 1));
    assert_eq!(b.lock(&[one, two], NOW, Intent::Write).err(), Some(Parked::Slot(two)));
    assert!(b.park(Parked::Slot(two), 2));
    drop(
        b.lock_one(one, NOW, Intent::Write)
            .expect("it was dropped, and the grower has not come to it"),
    );
    guard.cover(one).expect("it is free");
    assert_eq!(b.lock_one(one, NOW, Intent::Write).err(), Some(Parked::Slot(one)));
    drop(guard);
    assert_eq!(*log.lock().expect("no panic under it"), [(1, 2), (1, 1)]);
    drop(b.grow(&[one], NOW, Intent::Write).expect("the token is free again"));
    assert!(!b.park(Parked::Growth, 3), "nobody grows: try again at once");
    // A grower which cannot lock its first slots releases the token.
    let mut long = a.lock_one(two, NOW, Intent::Write).expect("free");
    long.mark_long();
    assert_eq!(b.grow(&[one, two], NOW, Intent::Write).err(), Some(Parked::Slot(two)));
    drop(long);
    drop(a.grow(&[one], NOW, Intent::Write).expect("nobody grows, and nobody holds it"));
}

/// Leaves the section, parks and waits until it is woken.
fn park(access: &mut Access, at: Parked, wakeups: &Wakeups) {
    access.leave();
    if access.park(at, 1) {
        let mine = &wakeups.0[access.number()];
        while mine.lock().expect("no panic under it").pop_front().is_none() {
            thread::yield_now();
        }
    }
}

/// Enters the section. Waits while the gate is closed.
fn enter(access: &mut Access, wakeups: &Wakeups) {
    while !access.enter() {
        park(access, Parked::Gate, wakeups);
    }
}

/// Holds a slot for long, like a command which waits for the end of a turn. Returns false if it was
/// held.
fn hold_long(access: &mut Access, slot: SlotId, wakeups: &Wakeups) -> bool {
    enter(access, wakeups);
    if let Err(at) = access.may_be_long() {
        park(access, at, wakeups);
        access.set_exempt_from_turns(true);
        enter(access, wakeups);
    }
    let held = access.lock_one(slot, NOW, Intent::Write).map(|mut guard| {
        guard.mark_long();
        thread::sleep(Duration::from_micros(300));
    });
    match held {
        Ok(()) => access.leave(),
        Err(at) => park(access, at, wakeups),
    }
    access.set_exempt_from_turns(false);
    held.is_ok()
}

/// Long holders follow each other on three workers without a pause, walks and growers need their
/// slots, and a fourth worker repeatedly wants World. No thread waits forever: World succeeds, a
/// grower gets its slots, and the long holders continue.
#[test]
fn long_holders_do_not_starve_world_and_growers() {
    const TURNS: usize = 30;
    /// Each long holder makes World fail once. So does a thread which is descheduled and not marked
    /// as long.
    const TRIES_MAX: usize = 500;
    let ks = keyspace(WORKERS);
    let wakeups = Arc::new(Wakeups((0..WORKERS).map(|_| Mutex::default()).collect()));
    ks.set_waker(Box::new(Post(Arc::clone(&wakeups))));
    let slots: Vec<SlotId> = (0..WORKERS as u16).map(SlotId::new).collect();
    let (done, long) = (AtomicBool::new(false), AtomicU64::new(0));
    run_all(WORKERS, |worker| {
        let mut access = Access::new(Arc::clone(&ks), worker);
        if worker > 0 {
            while !done.load(Ordering::Relaxed) {
                let held = hold_long(&mut access, slots[worker], &wakeups);
                long.fetch_add(held.into(), Ordering::Relaxed);
            }
            return;
        }
        for turn in 0..TURNS {
            let before = long.load(Ordering::Relaxed);
            let (mut waits, mut tries) = (None, 0);
            loop {
                tries += 1;
                assert!(tries < TRIES_MAX, "turn {turn}: turned back each time");
                let turned_back = if turn % 2 == 0 {
                    access.try_world().map(|()| access.open_world())
                } else {
                    enter(&mut access, &wakeups);
                    access.set_exempt_from_turns(waits.is_some());
                    access.grow(&[], NOW, Intent::Write).and_then(|mut guard| {
                        slots.iter().rev().try_for_each(|&slot| guard.cover(slot))
                    })
                };
                let Err(at) = turned_back else { break };
                assert!(!access.is_world_closed(), "the gate is open again");
                waits.get_or_insert_with(|| Turn::wait(&ks));
                park(&mut access, at, &wakeups);
            }
            access.leave();
            drop(waits);
            let began = Instant::now();
            while long.load(Ordering::Relaxed) == before && began.elapsed() < 100 * RUN {
                thread::yield_now();
            }
            assert!(long.load(Ordering::Relaxed) > before, "long holders continue after a turn");
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A walk, a random key and a grower meet a long holder: they get an error at once and hold
/// nothing.
#[test]
fn operations_refused_by_a_long_holder_hold_nothing() {
    let ks = keyspace(2);
    let [mut holder, mut other] = [0, 1].map(|worker| Access::new(Arc::clone(&ks), worker));
    let mut names = ["a", "b", "c"].map(|name| ks.key(name.as_bytes()));
    names.sort_unstable_by_key(|key| key.slot);
    for key in &names {
        with(&mut holder, &[key.slot], |guard| {
            guard.insert(Event::SILENT, DB, key, NewStr::Int(1), None);
        });
    }
    assert!(holder.enter() && other.enter());
    let [first, second, third] = names.map(|key| key.slot);
    let mut guard = holder.lock_one(second, NOW, Intent::Write).expect("free");
    guard.mark_long();
    let mut shown = 0;
    let cursor = other.free(NOW).scan(DB, 0, 10, |_| shown += 1).expect("it has shown one");
    assert_eq!(shown, 1);
    let again = other.free(NOW).scan(DB, cursor, 10, |_| shown += 1);
    assert_eq!((again, shown), (Err(Parked::Slot(second)), 1));
    assert_eq!(other.free(NOW).visit(second, Intent::Read, |_| ()), Err(Parked::Slot(second)));
    assert_eq!(other.free(NOW).table_shape(DB).err(), Some(Parked::Slot(second)));
    let mut random = Random(5);
    for _ in 0..50 {
        let key =
            other.free(NOW).random_key(DB, || random.below(1 << 40) as u64).expect("two are free");
        assert_ne!(key.as_deref(), Some(names[1].bytes));
    }
    let mut grower = other.grow(&[first], NOW, Intent::Write).expect("nobody grows");
    grower.cover(third).expect("free");
    assert_eq!(grower.cover(second), Err(Parked::Slot(second)));
    drop(grower);
    // The holder is inside and long: World does not even close the gate.
    other.leave();
    assert_eq!(other.try_world(), Err(Parked::Section(0)));
    assert!(!other.is_world_closed());
    let turn = Turn::wait(&ks);
    assert_eq!(other.may_be_long(), Err(Parked::Turn));
    assert!(other.enter(), "who is not long goes on");
    assert_eq!(other.grow(&[], NOW, Intent::Write).err(), Some(Parked::Turn));
    assert_eq!(
        other.lock_one(first, NOW, Intent::Write).expect("free").try_mark_long(),
        Err(Parked::Turn)
    );
    other.set_exempt_from_turns(true);
    assert!(other.grow(&[], NOW, Intent::Write).is_ok(), "it has waited once");
    drop(turn);
    other.set_exempt_from_turns(false);
    assert_eq!(other.may_be_long(), Ok(()));
    assert!(!other.park(Parked::Turn, 1), "nobody waits any more");
    drop(guard);
    holder.leave();
    assert!(!other.park(Parked::Section(0), 1), "it has left");
    other.leave();
    assert_eq!(other.try_world(), Ok(()));
    other.open_world();
    assert!(other.enter());
    let all = other.free(NOW).scan(DB, cursor, 10, |_| shown += 1);
    assert_eq!((all, shown), (Ok(0), 3));
}

/// Keys that grow, move between databases, are replaced and removed by one and by two workers: the
/// bytes of each database are those of a full count, and are negative nowhere.
#[test]
fn bytes_of_databases_are_those_of_a_full_count() {
    const KEYS: usize = 200;
    const ROUNDS: usize = 4_000;
    for workers in [1, 2] {
        let ks = keyspace(workers);
        let databases = [DbIndex(0), DbIndex(1)];
        run_all(workers, |worker| {
            let mut access = Access::new(Arc::clone(&ks), worker);
            let mut random = Random(worker as u64 + 77);
            for _ in 0..ROUNDS {
                let (from, to) = (random.below(KEYS), random.below(KEYS));
                let names = [from, to].map(|n| format!("{{{}}}{n}", n % 7));
                let [from, to] = [ks.key(names[0].as_bytes()), ks.key(names[1].as_bytes())];
                let mut slots = vec![from.slot, to.slot];
                slots.sort_unstable();
                slots.dedup();
                let (op, db) = (random.below(6), databases[random.below(2)]);
                let text = vec![b'x'; random.below(40) * random.below(40) * random.below(20)];
                let other = databases[random.below(2)];
                with(&mut access, &slots, |guard| match op {
                    0 | 1 => guard.insert(Event::SILENT, db, &from, value::encode(&text), None),
                    2 => _ = guard.remove(Event::SILENT, db, &from),
                    3 => {
                        if let Some(mut entry) = guard.entry_mut(Event::SILENT, db, &from) {
                            entry.append(&text);
                        }
                    }
                    4 => _ = guard.move_entry([Event::SILENT; 2], db, &from, other, &to),
                    _ => {
                        guard.copy_entry(Event::SILENT, db, &from, other, &to);
                        if text.len().is_multiple_of(3) {
                            guard.rollback();
                        }
                    }
                });
            }
        });
        let mut access = Access::new(Arc::clone(&ks), 0);
        assert!(access.enter());
        for db in databases {
            let measured = access.free(NOW).measure_bytes(db).expect("nobody holds a slot");
            assert_eq!(ks.db_bytes(db), measured, "{db:?} of {workers} workers");
            assert!(measured > 10_000, "{measured}");
        }
    }
}
