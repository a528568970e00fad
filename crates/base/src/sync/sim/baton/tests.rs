//! The baton's own tests: each defect of the tested programs must be found by some seed, and the
//! correct programs must pass with every seed.

use super::*;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use crate::sync::{self, Arc, Deadline, Mutex, futex_wait, futex_wait_until, futex_wake, thread};

const SEEDS: u64 = 200;
const MS: u64 = 1_000_000;
/// Switches and holds at nearly every switch point; no wait ends early, which would hide a lost
/// wake-up.
const FREQUENT: Rates =
    Rates { switch_one_in: 3, hold_one_in: 10, hold_ns_max: 10 * MS, ..Rates::CALM };

fn start(seed: u64, rates: Rates) -> Baton {
    Baton::start(Options { seed, rates, trace: None })
}

/// In how many worlds of the first seeds `run` panics.
fn failures(rates: Rates, run: impl Fn(&Baton)) -> usize {
    let fails = |seed: &u64| {
        let world = start(*seed, rates);
        let failed = catch_unwind(AssertUnwindSafe(|| run(&world))).is_err();
        drop(world);
        failed
    };
    (0..SEEDS).filter(fails).count()
}

/// What threads return which do not panic.
fn join_all<T>(threads: Vec<thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|t| t.join().expect("it does not panic")).collect()
}

/// A waiter and a thread that raises its flag. That thread wakes only if the waiter has announced
/// itself, and asks this too early, unless `wakes_always`.
fn flag_with_futex(wakes_always: bool) {
    let (flag, waits) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let waiter = thread::spawn({
        let (flag, waits) = (flag.clone(), waits.clone());
        move || {
            while flag.load(SeqCst) == 0 {
                waits.store(true, SeqCst);
                futex_wait(&flag, 0);
            }
        }
    });
    // The mistake: the waiter may announce itself between this question and the store.
    let has_waiter = waits.load(SeqCst);
    flag.store(1, SeqCst);
    if wakes_always || has_waiter {
        futex_wake(&flag, 1);
    }
    waiter.join().expect("the waiter does not panic");
}

#[test]
fn a_lost_wake_up_is_found_as_a_deadlock() {
    assert_eq!(failures(FREQUENT, |_| flag_with_futex(true)), 0);
    let found = failures(FREQUENT, |_| flag_with_futex(false));
    assert!(found > 0, "no seed of {SEEDS} found it");
}

#[test]
fn a_deadlock_is_reported_with_every_thread() {
    let world = start(1, Rates::CALM);
    let word = Arc::new(AtomicU32::new(0));
    let sleeper = word.clone();
    let server = world.group("server");
    let handle = world.spawn(server, "sleeper", move || futex_wait(&sleeper, 0)).expect("room");
    let joined = catch_unwind(AssertUnwindSafe(|| handle.join()));
    let panic = joined.expect_err("nobody can run");
    let report = panic.downcast_ref::<String>().expect("a text");
    for part in ["deadlock", "server (Running)", "sleeper: Blocked(Futex) at ", "tests.rs:"] {
        assert!(report.contains(part), "{report}");
    }
}

/// Threads add to a number that needs a lock.
fn add_under(locked: bool) {
    let (number, lock) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(())));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (number, lock) = (number.clone(), lock.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let guard = locked.then(|| lock.lock().expect("nobody panics"));
                    let before = number.load(SeqCst);
                    number.store(before + 1, SeqCst);
                    drop(guard);
                }
            })
        })
        .collect();
    join_all(threads);
    assert_eq!(number.load(SeqCst), 9);
}

#[test]
fn mutexes_exclude_and_lost_updates_are_found() {
    assert_eq!(failures(FREQUENT, |_| add_under(true)), 0);
    let found = failures(FREQUENT, |_| add_under(false));
    assert!(found > SEEDS as usize / 2, "only {found} seeds of {SEEDS} found it");
}

#[test]
fn condition_variables_hand_over() {
    let run = |_: &Baton| {
        let shared = Arc::new((Mutex::new(0), sync::Condvar::new()));
        let threads: Vec<_> = (0..3)
            .map(|turn| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let mut number = shared.0.lock().expect("nobody panics");
                    while *number != turn {
                        number = shared.1.wait(number).expect("nobody panics");
                    }
                    *number += 1;
                    drop(number);
                    shared.1.notify_all();
                })
            })
            .collect();
        join_all(threads);
    };
    assert_eq!(failures(FREQUENT, run), 0);
    assert_eq!(failures(Rates { early_one_in: 2, ..FREQUENT }, run), 0, "waits may end early");
}

#[test]
fn time_moves_to_the_earliest_deadline_only() {
    let world = start(1, Rates::CALM);
    let (real, ends) = (std::time::Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let threads: Vec<_> = [3_000, 1_000, 2_000]
        .map(|ms| {
            let ends = ends.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(ms));
                let now = now_ns().expect("it belongs to the world");
                ends.lock().expect("nobody panics").push((now - START_NS) / MS);
            })
        })
        .into();
    join_all(threads);
    assert_eq!(*ends.lock().expect("nobody panics"), [1_000, 2_000, 3_000]);
    let word = AtomicU32::new(0);
    let until = Deadline::after(Duration::from_secs(7));
    while futex_wait_until(&word, 0, &until) {}
    assert_eq!(world.summary().now_ns - START_NS, 10_000 * MS);
    assert!(real.elapsed() < Duration::from_secs(5), "simulated seconds are short");
}

#[test]
fn a_spin_behind_a_held_thread_lets_time_pass() {
    let world = start(1, Rates::CALM);
    let done = Arc::new(AtomicBool::new(false));
    let other = done.clone();
    let sleeper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1));
        other.store(true, SeqCst);
    });
    while !done.load(SeqCst) {
        sync::spin_loop();
    }
    assert!(world.summary().now_ns >= START_NS + MS);
    sleeper.join().expect("it only sleeps");
}

#[test]
fn threads_are_held_at_any_switch_point() {
    let mut longest = 0;
    for seed in 0..SEEDS {
        let world = start(seed, Rates { hold_one_in: 5, hold_ns_max: 2_000 * MS, ..Rates::CALM });
        let number = Arc::new(AtomicU32::new(0));
        let counter = number.clone();
        let group = world.group("server");
        let count = move || (0..20).for_each(|n| counter.store(n, SeqCst));
        let handle = world.spawn(group, "counts", count).expect("room");
        handle.join().expect("it only counts");
        let summary = world.end();
        assert!(summary.now_ns == START_NS || summary.holds > 0);
        longest = longest.max(summary.now_ns - START_NS);
    }
    assert!(longest > 1_000 * MS, "{longest} ns");
}

#[test]
fn a_killed_group_never_runs_again() {
    for seed in 0..SEEDS {
        let world = start(seed, FREQUENT);
        let number = Arc::new(AtomicU64::new(0));
        let told = Arc::new(AtomicU32::new(0));
        on_group_end({
            let told = told.clone();
            move |_| {
                told.fetch_add(1, SeqCst);
            }
        });
        let group = world.group("server");
        for _ in 0..2 {
            let counter = number.clone();
            let count = move || {
                loop {
                    counter.fetch_add(1, SeqCst);
                }
            };
            world.spawn(group, "counts", count).expect("room");
        }
        if seed % 2 == 0 {
            world.kill_after(group, 30);
            for turn in 0.. {
                if world.status(group) != Status::Running {
                    break;
                }
                assert!(turn < 10_000, "it does not die");
                thread::yield_now();
            }
        } else {
            thread::sleep(Duration::from_nanos(1));
            world.kill(group);
        }
        assert_eq!((world.status(group), told.load(SeqCst)), (Status::Killed, 1));
        let before = number.load(SeqCst);
        assert!(seed % 2 == 1 || (20..100).contains(&before), "{before}");
        thread::sleep(Duration::from_secs(5));
        assert_eq!(number.load(SeqCst), before);
    }
}

#[test]
fn a_group_ends_by_itself() {
    let world = start(1, FREQUENT);
    let (ends, exits) = (world.group("ends"), world.group("exits"));
    let ending = world.spawn(ends, "ends", || 5).expect("room");
    assert_eq!(ending.join().expect("no panic"), 5);
    assert_eq!(world.status(ends), Status::Exited(0));
    world
        .spawn(exits, "exits", || {
            let other = thread::spawn(|| thread::sleep(Duration::from_secs(1)));
            thread::spawn(|| sync::exit(3));
            other.join()
        })
        .expect("room");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(world.status(exits), Status::Exited(3));
}

#[test]
fn a_panic_ends_one_thread() {
    let world = start(1, FREQUENT);
    let group = world.group("server");
    let handle = world.spawn(group, "panics", || panic!("on purpose")).expect("room");
    handle.join().map(drop).expect_err("it panicked");
    assert_eq!(world.status(group), Status::Exited(0));
}

#[test]
fn a_paused_group_stands_still() {
    let world = start(1, FREQUENT);
    let number = Arc::new(AtomicU32::new(0));
    let counter = number.clone();
    let group = world.group("server");
    let count = move || {
        loop {
            thread::sleep(Duration::from_millis(1));
            counter.fetch_add(1, SeqCst);
        }
    };
    world.spawn(group, "counts", count).expect("room");
    thread::sleep(Duration::from_millis(100));
    world.pause(group);
    let before = number.load(SeqCst);
    assert!(before > 5);
    thread::sleep(Duration::from_secs(10));
    assert_eq!(number.load(SeqCst), before);
    world.resume(group);
    thread::sleep(Duration::from_millis(100));
    assert!(number.load(SeqCst) > before);
}

#[test]
fn events_wake_who_waits() {
    let world = start(1, Rates::CALM);
    let slot = Arc::new(Mutex::new(None));
    let other = slot.clone();
    let waiter = thread::spawn(move || {
        *other.lock().expect("nobody panics") = Waker::of_this_thread();
        let first = (wait("a message", None), now_ns());
        let second = (wait("a message", Some(START_NS + 50 * MS)), now_ns());
        [first, second]
    });
    thread::sleep(Duration::from_millis(10));
    let waker = slot.lock().expect("nobody panics").expect("it waits");
    waker.wake_at(START_NS + 30 * MS);
    waker.wake_at(START_NS + 20 * MS);
    waker.wake_at(START_NS + 40 * MS);
    let woken = waiter.join().expect("it only waits");
    let at = |ms| (Woken::Time, Some(START_NS + ms * MS));
    assert_eq!(woken, [at(20), at(50)]);
    assert_eq!(wait("nothing", None), Woken::AtRest);
    drop(world);
}

/// Threads that lock, sleep, spin and draw from a shared number.
fn busy_world(seed: u64) -> Summary {
    let world = start(seed, FREQUENT);
    let group = world.group("server");
    let (number, lock) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(0)));
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let (number, lock) = (number.clone(), lock.clone());
            let work = move || {
                for round in 0..200 {
                    let drawn = number.fetch_add(round, SeqCst);
                    *lock.lock().expect("nobody panics") += drawn;
                    if drawn % 7 == n {
                        thread::sleep(Duration::from_micros(drawn % 50));
                    }
                }
            };
            world.spawn(group, "works", work).expect("room")
        })
        .collect();
    join_all(threads);
    world.end()
}

#[test]
fn the_seed_decides_everything() {
    let first = busy_world(7);
    assert_eq!(busy_world(7), first);
    assert_ne!(busy_world(8).digest, first.digest);
    assert!(first.points > 1_000 && first.hand_overs > 20 && first.holds > 50, "{first:?}");
}

#[test]
fn initialisers_run_once_and_unswitched() {
    let run = |_: &Baton| {
        let (value, runs) = (Arc::new(sync::OnceLock::new()), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (value, runs) = (value.clone(), runs.clone());
                thread::spawn(move || *value.get_or_init(|| runs.fetch_add(1, SeqCst)))
            })
            .collect();
        assert_eq!(join_all(threads), [0; 3]);
        assert_eq!(runs.load(SeqCst), 1);
    };
    assert_eq!(failures(FREQUENT, run), 0);
}
