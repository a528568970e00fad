//! *Concurrency*: SET at 1 to 10,000 connections. Who is served at all, what a further connection
//! brings, where the peak is, and what becomes of connections that come while nobody accepts.
//! `docs/laboratory.md` tells the story.

mod admission;
mod backlog;
mod connects;
mod options;
mod section;
mod subject;

pub use options::{NAME, Options};

use super::subject::{address, spec, start};
use super::{Error, Output, Setup};
use options::{LOAD, Plan};
use subject::Subject;

/// Each design of a server: how it serves several connections.
const MODELS: &[&str] = &[
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

/// Connections at once, at a server that is left alone: fewer than the customary queue of 511
/// holds.
const BURST: usize = 256;

/// Runs the experiment.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let started = start(&setup.targets, MODELS, progress)?;
    let mut subjects: Vec<Subject> = started.into_iter().map(Subject::new).collect();
    for one in &mut subjects {
        progress(&format!("{}: who is served", one.name()));
        admit(one, &plan)?;
    }
    let mut at = 0;
    let steps = setup.repetitions.max(1) * plan.levels.len();
    for _ in 0..setup.repetitions.max(1) {
        for &connections in &plan.levels {
            at += 1;
            progress(&format!("SET at {connections} connections ({at} of {steps})"));
            for one in &mut subjects {
                load(one, connections, &plan);
            }
        }
    }
    let mut rows = Vec::new();
    for &length in &plan.backlogs {
        progress(&format!("listen queue of {length}, acceptor stalled"));
        rows.push(backlog::model(length, plan.burst_stalled, plan.wait)?);
    }
    if !setup.short && !plan.backlogs.is_empty() {
        for one in &subjects {
            progress(&format!("{}: listen queue, stalled", one.name()));
            rows.extend(backlog::stalled(&one.started, plan.burst_stalled, plan.wait)?);
        }
    }
    let section = section::section(&subjects, &rows, &plan);
    Ok(Output::of(section, subjects.iter().flat_map(|one| one.record.measurements())))
}

/// Who is served, and how connecting goes.
fn admit(one: &mut Subject, plan: &Plan) -> Result<(), Error> {
    let most = *plan.levels.last().expect("a plan has levels");
    one.admission = admission::probe(&address(&one.started), most.max(2), plan.quiet);
    let failed = |error| Error::Machine(format!("{}: {error}", one.name()));
    let seen = connects::measure(&one.started, BURST, plan.wait).map_err(failed)?;
    if let Some((connects, counter)) = seen {
        (one.connects, one.counter) = (Some(connects), counter);
    }
    Ok(())
}

/// Measures one level. Nothing is measured above the first level at which the server leaves
/// connections waiting.
fn load(one: &mut Subject, connections: usize, plan: &Plan) {
    if one.is_beyond(connections) {
        return;
    }
    let words = ["SET", "__key__", "__data__"];
    let spec = crate::load::Spec {
        timeout_s: plan.quiet.as_secs_f64().max(1.0),
        sample_s: (plan.seconds / 8.0).max(0.02),
        ..plan.data.of(spec(&one.started, &words, connections, plan.seconds))
    };
    one.record.run(LOAD, &spec);
}
