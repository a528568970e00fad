//! A command inside its section, holding one slot or several, with changes in its undo log.

use super::{A, B, C, DB, Model, NOW, TOLD, add, check, number, place, set, with_keys};
use crate::{Big, Encoding, Guard};
use base::UnixMs;
use base::sync::Arc;
use value::{List, Log, NewStr};

const LATER: Option<UnixMs> = Some(UnixMs(NOW.0 + 5_000));

/// Other threads wait for the slots meanwhile. Watchers of a key are notified of the changes by the
/// others only.
#[test]
fn what_a_panicking_command_did_never_happened() {
    check(3_000, || {
        let model = Model::new(3);
        model.with_all(|guard| set(guard, B, 50, LATER));
        let cells = [A, B, C].map(|key| model.watch(key));
        let [watches_a, watches_b, watches_c] = cells.clone();
        let told = Arc::clone(&watches_a);
        model.run_all(vec![
            Box::new(|_, mut worker| {
                worker.access.listen_to_events(true);
                let here = place(6);
                let ran = worker.run(|access| {
                    with_keys(access, &[A, B, C], |guard| {
                        here(0);
                        set(guard, A, 100, None);
                        here(1);
                        let (b, c) = (guard.keyspace().key(B), guard.keyspace().key(C));
                        guard.insert(TOLD, DB, &c, NewStr::Raw(&[7; 2_000]), LATER);
                        here(2);
                        guard.note(Box::new(()));
                        guard.move_entry([TOLD, TOLD], DB, &b, DB, &c);
                        here(3);
                        guard.remove(TOLD, DB, &guard.keyspace().key(A));
                        here(4);
                        set(guard, B, 60, None);
                        here(5);
                    })
                });
                ran.expect_err("it panics at one of these");
                assert!(worker.access.next_event().is_none(), "nobody hears of it");
                worker.add(&[A]);
            }),
            Box::new(move |_, mut worker| {
                worker
                    .run(|access| {
                        with_keys(access, &[A], |guard| {
                            let is_there = number(guard, A).is_some();
                            assert_eq!(told.is_dirty(), is_there, "told of what stands alone");
                            add(guard, A);
                        })
                    })
                    .expect("it does not panic");
            }),
            Box::new(|_, mut worker| worker.add(&[A, B])),
        ]);
        model.with_all(|guard| {
            assert_eq!([A, B, C].map(|key| number(guard, key)), [Some(3), Some(51), None]);
            assert!(!guard.has_notes());
        });
        assert_eq!(model.ks.changes(), 5);
        assert!(watches_a.is_dirty() && watches_b.is_dirty() && !watches_c.is_dirty());
        model.is_whole();
    });
}

/// One slot and one change, on the short path, whose commit only clears the undo log.
#[test]
fn one_slot_is_free_again() {
    check(2_000, || {
        let model = Model::new(3);
        model.with_all(|guard| set(guard, A, 10, None));
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let here = place(2);
                let ran = worker.run(|access| {
                    with_keys(access, &[A], |guard| {
                        here(0);
                        set(guard, A, 100, None);
                        here(1);
                    })
                });
                ran.expect_err("it panics at one of these");
                worker.add(&[A]);
            }),
            Box::new(|_, mut worker| worker.add(&[A])),
            Box::new(|_, mut worker| worker.add(&[A])),
        ]);
        assert_eq!(model.with_all(|guard| number(guard, A)), Some(13));
        assert_eq!((model.ks.changes(), model.ks.db_len(DB)), (4, 1));
        model.is_whole();
    });
}

/// Adds two elements to a list in one edit; the list is stored outside its entry.
fn push_two(guard: &mut Guard<'_>, key: &[u8], here: impl Fn(u32)) {
    let key = guard.keyspace().key(key);
    let mut entry = guard.entry_mut(TOLD, DB, &key).expect("it is there");
    entry.edit(|big, log| {
        let Big::List(list) = big else { panic!("a list") };
        here(0);
        list.push_back(&[b'x'; 10_000], log);
        here(1);
        list.push_back(b"y", log);
        here(2);
    });
    here(3);
}

/// The panic leaves a collection half changed, before its memory is recounted.
#[test]
fn an_edit_that_panics_is_undone() {
    check(2_000, || {
        let model = Model::new(3);
        model.with_all(|guard| {
            let (mut list, mut log) = (List::new(), Log::default());
            (0..100).for_each(|_| list.push_back(b"element", &mut log));
            let key = guard.keyspace().key(A);
            guard.insert_big(TOLD, DB, &key, Encoding::Quicklist, Big::List(list), None);
        });
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let here = place(4);
                let ran =
                    worker.run(|access| with_keys(access, &[A], |guard| push_two(guard, A, &here)));
                ran.expect_err("it panics at one of these");
            }),
            Box::new(|_, mut worker| {
                let ran = worker
                    .run(|access| with_keys(access, &[A, B], |guard| push_two(guard, A, |_| ())));
                ran.expect("it does not panic");
            }),
            Box::new(|_, mut worker| {
                let ran = worker
                    .run(|access| with_keys(access, &[A], |guard| push_two(guard, A, |_| ())));
                ran.expect("it does not panic");
            }),
        ]);
        model.with_all(|guard| {
            let key = guard.keyspace().key(A);
            let Some(Big::List(list)) = guard.stored_big(DB, &key) else { panic!("a list") };
            assert_eq!((list.len(), list.iter().count()), (104, 104));
        });
        model.is_whole();
    });
}
