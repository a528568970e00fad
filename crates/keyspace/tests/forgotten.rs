//! Guards which are leaked with `mem::forget` instead of dropped. Locks may stay taken, but no
//! thread accesses a slot which it does not hold, and no change is rolled back once others may have
//! used it.

use base::sync::Arc;
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Access, Event, Guard, Intent, Keyspace, Options, Parked};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::NewStr;

const NOW: UnixMs = UnixMs(1);
const DB: DbIndex = DbIndex(0);

fn two_accesses() -> (Arc<Keyspace>, Access, Access) {
    let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 2 }));
    let [a, b] = [0, 1].map(|worker| Access::new(ks.clone(), worker));
    (ks, a, b)
}

fn slot(ks: &Keyspace, key: &str) -> SlotId {
    ks.key(key.as_bytes()).slot
}

fn set(guard: &mut Guard<'_>, key: &str, value: &str) {
    let key = guard.keyspace().key(key.as_bytes());
    guard.insert(Event::SILENT, DB, &key, NewStr::Raw(value.as_bytes()), None);
}

fn is_refused(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Removes and frees all keys, as FLUSHALL does.
fn flush(access: &mut Access) {
    access.try_world().expect("nobody else is inside");
    let mut guard = access.world(NOW);
    guard.flush_all();
    drop(guard);
    access.open_world();
    while access.reclaim(1_000) {}
}

/// Runs a command on another slot, which panics. So the Access rolls back everything which is left
/// in its undo log.
fn panic_in(access: &mut Access, key: &str) {
    assert!(access.enter());
    let slot = slot(access.keyspace(), key);
    assert!(is_refused(|| {
        let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("it is free");
        set(&mut guard, key, "half done");
        panic!("in the middle of a command");
    }));
    access.leave();
}

/// The key's value, read with its slot locked.
fn get(access: &mut Access, key: &str) -> Option<String> {
    assert!(access.enter());
    let of = access.keyspace().clone();
    let key = of.key(key.as_bytes());
    let value =
        access.lock_one(key.slot, NOW, Intent::Write).expect("it is free").read(DB, &key).map(
            |entry| {
                let bytes = entry.str().to_vec();
                String::from_utf8(bytes).expect("a text")
            },
        );
    access.leave();
    value
}

#[test]
fn after_a_forgotten_world_guard_slots_need_their_locks_again() {
    let (ks, mut a, _b) = two_accesses();
    a.try_world().expect("no other worker is inside");
    forget(a.world(NOW));
    a.open_world();
    assert!(a.enter());
    assert!(is_refused(|| set(&mut a.free(NOW), "key", "written without its lock")));
    assert!(is_refused(|| {
        let _ = a.free(NOW).read(DB, &ks.key(b"key"));
    }));
    a.leave();
    assert_eq!(get(&mut a, "key"), None);
}

#[test]
fn changes_of_a_forgotten_world_guard_are_committed_when_world_opens() {
    let (_, mut a, mut b) = two_accesses();
    a.try_world().expect("no other worker is inside");
    let mut guard = a.world(NOW);
    set(&mut guard, "key", "of the forgotten");
    forget(guard);
    a.open_world();
    assert_eq!(get(&mut b, "key").as_deref(), Some("of the forgotten"));
    flush(&mut b);
    panic_in(&mut a, "another");
    assert_eq!((get(&mut b, "key"), get(&mut b, "another")), (None, None));
}

#[test]
fn a_forgotten_slot_guard_stays_locked_and_is_committed_at_the_end_of_the_section() {
    let (ks, mut a, mut b) = two_accesses();
    assert!(a.enter());
    let mut guard = a.lock_one(slot(&ks, "key"), NOW, Intent::Write).expect("free");
    guard.mark_long();
    set(&mut guard, "key", "of the forgotten");
    forget(guard);
    a.leave();
    assert!(b.enter());
    assert_eq!(
        b.lock_one(slot(&ks, "key"), NOW, Intent::Write).err(),
        Some(Parked::Slot(slot(&ks, "key")))
    );
    b.leave();
    flush(&mut b);
    panic_in(&mut a, "another");
    assert_eq!(ks.db_len(DB), 0);
    assert!(a.enter());
    assert!(
        is_refused(|| drop(a.lock_one(slot(&ks, "key"), NOW, Intent::Write))),
        "it is held by this worker"
    );
}

#[test]
fn a_forgotten_lock_set_is_released_at_the_end_of_the_section_or_the_next_lock() {
    let (ks, mut a, mut b) = two_accesses();
    let mut slots = ["x", "y"].map(|key| slot(&ks, key));
    slots.sort_unstable();
    let forgotten = |a: &mut Access, value: &str| {
        let mut guard = a.lock(&slots, NOW, Intent::Write).expect("free");
        for key in ["x", "y"] {
            set(&mut guard, key, value);
        }
        forget(guard);
    };
    assert!(a.enter());
    forgotten(&mut a, "first");
    a.leave();
    assert_eq!(get(&mut b, "x").as_deref(), Some("first"));
    // The next lock set is refused: changes under the forgotten one are not rolled back.
    assert!(a.enter() && b.enter());
    let mut long = b.lock_one(slot(&ks, "z"), NOW, Intent::Write).expect("free");
    long.mark_long();
    forgotten(&mut a, "second");
    assert_eq!(
        a.lock(&[slot(&ks, "z")], NOW, Intent::Write).err(),
        Some(Parked::Slot(slot(&ks, "z")))
    );
    drop(long);
    a.leave();
    b.leave();
    assert_eq!(get(&mut b, "y").as_deref(), Some("second"));
    flush(&mut b);
    panic_in(&mut a, "another");
    assert_eq!(ks.db_len(DB), 0);
}

#[test]
fn a_forgotten_grower_keeps_only_the_token() {
    let (ks, mut a, mut b) = two_accesses();
    assert!(a.enter());
    let mut guard = a.grow(&[slot(&ks, "x")], NOW, Intent::Write).expect("nobody grows");
    guard.cover(slot(&ks, "y")).expect("free");
    for key in ["x", "y"] {
        set(&mut guard, key, "of the forgotten");
    }
    forget(guard);
    a.leave();
    assert_eq!(get(&mut b, "y").as_deref(), Some("of the forgotten"));
    assert!(b.enter());
    assert_eq!(b.grow(&[], NOW, Intent::Write).err(), Some(Parked::Growth));
    b.leave();
    flush(&mut b);
    panic_in(&mut a, "another");
    assert_eq!(ks.db_len(DB), 0);
}

/// A forgotten guard of a walk: in the middle of a step its slot is in the lock set.
#[test]
fn a_panicked_step_of_a_forgotten_guard_ends_with_the_section() {
    let (ks, mut a, mut b) = two_accesses();
    assert!(a.enter());
    let mut guard = a.free(NOW);
    assert!(is_refused(|| {
        let _ = guard.visit(slot(&ks, "x"), Intent::Write, |guard| {
            set(guard, "x", "of the forgotten");
            panic!("in the middle of a step");
        });
    }));
    forget(guard);
    a.leave();
    assert_eq!(get(&mut b, "x").as_deref(), Some("of the forgotten"));
    flush(&mut b);
    panic_in(&mut a, "another");
    assert_eq!(ks.db_len(DB), 0);
}

/// A batch which steps beside the gate has left its section, too, and may enter again.
#[test]
fn step_beside_releases_a_forgotten_guard() {
    let (ks, mut a, mut b) = two_accesses();
    assert!(a.enter());
    let slots = [slot(&ks, "x")];
    let mut guard = a.lock(&slots, NOW, Intent::Write).expect("free");
    set(&mut guard, "x", "of the forgotten");
    forget(guard);
    a.step_beside();
    assert_eq!(get(&mut b, "x").as_deref(), Some("of the forgotten"));
    flush(&mut b);
    assert!(a.enter(), "from beside the gate");
    a.leave();
    panic_in(&mut a, "another");
    assert_eq!(ks.db_len(DB), 0);
}

#[test]
#[should_panic(expected = "inside already")]
fn sections_do_not_nest() {
    let (_, mut a, _b) = two_accesses();
    assert!(a.enter());
    a.enter();
}
