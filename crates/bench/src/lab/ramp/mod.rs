//! *Ramp*: SET and GET with more and more workers, each level until throughput has settled; the
//! client's own CPU and load beside it. And which ways to drive a server hold back when it is slow.
//! `docs/laboratory.md` tells the story.

mod drivers;
mod options;
mod section;
mod subject;
mod wakes;

pub use options::{NAME, Options};

use super::subject::start;
use super::{Error, Output, Setup};
use subject::Subject;

/// The design that the experiment looks for; the table in this process comes beside it.
const MODELS: &[&str] = &["model:single-writer"];

/// Runs the experiment.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let repetitions = setup.repetitions.max(1);
    let started = start(&setup.targets, MODELS, progress)?;
    let mut subjects: Vec<Subject> = started.into_iter().map(Subject::server).collect();
    if !options.no_table {
        subjects.push(Subject::table());
    }
    for one in &mut subjects {
        one.write_keys(&plan)?;
        one.observe_wakes();
    }
    for repetition in 1..=repetitions {
        for &workers in &plan.workers {
            progress(&format!("{workers} workers ({repetition} of {repetitions})"));
            for one in &mut subjects {
                one.level(workers, &plan);
            }
        }
        for one in &mut subjects {
            one.ping(plan.most(), &plan);
        }
    }
    let mut driven = Vec::new();
    if !options.no_drivers {
        for one in &subjects {
            progress(&format!("{}: who holds back", one.name()));
            driven.extend(drivers::drive(one, &plan));
        }
    }
    let drives = driven.iter().filter_map(|one| Some(&one.point.valid().ok()?.measurement));
    let measured = subjects.iter().flat_map(|one| one.record.measurements()).chain(drives);
    let files = section::files(&subjects, &plan);
    if let Some(path) = &options.ramp_csv {
        let text: String = files.iter().flat_map(|(name, text)| ["# ", name, "\n", text]).collect();
        std::fs::write(path, text)
            .map_err(|error| Error::Machine(format!("cannot write {}: {error}", path.display())))?;
    }
    let output = Output::of(section::section(&subjects, &driven, &plan), measured);
    Ok(Output { files, ..output })
}
