//! EXEC: a command that panics is rolled back to its mark, and the commands that ended before it
//! stay. Workers that panic in their sections also pass a fence that the EXEC has published.

use super::{
    A, B, C, DB, Model, NOW, TOLD, Worker, add, check, number, place, set, with_keys, with_world,
};
use crate::Intent;
use crate::fence::models::{Mail, Mailbox};
use base::FenceNo;
use base::sync::atomic::{AtomicU32, Ordering::SeqCst};
use base::sync::hint::{AtomicU32 as Count, Ordering::Relaxed};
use base::sync::{Arc, net, thread, unwind};
use std::cell::Cell;

const WORKERS: usize = 4;

#[derive(Default)]
struct Rules {
    rule: AtomicU32,
    /// The client that changed it has its reply.
    is_answered: AtomicU32,
    boxes: [Mailbox; WORKERS],
}

/// A worker that executes by rules, as in `fence/models.rs`.
struct Follower {
    worker: Worker,
    rules: Arc<Rules>,
    seen: FenceNo,
    rule: u32,
}

impl Follower {
    fn new(worker: Worker, rules: &Arc<Rules>) -> Self {
        Self { worker, rules: Arc::clone(rules), seen: FenceNo(0), rule: 0 }
    }

    fn follow(&mut self) {
        let fences = self.worker.access.ks.fences();
        let latest = fences.latest();
        if latest != self.seen {
            (self.seen, self.rule) = (latest, self.rules.rule.load(SeqCst));
            let wake = |other: usize| self.rules.boxes[other].post(Mail::Wake);
            fences.pass(self.worker.access.number(), latest, wake);
        }
    }

    fn execute(&self) {
        let rule = self.rule;
        thread::yield_now();
        let is_old = rule == 0 && self.rules.is_answered.load(SeqCst) == 1;
        assert!(!is_old, "executed by the old rules");
    }

    /// A window: a command that panics unless the gate is closed, followed by another one.
    fn window(&mut self, command: impl FnOnce(&mut Self)) {
        let inside = self.worker.access.enter_or_stay_beside();
        self.follow();
        self.execute();
        let ran = net(|| {
            if inside {
                command(self);
            }
        });
        // `Core::after_panic`.
        if ran.is_err() && self.worker.access.holds_world() {
            self.worker.access.open_world();
            self.worker.access.enter_or_stay_beside();
            self.follow();
        }
        self.execute();
        self.worker.access.leave();
    }

    /// Waits for mail.
    fn sleep(&mut self) {
        let me = self.worker.access.number();
        loop {
            match self.rules.boxes[me].take() {
                Mail::Ask => {
                    self.worker.access.ks.fences().acknowledge(me);
                    self.follow();
                }
                Mail::Wake => {}
                Mail::End => return,
            }
        }
    }

    /// EXEC of three commands, as in `transaction.rs`: the second one publishes a fence, and one of
    /// them panics. Returns how many ended.
    fn exec(&mut self, published: &mut Option<FenceNo>) -> u32 {
        let (here, ended, rules) = (place(6), Cell::new(0), Arc::clone(&self.rules));
        let access = &mut self.worker.access;
        let (ks, me) = (Arc::clone(&access.ks), access.number());
        let ran = net(|| {
            let mut slots = [A, B, C].map(|key| ks.key(key).slot);
            slots.sort_unstable();
            let mut guard = access.lock(&slots, NOW, Intent::Write).expect("no long holder");
            let mark = Cell::new(guard.mark());
            let queue = net(|| {
                here(0);
                set(&mut guard, C, 1, None);
                here(1);
                mark.set(guard.mark());
                ended.set(1);
                rules.rule.store(1, SeqCst);
                let ask = |other: usize| rules.boxes[other].post(Mail::Ask);
                let wake = |other: usize| rules.boxes[other].post(Mail::Wake);
                *published = Some(ks.publish_fence(me, ask, wake));
                add(&mut guard, A);
                here(2);
                mark.set(guard.mark());
                ended.set(2);
                here(3);
                add(&mut guard, B);
                here(4);
                guard.remove(TOLD, DB, &ks.key(A));
                here(5);
            });
            guard.rollback_to(mark.get());
            guard.number();
            guard.commit();
            queue.unwrap_or_else(|_| unwind());
        });
        ran.expect_err("it panics at one of these");
        ended.get()
    }

    /// Holds the reply until all workers have passed the fence, then stops them.
    fn answer(&mut self, fence: FenceNo) {
        let ks = Arc::clone(&self.worker.access.ks);
        loop {
            self.follow();
            if ks.fences().passed() >= fence {
                break;
            }
            if self.rules.boxes[0].take() == Mail::Ask {
                ks.fences().acknowledge(0);
            }
        }
        ks.fences().stop_waiting(0);
        self.rules.is_answered.store(1, SeqCst);
    }
}

/// Two other workers panic inside, one of them under World; the fourth one sleeps.
#[test]
fn a_fence_of_an_exec_that_panics_is_passed() {
    static PUBLISHED: Count = Count::new(0);
    check(3_000, || {
        let model = Model::new(WORKERS);
        let cells = [A, B, C].map(|key| model.watch(key));
        let rules = Arc::new(Rules::default());
        let [first, second, third, fourth] = [0; WORKERS].map(|_| Arc::clone(&rules));
        let ended = Arc::new(AtomicU32::new(0));
        let ends = Arc::clone(&ended);
        model.run_all(vec![
            Box::new(move |_, worker| {
                let (mut me, mut published) = (Follower::new(worker, &first), None);
                me.window(|me| ends.store(me.exec(&mut published), SeqCst));
                if let Some(fence) = published {
                    PUBLISHED.fetch_add(1, Relaxed);
                    me.answer(fence);
                }
                me.rules.boxes.iter().for_each(|mailbox| mailbox.post(Mail::End));
            }),
            Box::new(move |_, worker| {
                let mut me = Follower::new(worker, &second);
                me.window(|me| {
                    let here = place(2);
                    let ran = with_keys(&mut me.worker.access, &[A], |guard| {
                        here(0);
                        set(guard, A, 100, None);
                        here(1);
                    });
                    ran.expect("no long holder");
                });
                me.sleep();
            }),
            Box::new(move |_, worker| {
                let mut me = Follower::new(worker, &third);
                me.window(|me| {
                    let ran = with_world(&mut me.worker.access, |guard| {
                        guard.flush_all();
                        unwind();
                    });
                    ran.expect_err("else it panics");
                    me.follow();
                });
                me.sleep();
            }),
            Box::new(move |_, worker| Follower::new(worker, &fourth).sleep()),
        ]);
        let numbers = model.with_all(|guard| [A, B, C].map(|key| number(guard, key)));
        let stand = [ended.load(SeqCst) > 1, false, ended.load(SeqCst) > 0];
        assert_eq!(numbers, stand.map(|stands| stands.then_some(1)));
        assert_eq!(cells.map(|cell| cell.is_dirty()), stand, "told of what stands alone");
        model.is_whole();
    });
    assert!(PUBLISHED.load(Relaxed) > 100, "{PUBLISHED:?} fences");
}
