//! What is measured of a target, and what was seen.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use crate::lab::io::{self, Account, Calls, Tracer};
use crate::lab::measure::fault;
use crate::lab::subject;
use crate::lab::target::Started;
use crate::load::{self, Address, Amount, Spec};
use crate::result::Measurement;

use super::variants::Variant;

/// A run under trace, seconds: tracing slows the server, and its figures are no measurement.
const TRACED_S: f64 = 0.5;
/// The same in the short form.
const TRACED_SHORT_S: f64 = 0.2;

/// One point: a way to the target and connections.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// The loads, one per repetition.
    pub loads: Vec<Measurement>,
    /// What the server counted under them.
    pub account: Option<Account>,
    /// What a trace counted under a load of its own.
    pub traced: Option<Account>,
}

/// Which way a point went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// TCP.
    Tcp,
    /// A unix socket.
    Unix,
}

/// All that was seen of one target.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The target.
    pub name: String,
    /// The points, by way and connections.
    pub points: BTreeMap<(Way, usize), Point>,
    /// The variants on one connection, one load per repetition.
    pub variants: BTreeMap<Variant, Vec<Measurement>>,
    /// What one wake-up costs on this machine, microseconds.
    pub wake_us: f64,
    /// Cores of the machine.
    pub cores: usize,
    /// The server's work cannot be told from the client's.
    pub mixed: bool,
    /// What could not be seen, in sentences.
    pub unseen: Vec<String>,
    /// Why a load does not count.
    pub faults: Vec<String>,
}

impl Way {
    /// The way of an address.
    pub fn of(address: &Address) -> Self {
        match address {
            Address::Tcp(_) => Self::Tcp,
            Address::Unix(_) => Self::Unix,
        }
    }

    /// In tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Unix => "unix",
        }
    }
}

impl Point {
    /// What is known of the server's calls: its own account, else a trace.
    pub fn best(&self) -> Option<&Account> {
        self.account.as_ref().or(self.traced.as_ref())
    }
}

impl Seen {
    /// Nothing yet.
    pub fn new(target: &Started, wake_us: f64) -> Self {
        let pid = subject::process(target);
        let mut seen = Self {
            name: target.name.clone(),
            points: BTreeMap::new(),
            variants: BTreeMap::new(),
            wake_us,
            cores: crate::host::machine().cores,
            mixed: subject::is_own_process(target),
            unseen: Vec::new(),
            faults: Vec::new(),
        };
        if pid.is_none() {
            seen.unseen("Its process cannot be seen: no CPU and no trace of it.".to_owned());
        }
        seen
    }

    /// The way that most is said of: TCP where there is that.
    pub fn main_way(&self) -> Option<Way> {
        self.points.keys().map(|(way, _)| *way).min()
    }

    /// All measurements.
    pub fn into_measurements(self) -> impl Iterator<Item = Measurement> {
        let points = self.points.into_values().flat_map(|point| point.loads);
        points.chain(self.variants.into_values().flatten())
    }

    /// Runs a load; what fails does not count.
    pub fn run(&mut self, spec: &Spec) -> Option<Measurement> {
        self.run_for(spec, f64::INFINITY)
    }

    /// The same, but for so many seconds at most.
    pub fn run_for(&mut self, spec: &Spec, seconds: f64) -> Option<Measurement> {
        let began = Instant::now();
        let measured = load::run_until(spec, &mut |_| {
            let enough = began.elapsed().as_secs_f64() >= seconds;
            if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let fault = match measured {
            Ok(mut one) if one.failures.is_empty() => {
                if self.mixed {
                    one.server = None;
                }
                return Some(one);
            }
            Ok(one) => {
                let fault = fault(&one).unwrap_or_default();
                format!("Failures ({fault}), so the point does not count.")
            }
            Err(error) => format!("The load could not be put on: {error}."),
        };
        self.faults.push(fault);
        None
    }

    fn unseen(&mut self, what: String) {
        if !self.unseen.contains(&what) {
            self.unseen.push(what);
        }
    }
}

/// Measures a target on so many connections, over each way that there is.
pub fn measure(target: &Started, load: &Spec, seen: &mut Seen) {
    for address in io::ways(target) {
        let way = Way::of(&address);
        let spec = Spec {
            name: format!("set {}", way.word()),
            target: seen.name.clone(),
            address,
            server_pid: subject::process(target),
            ..load.clone()
        };
        let before = io::read(&target.address());
        let Some(one) = seen.run(&spec) else { continue };
        let after = io::read(&target.address());
        let point = seen.points.entry((way, load.connections)).or_default();
        point.loads.push(one);
        if let Some((before, after)) = before.zip(after) {
            point.account.get_or_insert_default().add(&after.since(&before));
        }
    }
}

/// Runs under trace, for whoever does not tell how long its polls take. Short: only where nothing
/// is told at all.
pub fn trace(target: &Started, connections: &[usize], load: &Spec, short: bool, seen: &mut Seen) {
    let Some(pid) = subject::process(target) else { return };
    for address in io::ways(target).into_iter().take(1) {
        for &connections in connections {
            let Some(point) = seen.points.get(&(Way::of(&address), connections)) else { continue };
            let told = point.account.as_ref();
            if told.is_some_and(|account| short || !account.poll_ns.is_empty()) {
                continue;
            }
            let seconds = if short { TRACED_SHORT_S } else { TRACED_S };
            let amount = Amount::Seconds(seconds);
            let spec = Spec { address: address.clone(), connections, amount, ..load.clone() };
            match traced(pid, &spec) {
                Ok(account) => {
                    let point = seen.points.entry((Way::of(&address), connections)).or_default();
                    point.traced = Some(account);
                }
                Err(why) => return seen.unseen(format!("No trace: {why}")),
            }
        }
    }
}

fn traced(pid: u32, spec: &Spec) -> Result<Account, String> {
    let tracer = Tracer::attach(pid, Calls::Io)?;
    let load = load::run(spec);
    let trace = tracer.finish()?;
    let load = load.map_err(|error| format!("{error}."))?;
    Ok(trace.account(load.requests, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::target::Target;
    use crate::models::{Model, Options, serve};

    /// On one core, beside other programs, the client that does not sleep kept the server from the
    /// core: its 2,000 requests took minutes.
    #[test]
    fn a_load_ends_when_its_time_is_over_and_counts() {
        let running = serve(Model::EventLoop, &Options::default()).expect("a free port");
        let target = Target::parse(&running.address.to_string()).expect("HOST:PORT");
        let mut seen = Seen::new(&target.start().expect("it runs"), 20.0);
        let amount = Amount::Requests(u64::MAX);
        let address = Address::Tcp(running.address);
        let spec = Spec { address, connections: 1, amount, sample_s: 0.05, ..Spec::default() };
        let one = seen.run_for(&spec, 0.2).expect("no request fails");
        assert!(one.requests > 0 && one.requests < u64::MAX, "{}", one.requests);
        assert_eq!(seen.faults, Vec::<String>::new());
    }
}
