//! A cut beside writers under the model checker: the snapshot equals what the cutter has read under
//! World, whenever the writers enter their sections, and no entry keeps its bit. The variant that
//! adopts the snapshot before the gate must fail.

use crate::models::check_often;
use crate::snapshot::walk::Walk;
use crate::snapshot::{Root, Sink, Snapshot, Step};
use crate::view::Entry;
use crate::{Access, Event, Guard, Intent, Keyspace, Options};
use base::sync::{Arc, thread};
use base::{DbIndex, SlotId, UnixMs};
use value::NewStr;

const ITERATIONS: usize = 10_000;
const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
const NAMES: [&[u8]; 2] = [b"a", b"b"];
const WRITERS: usize = 2;

/// When a writer adopts the snapshot that runs.
#[derive(Clone, Copy, PartialEq)]
enum Adopts {
    /// After it has passed the gate, as [`Access::enter`] does.
    BehindTheGate,
    /// Before: a cut may come between.
    BeforeTheGate,
}

fn enter(access: &mut Access, adopts: Adopts) {
    loop {
        let inside = if adopts == Adopts::BehindTheGate {
            access.enter()
        } else {
            let ks = Arc::clone(&access.ks);
            access.w.follow(&ks);
            access.w.stand.enter(&ks.gate, access.w.index)
        };
        if inside {
            return;
        }
        access.leave();
        thread::yield_now();
    }
}

fn take_world(access: &mut Access) {
    while access.try_world().is_err() {
        thread::yield_now();
    }
}

fn value(guard: &mut Guard<'_>, name: &[u8]) -> i64 {
    let key = guard.keyspace().key(name);
    guard.peek(DB, &key).and_then(|entry| entry.str().as_int()).expect("a number")
}

fn add(guard: &mut Guard<'_>, name: &[u8], amount: i64) {
    let key = guard.keyspace().key(name);
    let mut entry = guard.entry_mut(Event::SILENT, DB, &key).expect("it is there");
    let value = entry.str().as_int().expect("a number") + amount;
    entry.set_int(value);
}

fn slots(ks: &Keyspace) -> Vec<SlotId> {
    let mut slots = NAMES.map(|name| ks.key(name).slot).to_vec();
    slots.sort_unstable();
    slots
}

/// Two commands: one replaces the first key by a new entry, or is rolled back; one changes both
/// keys in place.
fn write(ks: &Arc<Keyspace>, writer: usize, adopts: Adopts) {
    let mut access = Access::new(Arc::clone(ks), writer);
    for round in 0..2 {
        enter(&mut access, adopts);
        let mut guard = access.lock(&slots(ks), NOW, Intent::Write).expect("no long holder");
        if round == 0 {
            let (key, value) = (ks.key(NAMES[0]), value(&mut guard, NAMES[0]) + 1);
            guard.remove(Event::SILENT, DB, &key);
            guard.insert(Event::SILENT, DB, &key, NewStr::Int(value), None);
            if writer == 0 {
                guard.rollback();
            }
        } else {
            add(&mut guard, NAMES[0], -10);
            add(&mut guard, NAMES[1], 10);
        }
        drop(guard);
        access.leave();
    }
}

#[derive(Default)]
struct Values(Vec<(Vec<u8>, i64)>);

impl Sink for Values {
    fn small(&mut self, _: DbIndex, entry: Entry<'_>) {
        self.0.push((entry.key().to_vec(), entry.str().as_int().expect("a number")));
    }

    fn large(&mut self, _: DbIndex, _: Entry<'_>, _: Root) {
        panic!("only numbers are here");
    }
}

/// Walks these slots alone.
fn walk(snapshot: &mut Snapshot, slots: &[SlotId], walker: &mut Access) -> Values {
    snapshot.walk = Some(Box::new(Walk::of(slots)));
    let mut values = Values::default();
    loop {
        match snapshot.step(walker, &mut values) {
            Step::Complete => return values,
            Step::More => {}
            Step::Waits => thread::yield_now(),
        }
    }
}

fn cut(ks: &Arc<Keyspace>) {
    let mut access = Access::new(Arc::clone(ks), WRITERS);
    let mut walker = access.further().expect("there is room");
    take_world(&mut access);
    let expected = NAMES.map(|name| (name.to_vec(), value(&mut access.world(NOW), name)));
    let mut snapshot = access.cut(1 << 20).expect("none runs");
    access.open_world();
    let mut values = walk(&mut snapshot, &slots(ks), &mut walker);
    values.0.sort();
    assert_eq!(values.0, expected, "the snapshot shows the moment of its cut");
}

fn run(adopts: Adopts) {
    check_often(ITERATIONS, move || {
        let options = Options { databases: 1, hash_secret: 7, workers: WRITERS + 1 };
        let ks = Arc::new(Keyspace::with_table_bytes(&options, 1 << 16));
        let mut access = Access::new(Arc::clone(&ks), 0);
        take_world(&mut access);
        for name in NAMES {
            let key = ks.key(name);
            access.world(NOW).insert(Event::SILENT, DB, &key, NewStr::Int(100), None);
        }
        access.open_world();
        drop(access);
        let mut threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let ks = Arc::clone(&ks);
                thread::spawn(move || write(&ks, writer, adopts))
            })
            .collect();
        let cutter = Arc::clone(&ks);
        threads.push(thread::spawn(move || cut(&cutter)));
        for thread in threads {
            thread.join().expect("no panic leaves a thread");
        }
        let mut access = Access::new(Arc::clone(&ks), 0);
        take_world(&mut access);
        let guard = access.world(NOW);
        for name in NAMES {
            let (found, ..) = guard.find_any(DB, &ks.key(name)).expect("it is there");
            assert!(!found.entry.is_skipped(), "every bit is cleared");
        }
    });
}

#[test]
fn a_snapshot_shows_the_moment_of_its_cut() {
    run(Adopts::BehindTheGate);
}

#[test]
#[should_panic(expected = "the moment of its cut")]
fn a_writer_that_adopts_before_the_gate_is_found() {
    run(Adopts::BeforeTheGate);
}
