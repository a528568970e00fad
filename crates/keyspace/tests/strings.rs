//! Strings of pages in entries: changes beside readers who hold them, undo, memory accounts, and
//! where their pages are freed.
#![cfg(not(shuttle))]

use base::blob::{BLOCK_MAX, PAGE_BYTES};
use base::sync::{Arc, thread};
use base::{Blob, DbIndex, UnixMs};
use keyspace::{Access, Event, Guard, Intent, Key, Keyspace, Options};
use proptest::prelude::*;
use std::collections::BTreeMap;
use value::{NewStr, Str};

const NOW: UnixMs = UnixMs(1_000_000);
const DB: DbIndex = DbIndex(0);
/// Two keys of one slot.
const KEYS: [&[u8]; 2] = [b"{k}1", b"{k}2"];

fn access() -> Access {
    let options = Options { databases: 1, hash_secret: 3, workers: 1 };
    let mut access = Access::new(Arc::new(Keyspace::new(&options)), 0);
    assert!(access.enter());
    access
}

fn with<R>(access: &mut Access, f: impl FnOnce(&mut Guard<'_>, [&Key<'_>; 2]) -> R) -> R {
    let ks = Arc::clone(access.keyspace());
    let keys = KEYS.map(|name| ks.key(name));
    let mut guard = access.lock_one(keys[0].slot, NOW, Intent::Write).expect("free");
    f(&mut guard, [&keys[0], &keys[1]])
}

/// A string of `len` bytes which is not zeros.
fn text(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 3) as u8 ^ (at >> 11) as u8 ^ seed).collect()
}

/// The string of a key by reference, as a reader takes it.
fn held(guard: &mut Guard<'_>, key: &Key<'_>) -> Option<Blob> {
    Some(match guard.read(DB, key)?.str() {
        Str::Blob(blob) => blob.clone(),
        short => Blob::new(short.to_vec()),
    })
}

fn write(guard: &mut Guard<'_>, key: &Key<'_>, at: usize, bytes: &[u8]) {
    if let Some(mut entry) = guard.entry_mut(Event::SILENT, DB, key) {
        entry.write_at(at, bytes);
        return;
    }
    let mut new = Blob::default();
    new.write_at(at, bytes);
    guard.insert(Event::SILENT, DB, key, NewStr::Blob(new), None);
}

#[derive(Clone, Debug)]
enum Call {
    Write(usize, usize, usize, u8),
    Append(usize, usize, u8),
    Copy(usize),
    Remove(usize),
    Hold(usize),
}

fn call() -> impl Strategy<Value = Call> {
    let at = || {
        prop_oneof![
            (0..40_usize, -3..4_isize)
                .prop_map(|(page, by)| (page * PAGE_BYTES).saturating_add_signed(by)),
            (-3..4_isize).prop_map(|by| BLOCK_MAX.saturating_add_signed(by)),
            0..2_500_000_usize,
        ]
    };
    // Short ones are saved in the undo log, long ones are undone by the old root.
    let len =
        || prop_oneof![2 => 1..100_usize, 1 => 16_000..17_000_usize, 1 => 60_000..200_000_usize];
    let key = 0..2_usize;
    prop_oneof![
        6 => (key.clone(), at(), len(), any::<u8>()).prop_map(|(k, a, n, s)| Call::Write(k, a, n, s)),
        3 => (key.clone(), len(), any::<u8>()).prop_map(|(k, n, s)| Call::Append(k, n, s)),
        2 => key.clone().prop_map(Call::Copy),
        1 => key.clone().prop_map(Call::Remove),
        3 => key.prop_map(Call::Hold),
    ]
}

type Model = [Option<Vec<u8>>; 2];

fn run(guard: &mut Guard<'_>, keys: [&Key<'_>; 2], model: &mut Model, call: &Call) {
    match *call {
        Call::Write(k, at, len, seed) => {
            let bytes = text(len, seed);
            write(guard, keys[k], at, &bytes);
            let old = model[k].get_or_insert_default();
            old.resize(old.len().max(at + len), 0);
            old[at..at + len].copy_from_slice(&bytes);
        }
        Call::Append(k, len, seed) => {
            let at = model[k].as_ref().map_or(0, Vec::len);
            run(guard, keys, model, &Call::Write(k, at, len, seed));
        }
        Call::Copy(k) => {
            if let Some(blob) = held(guard, keys[k]) {
                guard.insert(Event::SILENT, DB, keys[1 - k], NewStr::Blob(blob), None);
                let copy = model[k].clone();
                model[1 - k] = copy;
            }
        }
        Call::Remove(k) => {
            guard.remove(Event::SILENT, DB, keys[k]);
            model[k] = None;
        }
        Call::Hold(_) => {}
    }
}

/// Checks the keys, and the memory against what a walk over them finds.
fn check(access: &mut Access, model: &Model) {
    let walked = with(access, |guard, keys| {
        (0..2).fold(0, |sum, k| {
            let found = held(guard, keys[k]);
            assert!(found.as_ref().map(Blob::len) == model[k].as_ref().map(Vec::len));
            if let (Some(found), Some(model)) = (found, &model[k]) {
                assert!(found == model[..]);
            }
            let table = 2 * size_of::<u64>(); // `Entry::memory` counts the entry's share of it
            sum + guard.read(DB, keys[k]).map_or(0, |entry| entry.memory() - table)
        })
    });
    assert_eq!(access.keyspace().memory().entries, walked as u64, "the accounts add up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Model: two vectors. Commands are committed, rolled back, or rolled back one by one as in
    /// EXEC; readers hold strings all the while and keep what they saw.
    #[test]
    fn changes_are_undone_and_readers_keep_what_they_saw(
        commands in prop::collection::vec((prop::collection::vec(call(), 1..5), 0..4_u8), 1..8),
    ) {
        let mut access = access();
        let mut model = [Some(text(BLOCK_MAX - 5, 1)), Some(text(2_600_000, 2))];
        with(&mut access, |guard, keys| {
            for (key, text) in keys.into_iter().zip(model.iter().flatten()) {
                write(guard, key, 0, text);
            }
            guard.commit();
        });
        let mut readers: Vec<(Blob, Vec<u8>)> = Vec::new();
        for (calls, end) in commands {
            with(&mut access, |guard, keys| {
                let before = model.clone();
                let (mut mark, mut at_mark) = (guard.mark(), model.clone());
                for (number, call) in calls.iter().enumerate() {
                    if number == calls.len() / 2 {
                        (mark, at_mark) = (guard.mark(), model.clone());
                    }
                    run(guard, keys, &mut model, call);
                    if let Call::Hold(k) = *call && let Some(blob) = held(guard, keys[k]) {
                        readers.push((blob, model[k].clone().expect("it is there")));
                    }
                }
                match end {
                    0 => {
                        guard.rollback();
                        model = before;
                    }
                    1 => {
                        guard.rollback_to(mark);
                        model = at_mark;
                        guard.commit();
                    }
                    _ => guard.commit(),
                }
            });
            check(&mut access, &model);
            for (blob, model) in &readers {
                prop_assert!(*blob == model[..], "a reader keeps what it saw");
            }
        }
        with(&mut access, |guard, keys| keys.map(|key| guard.remove(Event::SILENT, DB, key)));
        prop_assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
    }
}

/// Bytes of `new` which are not memory of `old`.
fn copied(old: &Blob, new: &Blob) -> usize {
    let olds: BTreeMap<_, _> = old.pages().map(|run| (run.as_ptr(), run.len())).collect();
    let is_old = |run: &[u8]| {
        let before = olds.range(..=run.as_ptr()).next_back();
        before.is_some_and(|(at, len)| run.as_ptr() < at.wrapping_add(*len))
    };
    new.pages().filter(|run| !is_old(run)).map(<[u8]>::len).sum()
}

#[test]
fn a_write_beside_a_reader_copies_its_pages() {
    const PART: usize = 4 << 10;
    let mut access = access();
    let mut blob = Blob::default();
    blob.append(&text(64 << 20, 1));
    with(&mut access, |guard, keys| {
        guard.insert(Event::SILENT, DB, keys[0], NewStr::Blob(blob.clone()), None);
        guard.commit();
    });
    for (at, len, bytes) in [
        (0, 1, PART),
        (33 << 20, 16, PART),
        (PAGE_BYTES - 8, 16, 3 * PART), // and that of the first write, which the reader shares
        (40 << 20, 3 * PAGE_BYTES, 3 * PAGE_BYTES),
        (50 << 20, 20_000, PAGE_BYTES),
        (64 << 20, 100, 100),
    ] {
        let (seen, now) = with(&mut access, |guard, keys| {
            let seen = held(guard, keys[0]).expect("it is there");
            write(guard, keys[0], at, &text(len, 9));
            guard.commit();
            (seen, held(guard, keys[0]).expect("it is there"))
        });
        assert_eq!(copied(&seen, &now), bytes, "{len} bytes at {at}");
    }
    assert!(blob == text(64 << 20, 1)[..], "the first reader still sees all of it");
}

#[test]
fn a_short_change_of_an_unshared_string_copies_no_page() {
    let mut access = access();
    with(&mut access, |guard, keys| {
        write(guard, keys[0], 0, &text(4 << 20, 1));
        guard.commit();
        let places = |guard: &mut Guard<'_>| -> Vec<_> {
            held(guard, keys[0]).iter().flat_map(Blob::pages).map(<[u8]>::as_ptr).collect()
        };
        let before = places(guard);
        write(guard, keys[0], 1 << 20, b"in place");
        guard.rollback();
        write(guard, keys[0], 2 << 20, b"in place");
        guard.commit();
        assert_eq!(places(guard), before);
    });
}

/// Whoever removes a string of many pages, the reclaimer's thread frees them.
#[test]
fn the_reclaimer_frees_the_pages() {
    let mut access = access();
    let reclaimer = Arc::clone(access.keyspace().reclaimer());
    let server = {
        let reclaimer = Arc::clone(&reclaimer);
        thread::spawn(move || reclaimer.serve())
    };
    for _ in 0..10 {
        with(&mut access, |guard, keys| {
            write(guard, keys[0], 0, &text(8 << 20, 1));
            write(guard, keys[1], 0, &text(2 << 20, 1));
            guard.commit();
            for key in keys {
                assert!(guard.remove(Event::SILENT, DB, key));
            }
        });
    }
    reclaimer.close();
    server.join().expect("it ends");
    assert_eq!((reclaimer.freed(), reclaimer.pending_bytes()), (10, 0), "only those of many pages");
    assert_eq!(access.keyspace().memory().entries, 0, "every byte was accounted for");
}
