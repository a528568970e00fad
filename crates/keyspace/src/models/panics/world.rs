//! World: changes to whole databases are rolled back, and the gate opens.

use super::{A, B, C, DB, Model, NOW, add, check, number, place, set, with_world};
use base::{DbIndex, UnixMs};

const OTHER: DbIndex = DbIndex(1);

#[test]
fn the_gate_opens_and_the_databases_are_as_before() {
    check(2_000, || {
        let model = Model::new(3);
        model.with_all(|guard| {
            set(guard, A, 10, None);
            set(guard, B, 50, Some(UnixMs(NOW.0 + 5_000)));
            set(guard, C, 7, None);
            guard.swap_db(DB, OTHER);
            set(guard, A, 10, None);
            set(guard, B, 50, Some(UnixMs(NOW.0 + 5_000)));
        });
        let cell = model.watch(B);
        model.run_all(vec![
            Box::new(|_, mut worker| {
                let here = place(5);
                let ran = worker.run(|access| {
                    with_world(access, |guard| {
                        here(0);
                        guard.flush_all();
                        here(1);
                        set(guard, A, 100, None);
                        here(2);
                        guard.swap_db(DB, OTHER);
                        here(3);
                        guard.flush_db(OTHER);
                        here(4);
                    })
                });
                ran.expect_err("it panics at one of these");
                worker.add(&[A]);
            }),
            Box::new(|_, mut worker| worker.add(&[A])),
            Box::new(|_, mut worker| {
                let ran = worker.run(|access| with_world(access, |guard| add(guard, A)));
                ran.expect("it does not panic");
            }),
        ]);
        model.with_all(|guard| {
            assert_eq!([A, B, C].map(|key| number(guard, key)), [Some(13), Some(50), None]);
            assert!(!cell.is_dirty());
        });
        let ks = &model.ks;
        assert_eq!((ks.db_len(DB), ks.db_len(OTHER), ks.db_expires(DB)), (2, 3, 1));
        model.is_whole();
    });
}
