//! *Ramp*: SET and GET with more and more workers, each level until throughput has settled; the
//! client's own CPU and load beside it. And which ways to drive a server hold back when it is slow.
//! `docs/laboratory.md` tells the story.

mod drivers;
mod levels;
mod options;
mod tell;
mod verdict;
mod wakes;

pub use options::Options;

use levels::Subject;

use super::{Error, Setup, Told, subject};

/// Who is measured if nobody was named; the table in this process comes beside them.
pub const CHOICE: &[&str] =
    &["sheafdb", "redis-server", "valkey-server", "pogocache", "model:single-writer"];

/// The experiment's name.
pub const NAME: &str = "ramp";

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Workers, ascending.
    pub workers: Vec<usize>,
    /// Longest time of a level, seconds.
    pub seconds: f64,
    /// Keys.
    pub keys: u64,
    /// Bytes of a value.
    pub data: usize,
    /// Threads of the load generator.
    pub threads: usize,
    /// Measure the table in this process too.
    pub table: bool,
    /// Drive each server in each way.
    pub drivers: bool,
    /// Repetitions of each level.
    pub repetitions: usize,
}

/// Runs the experiment.
pub fn run(setup: &Setup, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let started = subject::start(&setup.targets, CHOICE, say)?;
    let mut subjects: Vec<Subject> = started.into_iter().map(Subject::server).collect();
    if plan.table {
        subjects.push(Subject::table());
    }
    for one in &mut subjects {
        one.write_keys(&plan)?;
        one.look_at_wakes();
    }
    let most = *plan.workers.last().expect("a plan has workers");
    for repetition in 1..=plan.repetitions {
        for &workers in &plan.workers {
            say(&format!("{workers} workers ({repetition} of {})", plan.repetitions));
            for one in &mut subjects {
                one.level(workers, &plan);
            }
        }
        for one in &mut subjects {
            one.ping(most, &plan);
        }
    }
    let mut driven = Vec::new();
    if plan.drivers {
        for one in &subjects {
            say(&format!("{}: who holds back", one.name));
            driven.extend(drivers::drive(one, &plan));
        }
    }
    let told = tell::told(&subjects, &driven, &plan);
    if let Some(path) = &options.ramp_csv {
        let text = told
            .files
            .iter()
            .fold(String::new(), |all, (name, text)| all + &format!("# {name}\n{text}"));
        std::fs::write(path, text)
            .map_err(|error| Error::Machine(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(told)
}
