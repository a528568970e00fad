//! What is measured of a target, and what was seen.

use crate::analysis::findings::{STALL_US, Stranding};
use crate::lab::Error;
use crate::lab::io::{self, Account, Calls, Memory, Tracer};
use crate::lab::measure::{self, Sight};
use crate::lab::subject;
use crate::lab::target::Target;
use crate::load::{self, Address, Amount, Spec};
use crate::result::Measurement;

use super::probe::{self, Batches};

/// Longest look at single batches, seconds.
const BATCHES_S: f64 = 1.0;
/// The traced run, seconds: tracing slows the server, and its figures are no measurement.
const TRACED_S: f64 = 0.3;

/// All that was seen of one target.
#[derive(Debug, Default)]
pub struct Seen {
    /// The target.
    pub name: String,
    /// Did replies stay behind?
    pub stranding: Option<Stranding>,
    /// Single batches on one connection.
    pub batches: Option<Batches>,
    /// The load, once per repetition.
    pub loads: Vec<Measurement>,
    /// The same with acknowledgements sent at once, where batches were slow enough to ask.
    pub quick: Vec<Measurement>,
    /// What the server counted under the loads.
    pub account: Option<Account>,
    /// What a trace counted under a load of its own.
    pub traced: Option<Account>,
    /// Bytes that the server's memory grew by per request, once per repetition.
    pub growth: Vec<f64>,
    /// CPU share of the server's busiest thread, once per repetition.
    pub busiest: Vec<f64>,
    /// The server's work cannot be told from the client's.
    pub mixed: bool,
    /// What could not be seen, in sentences.
    pub unseen: Vec<String>,
    /// Why a load does not count.
    pub faults: Vec<String>,
}

impl Seen {
    /// Nothing yet.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The load of median throughput.
    pub fn median(&self) -> Option<&Measurement> {
        middle(&self.loads)
    }

    /// The same with acknowledgements sent at once.
    pub fn median_quick(&self) -> Option<&Measurement> {
        middle(&self.quick)
    }

    /// What is known of the server's calls: its own account, else a trace.
    pub fn counted(&self) -> Option<&Account> {
        self.account.as_ref().or(self.traced.as_ref())
    }

    /// Did replies stay behind?
    pub fn is_stranded(&self) -> bool {
        self.stranding.as_ref().is_some_and(|seen| seen.received < seen.asked)
    }

    /// All measurements.
    pub fn into_measurements(self) -> impl Iterator<Item = Measurement> {
        self.loads.into_iter().chain(self.quick)
    }

    fn unseen(&mut self, what: String) {
        if !self.unseen.contains(&what) {
            self.unseen.push(what);
        }
    }
}

fn middle(all: &[Measurement]) -> Option<&Measurement> {
    let mut ordered: Vec<&Measurement> = all.iter().collect();
    ordered.sort_by(|a, b| a.throughput.total_cmp(&b.throughput));
    ordered.get(ordered.len() / 2).copied()
}

/// Starts a target afresh and measures it once; what need be seen only once is looked at if it is
/// the `first` time.
pub fn measure(
    target: &Target,
    load: &Spec,
    short: bool,
    first: bool,
    seen: &mut Seen,
) -> Result<(), Error> {
    let started = target.start()?;
    let Some(address) = io::ways(&started).into_iter().next() else { return Ok(()) };
    let pid = subject::process(&started);
    seen.mixed = subject::is_own_process(&started);
    if pid.is_none() {
        let why = "Its process cannot be seen: no memory, no CPU and no trace of it.";
        seen.unseen(why.to_owned());
    }
    let spec = Spec {
        target: seen.name.clone(),
        address: address.clone(),
        server_pid: pid,
        ..load.clone()
    };
    if first {
        seen.stranding = probe::stranding(&address, spec.pipeline);
        if seen.stranding.is_none() {
            seen.unseen("It answers SET or PING with an error, or not at all.".to_owned());
        }
    }
    if seen.is_stranded() {
        seen.unseen("Batches in lock-step would wait for ever: no load was put on.".to_owned());
        return Ok(());
    }
    if first {
        let seconds = seconds(&spec).min(BATCHES_S);
        seen.batches = probe::batches(&address, spec.pipeline, seconds);
    }
    put_on(&spec, &started.address(), pid, seen);
    if first && (seen.account.is_none() || !short) {
        trace(&spec, pid, seen);
    }
    Ok(())
}

/// Puts the load on while the server's account, memory and CPU are watched.
fn put_on(spec: &Spec, address: &client::Address, pid: Option<u32>, seen: &mut Seen) {
    let account = io::read(address);
    let memory: Memory = io::memory(address, pid);
    let Some(watched) = run(spec, pid, seen) else { return };
    let one = watched.measurement;
    seen.busiest.extend(watched.threads.map(|threads| threads.busiest));
    if let Some((before, after)) = account.zip(io::read(address)) {
        seen.account.get_or_insert_default().add(&after.since(&before));
    }
    let growth = io::memory(address, pid).growth_per_request(&memory, one.requests);
    seen.growth.extend(growth);
    let is_slow = one.latency.p99_us >= STALL_US.0;
    seen.loads.push(one);
    if is_slow && matches!(spec.address, Address::Tcp(_)) {
        let quick = Spec { quick_ack: true, ..spec.clone() };
        let quick = run(&quick, pid, seen);
        seen.quick.extend(quick.map(|watched| watched.measurement));
    }
}

/// Runs a load; what fails does not count.
fn run(spec: &Spec, pid: Option<u32>, seen: &mut Seen) -> Option<measure::Seen> {
    let sight = Sight { pid, mixed: seen.mixed };
    let fault = match measure::run(spec, sight, &mut |_| false) {
        Ok(watched) => match watched.fault() {
            None => return Some(watched),
            Some(fault) => format!("Failures ({fault}), so the point does not count."),
        },
        Err(error) => format!("The load could not be put on: {error}."),
    };
    seen.faults.push(fault);
    None
}

/// A short run under trace.
fn trace(spec: &Spec, pid: Option<u32>, seen: &mut Seen) {
    let Some(pid) = pid else { return };
    let traced = Tracer::attach(pid, Calls::All).and_then(|tracer| {
        let amount = Amount::Seconds(TRACED_S.min(seconds(spec)));
        let load = load::run(&Spec { amount, ..spec.clone() });
        let trace = tracer.finish()?;
        let load = load.map_err(|error| format!("{error}."))?;
        Ok(trace.account(load.requests, true))
    });
    match traced {
        Ok(account) => seen.traced = Some(account),
        Err(why) => seen.unseen(format!("No trace: {why}")),
    }
}

fn seconds(spec: &Spec) -> f64 {
    match spec.amount {
        Amount::Seconds(seconds) => seconds,
        Amount::Requests(_) => BATCHES_S,
    }
}
