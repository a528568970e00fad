//! Moving beside a writer under the model checker: no change is lost, every value is whole, and in
//! the end each place was freed once. The variant that lets go of the slot between the copy and the
//! replacement must fail.
#![allow(unsafe_code)]

use crate::models::check_often;
use crate::slab::Source;
use crate::{Access, Defrag, DefragNext, Event, Guard, Intent, Keyspace, Options};
use base::sync::{Arc, thread};
use base::{DbIndex, MonoNs, UnixMs};
use value::NewStr;

const ITERATIONS: usize = 1_000;
const DB: DbIndex = DbIndex(0);
const NOW: UnixMs = UnixMs(1_000_000);
/// A span has eight places for a value of so many bytes.
const LEN: usize = 8_000;
const PLACES: usize = 8;
/// Keys fill three spans; one of each stays. So one span is left.
const KEYS: usize = 3 * PLACES;
const KEPT: [usize; 3] = [0, PLACES, 2 * PLACES];

#[derive(Clone, Copy, PartialEq)]
enum Moves {
    /// As [`Access::defrag_step`] does.
    UnderTheLock,
    /// The slot is free between the copy and the replacement.
    InTwoParts,
}

fn name(n: usize) -> String {
    format!("{{a}}{n}")
}

fn enter(access: &mut Access) {
    while !access.enter() {
        thread::yield_now();
    }
}

/// Runs `f` with the slot of all keys.
fn locked<R>(access: &mut Access, f: impl FnOnce(&mut Guard<'_>) -> R) -> R {
    enter(access);
    let slot = access.ks.key(name(0).as_bytes()).slot;
    let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("no long holder");
    let result = f(&mut guard);
    guard.finish();
    drop(guard);
    access.leave();
    result
}

fn insert(guard: &mut Guard<'_>, n: usize, byte: u8) {
    let name = name(n);
    let key = guard.keyspace().key(name.as_bytes());
    guard.insert(Event::SILENT, DB, &key, NewStr::Raw(&[byte; LEN]), None);
}

fn remove(guard: &mut Guard<'_>, n: usize) {
    let name = name(n);
    let key = guard.keyspace().key(name.as_bytes());
    assert!(guard.remove(Event::SILENT, DB, &key), "it is there");
}

/// The byte of which a value consists.
fn value(guard: &mut Guard<'_>, n: usize) -> u8 {
    let name = name(n);
    let key = guard.keyspace().key(name.as_bytes());
    let bytes = guard.peek(DB, &key).expect("it is there").str().to_vec();
    assert!(bytes.len() == LEN && bytes.iter().all(|byte| *byte == bytes[0]), "a whole value");
    bytes[0]
}

fn fill(access: &mut Access) {
    for n in 0..KEYS {
        locked(access, |guard| insert(guard, n, 1));
    }
    for n in (0..KEYS).filter(|n| !KEPT.contains(n)) {
        locked(access, |guard| remove(guard, n));
    }
    access.return_cached();
}

fn run(access: &mut Access, mut round: Defrag) {
    loop {
        enter(access);
        let step = access.defrag_step(&mut round, NOW, 1, || MonoNs(1));
        access.leave();
        if step.next == DefragNext::Complete {
            return;
        }
    }
}

/// Moves one key, but not as one step.
fn move_in_two_parts(access: &mut Access) {
    let ks = Arc::clone(&access.ks);
    let name = name(KEPT[1]);
    let key = ks.key(name.as_bytes());
    let (old, copy) = locked(access, |guard| {
        let old = guard.find_any(DB, &key).expect("it is there").0.entry;
        let mut source = Source { mem: &ks.entries, cache: &mut guard.w.entries };
        let place = source.alloc_place(old.class()).expect("there is room");
        // SAFETY: 1. It was just allocated. 2. Not so: that is what the model must find. All memory
        // of the range stays mapped.
        (old, unsafe { old.move_to(place) })
    });
    thread::yield_now();
    locked(access, |guard| {
        if let Some((found, ..)) = guard.find_any(DB, &key) {
            found.replace(copy);
        }
    });
    access.ks.entries.free_left(&mut vec![old.address()]);
}

fn model(moves: Moves) {
    let ks = Arc::new(Keyspace::with_table_bytes(
        &Options { databases: 1, hash_secret: 1, workers: 2 },
        1 << 20,
    ));
    let mut mover = Access::new(Arc::clone(&ks), 0);
    fill(&mut mover);
    let shared = Arc::clone(&ks);
    let writer = thread::spawn(move || {
        let mut access = Access::new(shared, 1);
        for (at, n) in KEPT.into_iter().enumerate() {
            locked(&mut access, |guard| {
                assert_eq!(value(guard, n), 1);
                if at % 2 == 0 {
                    remove(guard, n);
                }
                insert(guard, n, 2);
            });
            locked(&mut access, |guard| assert_eq!(value(guard, n), 2, "no change is lost"));
        }
    });
    match moves {
        Moves::InTwoParts => move_in_two_parts(&mut mover),
        Moves::UnderTheLock => {
            let round = mover.begin_defrag();
            if let Some(round) = round {
                run(&mut mover, round);
            }
        }
    }
    writer.join().expect("no change is lost");
    for n in KEPT {
        locked(&mut mover, |guard| {
            assert_eq!(value(guard, n), 2, "no change is lost");
            remove(guard, n);
        });
    }
    drop(mover);
    assert_eq!((ks.memory().places, ks.entry_pages().active), (0, 0), "each place is free once");
}

#[test]
fn no_change_is_lost_while_entries_move() {
    check_often(ITERATIONS, || model(Moves::UnderTheLock));
}

#[test]
#[should_panic(expected = "no change is lost")]
fn a_move_that_lets_go_of_its_slot_is_found() {
    check_often(ITERATIONS, || model(Moves::InTwoParts));
}
