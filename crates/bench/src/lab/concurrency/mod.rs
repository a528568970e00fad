//! *Concurrency*: SET at 1 to 10,000 connections. Who is served at all, what a further connection
//! brings, where the peak is, and what becomes of connections that come while nobody accepts.
//! `docs/laboratory.md` tells the story.

mod admission;
mod backlog;
mod connects;
mod options;
mod seen;
mod tell;

use std::time::Duration;

pub use options::Options;
use seen::Subject;

use super::target::Started;
use super::{Error, Setup, Told, subject};

/// Who is measured if nobody was named.
pub const CHOICE: &[&str] = &[
    "sheafdb",
    "redis-server",
    "valkey-server",
    "pogocache",
    "model:sequential",
    "model:thread-per-connection",
    "model:pool,size=1",
    "model:pool,size=4",
    "model:pool,size=16",
    "model:pool,size=64",
    "model:pool,size=256",
    "model:event-loop",
    "model:event-loops",
];

/// The experiment's name.
pub const NAME: &str = "concurrency";

/// The name of its only load.
const LOAD: &str = "set";

/// Runs the experiment.
pub fn run(setup: &Setup, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let started = subject::start(&setup.targets, CHOICE, say)?;
    let mut subjects: Vec<Subject> = started.into_iter().map(Subject::new).collect();
    for one in &mut subjects {
        say(&format!("{}: who is served", one.name()));
        admit(one, &plan)?;
    }
    let mut at = 0;
    let steps = setup.repetitions.max(1) * plan.levels.len();
    for _ in 0..setup.repetitions.max(1) {
        for &connections in &plan.levels {
            at += 1;
            say(&format!("SET at {connections} connections ({at} of {steps})"));
            for one in &mut subjects {
                // Beyond the first level that some connections are not served at, there is nothing
                // to measure.
                if !one.is_beyond(connections) {
                    let spec = spec(&one.started, connections, &plan);
                    one.record.run(LOAD, &spec, &mut |_| false);
                }
            }
        }
    }
    let mut rows = Vec::new();
    for &length in &plan.backlogs {
        say(&format!("listen queue of {length}, acceptor stalled"));
        rows.push(backlog::model(length, plan.burst_stalled, plan.wait)?);
    }
    if !setup.short && !plan.backlogs.is_empty() {
        for one in &subjects {
            say(&format!("{}: listen queue, stalled", one.name()));
            rows.extend(backlog::stalled(&one.started, plan.burst_stalled, plan.wait)?);
        }
    }
    Ok(tell::told(&subjects, &rows, &plan))
}

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections, ascending.
    pub levels: Vec<usize>,
    /// Seconds per level.
    pub seconds: f64,
    /// Keys.
    pub keys: u64,
    /// Bytes of a value.
    pub data: usize,
    /// Threads of the load generator.
    pub threads: usize,
    /// Without any answer for so long, nobody else will be answered.
    pub quiet: Duration,
    /// Connections at once, at a server that is left alone: fewer than the customary queue of 511
    /// holds.
    pub burst: usize,
    /// Lengths of the listen queue of the stalled model.
    pub backlogs: Vec<u32>,
    /// Connections at once while it is stalled.
    pub burst_stalled: usize,
    /// How long connections are waited for.
    pub wait: Duration,
}

/// Who is served, and how connecting goes.
fn admit(one: &mut Subject, plan: &Plan) -> Result<(), Error> {
    let most = *plan.levels.last().expect("a plan has levels");
    let address = subject::address(&one.started);
    one.admission = admission::probe(&address, most.max(2), plan.quiet);
    let failed = |error| Error::Machine(format!("{}: {error}", one.name()));
    if let Some((connects, counter)) =
        connects::measure(&one.started, plan.burst, plan.wait).map_err(failed)?
    {
        (one.connects, one.counter) = (Some(connects), counter);
    }
    Ok(())
}

fn spec(target: &Started, connections: usize, plan: &Plan) -> crate::load::Spec {
    crate::load::Spec {
        threads: plan.threads,
        keys: subject::keys(plan.keys),
        data: (plan.data, plan.data),
        timeout_s: plan.quiet.as_secs_f64().max(1.0),
        sample_s: (plan.seconds / 8.0).max(0.02),
        ..subject::spec(target, &["SET", "__key__", "__data__"], connections, plan.seconds)
    }
}
