//! Who runs next: the threads of a world, what they wait for, and the seed's decisions.

use super::holds::Holds;
use super::{Group, Kind, On, Rates, START_NS, Status, Summary, Thread, Woken};
use crate::prng::Prng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

/// The longest wait that ends without a reason.
const EARLY_NS_MAX: u64 = 20_000;
/// One of so many cheap occasions lets time pass while others could run.
const CHEAP_ONE_IN: u64 = 8;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It is being started.
    Born,
    Runnable,
    Running,
    Blocked(On),
    Finished,
    /// Its group has ended.
    Dead,
}

pub(super) struct Record {
    pub name: String,
    pub group: Group,
    pub life: Life,
    pub thread: &'static Thread,
    pub woken: Woken,
    /// Where it was last.
    pub at: Option<&'static Location<'static>>,
    /// Counts its waits: an entry of a queue or of the timers belongs to one wait.
    wait: u64,
    pub until: Option<u64>,
    /// Its budget when it was last settled.
    budget: u32,
}

pub(super) struct GroupRecord {
    pub name: String,
    pub status: Status,
    pub paused: bool,
    /// It dies after so many of its switch points.
    kill_in: Option<u64>,
}

pub(super) struct State {
    pub now_ns: u64,
    pub prng: Prng,
    rates: Rates,
    pub threads: Vec<Record>,
    pub groups: Vec<GroupRecord>,
    pub holds: Holds,
    runnable: Vec<usize>,
    /// Time, thread, and number of its wait; those of waits which are over are skipped.
    timers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Thread and number of its wait by address. Never iterated over: addresses differ from run to
    /// run.
    queues: HashMap<usize, Vec<(usize, u64)>>,
    deadlock: Option<String>,
    pub summary: Summary,
    pub trace: Option<Box<dyn Write + Send>>,
}

impl State {
    pub fn new(seed: u64, rates: Rates, trace: Option<Box<dyn Write + Send>>) -> Self {
        let mut state = Self {
            now_ns: START_NS,
            prng: Prng::new(seed),
            rates,
            threads: Vec::new(),
            groups: Vec::new(),
            holds: Holds::default(),
            runnable: Vec::new(),
            timers: BinaryHeap::new(),
            queues: HashMap::new(),
            deadlock: None,
            summary: Summary::default(),
            trace,
        };
        state.add_group("world");
        state
    }

    pub fn add_group(&mut self, name: &str) -> Group {
        let status = Status::Running;
        self.groups.push(GroupRecord { name: name.into(), status, paused: false, kill_in: None });
        Group(self.groups.len() as u32 - 1)
    }

    pub fn summary(&self) -> Summary {
        Summary { now_ns: self.now_ns, ..self.summary }
    }

    // ---- threads

    pub fn register(&mut self, thread: &'static Thread, name: &str) {
        self.threads.push(Record {
            name: name.into(),
            group: thread.group,
            life: Life::Born,
            thread,
            woken: Woken::Called,
            at: None,
            wait: 0,
            until: None,
            budget: 0,
        });
        self.draw_budget(thread.id);
    }

    /// A registered thread may run.
    pub fn begin(&mut self, id: usize) {
        let ended = self.groups[self.threads[id].group.0 as usize].status != Status::Running;
        self.threads[id].life = if ended { Life::Dead } else { Life::Runnable };
        if !ended {
            self.runnable.push(id);
        }
    }

    /// The thread that starts the world has the baton.
    pub fn begin_running(&mut self, id: usize) {
        self.threads[id].life = Life::Running;
    }

    pub fn finish(&mut self, id: usize, left: u32) {
        self.count_points(id, left);
        self.threads[id].life = Life::Finished;
        self.wake(std::ptr::from_ref(self.threads[id].thread).addr(), u32::MAX);
        let group = self.threads[id].group;
        let lives = |r: &Record| r.group == group && r.life != Life::Finished;
        if !self.threads.iter().any(lives) {
            self.groups[group.0 as usize].status = Status::Exited(0);
        }
    }

    /// Ends a group; false if it had ended before.
    pub fn end_group(&mut self, group: Group, status: Status) -> bool {
        let record = &mut self.groups[group.0 as usize];
        if record.status != Status::Running {
            return false;
        }
        (record.status, record.kill_in) = (status, None);
        self.holds.end(group, self.now_ns);
        let threads = self.threads.iter_mut();
        for thread in threads.filter(|t| t.group == group && t.life != Life::Finished) {
            thread.life = Life::Dead;
            thread.wait += 1;
        }
        let threads = &self.threads;
        self.runnable.retain(|id| threads[*id].life == Life::Runnable);
        true
    }

    // ---- switch points

    /// Counts the switch points that a thread has passed since they were last counted.
    pub fn count_points(&mut self, id: usize, left: u32) {
        let record = &mut self.threads[id];
        let passed = u64::from(record.budget - left);
        record.budget = left;
        self.summary.points += passed;
        self.mix(passed);
        if let Some(left) = &mut self.groups[self.threads[id].group.0 as usize].kill_in {
            *left = left.saturating_sub(passed);
        }
    }

    /// Draws after how many switch points the thread decides again.
    fn draw_budget(&mut self, id: usize) {
        let group = self.threads[id].group;
        let (switch, hold) = self.rates_of(group);
        let mean = match (switch, hold) {
            (0, 0) => u64::from(u32::MAX / 2),
            (0, one) | (one, 0) => one,
            (switch, hold) => (switch * hold / (switch + hold)).max(1),
        };
        let most = self.groups[group.0 as usize].kill_in.unwrap_or(u64::MAX).max(1);
        let budget = (1 + self.prng.below(2 * mean)).min(most).min(u64::from(u32::MAX)) as u32;
        self.set_budget(id, budget);
    }

    fn set_budget(&mut self, id: usize, budget: u32) {
        let record = &mut self.threads[id];
        record.budget = budget;
        record.thread.budget.store(budget, Relaxed);
    }

    /// Points between two switches, and between two holds; the world's own threads are not held.
    fn rates_of(&self, group: Group) -> (u64, u64) {
        let hold = if group == Group::WORLD { 0 } else { self.rates.hold_one_in };
        (self.rates.switch_one_in.into(), hold.into())
    }

    pub fn set_rates(&mut self, rates: Rates) {
        self.rates = rates;
        let lives = |r: &Record| !matches!(r.life, Life::Dead | Life::Finished);
        let living: Vec<usize> =
            (0..self.threads.len()).filter(|id| lives(&self.threads[*id])).collect();
        for id in living {
            self.count_points(id, self.threads[id].thread.budget.load(Relaxed));
            self.draw_budget(id);
        }
    }

    /// Has the group die after so many of its switch points.
    pub fn kill_after(&mut self, group: Group, points: u64) {
        self.groups[group.0 as usize].kill_in = Some(points.max(1));
        for id in 0..self.threads.len() {
            let left = self.threads[id].thread.budget.load(Relaxed);
            if self.threads[id].group == group && u64::from(left) > points {
                self.count_points(id, left);
                self.set_budget(id, points.max(1) as u32);
            }
        }
    }

    pub fn is_due_to_die(&self, group: Group) -> bool {
        self.groups[group.0 as usize].kill_in == Some(0)
    }

    /// A running thread's countdown is over: it becomes runnable, or is held.
    pub fn decide(&mut self, id: usize, at: &'static Location<'static>) {
        let (switch, hold) = self.rates_of(self.threads[id].group);
        self.draw_budget(id);
        let holds = match (switch, hold) {
            (_, 0) => false,
            (0, _) => true,
            (switch, hold) => self.prng.chance(switch, switch + hold),
        };
        if holds {
            self.summary.holds += 1;
            let until = self.now_ns + self.draw_hold();
            self.holds.add(self.threads[id].group, self.now_ns, until);
            self.block(id, On::Hold, 0, Some(until), at);
        } else {
            self.threads[id].at = Some(at);
            self.make_runnable(id, Woken::Called);
        }
    }

    /// As many short holds as long ones: each power of two above the shortest is as likely.
    fn draw_hold(&mut self) -> u64 {
        let Rates { hold_ns_min, hold_ns_max, .. } = self.rates;
        let bits = u64::from((hold_ns_max - hold_ns_min).max(2).ilog2());
        let most = 1 << self.prng.below(bits + 1);
        hold_ns_min + 1 + self.prng.below(most)
    }

    /// True if the thread that runs may let time pass without a hand-over, or is to do it anyway.
    pub fn is_cheap(&mut self) -> bool {
        self.runnable.is_empty() || self.prng.chance(1, CHEAP_ONE_IN)
    }

    // ---- waits

    pub fn block(
        &mut self,
        id: usize,
        on: On,
        address: usize,
        until: Option<u64>,
        at: &'static Location<'static>,
    ) {
        let mut until = until;
        if matches!(on, On::Condvar | On::Futex)
            && self.rates.early_one_in > 0
            && self.prng.chance(1, self.rates.early_one_in.into())
        {
            let early = self.now_ns + 1 + self.prng.below(EARLY_NS_MAX);
            until = Some(until.map_or(early, |until| until.min(early)));
        }
        let record = &mut self.threads[id];
        record.wait += 1;
        (record.life, record.until, record.at) = (Life::Blocked(on), until, Some(at));
        let wait = record.wait;
        if let Some(until) = until {
            self.timers.push(Reverse((until, id, wait)));
        }
        if address != 0 {
            self.queues.entry(address).or_default().push((id, wait));
        }
    }

    fn make_runnable(&mut self, id: usize, woken: Woken) {
        let record = &mut self.threads[id];
        record.wait += 1;
        (record.life, record.woken, record.until) = (Life::Runnable, woken, None);
        self.runnable.push(id);
    }

    fn waits(&self, (id, wait): (usize, u64)) -> bool {
        let record = &self.threads[id];
        record.wait == wait && matches!(record.life, Life::Blocked(_))
    }

    /// Wakes up to `count` threads that wait at this address; which, is drawn.
    pub fn wake(&mut self, address: usize, count: u32) {
        let Some(mut queue) = self.queues.remove(&address) else { return };
        queue.retain(|entry| self.waits(*entry));
        for _ in 0..count {
            if queue.is_empty() {
                return;
            }
            let (id, _) = queue.remove(self.prng.below(queue.len() as u64) as usize);
            self.make_runnable(id, Woken::Called);
        }
        if !queue.is_empty() {
            self.queues.insert(address, queue);
        }
    }

    /// Addresses at which threads wait or waited.
    pub fn queued(&self) -> usize {
        self.queues.len()
    }

    /// Ends the wait of a thread for an event, at `at_ns` or at once.
    pub fn wake_waiting(&mut self, id: usize, at_ns: u64) {
        let record = &mut self.threads[id];
        if !matches!(record.life, Life::Blocked(On::Event(_))) {
            return;
        }
        if at_ns <= self.now_ns {
            self.make_runnable(id, Woken::Called);
        } else if record.until.is_none_or(|until| until > at_ns) {
            record.until = Some(at_ns);
            self.timers.push(Reverse((at_ns, id, record.wait)));
        }
    }

    // ---- the next thread

    /// Chooses who runs next; lets time pass if nobody can run now.
    pub fn pick(&mut self, from: usize, kind: Kind) -> &'static Thread {
        loop {
            self.release_due();
            let candidates = self.candidates();
            if !candidates.is_empty() {
                let chosen = candidates[self.prng.below(candidates.len() as u64) as usize];
                let id = self.runnable.swap_remove(chosen);
                self.threads[id].life = Life::Running;
                self.note(from, id, kind);
                return self.threads[id].thread;
            }
            if !self.advance() {
                self.rest();
            }
        }
    }

    /// Places in `runnable` of those whose group is not paused.
    fn candidates(&self) -> Vec<usize> {
        let goes = |id: &usize| !self.groups[self.threads[*id].group.0 as usize].paused;
        (0..self.runnable.len()).filter(|place| goes(&self.runnable[*place])).collect()
    }

    /// Makes those runnable whose time has come.
    fn release_due(&mut self) {
        while let Some(Reverse((at, id, wait))) = self.timers.peek().copied()
            && (at <= self.now_ns || !self.is_timer(at, id, wait))
        {
            self.timers.pop();
            if self.is_timer(at, id, wait) {
                self.make_runnable(id, Woken::Time);
            }
        }
    }

    fn is_timer(&self, at: u64, id: usize, wait: u64) -> bool {
        self.waits((id, wait)) && self.threads[id].until == Some(at)
    }

    /// Moves the clock to the earliest deadline; false if there is none.
    fn advance(&mut self) -> bool {
        let Some(Reverse((at, ..))) = self.timers.peek() else { return false };
        self.now_ns = *at;
        true
    }

    /// Nothing can happen any more: the world's own thread is told, with a report unless it asked.
    fn rest(&mut self) {
        let main = &self.threads[0];
        let asked = matches!(main.life, Life::Blocked(On::Event(_)));
        assert!(matches!(main.life, Life::Blocked(_)), "the world's thread is {:?}", main.life);
        if !asked {
            self.deadlock = Some(format!("deadlock: nobody can run\n{}", self.report()));
        }
        self.make_runnable(0, Woken::AtRest);
    }

    pub fn take_deadlock(&mut self, id: usize) -> Option<String> {
        if id == 0 { self.deadlock.take() } else { None }
    }
}
