//! Expired keys and fields are removed, hidden or ignored, always as a whole.
#![cfg(not(shuttle))]

use base::sync::Arc;
use base::{DbIndex, UnixMs};
use keyspace::{
    Access, Big, Due, Encoding, Event, Intent, Key, Keyspace, Options, Parked, Ticket, WatchCell,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::{Hash, Kind, List, Log, NewStr};

const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(100);

fn store(workers: usize) -> (Arc<Keyspace>, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 11, workers }));
    let mut access = Access::new(Arc::clone(&ks), 0);
    assert!(access.enter());
    (ks, access)
}

fn set(access: &mut Access, key: &Key<'_>, due: Option<i64>) {
    let mut guard = access.lock_one(key.slot, UnixMs(0), Intent::Write).expect("free");
    guard.insert(Event::SILENT, DB, key, NewStr::Embstr(b"v"), due.map(UnixMs));
}

/// Stores a hash whose fields expire at these times.
fn set_hash(access: &mut Access, key: &Key<'_>, times: &[Option<i64>]) {
    let (mut hash, mut log) = (Hash::new(), Log::default());
    for (i, at) in times.iter().enumerate() {
        let field = i.to_string();
        hash.set(field.as_bytes(), b"v", &mut log);
        hash.set_expiry(field.as_bytes(), *at, &mut log);
    }
    let mut guard = access.lock_one(key.slot, UnixMs(0), Intent::Write).expect("free");
    guard.insert_big(Event::SILENT, DB, key, Encoding::Hashtable, Big::Hash(hash), None);
}

fn ticket(key: &Key<'_>) -> Arc<Ticket> {
    Ticket::new(1, Kind::Stream, DB, [key.bytes].into_iter().collect(), None, false, Box::new(()))
}

/// A command which triggers a lazy expiry fails: its changes are rolled back, but the expiry stays.
/// One client watches the key, another one waits for it.
#[test]
fn a_lazy_expiry_survives_a_rollback_and_is_reported_once() {
    // How the command accesses the expired key.
    type Meet = fn(&mut keyspace::Guard<'_>, &Key<'_>, &Key<'_>);
    let meets: [(&str, Meet); 6] = [
        ("read", |g, k, _| assert!(g.read(DB, k).is_none())),
        ("set", |g, k, _| g.insert(Event::SILENT, DB, k, NewStr::Int(1), None)),
        ("remove", |g, k, _| assert!(!g.remove(Event::SILENT, DB, k))),
        ("change", |g, k, _| assert!(g.entry_mut(Event::SILENT, DB, k).is_none())),
        ("copy to it", |g, k, live| assert!(g.copy_entry(Event::SILENT, DB, live, DB, k))),
        ("move to it", |g, k, live| assert!(g.move_entry([Event::SILENT; 2], DB, live, DB, k))),
    ];
    for (what, meet) in meets {
        for changes_before in [false, true] {
            let (ks, mut access) = store(1);
            let [due, live] = [ks.key(b"{x}due"), ks.key(b"{x}live")];
            set(&mut access, &due, Some(50));
            set(&mut access, &live, None);
            let (cell, ticket) = (WatchCell::new(), ticket(&due));
            let mut guard = access.lock_one(due.slot, UnixMs(10), Intent::Write).expect("free");
            guard.watch(DB, &due, &cell);
            guard.add_ticket(&ticket);
            drop(guard);
            let changes = ks.changes();
            let mut guard = access.lock_one(due.slot, NOW, Intent::Write).expect("free");
            if changes_before {
                guard.insert(Event::SILENT, DB, &live, NewStr::Int(2), None);
            }
            meet(&mut guard, &due, &live);
            guard.rollback();
            assert!(cell.is_dirty(), "{what}: who watches is told");
            let told: Vec<_> = std::iter::from_fn(|| guard.next_ready()).collect();
            assert_eq!(told.len(), 1, "{what}: who waits is told once");
            assert!(guard.peek(DB, &due).is_none());
            assert!(guard.peek(DB, &live).is_some_and(|e| e.str_len() == 1));
            guard.commit();
            assert!(!guard.has_ready(), "{what}: not once more");
            drop(guard);
            assert_eq!((ks.db_len(DB), ks.db_expires(DB)), (1, 0), "{what}: it stays gone");
            assert_eq!(ks.expiry().expired, 1, "{what}: counted once");
            assert_eq!(ks.changes(), changes, "{what}: nobody's change");
            drop(access);
        }
    }
}

/// A key which the failed command itself created with an expiry in the past is rolled back with it.
#[test]
fn a_key_created_with_a_past_expiry_is_rolled_back() {
    let (ks, mut access) = store(1);
    let [k, new] = [ks.key(b"{x}k"), ks.key(b"{x}new")];
    set(&mut access, &k, Some(500));
    let used = ks.memory().entries;
    let mut guard = access.lock_one(k.slot, NOW, Intent::Write).expect("free");
    guard.insert(Event::SILENT, DB, &new, NewStr::Int(1), Some(UnixMs(50)));
    assert!(guard.peek(DB, &new).is_none());
    guard.insert(Event::SILENT, DB, &k, NewStr::Int(1), Some(UnixMs(50)));
    assert!(guard.peek(DB, &k).is_none());
    guard.rollback();
    assert_eq!(guard.peek(DB, &k).and_then(|entry| entry.expiry()), Some(UnixMs(500)));
    drop(guard);
    assert_eq!((ks.db_len(DB), ks.db_expires(DB), ks.expiry().expired), (1, 1, 0));
    assert_eq!(ks.memory().entries, used);
}

/// A collection is moved onto an expired key: a panic while the expired key is removed leaves the
/// counters correct.
#[test]
fn a_panic_while_a_collection_is_moved_keeps_the_counters_correct() {
    let (ks, mut access) = store(1);
    let [from, due] = [ks.key(b"{x}from"), ks.key(b"{x}due")];
    let (mut list, mut log) = (List::new(), Log::default());
    (0..500).for_each(|n: u32| list.push_back(n.to_string().as_bytes(), &mut log));
    let mut guard = access.lock_one(from.slot, UnixMs(10), Intent::Write).expect("free");
    guard.insert_big(Event::SILENT, DB, &from, Encoding::Quicklist, Big::List(list), None);
    drop(guard);
    let used = ks.memory().entries;
    set(&mut access, &due, Some(50));
    let died = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = access.lock_one(from.slot, NOW, Intent::Write).expect("free");
        guard.panic_after(1);
        guard.move_entry([Event::SILENT; 2], DB, &from, DB, &due);
    }));
    assert!(died.is_err(), "the first change is the removal of what was due");
    let mut guard = access.lock_one(from.slot, NOW, Intent::Write).expect("free");
    assert!(guard.peek(DB, &from).is_some_and(|entry| entry.big().is_some()));
    assert!(guard.peek(DB, &due).is_none());
    drop(guard);
    assert_eq!(ks.memory().entries, used);
}

/// Expired fields that were removed stay removed, and none is counted twice.
#[test]
fn removed_fields_are_counted_once() {
    for changes_before in [false, true] {
        for times in [vec![Some(50), None], vec![Some(50); 200], {
            let mut times = vec![Some(50); 200];
            times.push(None);
            times
        }] {
            let (ks, mut access) = store(1);
            let [k, live] = [ks.key(b"{x}k"), ks.key(b"{x}live")];
            set_hash(&mut access, &k, &times);
            set(&mut access, &live, None);
            let seen = times.iter().filter(|at| at.is_none()).count() as u64;
            for _ in 0..8 {
                let mut guard = access.lock_one(k.slot, NOW, Intent::Write).expect("free");
                if changes_before {
                    guard.insert(Event::SILENT, DB, &live, NewStr::Int(2), None);
                }
                let len = guard.peek(DB, &k).map_or(0, |entry| match entry.big() {
                    Some(Big::Hash(hash)) => hash.len(),
                    _ => panic!("a hash"),
                });
                assert_eq!(len, seen);
                guard.rollback();
            }
            access.expire_step(NOW, u64::MAX, || base::MonoNs(0));
            assert_eq!(ks.expiry().expired_fields, times.len() as u64 - seen);
            assert_eq!(ks.db_len(DB), 1 + seen);
        }
    }
}

/// Whether a key is visible. Every way to look it up must agree. Changes nothing.
fn is_seen(access: &mut Access, key: &Key<'_>, due: Due) -> bool {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Read).expect("free");
    guard.set_due(due);
    let seen = guard.read(DB, key).is_some();
    assert_eq!(guard.peek(DB, key).is_some(), seen);
    assert_eq!(guard.contains(DB, key), seen);
    assert_eq!(guard.entry_mut(Event::SILENT, DB, key).is_some(), seen);
    drop(guard);
    let mut guard = access.free(NOW);
    guard.set_due(due);
    let mut shown = false;
    assert_eq!(guard.scan(DB, 0, u64::MAX, |entry| shown |= entry.key() == key.bytes), Ok(0));
    assert_eq!(shown, seen);
    assert_eq!(guard.random_key(DB, || 7).expect("nothing is held").is_some(), seen);
    seen
}

fn remove(access: &mut Access, key: &Key<'_>, due: Due) -> bool {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Read).expect("free");
    guard.set_due(due);
    guard.remove(Event::SILENT, DB, key)
}

#[test]
fn expired_keys_are_hidden_or_visible_and_are_not_removed() {
    let (ks, mut access) = store(1);
    let k = ks.key(b"k");
    set(&mut access, &k, Some(50));
    assert!(!is_seen(&mut access, &k, Due::Hide));
    assert!(is_seen(&mut access, &k, Due::Ignore));
    assert!(!remove(&mut access, &k, Due::Hide));
    assert_eq!((ks.db_len(DB), ks.db_expires(DB), ks.expiry().expired), (1, 1, 0));
    // With `Due::Ignore` a write changes the existing value and keeps its expiry.
    let mut guard = access.lock_one(k.slot, NOW, Intent::Write).expect("free");
    guard.set_due(Due::Ignore);
    guard.entry_mut(Event::SILENT, DB, &k).expect("it is there").append(b"w");
    assert_eq!(guard.peek(DB, &k).map(|entry| entry.str_len()), Some(2));
    assert_eq!(guard.peek(DB, &k).and_then(|entry| entry.expiry()), Some(UnixMs(50)));
    drop(guard);
    assert!(remove(&mut access, &k, Due::Ignore), "a removal, and no expiry");
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (0, 0));
    // A write to a hidden key creates a new key. The hidden one counts as absent.
    set(&mut access, &k, Some(50));
    let mut guard = access.lock_one(k.slot, NOW, Intent::Write).expect("free");
    guard.set_due(Due::Hide);
    guard.insert(Event::SILENT, DB, &k, NewStr::Int(1), None);
    drop(guard);
    assert!(is_seen(&mut access, &k, Due::Remove));
    assert_eq!((ks.db_len(DB), ks.db_expires(DB), ks.expiry().expired), (1, 0, 0));
    set(&mut access, &k, Some(50));
    assert!(!is_seen(&mut access, &k, Due::Remove));
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (0, 1));
}

/// The number of visible fields of a hash; `None` without a visible hash.
fn fields(access: &mut Access, key: &Key<'_>, due: Due) -> Option<u64> {
    let mut guard = access.lock_one(key.slot, NOW, Intent::Read).expect("free");
    guard.set_due(due);
    guard.read(DB, key).map(|entry| match entry.big() {
        Some(Big::Hash(hash)) => {
            let seen = hash.iter().count() as u64;
            let found = (0..999).filter(|n: &u64| hash.get(n.to_string().as_bytes()).is_some());
            assert_eq!((seen, found.count() as u64), (hash.len(), hash.len()));
            seen
        }
        _ => panic!("a hash"),
    })
}

#[test]
fn expired_fields_are_hidden_or_visible_and_are_not_removed() {
    let (ks, mut access) = store(1);
    let k = ks.key(b"k");
    for lasting in [0_u64, 1, 300] {
        let mut times = vec![Some(50); 300];
        times.extend((0..lasting).map(|n| (n % 2 == 0).then_some(500)));
        set_hash(&mut access, &k, &times);
        let before = ks.expiry().expired_fields;
        for _ in 0..3 {
            let hidden = (lasting > 0).then_some(lasting);
            let mut shown = 0;
            let mut guard = access.free(NOW);
            guard.set_due(Due::Hide);
            guard.scan(DB, 0, u64::MAX, |_| shown += 1).expect("nothing is held");
            drop(guard);
            assert_eq!(shown > 0, lasting > 0);
            assert_eq!(fields(&mut access, &k, Due::Hide), hidden);
            assert_eq!(fields(&mut access, &k, Due::Ignore), Some(300 + lasting));
        }
        assert_eq!((ks.db_len(DB), ks.expiry().expired_fields), (1, before));
        assert_eq!(fields(&mut access, &k, Due::Remove).unwrap_or(0), lasting);
        access.expire_step(NOW, u64::MAX, || base::MonoNs(0));
        assert_eq!(ks.expiry().expired_fields, before + 300);
        assert_eq!(fields(&mut access, &k, Due::Ignore).unwrap_or(0), lasting);
    }
}

#[test]
fn held_expiry_removes_nothing() {
    let (ks, mut access) = store(1);
    let [k, h] = [ks.key(b"{x}k"), ks.key(b"{x}h")];
    set(&mut access, &k, Some(50));
    set_hash(&mut access, &h, &[Some(50), None]);
    ks.hold_expiry(UnixMs(NOW.0 + 1));
    assert!(ks.is_expiry_held(NOW) && !ks.is_expiry_held(UnixMs(NOW.0 + 1)));
    let report = access.expire_step(NOW, u64::MAX, || base::MonoNs(0));
    assert!(report.held && !report.more && report.expired == 0);
    let mut guard = access.lock_one(k.slot, NOW, Intent::Read).expect("free");
    assert!(guard.read(DB, &k).is_none() && !guard.remove(Event::SILENT, DB, &k));
    let random = guard.keyspace().db_len(DB);
    drop(guard);
    assert_eq!((random, fields(&mut access, &h, Due::Remove)), (2, Some(1)));
    let told = (ks.expiry().expired, ks.expiry().expired_fields);
    assert_eq!((ks.db_len(DB), told), (2, (0, 0)));
    let report = access.expire_step(UnixMs(NOW.0 + 1), u64::MAX, || base::MonoNs(0));
    let told = (ks.expiry().expired, ks.expiry().expired_fields);
    assert_eq!((report.held, ks.db_len(DB), told), (false, 1, (1, 1)));
}

/// In a frozen slot nothing is written or removed; other slots are not affected.
#[test]
fn a_frozen_slot_is_readable_and_keeps_its_keys() {
    let (ks, mut access) = store(2);
    let [k, other] = [ks.key(b"k"), ks.key(b"other")];
    set(&mut access, &k, Some(50));
    set(&mut access, &other, Some(50));
    access.leave();
    access.try_world().expect("no other worker is inside");
    access.world(NOW).freeze(&[k.slot]);
    access.open_world();
    assert!(access.enter());
    let frozen = Some(Parked::Frozen(k.slot));
    for intent in [Intent::Write, Intent::Expire] {
        assert_eq!(access.lock_one(k.slot, NOW, intent).err(), frozen);
        assert_eq!(access.lock(&[k.slot], NOW, intent).err(), frozen);
        assert_eq!(access.grow(&[k.slot], NOW, intent).err(), frozen);
        assert_eq!(access.free(NOW).visit(k.slot, intent, |_| ()).err(), frozen);
        assert_eq!(ks.may_everything(intent), Err(Parked::Thaw));
    }
    assert_eq!(access.lock_to_fill(&[k.slot], false, NOW, Vec::new).err(), frozen);
    assert!(access.grow(&[k.slot], NOW, Intent::Read).is_ok(), "and the token is free");
    assert!(!is_seen(&mut access, &k, Due::Remove));
    assert!(!is_seen(&mut access, &other, Due::Remove));
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (1, 1));
    let mut held = false;
    for worker in 0..2 {
        access.leave();
        drop(access);
        access = Access::new(Arc::clone(&ks), worker);
        assert!(access.enter());
        held |= access.expire_step(NOW, u64::MAX, || base::MonoNs(0)).held;
    }
    assert!(held);
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (1, 1));
    // The command which froze the slot removes the migrated keys, expired or not. This does not
    // count as an expiry.
    let mut guard = access.lock_frozen(&[k.slot], NOW).expect("free");
    guard.set_due(Due::Ignore);
    assert!(guard.remove(Event::SILENT, DB, &k));
    drop(guard);
    ks.thaw(&[k.slot]);
    assert_eq!((ks.db_len(DB), ks.expiry().expired), (0, 1));
    assert!(access.lock_one(k.slot, NOW, Intent::Write).is_ok());
}

/// A key expires while removals are paused. A client which watched it before sees it disappear. For
/// a client which starts to watch it now, it does not exist.
#[test]
fn watches_of_a_hidden_key_compare_its_visibility() {
    let (ks, mut access) = store(1);
    let k = ks.key(b"k");
    type Then = fn(&mut Access, &Arc<Keyspace>, &Key<'_>);
    let thens: [(&str, bool, bool, Then); 5] = [
        ("nothing", true, false, |_, _, _| ()),
        ("swept", true, false, |a, ks, _| {
            ks.hold_expiry(UnixMs(0));
            a.expire_step(NOW, u64::MAX, || base::MonoNs(0));
        }),
        ("flushed", true, false, |a, _, _| {
            a.try_world().expect("no other worker is inside");
            a.world(NOW).flush_db(DB);
            a.open_world();
        }),
        ("set", true, true, |a, _, k| {
            let mut guard = a.lock_one(k.slot, NOW, Intent::Write).expect("free");
            guard.insert(Event::SILENT, DB, k, NewStr::Int(1), None);
        }),
        ("swept and set", true, true, |a, ks, k| {
            ks.hold_expiry(UnixMs(0));
            a.expire_step(NOW, u64::MAX, || base::MonoNs(0));
            let mut guard = a.lock_one(k.slot, NOW, Intent::Write).expect("free");
            guard.insert(Event::SILENT, DB, k, NewStr::Int(1), None);
        }),
    ];
    for (what, early_is_told, late_is_told, then) in thens {
        set(&mut access, &k, Some(50));
        let (early, late) = (WatchCell::new(), WatchCell::new());
        access.lock_one(k.slot, UnixMs(10), Intent::Read).expect("free").watch(DB, &k, &early);
        ks.hold_expiry(UnixMs(i64::MAX));
        access.lock_one(k.slot, NOW, Intent::Read).expect("free").watch(DB, &k, &late);
        then(&mut access, &ks, &k);
        let mut guard = access.lock_one(k.slot, NOW, Intent::Read).expect("free");
        guard.expire_watched(DB, &k);
        for cell in [&early, &late] {
            guard.unwatch(DB, &k, cell);
        }
        drop(guard);
        assert_eq!((early.is_dirty(), late.is_dirty()), (early_is_told, late_is_told), "{what}");
        ks.hold_expiry(UnixMs(0));
        remove(&mut access, &k, Due::Ignore);
    }
}

/// Hashes with a field that expires are counted per database, also when a flush is rolled back.
#[test]
fn hashes_with_expiring_fields_are_counted() {
    let (ks, mut access) = store(1);
    for name in ["a", "b", "c"] {
        set_hash(&mut access, &ks.key(name.as_bytes()), &[Some(500), None, Some(600)]);
    }
    set_hash(&mut access, &ks.key(b"none"), &[None]);
    assert_eq!(ks.db_with_fields_that_expire(DB), 3);
    access.leave();
    access.try_world().expect("no other worker is inside");
    let mut guard = access.world(NOW);
    assert_eq!(guard.flush_db(DB), 4);
    assert_eq!(ks.db_with_fields_that_expire(DB), 0);
    guard.rollback();
    assert_eq!(ks.db_with_fields_that_expire(DB), 3);
    drop(guard);
    access.open_world();
    assert!(access.enter());
    access.expire_step(UnixMs(550), u64::MAX, || base::MonoNs(0));
    assert_eq!(ks.db_with_fields_that_expire(DB), 3, "the next ones are later");
    access.expire_step(UnixMs(650), u64::MAX, || base::MonoNs(0));
    assert_eq!(ks.db_with_fields_that_expire(DB), 0);
}

/// Import mode: expired keys stay, are hidden from other clients, and can be replaced. Afterwards
/// the sweep removes them.
#[test]
fn import_mode_removes_no_expired_key() {
    let (ks, mut access) = store(1);
    let [k, h, replaced] = [ks.key(b"{x}k"), ks.key(b"{x}h"), ks.key(b"{x}r")];
    set(&mut access, &k, Some(50));
    set(&mut access, &replaced, Some(50));
    set_hash(&mut access, &h, &[Some(50), None]);
    ks.set_importing(true);
    let report = access.expire_step(NOW, u64::MAX, || base::MonoNs(0));
    assert!(report.held && report.expired == 0 && ks.is_expiry_held(NOW));
    for due in [Due::Remove, Due::Ignore, Due::Remove] {
        let mut guard = access.lock_one(k.slot, NOW, Intent::Write).expect("free");
        guard.set_due(due);
        assert_eq!(guard.read(DB, &k).is_some(), due == Due::Ignore);
        drop(guard);
        assert_eq!(fields(&mut access, &h, due), Some(if due == Due::Ignore { 2 } else { 1 }));
    }
    set(&mut access, &replaced, None);
    assert_eq!((ks.db_len(DB), ks.db_expires(DB), ks.expiry().expired), (3, 1, 0));
    let stale = access.sample_stale(NOW);
    assert_eq!((stale.due, stale.seen), (1, 1));
    ks.set_importing(false);
    access.expire_step(NOW, u64::MAX, || base::MonoNs(0));
    assert_eq!((ks.db_len(DB), ks.expiry().expired, ks.expiry().expired_fields), (2, 1, 1));
}
