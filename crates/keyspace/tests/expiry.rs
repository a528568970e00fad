//! Expired keys are invisible at once and freed soon, in bounded steps. Watched keys report every
//! kind of change.
#![cfg(not(shuttle))]

use base::hash::KeyHasher;
use base::sync::Arc;
use base::{DbIndex, MonoNs, UnixMs};
use keyspace::{Access, Event, Intent, Keyspace, Options, WatchCell};
use std::time::Instant;
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const SECRET: u128 = 11;

fn store(workers: usize) -> (Arc<Keyspace>, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 3, hash_secret: SECRET, workers }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    (ks, access)
}

fn set(access: &mut Access, name: impl AsRef<[u8]>, due: Option<i64>, now: i64) {
    let ks = Arc::clone(access.keyspace());
    let key = ks.key(name.as_ref());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Write).expect("free");
    guard.insert(Event::SILENT, DB, &key, NewStr::Embstr(b"v"), due.map(UnixMs));
    guard.commit();
}

#[test]
fn an_expired_key_is_invisible_at_once() {
    let (ks, mut access) = store(1);
    set(&mut access, "k", Some(1000), 0);
    let key = ks.key(b"k");
    let mut seen = |now: i64| {
        access
            .lock_one(key.slot, UnixMs(now), Intent::Write)
            .expect("free")
            .read(DB, &key)
            .is_some()
    };
    assert!(seen(999));
    assert_eq!(ks.db_len(DB), 1);
    assert!(!seen(1000));
    assert_eq!(ks.db_len(DB), 0, "and removed by who found it");
    assert_eq!(ks.expiry().expired, 1);
    assert_eq!(access.next_due(), Some(UnixMs(1000)), "the group's time is a lower bound");
    let report = access.expire_step(UnixMs(1000), u64::MAX, || MonoNs(0));
    assert_eq!((report.expired, access.next_due()), (0, None));
}

/// The n-th key of one hash in one slot. Such keys can be made only with the hash secret.
fn of_one_hash(n: usize) -> Vec<u8> {
    [format!("{{a}}{n:05}").as_bytes(), &KeyHasher::new(SECRET).weak_tail()].concat()
}

#[test]
fn a_key_is_freed_in_time_after_another_with_its_hash_and_expiry() {
    let (ks, mut access) = store(1);
    let keys = [of_one_hash(0), of_one_hash(1), of_one_hash(2)];
    assert_eq!(ks.key(&keys[0]).hash, ks.key(&keys[1]).hash, "they collide");
    for key in &keys {
        set(&mut access, key, Some(1000), 0);
    }
    let remove = |access: &mut Access, key: &[u8]| {
        let key = ks.key(key);
        let mut guard = access.lock_one(key.slot, UnixMs(0), Intent::Write).expect("free");
        assert!(guard.remove(Event::SILENT, DB, &key));
        guard.commit();
    };
    remove(&mut access, &keys[0]);
    set(&mut access, &keys[1], Some(2000), 0);
    let mut expired = |now: i64| access.expire_step(UnixMs(now), u64::MAX, || MonoNs(0)).expired;
    assert_eq!((expired(1000), ks.db_len(DB)), (1, 1));
    assert_eq!((expired(2000), ks.db_len(DB)), (1, 0));
    assert_eq!(access.next_due(), None);
}

/// The sweep reads the clock after a bounded number of keys, even if all of them share a hash and
/// an expiry.
#[test]
fn keys_of_one_hash_and_time_are_freed_in_steps() {
    const KEYS: usize = 1000;
    let (ks, mut access) = store(1);
    for n in 0..KEYS {
        set(&mut access, of_one_hash(n), Some(1000), 0);
    }
    let mut steps = 0;
    while ks.db_len(DB) > 0 {
        let report = access.expire_step(UnixMs(1000), 0, || MonoNs(0));
        assert!((1..=16).contains(&report.expired), "{report:?}");
        steps += 1;
    }
    assert!(steps >= KEYS / 16);
    assert_eq!((access.next_due(), ks.db_expires(DB)), (None, 0));
}

/// A million keys expire evenly over 10 s, with a sweep of at most 200 us in each millisecond: no
/// key is removed more than 100 ms late. Time is simulated, except for the budget.
#[test]
fn a_million_keys_are_removed_within_100_ms() {
    let (ks, mut access) = store(1);
    let n = 1_000_000;
    for i in 0..n {
        set(&mut access, format!("key:{i}"), Some(1000 + i / 100), 0);
    }
    assert_eq!(ks.db_expires(DB), n as u64);
    let start = Instant::now();
    let mut clock = || MonoNs(start.elapsed().as_nanos() as u64);
    let mut longest = 0;
    for ms in 1000..11_000 + 100 {
        // At most five steps of 200 us fit into a millisecond. Four leave room for commands.
        for _ in 0..4 {
            let from = clock().0;
            let report = access.expire_step(UnixMs(ms), 200_000, &mut clock);
            longest = longest.max(clock().0 - from);
            if !report.more {
                break;
            }
        }
    }
    assert_eq!(ks.db_len(DB), 0);
    assert_eq!(ks.expiry().expired, n as u64);
    let lag = ks.expiry().lag_max_ms;
    println!("lag {lag} ms, longest step {longest} ns");
    assert!(lag <= 100, "the latest key was freed {lag} ms late");
}

#[test]
fn a_step_ends_at_its_budget_and_the_next_continues() {
    let (ks, mut access) = store(1);
    for i in 0..10_000 {
        set(&mut access, format!("key:{i}"), Some(500), 0);
    }
    let mut time = 0;
    let mut steps = 0;
    loop {
        // Every read of the clock takes 10 us of simulated time, so a step reads it 20 times.
        let report = access.expire_step(UnixMs(600), 200_000, || {
            time += 10_000;
            MonoNs(time)
        });
        steps += 1;
        assert!(report.expired <= 20 * 16, "a step of 20 bursts");
        if !report.more {
            break;
        }
    }
    assert!(steps > 30, "{steps} steps");
    assert_eq!(ks.db_len(DB), 0);
    assert_eq!(ks.expiry().lag_max_ms, 100);
}

#[test]
fn each_worker_sweeps_its_own_share_of_the_slots() {
    let (ks, mut first) = store(3);
    let mut others = [1, 2].map(|worker| Access::new(Arc::clone(&ks), worker));
    for i in 0..5000 {
        set(&mut first, format!("key:{i}"), Some(500), 0);
    }
    let mut swept = vec![first.expire_step(UnixMs(600), u64::MAX, || MonoNs(0)).expired];
    for access in &mut others {
        assert!(access.enter());
        swept.push(access.expire_step(UnixMs(600), u64::MAX, || MonoNs(0)).expired);
    }
    assert_eq!(swept.iter().sum::<u64>(), 5000);
    assert!(swept.iter().all(|&n| n > 1000), "{swept:?}");
    assert_eq!(ks.db_len(DB), 0);
}

/// Watches `k`, runs `change` on another worker, and returns whether EXEC would abort.
fn aborts(
    existing: Option<i64>,
    at_exec: i64,
    change: impl FnOnce(&Arc<Keyspace>, &mut Access),
) -> bool {
    let (ks, mut access) = store(2);
    let mut other = Access::new(Arc::clone(&ks), 1);
    if let Some(due) = existing {
        set(&mut access, "k", (due != 0).then_some(due), 0);
    }
    let key = ks.key(b"k");
    let cell = WatchCell::new();
    access.lock_one(key.slot, UnixMs(10), Intent::Write).expect("free").watch(DB, &key, &cell);
    access.leave();
    assert!(other.enter());
    change(&ks, &mut other);
    other.leave();
    assert!(access.enter());
    let mut guard = access.lock_one(key.slot, UnixMs(at_exec), Intent::Write).expect("free");
    guard.expire_watched(DB, &key);
    let dirty = cell.is_dirty();
    guard.unwatch(DB, &key, &cell);
    drop(guard);
    // After the unwatch, no change marks the watch.
    let before = cell.is_dirty();
    set(&mut access, "k", None, at_exec);
    assert_eq!(cell.is_dirty(), before);
    dirty
}

fn world(access: &mut Access, f: impl FnOnce(&mut keyspace::Guard<'_>)) {
    access.try_world().expect("the other worker is outside");
    f(&mut access.world(UnixMs(20)));
    access.open_world();
}

#[test]
fn every_change_dirties_a_watched_key() {
    let now = UnixMs(20);
    let with_key = |f: fn(&mut keyspace::Guard<'_>, &keyspace::Key<'_>)| {
        move |ks: &Arc<Keyspace>, access: &mut Access| {
            let key = ks.key(b"k");
            f(&mut access.lock_one(key.slot, now, Intent::Write).expect("free"), &key);
        }
    };
    let set_same = with_key(|g, k| g.insert(Event::SILENT, DB, k, NewStr::Embstr(b"v"), None));
    assert!(aborts(Some(0), 30, set_same), "even the same value is a change");
    assert!(aborts(None, 30, set_same), "a key that comes into being");
    assert!(aborts(Some(0), 30, with_key(|g, k| assert!(g.remove(Event::SILENT, DB, k)))));
    assert!(!aborts(None, 30, with_key(|g, k| assert!(!g.remove(Event::SILENT, DB, k)))));
    assert!(!aborts(Some(0), 30, with_key(|g, k| assert!(g.read(DB, k).is_some()))));
    let in_place = with_key(|g, k| {
        g.entry_mut(Event::SILENT, DB, k).expect("it is there").append(b"x");
    });
    assert!(aborts(Some(0), 30, in_place));
    let expire = with_key(|g, k| {
        g.entry_mut(Event::SILENT, DB, k).expect("it is there").set_expiry(Some(UnixMs(99)));
    });
    assert!(aborts(Some(0), 30, expire));
    let other_db = with_key(|g, k| g.insert(Event::SILENT, DbIndex(1), k, NewStr::Int(1), None));
    assert!(!aborts(Some(0), 30, other_db), "the same name in another database");
    let rolled_back = with_key(|g, k| {
        g.insert(Event::SILENT, DB, k, NewStr::Int(1), None);
        g.rollback();
    });
    assert!(!aborts(Some(0), 30, rolled_back));
    // Expiry between WATCH and EXEC, found by EXEC itself or by a sweep.
    assert!(aborts(Some(25), 30, |_, _| {}));
    assert!(!aborts(Some(25), 24, |_, _| {}));
    assert!(aborts(Some(15), 16, |_, access| {
        access.expire_step(UnixMs(16), u64::MAX, || MonoNs(0));
    }));
    // If the key had expired before it was watched, its removal is no change.
    assert!(!aborts(Some(5), 30, |_, access| {
        access.expire_step(UnixMs(16), u64::MAX, || MonoNs(0));
    }));
}

#[test]
fn flushes_and_swaps_dirty_watched_keys() {
    type Change = fn(&Arc<Keyspace>, &mut Access);
    let flush: Change = |_, a| world(a, |g| assert!(g.flush_db(DB) <= 1));
    let flush_all: Change = |_, a| world(a, |g| assert!(g.flush_all() <= 1));
    let flush_other: Change = |_, a| world(a, |g| assert_eq!(g.flush_db(DbIndex(1)), 0));
    let swap: Change = |_, a| world(a, |g| g.swap_db(DB, DbIndex(1)));
    let swap_others: Change = |_, a| world(a, |g| g.swap_db(DbIndex(1), DbIndex(2)));
    let swap_in: Change = |ks, a| {
        let key = ks.key(b"k");
        let mut guard = a.lock_one(key.slot, UnixMs(20), Intent::Write).expect("free");
        guard.insert(Event::SILENT, DbIndex(1), &key, NewStr::Int(1), None);
        drop(guard);
        world(a, |g| g.swap_db(DbIndex(1), DB));
    };
    for (existing, change, expected, what) in [
        (Some(0), flush, true, "flushed"),
        (None, flush, false, "flushed, but was not there"),
        (Some(0), flush_all, true, "everything flushed"),
        (None, flush_all, false, "everything flushed, but was not there"),
        (Some(0), flush_other, false, "another database flushed"),
        (Some(0), swap, true, "swapped away"),
        (None, swap, false, "swapped, in neither"),
        (None, swap_in, true, "swapped in"),
        (Some(0), swap_others, false, "others swapped"),
    ] {
        assert_eq!(aborts(existing, 30, change), expected, "{what}");
    }
}
