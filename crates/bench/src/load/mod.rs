//! The load generator: requests of any kind, at a server over RESP or at a table in this process,
//! in a closed or an open loop, with every reply counted and, if wanted, checked.
//!
//! A thread owns its connections and runs one event loop over them. A request costs a copy of
//! encoded bytes and its digits; replies are found by their lengths; the clock is read once per
//! receive, and latency is recorded once per batch and receive. See `docs/load.md`.

mod check;
mod conn;
mod connect;
mod error;
mod expect;
mod meaning;
mod outcome;
mod plan;
mod populate;
mod record;
mod sampler;
mod scan;
mod schedule;
mod source;
pub(crate) mod spec;
mod table;
mod task;
mod template;
mod values;
mod worker;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

pub use error::Error;
pub use sampler::{Zipf, unit};
pub use spec::{
    Address, Amount, Arrivals, CONNECTIONS_MAX, Command, Driver, Keys, Nil, Pacing, Pattern,
    Populate, Spec, UNBOUNDED_BYTES_MAX,
};

use conn::{Conn, Shared};
pub(crate) use connect::Stream;
use plan::Plan;
pub(crate) use record::summary;
use record::{Gathered, Interval, Recorder, now_ns};
use schedule::Schedule;
use source::{Author, Owned, Source};
use table::{Caller, Server};
use task::{Outcome, Task};
use worker::Worker;

use crate::host::{self, Usage};
use crate::models::Table;
use crate::result::{Measurement, Sample};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// So many connections are open.
    Connected(usize),
    /// So many keys are written beforehand, of how many.
    Populated(u64, u64),
    /// The load runs: which share of it is done, and the last sample.
    Running(f64, Sample),
}

/// Longest wait for a sample before the progress is reported again.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a load. A load that ran is a measurement even if requests failed: look at its failures.
pub fn run(spec: &Spec) -> Result<Measurement, Error> {
    run_until(spec, &mut |_| ControlFlow::Continue(()))
}

/// Runs a load and tells how far it is, a few times a second. It ends early when `progress` says so
/// while the load runs: no further request is made, and those under way are waited for.
pub fn run_until(
    spec: &Spec,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measurement, Error> {
    let plan = Plan::new(spec)?;
    let local = spec.driver == Driver::InProcess;
    let (mut table, mut streams) = (None, Vec::new());
    if local {
        table::check(spec)?;
        table = Some(table::filled(&plan));
    } else {
        if plan.populate {
            let total = plan.keys;
            populate::populate(&plan, |n| {
                let _ = progress(Progress::Populated(n, total));
            })?;
        }
        driver::process::raise_file_limit(spec.connections as u32);
        for made in 0..spec.connections {
            streams.push(Stream::open(spec, made)?);
        }
        let _ = progress(Progress::Connected(streams.len()));
    }
    let pid = match spec.server_pid {
        None if !local => host::listening_pid(&spec.address),
        given => given,
    };
    let threads = if local { spec.connections } else { spec.threads.min(spec.connections) };
    let stop = AtomicBool::new(false);
    let (to, from) = channel();
    let usage = (spec.warm_up_s <= 0.0).then(|| Usage::start(pid));
    let started = now_ns();
    let run = Run { plan: &plan, table: table.as_ref(), threads, started, stop: &stop };
    let mut streams = streams.into_iter();
    let mut jobs = Vec::new();
    for thread in 0..threads {
        jobs.push(run.job(thread, &mut streams, to.clone())?);
    }
    drop(to);
    let (outcomes, gathered, usage) = std::thread::scope(|scope| {
        let handles: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || job.run())).collect();
        let (gathered, usage) = run.watch(&from, usage, pid, progress);
        let outcomes: Vec<Outcome> =
            handles.into_iter().map(|h| h.join().expect("a thread of the load ends")).collect();
        (outcomes, gathered, usage)
    });
    let seconds = run.seconds(&outcomes);
    Ok(outcome::measurement(&plan, outcomes, gathered, usage, seconds))
}

/// The first `count` requests that a single connection of this load would send, encoded.
pub fn requests(spec: &Spec, count: usize) -> Result<Vec<Vec<u8>>, Error> {
    let plan = Plan::new(spec)?;
    let mut source = Source::new(&plan, spec.seed, 0, 1);
    let mut author = Author::new(&plan, None, None, 0, 1);
    let request = || {
        let mut out = Vec::new();
        author.write(&plan, &mut source, &mut out, None);
        out
    };
    Ok(std::iter::repeat_with(request).take(count).collect())
}

/// What one thread runs.
enum Job<'a> {
    Network(Box<Worker<'a>>),
    Local(Box<Caller<'a>>),
}

impl Job<'_> {
    fn run(self) -> Outcome {
        match self {
            Self::Network(worker) => worker.run(),
            Self::Local(caller) => caller.run(),
        }
    }
}

/// A run and its threads.
struct Run<'a> {
    plan: &'a Plan,
    table: Option<&'a Arc<Table>>,
    threads: usize,
    started: u64,
    stop: &'a AtomicBool,
}

impl<'a> Run<'a> {
    fn measured_from(&self) -> u64 {
        self.started + ns(self.plan.spec.warm_up_s)
    }

    /// The part of thread number `thread`; takes its connections.
    fn job(
        &self,
        thread: usize,
        streams: &mut impl Iterator<Item = Stream>,
        to: Sender<Interval>,
    ) -> Result<Job<'a>, Error> {
        let spec = &self.plan.spec;
        let cut = |of: u128, thread: usize| (of * thread as u128 / self.threads as u128) as u64;
        let first = cut(spec.connections as u128, thread) as usize;
        let behind = cut(spec.connections as u128, thread + 1) as usize;
        let mut source = Source::new(self.plan, spec.seed, thread, self.threads);
        let schedule = match spec.pacing {
            Pacing::Closed => None,
            Pacing::Open { rate, arrivals } => {
                let prng = source.prng().fork();
                let share = (thread, self.threads);
                Some(Schedule::new(rate, arrivals, prng, self.started, share))
            }
        };
        let amount = match spec.amount {
            Amount::Requests(n) => {
                Amount::Requests(cut(n.into(), thread + 1) - cut(n.into(), thread))
            }
            seconds @ Amount::Seconds(_) => seconds,
        };
        let task = Task {
            started: self.started,
            measured_from: self.measured_from(),
            amount,
            spec,
            schedule,
            stop: self.stop,
        };
        let recorder = Recorder::new(self.started, ns(spec.sample_s), to);
        let mut shared = Shared::new(self.plan, source, recorder);
        shared.quick_ack = spec.quick_ack && matches!(spec.address, Address::Tcp(_));
        if let Some(table) = self.table {
            let (author, batch) = (self.author(thread), spec.pipeline as u64);
            let caller = Caller { task, shared, author, batch, server: Server::new(table) };
            return Ok(Job::Local(Box::new(caller)));
        }
        let conns = (first..behind)
            .zip(streams)
            .map(|(at, stream)| Conn::new(stream, self.author(at), self.window(at)))
            .collect();
        Ok(Job::Network(Box::new(Worker::new(task, shared, conns)?)))
    }

    /// What makes the requests of connection number `at`.
    fn author(&self, at: usize) -> Author {
        let (spec, plan) = (&self.plan.spec, self.plan);
        let own = spec.distinct_client_seed.then(|| {
            // Another seed than that of the threads' sequences.
            Source::new(plan, spec.seed.wrapping_add(0x5eed), at, spec.connections)
        });
        let owned = plan.spec.verify.then(|| Owned::new(plan, at, spec.connections, plan.populate));
        // Connections begin at different places of the cycle, so that they send different commands.
        Author::new(plan, own, owned, at, spec.connections)
    }

    /// How many requests connection number `at` may have under way.
    fn window(&self, at: usize) -> u64 {
        let connections = self.plan.spec.connections;
        match self.plan.spec.driver {
            Driver::Multiplexed { callers } => {
                let cut = |at: usize| callers * at / connections;
                (cut(at + 1) - cut(at)) as u64
            }
            Driver::Unbounded => u64::MAX,
            _ => self.plan.spec.pipeline as u64,
        }
    }

    /// Gathers what the threads record until the last one has ended.
    fn watch(
        &self,
        from: &Receiver<Interval>,
        mut usage: Option<Usage>,
        pid: Option<u32>,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> (Gathered, Option<Usage>) {
        let mut gathered = Gathered::new(self.plan.spec.sample_s);
        loop {
            let now = now_ns();
            let warm_up = Duration::from_nanos(self.measured_from().saturating_sub(now));
            if usage.is_none() && warm_up.is_zero() {
                usage = Some(Usage::start(pid));
            }
            let wait = if usage.is_none() { warm_up.min(LOOK) } else { LOOK };
            match from.recv_timeout(wait) {
                Ok(interval) => gathered.add(&interval),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return (gathered, usage),
            }
            let at_s = now.saturating_sub(self.measured_from()) as f64 / 1e9;
            // Threads hand a sample over at their next turn: half a sample later all have.
            let closed = (at_s / self.plan.spec.sample_s - 0.5).max(0.0) as u64;
            if let Some(sample) = gathered.close(closed) {
                let share = match self.plan.spec.amount {
                    Amount::Seconds(seconds) => at_s / seconds,
                    Amount::Requests(requests) => gathered.count() as f64 / requests as f64,
                };
                if progress(Progress::Running(share.min(1.0), sample)).is_break() {
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// From the beginning of the measurement to the last reply.
    fn seconds(&self, outcomes: &[Outcome]) -> f64 {
        let last = outcomes.iter().map(|one| one.last_reply).max().unwrap_or(0);
        let until = if last > self.measured_from() { last } else { now_ns() };
        (until.saturating_sub(self.measured_from()) as f64 / 1e9).max(1e-9)
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
