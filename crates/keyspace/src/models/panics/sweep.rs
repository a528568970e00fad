//! An expired key is removed once and reported once, whichever thread panics meanwhile. The sweep
//! finds the remaining ones.

use super::{A, B, C, DB, Model, NOW, Worker, check, number, place, set, with_keys};
use crate::{Access, Event, ExpireReport, Intent};
use base::sync::Arc;
use base::sync::hint::{AtomicU32, Ordering::Relaxed};
use base::sync::net;
use base::{MonoNs, UnixMs};
use shuttle::rand::{Rng, thread_rng};
use std::cell::Cell;

const DUE: Option<UnixMs> = Some(UnixMs(NOW.0 + 10));
const LATER: UnixMs = UnixMs(NOW.0 + 20);
const LAST: UnixMs = UnixMs(LATER.0 + 1_000);
const D: &[u8] = b"d";

fn sweep(access: &mut Access) -> ExpireReport {
    access.expire_step(LATER, 1_000, || MonoNs(0))
}

/// Counts the `expired` events of this worker.
fn count_expired(access: &mut Access, events: &AtomicU32) {
    while let Some(event) = access.next_event() {
        events.fetch_add((event.event == Event::EXPIRED).into(), Relaxed);
    }
}

/// A sweep that panics after some change, as within `Core::sweep`. True if it did.
fn sweep_with_panic(mut worker: Worker, events: &AtomicU32) -> bool {
    worker.access.listen_to_events(true);
    let mut panicked = false;
    let ran = worker.run(|access| {
        let changes = thread_rng().gen_range(1..4);
        let swept = net(|| {
            access.panic_after(changes);
            sweep(access)
        });
        access.disarm();
        panicked = swept.is_err();
        Ok(())
    });
    ran.expect("it catches the panic itself");
    count_expired(&mut worker.access, events);
    panicked
}

/// A command removes an expired key that it finds, and panics: the key stays removed.
fn read_then_panic(mut worker: Worker, events: &AtomicU32) {
    worker.access.listen_to_events(true);
    let (here, is_gone) = (place(3), Cell::new(false));
    let ran = worker.run(|access| {
        let slot = access.ks.key(B).slot;
        let mut guard = access.lock_one(slot, LATER, Intent::Write)?;
        here(0);
        assert!(number(&mut guard, B).is_none());
        is_gone.set(true);
        here(1);
        set(&mut guard, B, 5, DUE);
        here(2);
        Ok(())
    });
    ran.expect_err("it panics at one of these");
    // With an earlier clock the key would not be due.
    let check_gone = |access: &mut Access| {
        with_keys(access, &[B], |guard| {
            assert!(number(guard, B).is_none() || !is_gone.get(), "it came back");
        })
    };
    worker.run(check_gone).expect("it does not panic");
    count_expired(&mut worker.access, events);
}

/// One key gets a later expiry, another one is created due, while the group is swept.
fn write_expiries(mut worker: Worker, events: &AtomicU32) {
    worker.access.listen_to_events(true);
    for (key, expiry) in [(A, LAST), (D, LATER)] {
        let ran = worker.run(|access| {
            let slot = access.ks.key(key).slot;
            let mut guard = access.lock_one(slot, LATER, Intent::Write)?;
            set(&mut guard, key, 7, Some(expiry));
            Ok(())
        });
        ran.expect("it does not panic");
    }
    count_expired(&mut worker.access, events);
}

#[test]
fn what_is_due_goes_once() {
    static SWEPT: AtomicU32 = AtomicU32::new(0);
    static PANICKED: AtomicU32 = AtomicU32::new(0);
    check(3_000, || {
        let model = Model::new(3);
        model.with_all(|guard| [A, B, C].into_iter().for_each(|key| set(guard, key, 1, DUE)));
        let cells = [A, B, C].map(|key| model.watch(key));
        let events = Arc::new(AtomicU32::new(0));
        let counts = [0; 3].map(|_| Arc::clone(&events));
        let [sweeps, reads, writes] = counts;
        model.run_all(vec![
            Box::new(move |_, worker| {
                PANICKED.fetch_add(sweep_with_panic(worker, &sweeps).into(), Relaxed);
            }),
            Box::new(move |_, worker| read_then_panic(worker, &reads)),
            Box::new(move |_, worker| write_expiries(worker, &writes)),
        ]);
        let mut worker = model.worker(0);
        worker.access.listen_to_events(true);
        worker
            .run(|access| {
                SWEPT.fetch_add(sweep(access).expired as u32, Relaxed);
                assert!(access.next_due().is_some_and(|due| due > LATER), "nothing is due");
                Ok(())
            })
            .expect("it does not panic");
        count_expired(&mut worker.access, &events);
        drop(worker);
        let ks = &model.ks;
        assert_eq!((ks.expiry().expired, events.load(Relaxed)), (4, 4), "each goes once");
        assert_eq!((ks.db_len(DB), ks.db_expires(DB)), (1, 1));
        assert!(cells.iter().all(|cell| cell.is_dirty()));
        model.is_whole();
    });
    assert!(SWEPT.load(Relaxed) > 100 && PANICKED.load(Relaxed) > 100, "{SWEPT:?} {PANICKED:?}");
}
