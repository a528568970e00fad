//! Moving entries: memory of spans falls, and every key keeps what it has.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, MonoNs, SlotId, UnixMs};
use keyspace::{Access, DefragNext, DefragReport, Event, Intent, Keyspace, Options, WatchCell};
use proptest::prelude::*;
use std::collections::BTreeMap;
use value::NewStr;

const DB: DbIndex = DbIndex(0);
const OTHER: DbIndex = DbIndex(2);
const S: i64 = 1000;
const START: i64 = 1_000_000 * S;

fn store(workers: usize) -> (Arc<Keyspace>, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 3, hash_secret: 11, workers }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    (ks, access)
}

/// A key's value.
fn value(n: usize, len: usize) -> Vec<u8> {
    n.to_le_bytes().into_iter().cycle().take(len).collect()
}

fn set(access: &mut Access, db: DbIndex, n: usize, len: usize, due: Option<i64>, now: i64) {
    let ks = Arc::clone(access.keyspace());
    let name = format!("key:{n}");
    let key = ks.key(name.as_bytes());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Write).expect("free");
    guard.insert(Event::SILENT, db, &key, NewStr::Raw(&value(n, len)), due.map(UnixMs));
    guard.finish();
}

fn remove(access: &mut Access, db: DbIndex, n: usize, now: i64) -> bool {
    let ks = Arc::clone(access.keyspace());
    let name = format!("key:{n}");
    let key = ks.key(name.as_bytes());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Write).expect("free");
    let removed = guard.remove(Event::SILENT, db, &key);
    guard.finish();
    removed
}

/// Value, expiry and idle time of a key.
fn read(
    access: &mut Access,
    db: DbIndex,
    n: usize,
    now: i64,
) -> Option<(Vec<u8>, Option<i64>, u64)> {
    let ks = Arc::clone(access.keyspace());
    let name = format!("key:{n}");
    let key = ks.key(name.as_bytes());
    let mut guard = access.lock_one(key.slot, UnixMs(now), Intent::Read).expect("free");
    let entry = guard.peek(db, &key)?;
    let idle = entry.idle_seconds(UnixMs(now));
    Some((entry.str().to_vec(), entry.expiry().map(|at| at.0), idle))
}

/// A clock that ends each step after so many reads.
fn ticks(reads: u64) -> impl FnMut() -> MonoNs {
    let mut now = 0;
    move || {
        now += 1_000_000 / reads;
        MonoNs(now)
    }
}

/// Runs a round to its end; what it did, and in how many steps.
fn round(access: &mut Access, reads: u64, now: i64) -> Option<(DefragReport, usize)> {
    let mut round = access.begin_defrag()?;
    let (mut sum, mut steps) = (DefragReport::default(), 0);
    loop {
        let step = access.defrag_step(&mut round, UnixMs(now), 1_000_000, ticks(reads));
        assert!(step.moved <= reads * 40, "a burst, and the rest of a bucket: {step:?}");
        sum.moved += step.moved;
        sum.moved_bytes += step.moved_bytes;
        sum.stayed += step.stayed;
        sum.skipped += step.skipped;
        steps += 1;
        match step.next {
            DefragNext::Complete => return Some((sum, steps)),
            DefragNext::More | DefragNext::Waits => {}
        }
    }
}

/// Keys with values of 150 bytes, of which two in five are left: most expire, and have been used at
/// different times.
fn sparse(access: &mut Access, keys: usize) -> impl Fn(usize) -> bool + use<> {
    for n in 0..keys {
        let due = (n % 3 > 0).then_some(START + 2_000 * S + (n % 100) as i64 * S);
        set(access, DB, n, 150, due, START + (n % 50) as i64 * S);
        if n % 4 == 0 {
            set(access, OTHER, n, 150, None, START);
        }
    }
    let stays = |n: usize| n * 7 % 5 < 2;
    for n in (0..keys).filter(|n| !stays(*n)) {
        assert!(remove(access, DB, n, START + 100 * S));
        remove(access, OTHER, n, START + 100 * S);
    }
    stays
}

#[test]
fn memory_of_spans_falls_and_every_key_keeps_what_it_has() {
    const KEYS: usize = 40_000;
    let (ks, mut access) = store(1);
    let stays = sparse(&mut access, KEYS);
    let now = START + 200 * S;
    let before: Vec<_> = [DB, OTHER]
        .map(|db| (0..KEYS).map(|n| read(&mut access, db, n, now)).collect::<Vec<_>>())
        .into();
    let (pages, memory, expires) = (ks.entry_pages().active, ks.memory(), ks.db_expires(DB));
    let (done, steps) = round(&mut access, 4, now).expect("most of the spans are superfluous");
    assert!(steps > 100, "a step ends when the clock says so: {steps}");
    assert!(done.moved > 8_000 && done.skipped == 0, "{done:?}");
    assert_eq!((done.moved + done.stayed) as usize, 16_000 + 4_000);
    let after = ks.entry_pages().active;
    assert!(after * 10 < pages * 6, "{pages} -> {after}");
    assert_eq!((ks.memory(), ks.db_expires(DB)), (memory, expires), "nothing else has changed");
    for (db, before) in [DB, OTHER].into_iter().zip(&before) {
        for (n, before) in before.iter().enumerate() {
            assert_eq!(read(&mut access, db, n, now), *before, "{n}");
            assert_eq!(before.is_some(), stays(n) && (db == DB || n % 4 == 0));
        }
    }
    // What the caches and the rest of a fresh span had held is left in a round or two.
    let more = std::iter::from_fn(|| round(&mut access, 4, now)).take(4).count();
    assert!(more < 4, "in the end all spans are needed");
    // The expiry index still leads to each of them, wherever it stands.
    let late = START + 3_000 * S;
    let mut expired = 0;
    loop {
        let report = access.expire_step(UnixMs(late), u64::MAX >> 1, || MonoNs(1));
        expired += report.expired;
        if report.expired == 0 {
            break;
        }
    }
    assert_eq!((expired, ks.db_expires(DB)), (expires, 0));
    assert_eq!(ks.db_len(DB) as usize, (0..KEYS).filter(|n| stays(*n) && n % 3 == 0).count());
}

/// A move is no change: watches stay clean, no number is drawn, nothing counts as a change, and no
/// event is emitted.
#[test]
fn nobody_learns_of_a_move() {
    let (ks, mut access) = store(1);
    let stays = sparse(&mut access, 10_000);
    let cell = WatchCell::new();
    let watched: Vec<String> =
        (0..10_000).filter(|n| stays(*n)).step_by(10).map(|n| format!("key:{n}")).collect();
    for name in &watched {
        let key = ks.key(name.as_bytes());
        let mut guard = access.lock_one(key.slot, UnixMs(START), Intent::Read).expect("free");
        guard.watch(DB, &key, &cell);
    }
    ks.numbers().set_drawing(true);
    let (changes, last) = (ks.changes(), ks.numbers().last());
    let (done, _) = round(&mut access, 4, START + 200 * S).expect("superfluous spans");
    assert!(done.moved > 1_000);
    assert!(!cell.is_dirty(), "no watch is broken");
    assert_eq!((ks.changes(), ks.numbers().last()), (changes, last));
    // And a change of a moved key is noticed.
    set(&mut access, DB, 0, 10, None, START);
    assert!(cell.is_dirty());
}

/// Slots that are held for long, or frozen, are skipped; a waiter for World is let in; a snapshot
/// ends the round.
#[test]
fn a_round_gives_way() {
    let (ks, mut access) = store(2);
    let stays = sparse(&mut access, 10_000);
    let now = START + 200 * S;
    let name = |n: usize| format!("key:{n}");
    let [held, frozen] = [0, 1].map(|at| {
        let n = (0..10_000).filter(|n| stays(*n)).nth(at).expect("there are many");
        ks.key(name(n).as_bytes()).slot
    });
    assert_ne!(held, frozen);
    access.leave();
    access.try_world().expect("nobody is inside");
    access.world(UnixMs(now)).freeze(&[frozen]);
    // While another worker has closed the gate, nobody enters; who is inside steps aside.
    access.open_world();
    assert!(access.enter());
    let mut other = Access::new(Arc::clone(&ks), 1);
    assert!(other.enter());
    let mut guard = other.lock_one(held, UnixMs(now), Intent::Write).expect("free");
    guard.mark_long();
    let (done, _) = round(&mut access, 4, now).expect("superfluous spans");
    // A slot may have keys of two databases.
    assert!((2..=4).contains(&done.skipped) && done.moved > 1_000, "{done:?}");
    drop(guard);
    other.leave();
    ks.thaw(&[frozen]);
    let slots: Vec<SlotId> = vec![held, frozen];
    assert!(slots.iter().all(|slot| access.lock_one(*slot, UnixMs(now), Intent::Write).is_ok()));
}

#[test]
fn a_snapshot_ends_a_round() {
    let (ks, mut access) = store(1);
    let _ = sparse(&mut access, 10_000);
    let now = START + 200 * S;
    let mut round = access.begin_defrag().expect("superfluous spans");
    let step = access.defrag_step(&mut round, UnixMs(now), 1_000_000, ticks(10));
    assert_eq!(step.next, DefragNext::More);
    access.leave();
    access.try_world().expect("nobody is inside");
    let snapshot = access.cut(1 << 20).expect("the first one");
    access.open_world();
    assert!(access.enter() && ks.is_snapshot_running());
    let mut moved = 0;
    loop {
        let step = access.defrag_step(&mut round, UnixMs(now), 1_000_000, ticks(10));
        moved += step.moved;
        if step.next == DefragNext::Complete {
            break;
        }
    }
    assert_eq!(moved, 0);
    drop(snapshot);
}

/// A round that was dropped is ended by the next one, which begins after that.
#[test]
fn a_round_that_was_dropped_is_ended() {
    let (_, mut access) = store(1);
    let _ = sparse(&mut access, 10_000);
    let now = START + 200 * S;
    let mut first = access.begin_defrag().expect("superfluous spans");
    let _ = access.defrag_step(&mut first, UnixMs(now), 1_000_000, ticks(10));
    drop(first);
    let (ended, _) = round(&mut access, 4, now).expect("the end of the first");
    assert_eq!(ended.moved, 0);
    let (done, _) = round(&mut access, 4, now).expect("superfluous spans");
    assert!(done.moved > 1_000);
}

#[derive(Clone, Debug)]
enum Act {
    Insert {
        n: usize,
        count: usize,
        len: usize,
        expires: bool,
    },
    Remove {
        n: usize,
        count: usize,
    },
    /// So many steps of a round.
    Move {
        steps: usize,
    },
    Wait,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..3_000_usize, 1..1_500_usize, 0..1_200_usize, any::<bool>())
            .prop_map(|(n, count, len, expires)| Act::Insert { n, count, len, expires }),
        3 => (0..3_000_usize, 1..2_000_usize).prop_map(|(n, count)| Act::Remove { n, count }),
        3 => (1..60_usize).prop_map(|steps| Act::Move { steps }),
        1 => Just(Act::Wait),
    ];
    proptest::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Inserts, removals, expiry and moves in any order: every key has its value and its expiry,
    /// and in the end all places are free.
    #[test]
    fn moves_between_changes_match_a_model(acts in acts()) {
        let (ks, mut access) = store(1);
        let mut model: BTreeMap<usize, (usize, Option<i64>)> = BTreeMap::new();
        let (mut now, mut open) = (START, None);
        for act in acts {
            match act {
                Act::Insert { n, count, len, expires } => for n in n..n + count {
                    let due = expires.then_some(now + 50 * S);
                    set(&mut access, DB, n, len, due, now);
                    model.insert(n, (len, due));
                },
                Act::Remove { n, count } => for n in (n..n + count).filter(|n| n % 7 > 0) {
                    prop_assert_eq!(remove(&mut access, DB, n, now), model.remove(&n).is_some());
                },
                Act::Move { steps } => for _ in 0..steps {
                    if open.is_none() {
                        open = access.begin_defrag();
                    }
                    let Some(round) = &mut open else { break };
                    let step = access.defrag_step(round, UnixMs(now), 1_000_000, ticks(3));
                    if step.next == DefragNext::Complete {
                        open = None;
                    }
                },
                Act::Wait => {
                    now += 30 * S;
                    model.retain(|_, (_, due)| due.is_none_or(|due| due > now));
                    while access.expire_step(UnixMs(now), u64::MAX >> 1, || MonoNs(1)).expired > 0 {}
                }
            }
            prop_assert_eq!(ks.db_len(DB) as usize, model.len());
        }
        for (&n, &(len, due)) in &model {
            let (text, expiry, _) = read(&mut access, DB, n, now).expect("it is there");
            prop_assert_eq!((text, expiry), (value(n, len), due));
        }
        for n in model.into_keys() {
            prop_assert!(remove(&mut access, DB, n, now));
        }
        prop_assert_eq!(ks.memory().places, 0);
    }
}
