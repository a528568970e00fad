//! SCAN and RANDOMKEY inside a transaction: their slots are locked before its first command, they
//! see the keyspace at one moment, and no other thread waits for them.
#![cfg(not(shuttle))]

use base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use base::sync::{Arc, thread};
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Access, Event, Guard, Intent, Keyspace, Options, Parked, Walk};
use std::collections::{BTreeMap, BTreeSet};
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
const ALL: Walk = Walk::From { cursor: 0, count: 1 << 14 };

fn keyspace(workers: usize) -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 5, workers }))
}

fn inside(ks: &Arc<Keyspace>, worker: usize) -> Access {
    let mut access = Access::new(Arc::clone(ks), worker);
    assert!(access.enter());
    access
}

fn put(guard: &mut Guard<'_>, name: &str, expiry: Option<UnixMs>) {
    let key = guard.keyspace().key(name.as_bytes());
    guard.insert(Event::SILENT, DB, &key, NewStr::Raw(b"v"), expiry);
}

fn delete(guard: &mut Guard<'_>, name: &str) -> bool {
    let key = guard.keyspace().key(name.as_bytes());
    guard.remove(Event::SILENT, DB, &key)
}

fn set(access: &mut Access, name: &str) {
    let slot = access.keyspace().key(name.as_bytes()).slot;
    let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
    put(&mut guard, name, None);
    guard.commit();
}

fn set_all<T: AsRef<str>>(access: &mut Access, names: &[T]) {
    for name in names {
        set(access, name.as_ref());
    }
}

/// The slots of these keys, as a lock set.
fn slots_of(ks: &Keyspace, names: &[&str]) -> Vec<SlotId> {
    let slots: BTreeSet<_> = names.iter().map(|name| ks.key(name.as_bytes()).slot).collect();
    slots.into_iter().collect()
}

/// A transaction of commands on these keys, and these walks.
fn begin<'a>(
    access: &'a mut Access,
    names: &[&str],
    walks: &[Walk],
) -> Result<(Guard<'a>, usize), Parked> {
    let slots = slots_of(access.keyspace(), names);
    let mut guard = access.grow(&slots, NOW, Intent::Write)?;
    let mut draw = draws(7);
    let looks = guard.survey(DB, walks, Intent::Write, &mut draw)?;
    Ok((guard, looks))
}

/// Pseudo-random numbers, so that a failing run can be repeated.
fn draws(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn scan(guard: &mut Guard<'_>, cursor: u64, count: u64) -> (u64, Vec<String>) {
    let mut shown = Vec::new();
    let next = guard.scan(DB, cursor, count, |entry| {
        shown.push(String::from_utf8(entry.key().to_vec()).expect("text"));
    });
    (next.expect("a walk in a transaction does not park"), shown)
}

fn random_key(guard: &mut Guard<'_>, draw: impl FnMut() -> u64) -> Option<String> {
    let key = guard.random_key(DB, draw).expect("a walk in a transaction does not park");
    key.map(|key| String::from_utf8(key).expect("text"))
}

/// SCAN ends before the slot of a long holder, and the next SCAN continues when that is free. A
/// SCAN which begins at that slot parks before the transaction has run. The transaction itself is a
/// long holder of its slots.
#[test]
fn a_walk_ends_before_a_long_holder() {
    let ks = keyspace(2);
    let (mut access, mut other) = (inside(&ks, 0), inside(&ks, 1));
    let names: Vec<String> = (0..300).map(|n| format!("k{n}")).collect();
    set_all(&mut access, &names);
    let mut slots: Vec<_> = names.iter().map(|name| ks.key(name.as_bytes()).slot).collect();
    slots.sort_unstable();
    let busy = slots[150];
    let mut held = other.lock_one(busy, NOW, Intent::Read).expect("free");
    held.mark_long();

    let (mut guard, _) = begin(&mut access, &["mine"], &[ALL, ALL]).expect("not at once");
    put(&mut guard, "mine", None);
    let (cursor, shown) = scan(&mut guard, 0, 1 << 14);
    assert!(cursor != 0 && shown.len() >= 100, "{} are before it", shown.len());
    assert!(shown.iter().all(|name| ks.key(name.as_bytes()).slot < busy));
    assert_eq!(scan(&mut guard, 0, 1 << 14), (cursor, shown.clone()), "one moment");
    drop(guard);
    let there = Walk::From { cursor, count: 10 };
    assert_eq!(begin(&mut access, &[], &[there]).err(), Some(Parked::Slot(busy)));
    drop(held);

    let (mut guard, _) = begin(&mut access, &[], &[Walk::From { cursor, count: 1 << 14 }])
        .expect("nobody else holds anything");
    let first = ks.key(shown[0].as_bytes()).slot;
    let (end, rest) = scan(&mut guard, cursor, 1 << 14);
    let all: BTreeSet<_> = shown.iter().chain(&rest).cloned().collect();
    assert_eq!((end, all.contains("mine"), all.len() >= 300), (0, true, true));
    let far = ks.key(rest[rest.len() - 1].as_bytes()).slot;
    assert_eq!(other.lock_one(far, NOW, Intent::Read).err(), Some(Parked::Slot(far)));
    assert!(other.lock_one(first, NOW, Intent::Read).is_ok(), "it is not a part of this one");
    drop(guard);
    assert!(other.lock_one(far, NOW, Intent::Read).is_ok());
}

/// A slot which became empty is locked once: the survey which finds it empty clears its bit.
#[test]
fn emptied_slots_are_locked_once() {
    let ks = keyspace(1);
    let mut access = inside(&ks, 0);
    let names: Vec<String> = (0..300).map(|n| format!("k{n}")).collect();
    for walk in [ALL, Walk::Anywhere] {
        set_all(&mut access, &names);
        for name in &names {
            let slot = ks.key(name.as_bytes()).slot;
            let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
            assert!(delete(&mut guard, name));
            guard.commit();
        }
        let looks = |access: &mut Access| begin(access, &[], &[walk]).expect("free").1;
        assert!(looks(&mut access) > 100, "the first one takes them");
        assert_eq!(looks(&mut access), 0);
    }
}

/// A slot of expired keys is searched once, however many RANDOMKEYs may search it.
#[test]
fn a_slot_with_one_live_key_is_searched_once() {
    let ks = keyspace(1);
    let mut access = inside(&ks, 0);
    let slot = ks.key(b"{a}").slot;
    let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
    for n in 0..1_000 {
        put(&mut guard, &format!("{{a}}{n}"), Some(UnixMs(1)));
    }
    put(&mut guard, "{a}live", None);
    guard.commit();
    drop(guard);
    let walks = vec![Walk::Anywhere; 10_000];
    let (mut guard, looks) = begin(&mut access, &[], &walks).expect("free");
    assert_eq!(looks, 1);
    assert_eq!(random_key(&mut guard, draws(3)).as_deref(), Some("{a}live"));
}

/// Keys which other threads create while the transaction runs belong after it: all its walks see
/// the same keys.
#[test]
fn walks_do_not_see_keys_created_during_the_transaction() {
    let ks = keyspace(2);
    let (mut access, mut other) = (inside(&ks, 0), inside(&ks, 1));
    set_all(&mut access, &["a", "b", "c"]);
    let (mut guard, _) =
        begin(&mut access, &["b", "d"], &[ALL, Walk::Anywhere, ALL]).expect("free");
    let (end, shown) = scan(&mut guard, 0, 100);
    assert_eq!((end, shown.len()), (0, 3));
    for n in 0..100 {
        let (name, own) = (format!("later{n}"), ["a", "b", "c", "d"]);
        let slot = ks.key(name.as_bytes()).slot;
        if !slots_of(&ks, &own).contains(&slot) {
            set(&mut other, &name);
        }
    }
    assert_eq!(scan(&mut guard, 0, 100), (0, shown));
    for seed in 1..50 {
        let key = random_key(&mut guard, draws(seed)).expect("there are keys");
        assert!(["a", "b", "c"].contains(&&*key), "'{key}' came later");
    }
    put(&mut guard, "d", None);
    assert!(delete(&mut guard, "b"));
    let (end, mut shown) = scan(&mut guard, 0, 100);
    shown.sort_unstable();
    assert_eq!((end, shown), (0, ["a", "c", "d"].map(str::to_owned).to_vec()), "its own changes");
}

/// RANDOMKEY finds a key whatever the transaction removes and whichever other slots have long
/// holders. Otherwise it parks before the transaction has run.
#[test]
fn random_key_finds_a_key_while_any_exists() {
    let ks = keyspace(2);
    let (mut access, mut other) = (inside(&ks, 0), inside(&ks, 1));
    let random = [Walk::Anywhere; 3];
    let (mut guard, _) = begin(&mut access, &[], &random).expect("free");
    assert_eq!(random_key(&mut guard, draws(1)), None, "there is none");
    drop(guard);
    set_all(&mut access, &["mine", "{held}1", "{held}2"]);

    let busy = ks.key(b"held").slot;
    let mut held = other.lock_one(busy, NOW, Intent::Write).expect("free");
    held.mark_long();
    assert_eq!(begin(&mut access, &["mine"], &random).err(), Some(Parked::Slot(busy)));
    // A key which the transaction does not name stays.
    let (mut guard, _) = begin(&mut access, &["other"], &random).expect("there is one that stays");
    assert_eq!(random_key(&mut guard, draws(1)).as_deref(), Some("mine"));
    drop(guard);
    // A transaction which removes nothing needs no other slot.
    let mut guard = access.grow(&slots_of(&ks, &["mine"]), NOW, Intent::Read).expect("free");
    guard.survey(DB, &random, Intent::Read, draws(1)).expect("a key is there");
    assert_eq!(random_key(&mut guard, draws(1)).as_deref(), Some("mine"));
    drop(guard);
    assert!(delete(&mut held, "{held}2"));
    drop(held);

    let (mut guard, _) = begin(&mut access, &["mine"], &random).expect("free");
    assert!(delete(&mut guard, "mine"));
    for seed in 1..20 {
        assert_eq!(random_key(&mut guard, draws(seed)).as_deref(), Some("{held}1"));
    }
    drop(guard);
    let names = ["{held}1", "new"];
    let (mut guard, _) = begin(&mut access, &names, &random).expect("free");
    assert!(delete(&mut guard, "{held}1"));
    assert_eq!(random_key(&mut guard, draws(1)), None);
    put(&mut guard, "new", None);
    assert_eq!(random_key(&mut guard, draws(1)).as_deref(), Some("new"));
}

/// Expired keys which may not be removed yet do not hide a live one from RANDOMKEY, and each of
/// their slots is examined once per transaction.
#[test]
fn expired_keys_do_not_hide_a_live_key_from_random_key() {
    let ks = keyspace(1);
    let mut access = inside(&ks, 0);
    ks.hold_expiry(UnixMs(NOW.0 + 1));
    for n in 0..2_000 {
        let name = format!("due{n}");
        let slot = ks.key(name.as_bytes()).slot;
        let mut guard = access.lock_one(slot, UnixMs(NOW.0 - 10), Intent::Write).expect("free");
        put(&mut guard, &name, Some(UnixMs(NOW.0 - 5)));
        guard.commit();
    }
    let random = vec![Walk::Anywhere; 1_000];
    let (mut guard, looks) = begin(&mut access, &["x"], &random).expect("free");
    assert_eq!(random_key(&mut guard, draws(1)), None);
    assert!(looks <= 2_000 + 3 * 1_000, "{looks} looks");
    drop(guard);
    set(&mut access, "alive");
    let (mut guard, looks) = begin(&mut access, &["x"], &random).expect("free");
    for seed in 1..1_000 {
        assert_eq!(random_key(&mut guard, draws(seed)).as_deref(), Some("alive"));
    }
    assert!(looks <= 2_001 + 3 * 1_000, "{looks} looks");
}

/// A transaction of many SCANs examines each slot once, like a single SCAN.
#[test]
fn many_walks_examine_each_slot_once() {
    let ks = keyspace(2);
    let mut access = inside(&ks, 0);
    (0..3_000).for_each(|n| set(&mut access, &format!("k{n}")));
    let looks = |access: &mut Access, walks: &[Walk]| begin(access, &[], walks).expect("free").1;
    let one = looks(&mut access, &[ALL]);
    // One pass locks them, a second one finds no others.
    assert!((2_000..6_000).contains(&one), "{one} looks");
    assert_eq!(looks(&mut access, &vec![ALL; 10_000]), one);
    let anywhere = |n: u64| Walk::From { cursor: n << 39 | 1, count: 1 << 14 };
    let many: Vec<Walk> = (0..16_000).map(anywhere).collect();
    assert_eq!(looks(&mut access, &many), one);
    // A SCAN with a small COUNT locks only what it needs.
    let few = looks(&mut access, &[Walk::From { cursor: 0, count: 10 }]);
    assert!(few <= 2 * 10, "{few} looks");
    let from = (1_000 << 39) | 1;
    let few = looks(&mut access, &vec![Walk::From { cursor: from, count: 10 }; 100]);
    assert!(few <= 2 * 11, "{few} looks");
}

/// RANDOMKEY in a transaction can return every key.
#[test]
fn random_key_in_a_transaction_reaches_every_key() {
    let ks = keyspace(1);
    let mut access = inside(&ks, 0);
    for n in 0..30 {
        set(&mut access, &format!("k{n}"));
        set(&mut access, &format!("{{t}}{n}"));
    }
    let (mut draw, mut seen) = (draws(3), BTreeMap::new());
    for _ in 0..500 {
        let mut guard = access.grow(&[], NOW, Intent::Read).expect("free");
        guard.survey(DB, &[Walk::Anywhere; 10], Intent::Read, &mut draw).expect("free");
        for _ in 0..10 {
            let key = random_key(&mut guard, &mut draw).expect("there are keys");
            *seen.entry(key).or_insert(0) += 1;
        }
    }
    assert_eq!(seen.len(), 60);
    let most = seen.values().max().expect("some");
    assert!(*most < 2_000, "{seen:?}");
}

/// SCAN's guarantee over several transactions, for each COUNT, with cursors within slots.
#[test]
fn scan_of_an_unchanged_database_returns_every_key_once() {
    let ks = keyspace(1);
    let mut access = inside(&ks, 0);
    for n in 0..2_000 {
        set(&mut access, &format!("k{n}"));
        set(&mut access, &format!("{{t}}{n}"));
    }
    for count in [1, 7, 100, 1 << 14] {
        let (mut cursor, mut shown) = (0, Vec::new());
        loop {
            let (mut guard, _) =
                begin(&mut access, &["k1"], &[Walk::From { cursor, count }]).expect("free");
            let (next, some) = scan(&mut guard, cursor, count);
            shown.extend(some);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        shown.sort_unstable();
        assert_eq!(shown.len(), 4_000, "count {count}");
        shown.dedup();
        assert_eq!(shown.len(), 4_000, "count {count}");
    }
}

/// Pairs of keys in different slots are written and removed together, by transactions of other
/// workers. A transaction which walks over everything sees both or none, in each of its walks. A
/// walk over many transactions returns the keys which exist throughout. World runs in between. No
/// thread waits forever.
#[test]
fn walks_beside_writers_see_a_consistent_state() {
    const PAIRS: usize = 40;
    const STAYING: usize = 60;
    const WALKS: usize = 300;
    let ks = keyspace(5);
    let mut first = inside(&ks, 0);
    (0..STAYING).for_each(|n| set(&mut first, &format!("stays{n}")));
    drop(first);
    let walkers = AtomicUsize::new(2);
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ks, walkers, stopped) = (&ks, &walkers, &stopped);
        for worker in 0..2 {
            scope.spawn(move || {
                let _end = End(walkers, stopped);
                let mut access = Access::new(Arc::clone(ks), worker);
                (0..WALKS).for_each(|n| walk_over_all(&mut access, n));
                let mut all = BTreeSet::new();
                let mut cursor = 0;
                loop {
                    cursor = walk_on(&mut access, cursor, &mut all);
                    if cursor == 0 {
                        break;
                    }
                }
                assert!((0..STAYING).all(|n| all.contains(&format!("stays{n}"))));
            });
        }
        for worker in 2..4 {
            scope.spawn(move || {
                let mut access = Access::new(Arc::clone(ks), worker);
                let mut draw = draws(worker as u64);
                while !stopped.load(Ordering::Relaxed) {
                    write_pair(&mut access, draw() as usize % PAIRS, draw().is_multiple_of(2));
                }
            });
        }
        scope.spawn(move || {
            let mut access = Access::new(Arc::clone(ks), 4);
            let mut draw = draws(9);
            while !stopped.load(Ordering::Relaxed) {
                // A walk outside a transaction clears the bits of slots which it finds empty.
                if access.enter() {
                    let _ = access.free(NOW).scan(DB, 0, 1 << 14, |_| {});
                }
                access.leave();
                if draw().is_multiple_of(50) && access.try_world().is_ok() {
                    let mut guard = access.world(NOW);
                    put(&mut guard, "stays1", None);
                    drop(guard);
                    access.open_world();
                }
                thread::yield_now();
            }
        });
    });
}

/// Signals the end when the last walker ends, or when one has failed.
struct End<'a>(&'a AtomicUsize, &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 || thread::panicking() {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Retries a transaction with these walks until it has run.
fn transact<R>(access: &mut Access, walks: &[Walk], f: impl Fn(&mut Guard<'_>) -> R) -> R {
    loop {
        let result = if access.enter() {
            begin(access, &["stays0"], walks).map(|(mut guard, _)| f(&mut guard)).ok()
        } else {
            None
        };
        access.leave();
        if let Some(result) = result {
            return result;
        }
        thread::yield_now();
    }
}

fn walk_over_all(access: &mut Access, n: usize) {
    let ks = Arc::clone(access.keyspace());
    let (end, shown) = transact(access, &[ALL, Walk::Anywhere, ALL], |guard| {
        let (end, mut first) = scan(guard, 0, 1 << 14);
        assert!(random_key(guard, draws(n as u64 + 1)).is_some(), "some keys stay");
        let (again, mut second) = scan(guard, 0, 1 << 14);
        first.sort_unstable();
        second.sort_unstable();
        assert_eq!((end, first), (again, second.clone()));
        (end, second)
    });
    let shown: BTreeSet<_> = shown.into_iter().collect();
    for name in shown.iter().filter(|name| name.contains('-')) {
        let (pair, half) = name.split_once('-').expect("a pair");
        let twin = format!("{pair}-{}", if half == "a" { "b" } else { "a" });
        // It may end early where others keep filling slots.
        let is_behind = end != 0 && ks.key(twin.as_bytes()).slot.index() as u64 >= end >> 39;
        assert!(is_behind || shown.contains(&twin), "half of {pair} is seen");
    }
}

fn walk_on(access: &mut Access, cursor: u64, all: &mut BTreeSet<String>) -> u64 {
    let (next, shown) =
        transact(access, &[Walk::From { cursor, count: 3 }], |guard| scan(guard, cursor, 3));
    all.extend(shown);
    next
}

/// Creates a pair, or removes it.
fn write_pair(access: &mut Access, pair: usize, makes: bool) {
    let names = [format!("{pair}-a"), format!("{pair}-b")];
    let slots = slots_of(access.keyspace(), &[&names[0], &names[1]]);
    if access.enter()
        && let Ok(mut guard) = access.lock(&slots, NOW, Intent::Write)
    {
        for name in &names {
            if makes {
                put(&mut guard, name, None);
            } else {
                delete(&mut guard, name);
            }
        }
    }
    access.leave();
}
