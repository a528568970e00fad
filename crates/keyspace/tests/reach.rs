//! Locking for commands which fill keys whose waiting clients need further keys: which slots are
//! locked, when the command grows, and where it parks.

use base::sync::{Arc, thread};
use base::{DbIndex, SlotId, UnixMs};
use keyspace::{Access, Guard, Intent, Keyspace, Kind, Options, Parked, Ticket};

const NOW: UnixMs = UnixMs(1);
const DB: DbIndex = DbIndex(0);

fn keyspace(workers: usize) -> Arc<Keyspace> {
    Arc::new(Keyspace::new(&Options { databases: 2, hash_secret: 1, workers }))
}

/// A client waits for `key`. Serving it needs `further`.
fn wait(access: &mut Access, id: u64, db: DbIndex, key: &str, further: &str) -> Arc<Ticket> {
    let keys = [key.as_bytes()].into_iter().collect();
    let further = Some(further.as_bytes().into());
    let ticket = Ticket::new(id, Kind::List, db, keys, further, false, Box::new(()));
    let slot = access.keyspace().key(key.as_bytes()).slot;
    access.lock_one(slot, NOW, Intent::Write).expect("it is free").add_ticket(&ticket);
    ticket
}

fn slot(access: &Access, key: &str) -> SlotId {
    access.keyspace().key(key.as_bytes()).slot
}

fn fill<'a>(access: &'a mut Access, key: &'static str) -> Result<Guard<'a>, Parked> {
    let slots = [slot(access, key)];
    access.lock_to_fill(&slots, false, NOW, || vec![key.as_bytes()])
}

#[test]
fn a_chain_of_waiters_locks_exactly_its_slots() {
    let ks = keyspace(2);
    let mut access = Access::new(ks.clone(), 0);
    access.enter();
    let held = |access: &mut Access, key, names: &[&str]| {
        let slots: Vec<SlotId> = names.iter().map(|name| slot(access, name)).collect();
        let guard = fill(access, key).expect("all is free");
        slots.iter().map(|slot| guard.covers(*slot)).collect::<Vec<_>>()
    };
    assert_eq!(held(&mut access, "a", &["a", "b", "c", "d"]), [true, false, false, false]);
    let first = wait(&mut access, 1, DB, "a", "b");
    wait(&mut access, 2, DbIndex(1), "b", "c");
    wait(&mut access, 3, DB, "c", "a");
    assert_eq!(held(&mut access, "a", &["a", "b", "c", "d"]), [true, true, true, false]);
    assert_eq!(held(&mut access, "d", &["a", "b", "c", "d"]), [false, false, false, true]);
    // A client which left the queue needs no further slot.
    access
        .lock_one(slot(&access, "a"), NOW, Intent::Write)
        .expect("it is free")
        .remove_ticket(&first, b"a");
    assert_eq!(held(&mut access, "a", &["a", "b", "c", "d"]), [true, false, false, false]);
}

#[test]
fn a_command_grows_when_serving_needs_many_slots() {
    let ks = keyspace(2);
    let (mut access, mut other) = (Access::new(ks.clone(), 0), Access::new(ks.clone(), 1));
    access.enter();
    other.enter();
    // As many further slots as are locked ahead, and one more. Several keys in one slot count once.
    for n in 0..16 {
        wait(&mut access, n, DB, "a", &format!("further{n}"));
        wait(&mut access, 100 + n, DB, "a", &format!("{{a}}{n}"));
    }
    {
        let guard = fill(&mut access, "a").expect("all is free");
        assert!(guard.covers(ks.key(b"further15").slot));
        assert!(other.grow(&[], NOW, Intent::Write).is_ok(), "nobody grows");
    }
    wait(&mut access, 16, DB, "a", "further16");
    let mut guard = fill(&mut access, "a").expect("all is free");
    assert_eq!(other.grow(&[], NOW, Intent::Write).err(), Some(Parked::Growth));
    let further = (0..17).map(|n| ks.key(format!("further{n}").as_bytes()).slot);
    let left: Vec<SlotId> = further.filter(|&slot| !guard.covers(slot)).collect();
    assert_eq!(left.len(), 1, "it takes as many ahead as others do");
    guard.cover(left[0]).expect("no long holder");
    assert!(guard.covers(left[0]));
    drop(guard);
    let guard = other.grow(&[], NOW, Intent::Write).expect("the token is free again");
    assert_eq!(fill(&mut access, "a").err(), Some(Parked::Growth));
    drop(guard);
    assert!(fill(&mut access, "a").is_ok());
}

#[test]
fn a_command_parked_behind_a_long_holder_or_frozen_slot_holds_nothing() {
    let ks = keyspace(2);
    let (mut access, mut other) = (Access::new(ks.clone(), 0), Access::new(ks.clone(), 1));
    assert!(access.enter() && other.enter());
    wait(&mut access, 1, DB, "a", "b");
    wait(&mut access, 2, DB, "b", "c");
    let [a, b, c] = ["a", "b", "c"].map(|key| slot(&access, key));
    let mut long = other.lock(&[c], NOW, Intent::Write).expect("it is free");
    long.mark_long();
    assert_eq!(fill(&mut access, "a").err(), Some(Parked::Slot(c)));
    drop(long);
    drop(other.lock(&sorted([a, b]), NOW, Intent::Write).expect("they were given back"));
    other.leave();
    access.try_world().expect("nobody is inside");
    access.world(NOW).freeze(&[c]);
    access.open_world();
    assert!(other.enter());
    assert_eq!(fill(&mut access, "a").err(), Some(Parked::Frozen(c)));
    let grown = access.lock_to_fill(&[a], true, NOW, || vec![&b"a"[..]]).err();
    assert_eq!(grown, Some(Parked::Frozen(c)), "a grower asks, too");
    drop(
        other
            .grow(&sorted([a, b]), NOW, Intent::Write)
            .expect("they were given back, and the token"),
    );
    ks.thaw(&[c]);
    assert!(fill(&mut access, "a").expect("all is free").covers(c));
}

/// A command which grows anyway (SORT BY with STORE) has changed its key when it serves. So it must
/// hold all slots for serving before that.
#[test]
fn a_grower_locks_all_slots_for_serving_before_it_changes_anything() {
    let ks = keyspace(2);
    let (mut access, mut other) = (Access::new(ks.clone(), 0), Access::new(ks.clone(), 1));
    assert!(access.enter() && other.enter());
    wait(&mut access, 1, DB, "a", "b");
    wait(&mut access, 2, DB, "b", "c");
    let [a, b, c] = ["a", "b", "c"].map(|key| slot(&access, key));
    let mut grow = || {
        access.lock_to_fill(&[a], true, NOW, || vec![&b"a"[..]]).map(|guard| {
            assert!(guard.covers(b) && guard.covers(c));
        })
    };
    grow().expect("all is free");
    let mut long = other.lock(&[c], NOW, Intent::Write).expect("it is free");
    long.mark_long();
    assert_eq!(grow(), Err(Parked::Slot(c)));
    drop(long);
    // The grower sleeps behind a holder which is not marked as long, until it releases the slot.
    let (held, is_held) = std::sync::mpsc::channel();
    let holder = thread::spawn(move || {
        let guard = other.lock(&[c], NOW, Intent::Write).expect("it is free");
        held.send(()).expect("somebody waits for it");
        thread::sleep(std::time::Duration::from_millis(20));
        drop(guard);
    });
    is_held.recv().expect("it is sent");
    grow().expect("no long holder");
    holder.join().expect("it ends");
}

/// Another thread holds the further slot for short times: the command waits for it, and then holds
/// both.
#[test]
fn a_command_waits_for_a_short_holder() {
    let ks = keyspace(2);
    let mut access = Access::new(ks.clone(), 0);
    assert!(access.enter());
    wait(&mut access, 1, DB, "a", "b");
    let (a, b) = (slot(&access, "a"), slot(&access, "b"));
    let shared = ks.clone();
    let busy = thread::spawn(move || {
        let mut other = Access::new(shared, 1);
        assert!(other.enter());
        for _ in 0..20_000 {
            drop(other.lock(&[b], NOW, Intent::Write)); // not while the other grows
        }
    });
    for _ in 0..20_000 {
        let mut guard = fill(&mut access, "a").expect("nobody is long, and one grower at most");
        // Only has an effect if the command had to grow. Then the other thread may be descheduled
        // while it holds the slot.
        let covered = guard.cover(b).is_ok();
        assert!(guard.covers(a) && covered == guard.covers(b));
    }
    busy.join().expect("it ends");
}

/// The closure which returns the filled keys may panic: no lock stays held.
#[test]
fn a_panic_in_the_callback_for_the_keys_releases_the_slots() {
    let ks = keyspace(2);
    let mut access = Access::new(ks.clone(), 0);
    assert!(access.enter());
    wait(&mut access, 1, DB, "a", "b");
    let a = slot(&access, "a");
    for grows in [false, true] {
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(access.lock_to_fill(&[a], grows, NOW, || panic!("while it names the keys")));
        }));
        assert!(asked.is_err());
        drop(access.lock_one(a, NOW, Intent::Write).expect("it was given back"));
        drop(access.grow(&[a], NOW, Intent::Write).expect("the token was given back"));
    }
}

fn sorted<const N: usize>(mut slots: [SlotId; N]) -> [SlotId; N] {
    slots.sort_unstable();
    slots
}
