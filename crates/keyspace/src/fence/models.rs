//! Fences under the model checker: two EXECs which publish, a sleeper, a long holder and a worker
//! which takes World. A worker which executes under rules whose change was answered fails an
//! assertion, and a lost wake is a deadlock. Each part of the protocol has a variant without it,
//! which the model must find.

use super::Fences;
use crate::gate::Gate;
use crate::lock::Owner;
use crate::models::{check_often, spawn_all};
use base::FenceNo;
use base::sync::atomic::{AtomicU32, Ordering::SeqCst};
use base::sync::{Arc, Condvar, Mutex, PoisonError, thread};
use std::collections::VecDeque;

const ITERATIONS: usize = 10_000;
const PUBLISHERS: usize = 2;
const WORKERS: usize = 5;

/// The part of the protocol which a variant leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// A batch reads the number before it enters.
    ReadingBehindEnter,
    /// The publisher examines the workers before it draws the number.
    DrawingFirst,
    /// The publisher passes in the middle of its EXEC.
    EndingExec,
    /// The holder of World, and a worker which meets the closed gate, leave their sections.
    StayingBeside,
    /// A worker passes without adopting the new rules.
    TakingOver,
    /// A worker which passes does not wake the workers which hold replies.
    Waking,
    /// A worker which is executing is not asked to pass.
    Asking,
}

/// A message to a worker.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mail {
    Ask,
    Wake,
    End,
}

#[derive(Default)]
pub(crate) struct Mailbox(Mutex<VecDeque<Mail>>, Condvar);

impl Mailbox {
    pub fn post(&self, mail: Mail) {
        self.0.lock().expect("no panic under it").push_back(mail);
        self.1.notify_one();
    }

    /// The worker sleeps until there is mail.
    pub fn take(&self) -> Mail {
        let mut all = self.0.lock().expect("no panic under it");
        loop {
            match all.pop_front() {
                Some(mail) => return mail,
                None => all = self.1.wait(all).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

struct Server {
    gate: Gate,
    fences: Fences,
    /// The rule that each publisher changes.
    rules: [AtomicU32; PUBLISHERS],
    /// The changes whose clients have received their replies.
    answered: [AtomicU32; PUBLISHERS],
    boxes: [Mailbox; WORKERS],
    without: Without,
}

struct Worker<'a> {
    server: &'a Server,
    me: usize,
    seen: FenceNo,
    rules: [u32; PUBLISHERS],
}

impl Worker<'_> {
    fn enter(&mut self) {
        let s = self.server;
        if s.without == Without::ReadingBehindEnter {
            self.follow();
            self.go_inside();
            return;
        }
        if !self.go_inside() && s.without == Without::StayingBeside {
            self.leave();
        }
        self.follow();
    }

    /// As [`crate::Access::enter_or_stay_beside`].
    fn go_inside(&self) -> bool {
        let inside = self.server.gate.enter(self.me);
        if !inside {
            self.step_beside();
        }
        inside
    }

    fn step_beside(&self) {
        assert!(!self.server.gate.step_beside(self.me), "nobody parks until it leaves");
    }

    fn leave(&self) {
        assert!(!self.server.gate.leave(self.me), "nobody parks until it leaves");
    }

    fn follow(&mut self) {
        let s = self.server;
        let latest = s.fences.latest();
        if latest == self.seen {
            return;
        }
        if s.without != Without::TakingOver {
            for (own, rule) in self.rules.iter_mut().zip(&s.rules) {
                *own = rule.load(SeqCst);
            }
        }
        self.seen = latest;
        let wake = |other: usize| {
            if s.without != Without::Waking {
                s.boxes[other].post(Mail::Wake);
            }
        };
        s.fences.pass(self.me, latest, wake);
    }

    /// A command under the worker's current rules.
    fn execute(&self) {
        let rules = self.rules;
        thread::yield_now();
        for (rule, answered) in rules.iter().zip(&self.server.answered) {
            assert!(*rule == 1 || answered.load(SeqCst) == 0, "executed by the old rules");
        }
    }

    fn batch(&mut self, commands: usize) {
        self.enter();
        (0..commands).for_each(|_| self.execute());
        self.leave();
    }

    /// A batch with a command under World in the middle.
    fn batch_with_world(&mut self) {
        let (s, me) = (self.server, Owner::numbered(self.me));
        self.enter();
        if s.without == Without::StayingBeside {
            self.leave();
        } else {
            self.step_beside();
        }
        if s.gate.close(self.me, me, 0).is_ok() {
            self.execute();
        }
        if s.gate.is_closed_by(me) {
            s.gate.open(me);
        }
        self.enter();
        self.execute();
        self.leave();
    }

    fn publish(&mut self) -> FenceNo {
        let (s, me) = (self.server, self.me);
        s.rules[me].store(1, SeqCst);
        self.rules[me] = 1;
        let ask = |other: usize| {
            if s.without != Without::Asking {
                s.boxes[other].post(Mail::Ask);
            }
        };
        let wake = |other: usize| s.boxes[other].post(Mail::Wake);
        if s.without == Without::DrawingFirst {
            s.fences.workers[me].waits.store(true, SeqCst);
            let idle: Vec<usize> = (0..WORKERS).filter(|&w| w != me && s.gate.is_idle(w)).collect();
            let no = s.fences.latest.fetch_add(1, SeqCst) + 1;
            for &other in &idle {
                s.fences.raise(other, FenceNo(no), me, &mut |_| ());
            }
            (0..WORKERS).filter(|w| *w != me && !idle.contains(w)).for_each(ask);
            return FenceNo(no);
        }
        s.fences.publish(me, &s.gate, ask, wake)
    }

    /// EXEC, whose first command changes the rules; then its reply waits.
    fn exec(&mut self) {
        let s = self.server;
        self.enter();
        let no = self.publish();
        if s.without == Without::EndingExec {
            let rules = self.rules;
            self.follow();
            self.rules = rules; // the remaining commands were admitted under the old rules
        }
        self.execute();
        self.leave();
        loop {
            self.follow();
            if s.fences.passed() >= no {
                break;
            }
            if s.boxes[self.me].take() == Mail::Ask {
                s.fences.acknowledge(self.me);
            }
        }
        s.fences.stop_waiting(self.me);
        s.answered[self.me].store(1, SeqCst);
        if s.answered.iter().all(|a| a.load(SeqCst) == 1) {
            s.boxes.iter().for_each(|b| b.post(Mail::End));
        }
    }

    /// Waits for mail, as a poll does.
    fn sleep(&mut self) {
        loop {
            match self.server.boxes[self.me].take() {
                Mail::Ask => {
                    self.server.fences.acknowledge(self.me);
                    self.follow();
                }
                Mail::Wake => {}
                Mail::End => return,
            }
        }
    }
}

fn model(without: Without) {
    let server = Arc::new(Server {
        gate: Gate::new(WORKERS),
        fences: Fences::new(WORKERS),
        rules: Default::default(),
        answered: Default::default(),
        boxes: Default::default(),
        without,
    });
    spawn_all(WORKERS, move |me| {
        let mut w = Worker { server: &server, me, seen: FenceNo(0), rules: Default::default() };
        match me {
            0 | 1 => w.exec(),
            2 => {
                w.batch(1);
                w.batch(1);
            }
            3 => w.batch(4), // a long holder
            _ => w.batch_with_world(),
        }
        w.sleep();
    });
}

fn check(without: Without) {
    check_often(ITERATIONS, move || model(without));
}

#[test]
fn no_worker_executes_under_rules_whose_change_was_answered() {
    check(Without::Nothing);
}

#[test]
#[should_panic(expected = "by the old rules")]
fn the_model_finds_a_read_of_the_number_after_entering() {
    check(Without::ReadingBehindEnter);
}

#[test]
#[should_panic(expected = "by the old rules")]
fn the_model_finds_an_examination_before_the_draw() {
    check(Without::DrawingFirst);
}

#[test]
#[should_panic(expected = "by the old rules")]
fn the_model_finds_a_pass_within_exec() {
    check(Without::EndingExec);
}

#[test]
#[should_panic(expected = "by the old rules")]
fn the_model_finds_execution_outside_the_gate() {
    check(Without::StayingBeside);
}

#[test]
#[should_panic(expected = "by the old rules")]
fn the_model_finds_a_pass_with_old_rules() {
    check(Without::TakingOver);
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_missing_wake() {
    check(Without::Waking);
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_worker_which_is_not_asked_to_pass() {
    check(Without::Asking);
}

/// Worker 1 knows the fence published by worker 0, and holds a reply for it, too. Worker 2
/// executes.
fn model_of_a_waiting_worker(checks_again: bool) {
    let server = Arc::new(Server {
        gate: Gate::new(3),
        fences: Fences::new(3),
        rules: Default::default(),
        answered: Default::default(),
        boxes: Default::default(),
        without: Without::Nothing,
    });
    let told = AtomicU32::new(0);
    spawn_all(3, move |me| {
        let s = &*server;
        let mut w = Worker { server: s, me, seen: FenceNo(0), rules: Default::default() };
        match me {
            0 => {
                w.enter();
                let no = w.publish();
                told.store(no.0 as u32, SeqCst);
                s.boxes[1].post(Mail::Wake);
                w.leave();
                w.follow();
            }
            1 => loop {
                let no = FenceNo(u64::from(told.load(SeqCst)));
                let passed = s.fences.passed();
                if no > FenceNo(0) {
                    s.fences.start_waiting(me);
                    let passed = if checks_again { s.fences.passed() } else { passed };
                    if passed >= no {
                        return s.boxes.iter().for_each(|b| b.post(Mail::End));
                    }
                }
                s.boxes[me].take();
                w.follow();
            },
            _ => w.batch(2),
        }
        w.sleep();
    });
}

#[test]
fn a_worker_which_waits_for_a_fence_is_woken() {
    check_often(ITERATIONS, || model_of_a_waiting_worker(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_model_finds_a_missing_second_check() {
    check_often(ITERATIONS, || model_of_a_waiting_worker(false));
}
