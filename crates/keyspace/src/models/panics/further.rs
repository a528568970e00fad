//! A further Access that panics and is dropped by unwinding. The only worker is alone before and
//! after it.

use super::{A, B, Model, add, check, number, place, set, with_keys, with_world};
use crate::stand::Stand;
use crate::{Access, Parked};
use base::sync::{Unwound, net, thread};

/// Retries a command until it succeeds; a further Access does not park. A panic drops the Access,
/// because no caller catches it earlier.
fn run(
    mut access: Access,
    mut command: impl FnMut(&mut Access) -> Result<(), Parked>,
) -> Result<(), Unwound> {
    net(move || {
        for _ in 0..100 {
            let ran = if access.enter() { command(&mut access) } else { Err(Parked::Gate) };
            access.leave();
            if ran.is_ok() {
                return;
            }
            thread::yield_now();
        }
        panic!("turned back each time");
    })
}

type Command = fn(&mut Access, &dyn Fn(u32)) -> Result<(), Parked>;

/// The first further Access panics, with locked slots or under World; a second one and the worker
/// use the same slots.
fn model(command: Command) {
    let model = Model::new(1);
    model.with_all(|guard| set(guard, B, 50, None));
    let mut worker = model.worker(0);
    assert!(worker.access.enter() && worker.access.w.stand == Stand::Alone);
    let mut first = worker.access.further().expect("there is room");
    let other = thread::spawn(move || {
        let second = first.further().expect("there is room");
        let another = thread::spawn(move || {
            run(second, |access| with_keys(access, &[A], |guard| add(guard, A)))
                .expect("it does not panic");
        });
        let here = place(4);
        run(first, |access| command(access, &here)).expect_err("it panics at one of these");
        another.join().expect("it does not panic");
    });
    worker.access.leave();
    worker.add(&[A, B]);
    worker.add(&[A]);
    other.join().expect("the net caught it");
    assert!(worker.access.enter() && worker.access.w.stand == Stand::Alone, "it is alone again");
    worker.access.leave();
    worker.add(&[A]);
    drop(worker);
    let numbers = model.with_all(|guard| [A, B].map(|key| number(guard, key)));
    assert_eq!(numbers, [Some(4), Some(51)]);
    model.is_whole();
}

#[test]
fn the_slots_are_free_and_the_worker_is_alone_again() {
    check(2_000, || {
        model(|access, here| {
            with_keys(access, &[A, B], |guard| {
                here(0);
                set(guard, A, 100, None);
                here(1);
                guard.mark_long();
                here(2);
                set(guard, B, 100, None);
                here(3);
            })
        });
    });
}

#[test]
fn the_gate_is_open_and_the_worker_is_alone_again() {
    check(2_000, || {
        model(|access, here| {
            with_world(access, |guard| {
                here(0);
                guard.flush_all();
                here(1);
                set(guard, A, 100, None);
                here(2);
                guard.flush_all();
                here(3);
            })
        });
    });
}
