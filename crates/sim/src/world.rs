//! What clients and faults share: the network, the servers, the draws, the record of what happened.

use crate::books::Books;
use crate::closings::Closings;
use crate::host::Host;
use crate::machine::Machine;
use crate::plan::{MS, Plan};
use crate::trace::{Trace, WORLD};
use crate::wall::Wall;
use base::prng::Prng;
use base::sync::baton::{Baton, Options, Rates, Status};
use driver::PeerAddr;
use driver::sim::{DiskFaults, Moment, SimNet};
use std::collections::BTreeMap;
use std::fmt;

/// How much later than [`driver::clock::RESYNC_NS`] a worker may notice a step of the wall clock.
const LATE_NS: u64 = 20 * MS;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients make requests.
    Busy,
    /// They take the replies that they wait for, and leave.
    Ending,
}

/// What the world did to the servers and their clients, by kind.
pub type Tally = BTreeMap<&'static str, u64>;

/// The world of a run.
pub struct World {
    /// What was drawn.
    pub plan: Plan,
    /// Hands the processor from thread to thread.
    pub baton: Baton,
    /// The network.
    pub net: SimNet,
    /// The machine of the servers.
    pub machine: Machine,
    /// The server, unless it is dead.
    pub host: Option<Host>,
    /// Draws.
    pub prng: Prng,
    /// What happened.
    pub trace: Trace,
    /// What was asked and answered.
    pub books: Books,
    /// Faults and requests by kind.
    pub tally: Tally,
    /// Incarnations of the server before this one.
    pub epoch: u32,
    /// How far the run has come.
    pub phase: Phase,
    /// Addresses of connected clients, by client, and their CLIENT IDs once they know them.
    pub connected: BTreeMap<u32, (PeerAddr, Option<i64>)>,
    /// Why connections may be closed.
    pub closings: Closings,
    /// When a client has left last, nanoseconds.
    pub last_left_ns: u64,
    /// Until when CLIENT PAUSE holds back writes, nanoseconds.
    pub pause_until_ns: u64,
    /// At this time clients make requests without a rest.
    pub rush_ns: u64,
    /// What was violated first.
    pub failure: Option<String>,
    /// When the run began.
    began_ns: u64,
    tick: u64,
    /// Since when something may hold up replies, and for how long.
    disturbances: Vec<(u64, u64)>,
    /// The wall clock of the server's machine.
    wall: Wall,
}

impl World {
    /// The world of a plan, with its first server.
    pub fn new(plan: Plan) -> Self {
        let options = Options { seed: plan.seed, rates: plan.rates, trace: None };
        let baton = Baton::start(options);
        let net = SimNet::new(plan.seed, plan.faults);
        let machine = Machine::new(plan.seed, plan.disk);
        let host = Host::start(&baton, (&net, &machine), (&plan, 0), 0);
        let began_ns = net.now().0;
        Self {
            baton,
            machine,
            host: Some(host),
            prng: Prng::new(!plan.seed),
            trace: Trace::default(),
            books: Books::default(),
            tally: Tally::new(),
            epoch: 0,
            phase: Phase::Busy,
            connected: BTreeMap::new(),
            closings: Closings::default(),
            last_left_ns: 0,
            pause_until_ns: 0,
            rush_ns: 0,
            failure: None,
            began_ns,
            tick: 0,
            disturbances: Vec::new(),
            wall: Wall::default(),
            net,
            plan,
        }
    }

    /// True if there is a server which has neither died nor begun to end.
    pub fn is_living(&self) -> bool {
        // (One that could not load its data closes its connections before its threads are over.)
        let lives = |host: &&Host| !host.is_ending() && host.shared().is_ok();
        let host = self.host.as_ref().filter(lives);
        host.is_some_and(|host| host.status(&self.baton) == Status::Running)
    }

    /// True if there is a server which has started, has loaded its data, and lives on.
    pub fn is_served(&self) -> bool {
        let host = self.host.as_ref().filter(|host| !host.is_ending());
        host.is_some_and(Host::is_open)
    }

    /// Simulated time, nanoseconds.
    pub fn now(&self) -> u64 {
        self.net.now().0
    }

    /// Simulated time since the run began.
    pub fn elapsed_ns(&self) -> u64 {
        self.now() - self.began_ns
    }

    /// The place of an event in the order of all events that clients see.
    pub fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Adds an event to the trace.
    pub fn note(&mut self, who: u32, what: fmt::Arguments<'_>) {
        let at = self.elapsed_ns();
        self.trace.add(at, who, what);
    }

    /// Adds a fault, or something else that is counted, to the trace and the totals.
    pub fn count(&mut self, kind: &'static str, who: u32, what: fmt::Arguments<'_>) {
        *self.tally.entry(kind).or_default() += 1;
        self.note(who, what);
    }

    /// Ends the run: something is not as it must be. The first failure counts.
    pub fn fail(&mut self, what: impl Into<String>) {
        if self.failure.is_none() {
            let what = what.into();
            self.note(WORLD, format_args!("violated: {what}"));
            self.failure = Some(what);
        }
    }

    /// Replies may be late for `ns` from now.
    pub fn disturb(&mut self, ns: u64) {
        self.disturbances.push((self.now(), ns));
    }

    /// How much longer somebody who waits since `since_ns` may have to wait, who had to wait for
    /// `patience_ns` at most if nothing held up the server; `None` if it is a stall. While a thread
    /// is held, nobody is impatient, and what disturbs lasts longer.
    pub fn patience_left_ns(&self, since_ns: u64, patience_ns: u64) -> Option<u64> {
        let now = self.now();
        if now <= since_ns + patience_ns {
            return Some(since_ns + patience_ns - now);
        }
        let end = |(from, ns): &(u64, u64)| from + ns + self.baton.held_ns(*from, now);
        let since_ns = self.disturbances.iter().map(end).max().unwrap_or(0).max(since_ns);
        let waited_ns = now.saturating_sub(since_ns);
        let held_ns = if since_ns < now { self.baton.held_ns(since_ns, now) } else { 0 };
        let until_ns = since_ns + held_ns + patience_ns;
        (waited_ns <= held_ns + patience_ns).then(|| until_ns - now)
    }

    /// Draws one of `n` in a random number of cases; never if `n` is 0.
    pub fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.prng.chance(1, one_in)
    }

    /// A random time up to `max_ns` from now.
    pub fn soon(&mut self, max_ns: u64) -> u64 {
        self.now() + self.prng.below(max_ns + 1)
    }

    /// Lets the servers run until clients may see something new since `moment`, or until this time.
    pub fn rest(&mut self, moment: Moment, until_ns: u64) {
        self.net.wait(moment, Some(base::MonoNs(until_ns)));
    }

    /// From now on nothing is cut, and polls see all; delays and small buffers stay.
    pub fn calm_network(&mut self) {
        let faults =
            driver::sim::Faults { reset_one_in: 0, blind_poll_one_in: 0, ..self.plan.faults };
        self.net.set_faults(faults);
        self.baton.set_rates(Rates { hold_one_in: 0, ..self.plan.rates });
    }

    /// What cannot be written now can be from now on.
    pub fn calm_disk(&mut self) {
        if self.plan.journal_may_fail() {
            let DiskFaults { delay_ns_max, slow_one_in, slow_ns_max, .. } = self.plan.disk;
            let none = DiskFaults { in_order: true, ..DiskFaults::NONE };
            let calm = DiskFaults { delay_ns_max, slow_one_in, slow_ns_max, ..none };
            self.machine.disk.set_faults(calm);
        }
    }

    /// Steps the wall clock.
    pub fn step_clock(&mut self, by_ms: i64) {
        let Some(host) = &self.host else { return };
        self.net.step_wall_clock(host.group(), by_ms * 1_000_000);
        self.wall.step(self.now(), by_ms * 1_000_000);
    }

    /// A server starts on a machine whose wall clock was never stepped.
    pub fn reset_clock(&mut self) {
        self.wall.reset(self.now());
    }

    /// The earliest and the latest that the wall clock of a worker showed between two times of the
    /// simulation, as nanoseconds from an arbitrary beginning. A worker notices a step late.
    pub fn wall_between(&self, from_ns: u64, to_ns: u64) -> (i64, i64) {
        let late_ns = |step_ns: u64| {
            let held_ns = self.baton.whole_holds_ns(step_ns, to_ns.max(step_ns));
            driver::clock::RESYNC_NS + LATE_NS + held_ns
        };
        self.wall.between(from_ns, to_ns, late_ns)
    }
}
