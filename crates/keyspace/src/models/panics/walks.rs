//! Walks: the steps before the panic stay, and the panicking step is rolled back.

use super::{A, B, C, DB, Model, NOW, add, check, number, place, set};
use crate::{Access, Intent, Parked};
use base::UnixMs;
use base::sync::thread;
use std::cell::Cell;

const LATER: UnixMs = UnixMs(NOW.0 + 20);

#[test]
fn the_steps_before_the_panic_stand() {
    check(2_000, || {
        let model = Model::new(3);
        let cells = [A, B, C].map(|key| model.watch(key));
        let told = cells.clone();
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let (here, ended) = (place(6), Cell::new(0));
                let walk = |access: &mut Access| {
                    let mut guard = access.free(NOW);
                    for &key in &[A, B, C][ended.get()..] {
                        let (slot, step) = (guard.keyspace().key(key).slot, 2 * ended.get() as u32);
                        guard.visit(slot, Intent::Write, |guard| {
                            here(step);
                            add(guard, key);
                            here(step + 1);
                        })?;
                        ended.set(ended.get() + 1);
                    }
                    Ok(())
                };
                worker.run(walk).expect_err("it panics at one of these");
                // The keys that the walk did not reach.
                [A, B, C][ended.get()..].iter().for_each(|key| worker.add(&[key]));
            }),
            Box::new(move |_, mut worker| {
                worker
                    .run(|access| {
                        super::with_keys(access, &[B, C], |guard| {
                            for (key, told) in [B, C].iter().zip(&told[1..]) {
                                let is_there = number(guard, key).is_some();
                                assert_eq!(told.is_dirty(), is_there, "told of what stands alone");
                                add(guard, key);
                            }
                        })
                    })
                    .expect("it does not panic");
            }),
            Box::new(|_, mut worker| worker.add(&[A])),
        ]);
        let numbers = model.with_all(|guard| [A, B, C].map(|key| number(guard, key)));
        assert_eq!(numbers, [Some(2); 3]);
        assert_eq!(model.ks.changes(), 6);
        model.is_whole();
    });
}

/// A SCAN over expired and live keys, whose caller panics at one of the keys.
#[test]
fn a_scan_that_panics_leaves_no_slot_locked() {
    check(2_000, || {
        let model = Model::new(3);
        model.with_all(|guard| {
            for key in [A, C] {
                set(guard, key, 1, Some(UnixMs(NOW.0 + 10)));
            }
            for key in [B, b"d", b"e"] {
                set(guard, key, 1, None);
            }
        });
        let cell = model.watch(C);
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let (here, shown, cursor) = (place(3), Cell::new(0), Cell::new(0));
                let mut scan = |access: &mut Access| -> Result<(), Parked> {
                    let mut guard = access.free(LATER);
                    loop {
                        let next = guard.scan(DB, cursor.get(), 1, |_| {
                            here(shown.replace(shown.get() + 1));
                            thread::yield_now();
                        })?;
                        cursor.set(next);
                        if next == 0 {
                            return Ok(());
                        }
                    }
                };
                worker.run(&mut scan).expect_err("it panics at one of these");
                // The retry returns that key again, and those that were not returned yet.
                worker.run(scan).expect("it panics once");
                assert_eq!(shown.get(), 4);
            }),
            Box::new(|_, mut worker| worker.add(&[B, b"d"])),
            Box::new(|_, mut worker| {
                let read = |access: &mut Access| {
                    let slot = access.ks.key(A).slot;
                    let mut guard = access.lock_one(slot, LATER, Intent::Read)?;
                    assert!(number(&mut guard, A).is_none());
                    Ok(())
                };
                worker.run(read).expect("it does not panic");
            }),
        ]);
        let ks = &model.ks;
        assert_eq!((ks.expiry().expired, ks.db_len(DB), ks.db_expires(DB)), (2, 3, 0));
        assert!(cell.is_dirty());
        model.is_whole();
    });
}
