//! A panic in the middle of a command, after each of its calls in turn: all its changes are rolled
//! back, and the slot is free again.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{Blob, DbIndex, SlotId, UnixMs};
use keyspace::{
    Access, Entry, EntryMut, Event, EventClass, Guard, Intent, KeyEvent, Keyspace, Kind, Options,
    WatchCell,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use value::List;
use value::{Big, Encoding, Log, NewStr, encode};

const NOW: UnixMs = UnixMs(1_000_000);
/// The event of every change.
const CHANGE: Event = Event::new(&(EventClass::Generic, "told"));

#[derive(Clone, Debug)]
enum Call {
    Insert(u16, u8, Vec<u8>, Option<i64>),
    InsertBlob(u16, u8, usize),
    Remove(u16, u8),
    Write(u16, u8, usize, Vec<u8>),
    SetInt(u16, u8, i64),
    Expire(u16, u8, Option<i64>),
    Move(u16, u8, u16, u8),
    Copy(u16, u8, u16, u8),
    Packed(u16, u8, Kind, Vec<u8>, Option<i64>),
    Big(u16, u8, usize, Option<i64>),
    SetPacked(u16, u8, Vec<u8>),
    SetBig(u16, u8, usize),
    Edit(u16, u8, Vec<Option<u8>>, bool),
    Encoding(u16, u8, bool),
    Flush(u16),
    Swap,
}

fn collection() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::List), Just(Kind::Set), Just(Kind::Zset), Just(Kind::Hash)]
}

/// Calls on collections.
fn typed() -> impl Strategy<Value = Call> {
    let (db, key) = (0..2_u16, 0..12_u8);
    let packed = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        (900..4096_usize).prop_map(|n| vec![7; n]),
    ];
    let due = proptest::option::of(1..9_i64);
    let edits = proptest::collection::vec(any::<Option<u8>>(), 1..9);
    prop_oneof![
        3 => (db.clone(), key.clone(), collection(), packed.clone(), due.clone())
            .prop_map(|(d, k, kind, v, e)| Call::Packed(d, k, kind, v, e)),
        4 => (db.clone(), key.clone(), 1..200_usize, due)
            .prop_map(|(d, k, n, e)| Call::Big(d, k, n, e)),
        2 => (db.clone(), key.clone(), packed).prop_map(|(d, k, v)| Call::SetPacked(d, k, v)),
        2 => (db.clone(), key.clone(), 1..200_usize).prop_map(|(d, k, n)| Call::SetBig(d, k, n)),
        9 => (db.clone(), key.clone(), edits, any::<bool>())
            .prop_map(|(d, k, e, c)| Call::Edit(d, k, e, c)),
        3 => (db, key, any::<bool>()).prop_map(|(d, k, q)| Call::Encoding(d, k, q)),
    ]
}

fn list(elements: usize) -> Big {
    let (mut list, mut log) = (List::new(), Log::default());
    for n in 0..elements {
        list.push_back(n.to_string().as_bytes(), &mut log);
    }
    Big::List(list)
}

/// The whole value, of any kind.
fn content(entry: Entry<'_>) -> Vec<u8> {
    match (entry.kind(), entry.packed(), entry.big()) {
        (Kind::String, None, None) => entry.str().to_vec(),
        (_, Some(packed), None) => packed.to_vec(),
        (Kind::List, None, Some(Big::List(list))) => {
            assert_eq!(list.len(), list.iter().count() as u64);
            list.iter().flat_map(|element| [&element.to_vec()[..], b","].concat()).collect()
        }
        other => panic!("an entry holds one value: {other:?}"),
    }
}

fn edit(entry: &mut EntryMut<'_, '_>, edits: &[Option<u8>], capture: bool) {
    entry.edit(|big, log| {
        if capture {
            log.capture(big);
        }
        let Big::List(list) = big else { panic!("only lists are big here") };
        for edit in edits {
            match edit {
                Some(byte) => list.push_back(&[*byte; 3], log),
                None if list.is_empty() => {}
                None => list.remove(list.len() - 1, log, |_| ()),
            }
        }
    });
}

fn call(world: bool) -> impl Strategy<Value = Call> {
    prop_oneof![string_call(world), typed()]
}

fn string_call(world: bool) -> impl Strategy<Value = Call> {
    let (db, key) = (0..2_u16, 0..12_u8);
    let text = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        (1000..1100_usize).prop_map(|n| vec![b'x'; n]),
        any::<i32>().prop_map(|n| n.to_string().into_bytes()),
    ];
    let due = proptest::option::of(1..9_i64);
    prop_oneof![
        6 => (db.clone(), key.clone(), text.clone(), due.clone())
            .prop_map(|(d, k, v, e)| Call::Insert(d, k, v, e)),
        4 => (db.clone(), key.clone(), 16_384..40_000_usize)
            .prop_map(|(d, k, n)| Call::InsertBlob(d, k, n)),
        4 => (db.clone(), key.clone()).prop_map(|(d, k)| Call::Remove(d, k)),
        6 => (db.clone(), key.clone(), 0..45_000_usize, text)
            .prop_map(|(d, k, at, v)| Call::Write(d, k, at, v)),
        3 => (db.clone(), key.clone(), any::<i64>()).prop_map(|(d, k, v)| Call::SetInt(d, k, v)),
        4 => (db.clone(), key.clone(), due).prop_map(|(d, k, e)| Call::Expire(d, k, e)),
        3 => (db.clone(), key.clone(), db.clone(), key.clone())
            .prop_map(|(a, k, b, l)| Call::Move(a, k, b, l)),
        3 => (db.clone(), key.clone(), db.clone(), key)
            .prop_map(|(a, k, b, l)| Call::Copy(a, k, b, l)),
        u32::from(world) * 2 => db.prop_map(Call::Flush),
        u32::from(world) * 2 => Just(Call::Swap),
    ]
}

/// All in one slot, so that buckets split, merge and overflow under the changes.
fn name(key: u8) -> String {
    format!("{{one}}{key}")
}

fn run_typed(guard: &mut Guard<'_>, call: &Call) {
    let ks = guard.keyspace();
    let at = |due: &Option<i64>| due.map(|d| UnixMs(NOW.0 + d));
    let place = |db: &u16, key: &u8| (DbIndex::new(*db), name(*key));
    match call {
        Call::Packed(db, key, kind, bytes, due) => {
            let (db, key) = place(db, key);
            let key = ks.key(key.as_bytes());
            guard.insert_packed(CHANGE, db, &key, *kind, Encoding::Listpack, bytes, at(due));
        }
        Call::Big(db, key, n, due) => {
            let (db, key) = place(db, key);
            let key = ks.key(key.as_bytes());
            guard.insert_big(CHANGE, db, &key, Encoding::Quicklist, list(*n), at(due));
        }
        Call::SetPacked(db, key, _)
        | Call::SetBig(db, key, _)
        | Call::Edit(db, key, ..)
        | Call::Encoding(db, key, _) => {
            let (db, key) = place(db, key);
            let Some(mut entry) = guard.entry_mut(CHANGE, db, &ks.key(key.as_bytes())) else {
                return;
            };
            if entry.kind() == Kind::String {
                return;
            }
            match call {
                Call::SetPacked(.., bytes) => entry.set_packed(Encoding::Listpack, bytes),
                Call::SetBig(.., n) => entry.set_big(Encoding::Quicklist, list(*n)),
                Call::Edit(.., edits, capture) if entry.entry().big().is_some() => {
                    edit(&mut entry, edits, *capture);
                }
                Call::Encoding(.., true) => entry.set_encoding(Encoding::Quicklist),
                Call::Encoding(.., false) => entry.set_encoding(Encoding::Listpack),
                _ => {}
            }
        }
        other => panic!("{other:?} is no call on a collection"),
    }
}

fn run(guard: &mut Guard<'_>, call: &Call) {
    let ks = guard.keyspace();
    let at = |due: &Option<i64>| due.map(|d| UnixMs(NOW.0 + d));
    match call {
        Call::Insert(db, key, text, due) => {
            guard.insert(
                CHANGE,
                DbIndex::new(*db),
                &ks.key(name(*key).as_bytes()),
                encode(text),
                at(due),
            );
        }
        Call::InsertBlob(db, key, n) => {
            let blob = NewStr::Blob(Blob::new(vec![b'b'; *n]));
            guard.insert(CHANGE, DbIndex::new(*db), &ks.key(name(*key).as_bytes()), blob, None);
        }
        Call::Remove(db, key) => {
            guard.remove(CHANGE, DbIndex::new(*db), &ks.key(name(*key).as_bytes()));
        }
        Call::Write(db, key, at, bytes) => {
            if let Some(mut e) =
                guard.entry_mut(CHANGE, DbIndex::new(*db), &ks.key(name(*key).as_bytes()))
                && e.kind() == Kind::String
            {
                e.write_at(*at, bytes);
            }
        }
        Call::SetInt(db, key, value) => {
            if let Some(mut e) =
                guard.entry_mut(CHANGE, DbIndex::new(*db), &ks.key(name(*key).as_bytes()))
            {
                e.set_int(*value); // also replaces a collection
            }
        }
        Call::Expire(db, key, due) => {
            if let Some(mut e) =
                guard.entry_mut(CHANGE, DbIndex::new(*db), &ks.key(name(*key).as_bytes()))
            {
                e.set_expiry(at(due));
            }
        }
        Call::Move(a, k, b, l) | Call::Copy(a, k, b, l) => {
            let (from, to) = (name(*k), name(*l));
            let (from, to) = (ks.key(from.as_bytes()), ks.key(to.as_bytes()));
            if matches!(call, Call::Move(..)) {
                guard.move_entry([CHANGE; 2], DbIndex::new(*a), &from, DbIndex::new(*b), &to);
            } else {
                guard.copy_entry(CHANGE, DbIndex::new(*a), &from, DbIndex::new(*b), &to);
            }
        }
        Call::Flush(db) => {
            guard.flush_db(DbIndex::new(*db));
        }
        typed @ (Call::Packed(..)
        | Call::Big(..)
        | Call::SetPacked(..)
        | Call::SetBig(..)
        | Call::Edit(..)
        | Call::Encoding(..)) => run_typed(guard, typed),
        Call::Swap => guard.swap_db(DbIndex(0), DbIndex(1)),
    }
}

type State = BTreeMap<(u16, Vec<u8>), (Kind, Vec<u8>, Option<UnixMs>, Encoding)>;

fn state(access: &mut Access) -> (State, [u64; 4]) {
    let ks = Arc::clone(access.keyspace());
    let mut all = State::new();
    for db in 0..2 {
        let mut guard = access.free(NOW);
        let mut cursor = 0;
        loop {
            let next = guard.scan(DbIndex::new(db), cursor, 100, |e| {
                let value = (e.kind(), content(e), e.expiry(), e.encoding());
                assert!(all.insert((db, e.key().to_vec()), value).is_none(), "shown once");
            });
            cursor = next.expect("nobody else holds a slot");
            if cursor == 0 {
                break;
            }
        }
    }
    for db in [0, 1].map(DbIndex::new) {
        let measured = access.free(NOW).measure_bytes(db).expect("nobody else holds a slot");
        assert_eq!(ks.db_bytes(db), measured, "bytes of {db:?}");
    }
    let counts = [0, 1].map(|db| ks.db_len(DbIndex::new(db)));
    let due = [0, 1].map(|db| ks.db_expires(DbIndex::new(db)));
    (all, [counts[0], counts[1], due[0], due[1]])
}

fn guard(access: &mut Access, world: bool) -> Guard<'_> {
    if world {
        access.world(NOW)
    } else {
        let slot = access.keyspace().key(name(0).as_bytes()).slot;
        access.lock_one(slot, NOW, Intent::Write).expect("free")
    }
}

fn check(before: &[Call], command: &[Call], world: bool, unwind: bool) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 3, workers: 2 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    if world {
        access.try_world().expect("no other worker is inside");
    }
    {
        let mut guard = guard(&mut access, world);
        for call in before {
            run(&mut guard, call);
            guard.commit();
        }
    }
    let cell = WatchCell::new();
    {
        let mut guard = guard(&mut access, world);
        for key in 0..12 {
            guard.watch(DbIndex(0), &ks.key(name(key).as_bytes()), &cell);
        }
    }
    let expected = state(&mut access);
    // The command panics after each of its calls in turn.
    for strike in 1..=command.len() {
        if unwind {
            let died = catch_unwind(AssertUnwindSafe(|| {
                let mut guard = guard(&mut access, world);
                for call in &command[..strike] {
                    run(&mut guard, call);
                }
                resume_unwind(Box::new(strike)); // a panic without its message
            }));
            assert_eq!(died.expect_err("it dies").downcast_ref(), Some(&strike));
        } else {
            let mut guard = guard(&mut access, world);
            for call in &command[..strike] {
                run(&mut guard, call);
            }
            guard.rollback();
        }
        assert_eq!(state(&mut access), expected, "after a panic at call {strike}");
        assert!(!cell.is_dirty(), "nobody was told of what did not happen");
    }
    // The expiry index is complete: at the end of time, every key with an expiry is removed.
    if world {
        access.open_world();
    }
    let with_expiry = expected.0.values().filter(|v| v.2.is_some()).count() as u64;
    let mut gone = 0;
    for _ in 0..2 {
        gone += access.expire_step(UnixMs(NOW.0 + 100), u64::MAX, || base::MonoNs(0)).expired;
    }
    let mut other = Access::new(Arc::clone(&ks), 1);
    assert!(other.enter());
    gone += other.expire_step(UnixMs(NOW.0 + 100), u64::MAX, || base::MonoNs(0)).expired;
    assert_eq!(gone, with_expiry);
    drop(other);
    access.try_world().expect("no other worker is inside");
    access.world(NOW).flush_all();
    access.open_world();
    while access.reclaim(1000) {}
    assert_eq!(ks.memory().entries, 0, "every byte was accounted for");
    assert_eq!(ks.memory().buckets, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_panic_after_any_call_is_rolled_back(
        before in proptest::collection::vec(call(false), 0..60),
        command in proptest::collection::vec(call(false), 1..12),
        unwind: bool,
    ) {
        check(&before, &command, false, unwind);
    }

    #[test]
    fn a_panic_under_world_is_rolled_back(
        before in proptest::collection::vec(call(true), 0..60),
        command in proptest::collection::vec(call(true), 1..12),
        unwind: bool,
    ) {
        check(&before, &command, true, unwind);
    }
}

/// Several commands under one guard, some of which fail: only the changes of the others are kept,
/// reported and counted.
fn check_commands(before: &[Call], commands: &[(Vec<Call>, bool)], world: bool) {
    let outcome = |only_good: bool| {
        let ks = Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 3, workers: 1 }));
        let mut access = Access::new(Arc::clone(&ks), 0);
        access.try_world().expect("no other worker is inside");
        access.listen_to_events(true);
        let cell = WatchCell::new();
        let mut guard = guard(&mut access, world);
        for call in before {
            run(&mut guard, call);
            guard.commit();
        }
        while guard.next_event().is_some() {}
        let count = ks.changes();
        guard.watch(DbIndex(0), &ks.key(name(0).as_bytes()), &cell);
        for (number, (calls, fails)) in commands.iter().enumerate() {
            if only_good && *fails {
                continue;
            }
            let mark = guard.mark();
            guard.note(Box::new(number));
            for call in calls {
                run(&mut guard, call);
            }
            if *fails {
                guard.rollback_to(mark);
            } else if only_good {
                guard.commit();
            }
        }
        guard.commit();
        let notes: Vec<usize> = std::iter::from_fn(|| guard.next_note())
            .map(|note| *note.downcast().expect("a number"))
            .collect();
        let events: Vec<KeyEvent> = std::iter::from_fn(|| guard.next_event()).collect();
        drop(guard);
        let changes = ks.changes() - count;
        let left = state(&mut access);
        access.world(NOW).flush_all();
        access.open_world();
        while access.reclaim(1000) {}
        assert_eq!(ks.memory().entries, 0, "every byte was accounted for");
        (left, notes, cell.is_dirty(), changes, events)
    };
    let (all, good) = (outcome(false), outcome(true));
    assert!(all.0 == good.0, "what is left is what the others left");
    assert_eq!((all.1, all.2, all.3), (good.1, good.2, good.3));
    assert_eq!(all.4, good.4, "the events are those of the others");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_failed_command_rolls_back_only_its_own_changes(
        before in proptest::collection::vec(call(true), 0..40),
        commands in proptest::collection::vec(
            (proptest::collection::vec(call(true), 1..6), any::<bool>()), 1..12),
    ) {
        check_commands(&before, &commands, true);
    }
}

/// The size of the undo log of one guard is known, so that the caller can end the guard when the
/// log is large.
#[test]
fn the_size_of_the_undo_log_is_known() {
    const TEXT: usize = 1 << 20;
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 3, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let key = ks.key(b"k");
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    guard.insert(CHANGE, DbIndex(0), &key, NewStr::Blob(Blob::new(vec![b'0'; TEXT])), None);
    guard.commit();
    // Each command overwrites a whole text, which goes to the undo log.
    for round in 1..=64_u8 {
        let mut entry = guard.entry_mut(CHANGE, DbIndex(0), &key).expect("it is there");
        entry.write_at(0, &vec![b'0' + round; TEXT]);
        if guard.is_undo_large() {
            guard.finish();
        }
    }
    guard.rollback();
    let first = guard.read(DbIndex(0), &key).expect("it is there").str().to_vec()[0];
    assert!(first > b'0', "some of them stand");
    assert!(first >= b'0' + 60, "not before there is much: {first}");
}

/// EXEC keeps the changes of commands which ended before the panic.
#[test]
fn a_panic_keeps_committed_changes() {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 3, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let key = ks.key(b"k");
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    guard.insert(CHANGE, DbIndex(0), &key, NewStr::Int(1), None);
    guard.commit();
    guard.insert(CHANGE, DbIndex(0), &key, NewStr::Int(2), None);
    guard.rollback();
    assert_eq!(guard.read(DbIndex(0), &key).and_then(|e| e.str().as_int()), Some(1));
    drop(guard);
    // Without a commit and without a panic, the end of the guard commits.
    access.lock_one(key.slot, NOW, Intent::Write).expect("free").insert(
        CHANGE,
        DbIndex(0),
        &key,
        NewStr::Int(3),
        None,
    );
    let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
    assert_eq!(guard.read(DbIndex(0), &key).and_then(|e| e.str().as_int()), Some(3));
}

#[test]
#[should_panic(expected = "the guard covers the key's slot")]
fn a_key_outside_the_lock_set_is_refused() {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 3, workers: 2 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    let key = ks.key(b"k");
    let other = SlotId::new(key.slot.index() as u16 ^ 1);
    let mut guard = access.lock_one(other, NOW, Intent::Write).expect("free");
    let _ = guard.read(DbIndex(0), &key);
}

/// Every kind of change is announced before it is made, through one function of [`keyspace`].
#[test]
fn every_change_is_announced() {
    let mut runner = TestRunner::deterministic();
    let commands = proptest::collection::vec(proptest::collection::vec(call(true), 1..6), 100);
    let ks = Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 3, workers: 1 }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    access.try_world().expect("no other worker is inside");
    access.capture_changes(true);
    for round in 0..40 {
        let commands =
            commands.new_tree(&mut runner).expect("a strategy without filters").current();
        let mut guard = guard(&mut access, true);
        for (number, calls) in commands.iter().enumerate() {
            let mark = guard.mark();
            for call in calls {
                run(&mut guard, call);
            }
            match (round + number) % 4 {
                0 => guard.rollback_to(mark),
                1 => {}
                _ => guard.commit(),
            }
        }
        guard.commit();
        drop(guard);
        let mut later = access.world(UnixMs(NOW.0 + 100));
        for key in 0..12 {
            later.contains(DbIndex(0), &ks.key(name(key).as_bytes()));
        }
    }
    let census = access.census();
    for (kind, counted) in census {
        assert_eq!(counted.announced, counted.made, "{kind}");
    }
    let kinds: Vec<&str> = census.keys().copied().collect();
    let all = [
        "blob range",
        "edited",
        "expired",
        "expiry",
        "flushed",
        "header",
        "inserted",
        "moved",
        "range",
        "removed",
        "replaced",
        "swapped",
        "value",
    ];
    assert_eq!(kinds, all, "all kinds of change were made");
}
