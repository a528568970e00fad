//! Records on their way to the writer, with the steps of `records.rs`: numbers are drawn under the
//! locks of the change, batches are handed over when a section ends, and the writer sleeps.

use super::{Bells, check, spawn_each};
use crate::journal::{Batch, Handover, Run};
use crate::lock::{Owner, SlotLock};
use crate::numbers::Numbers;
use crate::parking::Waker;
use base::num::parse_i64;
use base::out::OutPos;
use base::sync::{Arc, Mutex};
use base::{DbIndex, SeqNo};

/// The slots of each change of each worker.
const CHANGES: [[&[usize]; 2]; 2] = [[&[0], &[0, 1]], [&[1], &[0, 1]]];
const NUMBERS: u64 = 4;
const WRITER: usize = 2;

struct Slots {
    locks: Vec<SlotLock>,
    /// The changes of each slot as text, in the order in which its lock was held.
    orders: Mutex<Vec<Vec<i64>>>,
    numbers: Numbers,
    journal: Handover,
}

impl Slots {
    /// A change, whose record is its name.
    fn change(&self, me: Owner, slots: &[usize], name: i64, batch: &mut Batch) {
        for &at in slots {
            if !self.locks[at].try_lock(me) {
                self.locks[at].lock_slow(me).expect("no long holder");
            }
        }
        batch.out.bytes.extend_from_slice(format!("{name}\n").as_bytes());
        let first = self.numbers.draw();
        {
            let mut orders = self.orders.lock().expect("no panic under it");
            slots.iter().for_each(|&at| orders[at].push(name));
        }
        let (end, db) = (batch.out.position(), Some(DbIndex(0)));
        batch.runs.push(Run { first, count: 1, db_in: db, db_out: db, end, cut: 0 });
        for &at in slots {
            assert!(!self.locks[at].unlock(me).parked);
        }
    }

    /// Each worker makes its changes in two sections.
    fn work(&self, i: usize) {
        let mut batch = Batch::default();
        for (n, slots) in CHANGES[i].into_iter().enumerate() {
            self.change(Owner::numbered(i), slots, (i * 10 + n) as i64, &mut batch);
            batch = self.journal.hand_over(batch);
            assert!(batch.is_empty() && batch.out.is_empty(), "a batch is used twice");
        }
    }

    /// Writes what it takes in the order of the numbers; sleeps while there is nothing.
    fn write(&self, bells: &Arc<Bells>) -> Vec<i64> {
        let (mut batches, mut held, mut written) = (Vec::new(), Vec::new(), Vec::new());
        while (written.len() as u64) < NUMBERS {
            self.journal.take(&mut batches);
            for batch in batches.drain(..) {
                held.extend(records_of(&batch));
                self.journal.give_back(batch);
            }
            let before = written.len();
            while let Some(at) = held.iter().position(|(n, _)| n.0 == written.len() as u64 + 1) {
                written.push(held.swap_remove(at).1);
            }
            if written.len() == before && self.journal.sleep() {
                bells.wait(WRITER);
            }
        }
        assert!(held.is_empty(), "a number twice");
        written
    }
}

fn records_of(batch: &Batch) -> Vec<(SeqNo, i64)> {
    let mut from = OutPos::default();
    let records = batch.runs.iter().map(|run| {
        let text = &batch.out.bytes[from.bytes..run.end.bytes - 1];
        from = run.end;
        (run.first, parse_i64(text).expect("a name"))
    });
    records.collect()
}

/// What is written in the order of the numbers is in the order of each lock; no number is missing,
/// and the writer does not sleep while there is one.
#[test]
fn records_are_written_in_the_order_of_the_locks() {
    check(|| {
        let bells = Bells::new(WRITER + 1);
        let slots = Arc::new(Slots {
            locks: (0..2).map(|_| SlotLock::new()).collect(),
            orders: Mutex::new(vec![Vec::new(); 2]),
            numbers: Numbers::default(),
            journal: Handover::default(),
        });
        let rung = Arc::clone(&bells);
        slots.journal.set_waker(Box::new(move || rung.wake(WRITER, 0)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let threads = (0..=WRITER).map(|i| {
            let (slots, bells, written) =
                (Arc::clone(&slots), Arc::clone(&bells), Arc::clone(&written));
            move || match i {
                WRITER => {
                    let all = slots.write(&bells);
                    *written.lock().expect("no panic under it") = all;
                }
                i => slots.work(i),
            }
        });
        spawn_each(threads.collect::<Vec<_>>());
        let written = written.lock().expect("no panic under it");
        let orders = slots.orders.lock().expect("no panic under it");
        for (at, order) in orders.iter().enumerate() {
            let there: Vec<i64> =
                written.iter().copied().filter(|name| order.contains(name)).collect();
            assert_eq!(there, *order, "of slot {at}");
        }
        assert_eq!(slots.journal.bytes(), 0);
    });
}
