//! What clients and faults share: the network, the servers, the draws, the record of what happened.

use crate::books::Books;
use crate::host::Host;
use crate::plan::Plan;
use crate::trace::{Trace, WORLD};
use base::prng::Prng;
use driver::sim::{SimDriver, SimNet};
use driver::{Driver, PeerAddr};
use std::collections::BTreeMap;
use std::fmt;

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
    /// The network.
    pub net: SimNet,
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
    /// Until when something may hold up replies, nanoseconds.
    pub disturbed_until_ns: u64,
    /// Until when CLIENT PAUSE holds back writes, nanoseconds.
    pub pause_until_ns: u64,
    /// What was violated first.
    pub failure: Option<String>,
    /// When the run began.
    began_ns: u64,
    tick: u64,
    /// Sleeps for the clients: the clock of the network regards it as one more worker.
    sleeper: SimDriver<()>,
    /// How far the wall clock was stepped: since when, and by how much in all.
    steps: Vec<(u64, i64)>,
}

impl World {
    /// The world of a plan, with its first server.
    pub fn new(plan: Plan) -> Self {
        let net = SimNet::new(plan.seed, plan.faults);
        let host = Host::start(&net, &plan);
        let began_ns = net.now().0;
        Self {
            sleeper: net.driver(),
            host: Some(host),
            prng: Prng::new(!plan.seed),
            trace: Trace::default(),
            books: Books::default(),
            tally: Tally::new(),
            epoch: 0,
            phase: Phase::Busy,
            connected: BTreeMap::new(),
            disturbed_until_ns: began_ns,
            pause_until_ns: 0,
            failure: None,
            began_ns,
            tick: 0,
            steps: vec![(0, 0)],
            net,
            plan,
        }
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
        self.disturbed_until_ns = self.disturbed_until_ns.max(self.now() + ns);
    }

    /// Draws one of `n` in a random number of cases; never if `n` is 0.
    pub fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.prng.chance(1, one_in)
    }

    /// A random time up to `max_ns` from now.
    pub fn soon(&mut self, max_ns: u64) -> u64 {
        self.now() + self.prng.below(max_ns + 1)
    }

    /// One round of the server. Time passes if nobody has anything to do before `until_ns`.
    pub fn turn_server(&mut self, until_ns: u64) {
        if let Some(host) = &mut self.host {
            let held = host.turn(&mut self.prng, self.plan.hold_one_in);
            *self.tally.entry("holds of a worker").or_default() += held;
        }
        self.sleeper.wait(Some(base::MonoNs(until_ns)));
        while self.sleeper.next().is_some() {}
    }

    /// From now on nothing is cut, and polls see all; delays and small buffers stay.
    pub fn calm_network(&mut self) {
        let faults = driver::sim::Faults {
            reset_one_in: 0,
            blind_poll_one_in: 0,
            ..self.plan.faults
        };
        self.net.set_faults(faults);
    }

    /// Steps the wall clock.
    pub fn step_clock(&mut self, by_ms: i64) {
        self.net.step_wall_clock(by_ms * 1_000_000);
        let all = self.steps.last().map_or(0, |(_, all)| *all) + by_ms * 1_000_000;
        self.steps.push((self.now(), all));
    }

    /// The earliest and the latest that the wall clock showed between two times of the simulation,
    /// as nanoseconds from an arbitrary beginning.
    pub fn wall_between(&self, from_ns: u64, to_ns: u64) -> (i64, i64) {
        let mut found: Vec<i64> = Vec::new();
        for (at, (since, all)) in self.steps.iter().enumerate() {
            let end = self.steps.get(at + 1).map_or(u64::MAX, |(next, _)| *next);
            if *since <= to_ns && end >= from_ns {
                found.push(from_ns.max(*since) as i64 + all);
                found.push(to_ns.min(end) as i64 + all);
            }
        }
        let least = found.iter().min().copied().unwrap_or(0);
        (least, found.iter().max().copied().unwrap_or(0))
    }
}
