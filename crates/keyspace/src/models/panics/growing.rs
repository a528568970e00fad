//! Long holders, growers and turns: sessions that are parked behind one that panics are woken.

use super::{A, B, C, Model, NOW, add, check, number, place, set, with_keys, with_world};
use crate::{Access, Guard, Intent, Parked};
use base::sync::hint::{AtomicU32, Ordering::Relaxed};
use base::sync::{thread, unwind};

/// A command that finds its second key while it runs.
fn growing(
    access: &mut Access,
    first: &[u8],
    second: &[u8],
    command: impl FnOnce(&mut Guard<'_>) -> Result<(), Parked>,
) -> Result<(), Parked> {
    let ks = access.ks.clone();
    let mut guard = access.grow(&[ks.key(first).slot], NOW, Intent::Write)?;
    guard.cover(ks.key(second).slot)?;
    command(&mut guard)?;
    guard.commit();
    Ok(())
}

/// A long holder panics: a grower, World and an ordinary command wait for it.
#[test]
fn who_parks_behind_a_long_holder_goes_on() {
    static PARKS: AtomicU32 = AtomicU32::new(0);
    check(2_000, || {
        let model = Model::new(4);
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let here = place(3);
                let ran = worker.run(|access| {
                    with_keys(access, &[A], |guard| {
                        guard.try_mark_long().map_or_else(|_| unwind(), |()| ());
                        here(0);
                        set(guard, A, 100, None);
                        here(1);
                        thread::yield_now();
                        here(2);
                    })
                });
                ran.expect_err("it panics at one of these");
            }),
            Box::new(|_, mut worker| {
                let grow = |access: &mut Access| {
                    growing(access, B, A, |guard| {
                        add(guard, A);
                        Ok(())
                    })
                };
                worker.run(grow).expect("it does not panic");
            }),
            Box::new(|_, mut worker| {
                let ran = worker.run(|access| with_world(access, |guard| add(guard, A)));
                ran.expect("it does not panic");
            }),
            Box::new(|_, mut worker| worker.add(&[A])),
        ]);
        assert_eq!(model.with_all(|guard| number(guard, A)), Some(3));
        let parks: u64 = (0..4).map(|worker| model.ks.contention(worker).parks).sum();
        PARKS.fetch_add(parks as u32, Relaxed);
        model.is_whole();
    });
    assert!(PARKS.load(Relaxed) > 100, "{PARKS:?} were behind it");
}

/// A grower with further slots panics: another grower waits for the token, the others for its
/// slots.
#[test]
fn a_grower_gives_back_all_that_it_has_got() {
    static PARKS: AtomicU32 = AtomicU32::new(0);
    check(2_000, || {
        let model = Model::new(4);
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let here = place(4);
                let ran = worker.run(|access| {
                    growing(access, B, A, |guard| {
                        here(0);
                        set(guard, A, 100, None);
                        here(1);
                        guard.cover(guard.keyspace().key(C).slot)?;
                        here(2);
                        set(guard, C, 100, None);
                        here(3);
                        Ok(())
                    })
                });
                ran.expect_err("it panics at one of these");
            }),
            Box::new(|_, mut worker| {
                let grow = |access: &mut Access| {
                    growing(access, A, C, |guard| {
                        add(guard, A);
                        add(guard, C);
                        Ok(())
                    })
                };
                worker.run(grow).expect("it does not panic");
            }),
            Box::new(|_, mut worker| worker.add(&[A, B])),
            Box::new(|_, mut worker| worker.add(&[C])),
        ]);
        let numbers = model.with_all(|guard| [A, B, C].map(|key| number(guard, key)));
        assert_eq!(numbers, [Some(2), Some(1), Some(2)]);
        let parks: u64 = (0..4).map(|worker| model.ks.contention(worker).parks).sum();
        PARKS.fetch_add(parks as u32, Relaxed);
        model.is_whole();
    });
    assert!(PARKS.load(Relaxed) > 100, "{PARKS:?} were behind it");
}

/// A session panics when it retries with its turn: the sessions that were kept out for it continue.
#[test]
fn a_turn_that_is_not_used_keeps_nobody_out() {
    static UNUSED: AtomicU32 = AtomicU32::new(0);
    check(2_000, || {
        let model = Model::new(4);
        let long = |access: &mut Access| {
            access.may_be_long()?;
            with_keys(access, &[A], |guard| {
                guard.mark_long();
                add(guard, A);
            })
        };
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let mut tries = 0;
                let ran = worker.run(|access| {
                    tries += 1;
                    if tries > 1 {
                        unwind();
                    }
                    with_world(access, |guard| add(guard, A))
                });
                let used = ran.is_ok().into();
                worker
                    .run(|access| with_keys(access, &[B], |guard| set(guard, B, used, None)))
                    .expect("it does not panic");
                UNUSED.fetch_add(ran.is_err().into(), Relaxed);
            }),
            Box::new(move |_, mut worker| worker.run(long).expect("it does not panic")),
            Box::new(move |_, mut worker| {
                worker.run(long).expect("it does not panic");
                worker.run(long).expect("it does not panic");
            }),
            Box::new(move |_, mut worker| worker.run(long).expect("it does not panic")),
        ]);
        model.with_all(|guard| {
            let used = number(guard, B).expect("it is written");
            assert_eq!(number(guard, A), Some(4 + used));
        });
        model.is_whole();
    });
    assert!(UNUSED.load(Relaxed) > 100, "{UNUSED:?} turns were not used");
}
