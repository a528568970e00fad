//! Turns of commands that need World and find a slot frozen. No command freezes another slot until
//! one of them has run or panicked. Then the commands that were kept out continue.

use super::{Model, NOW, Thread, Worker, check, place};
use crate::{Access, Guard, Intent, Keyspace, Parked, ThawTurn};
use base::SlotId;
use base::sync::atomic::{AtomicU32, Ordering::SeqCst};
use base::sync::{Arc, Unwound, thread};

/// As `Core::call_locked` of a command that needs World and may find that it cannot run.
fn with_world(
    access: &mut Access,
    command: impl FnOnce(&mut Guard<'_>) -> Result<(), Parked>,
) -> Result<(), Parked> {
    access.step_beside();
    let result = access.try_world().and_then(|()| {
        let mut guard = access.world(NOW);
        let result = command(&mut guard);
        drop(guard);
        access.open_world();
        result
    });
    access.enter_or_stay_beside();
    result
}

/// As FLUSHALL: runs once no slot is frozen. `waiting` counts the threads that have a turn.
fn everything(
    ks: &Arc<Keyspace>,
    waiting: &AtomicU32,
    worker: &mut Worker,
    here: &dyn Fn(u32),
) -> Result<(), Unwound> {
    let mut turn = None;
    let ran = worker.run(|access| {
        with_world(access, |_| {
            if let Err(parked) = ks.may_everything(Intent::Write) {
                turn.get_or_insert_with(|| {
                    waiting.fetch_add(1, SeqCst);
                    ThawTurn::wait(ks)
                });
                here(0);
                return Err(parked);
            }
            here(1);
            Ok(())
        })
    });
    // Whether the session continues or ends, its turn ends.
    waiting.fetch_sub(turn.is_some().into(), SeqCst);
    drop(turn);
    ran
}

/// As MIGRATE, whose slot is frozen for longer than its command lasts.
fn freeze(ks: &Keyspace, waiting: &AtomicU32, worker: &mut Worker, slot: SlotId) {
    let mut was_kept_out = false;
    let ran = worker.run(|access| {
        with_world(access, |guard| {
            if !was_kept_out {
                ks.may_freeze().inspect_err(|_| was_kept_out = true)?;
                assert_eq!(waiting.load(SeqCst), 0, "who waits for a thaw comes first");
            }
            guard.freeze(&[slot]);
            Ok(())
        })
    });
    ran.expect("it does not panic");
    thread::yield_now();
    ks.thaw(&[slot]);
}

fn turns(panics: bool) {
    check(4_000, move || {
        let (model, waiting) = (Model::new(3), Arc::new(AtomicU32::new(0)));
        let counts = [(); 3].map(|()| Arc::clone(&waiting));
        let [first, second, third] = counts;
        let threads: [Thread; 3] = [
            Box::new(move |model, mut worker| {
                let chosen = place(2);
                let here = |at| {
                    if panics {
                        chosen(at);
                    }
                };
                let ran = everything(&model.ks, &first, &mut worker, &here);
                assert!(panics || ran.is_ok());
            }),
            Box::new(move |model, mut worker| {
                freeze(&model.ks, &second, &mut worker, SlotId::new(1));
                freeze(&model.ks, &second, &mut worker, SlotId::new(1));
            }),
            Box::new(move |model, mut worker| {
                freeze(&model.ks, &third, &mut worker, SlotId::new(2));
            }),
        ];
        model.run_all(threads.into());
        assert!(!model.ks.has_frozen() && model.ks.may_freeze().is_ok());
        model.is_whole();
    });
}

#[test]
fn who_is_kept_out_for_a_thaw_goes_on_when_the_turn_has_been_used() {
    turns(false);
}

#[test]
fn who_is_kept_out_for_a_thaw_goes_on_when_the_turn_ends_with_a_panic() {
    turns(true);
}
