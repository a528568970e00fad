//! Experiment *cache*: a trace is played to servers with a limit of memory, and to caches in this
//! process. How many reads find their key? `docs/laboratory.md` tells the story.

mod case;
pub mod generate;
mod options;
mod play;
mod policy;
mod section;
mod simulate;
mod subject;
mod tally;
pub mod trace;

pub use options::{NAME, Options};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::analysis::findings::judge;
use crate::lab::subject::targets;
use crate::lab::{Error, Output, Setup};
use case::{Bound, Case, Run};
use options::TEXTS;
use play::Manner;
use section::{Outcome, Simulated};
use simulate::Simulator;
use subject::Subject;
use trace::Trace;

/// Servers that are played to at the same time, where the traces are paced.
const AT_ONCE: usize = 32;

/// One trace for one server.
struct Job<'a> {
    case: Case,
    number: usize,
    trace: &'a Trace,
}

/// Plays each trace to each target with each policy, and to the simulators.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    options.check(setup)?;
    let traces = options.traces(setup)?;
    let entries = options.entries(setup);
    let mut simulated: Vec<Simulated> = Vec::new();
    if options.memory.is_none() {
        for trace in &traces {
            progress(&format!("cache: simulating {}", trace.name));
            simulated.push(simulate(trace, trace.capacity(entries)));
        }
    }
    let cases = if options.simulate { Vec::new() } else { cases(setup, options, progress)? };
    let jobs: Vec<Job<'_>> = traces
        .iter()
        .enumerate()
        .flat_map(|(number, trace)| {
            cases.iter().map(move |case| Job { case: case.clone(), number, trace })
        })
        .collect();
    let (subjects, failed) = play_all(&jobs, setup, options, progress);
    let findings = subjects.iter().flat_map(|subject| judge(&subject.evidence())).collect();
    let outcome = Outcome {
        traces: &traces,
        simulated: &simulated,
        subjects: &subjects,
        entries: options.memory.is_none().then_some(entries),
        manner: manner_told(setup, options),
    };
    let section = section::section(&outcome, findings);
    let measurements: Vec<_> = subjects.iter().flat_map(Subject::measurements).collect();
    Ok(Output { failed, ..Output::of(section, measurements.iter()) })
}

fn simulate(trace: &Trace, capacity: u64) -> Simulated {
    Simulator::ALL.into_iter().map(|one| (one, one.play(trace, capacity))).collect()
}

/// Each target with each policy and each number of samples; one that runs already as it is.
fn cases(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Case>, Error> {
    let bound = match options.memory {
        Some(bytes) => Bound::Bytes(bytes),
        None => Bound::Entries(options.entries(setup)),
    };
    let mut cases = Vec::new();
    for target in targets(&setup.targets, &[], progress)? {
        for policy in options.policies() {
            for samples in options.samples() {
                cases.push(Case { target: target.clone(), policy: policy.clone(), samples, bound });
            }
        }
        if !target.is_started_here() {
            let settings = options.policies().len() * options.samples().len();
            cases.truncate(cases.len() + 1 - settings);
        }
    }
    Ok(cases)
}

/// Plays all jobs, several at once, each as often as there are repetitions. What failed is told
/// beside what did not.
fn play_all(
    jobs: &[Job<'_>],
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> (Vec<Subject>, Vec<String>) {
    let manner = Manner {
        connections: options.connections,
        pipeline: options.pipeline,
        seconds: options.seconds(setup),
        prefix: String::new(),
    };
    let at_once = options.at_once.unwrap_or(if options.unpaced { 1 } else { AT_ONCE });
    let turns = jobs.len() * setup.repetitions.max(1);
    let (next, (results, told)) = (AtomicUsize::new(0), channel());
    let mut runs: Vec<Vec<Run>> = jobs.iter().map(|_| Vec::new()).collect();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        for _ in 0..at_once.min(turns) {
            let (results, next, manner) = (results.clone(), &next, &manner);
            scope.spawn(move || work(jobs, turns, next, manner, &results));
        }
        drop(results);
        for (done, (at, result)) in told.into_iter().enumerate() {
            let Job { case, trace, .. } = &jobs[at];
            let what = format!("{} to {}, {}", trace.name, case.target.name(), case.policy);
            progress(&format!("cache: played {what} ({} of {turns})", done + 1));
            match result {
                Ok(run) => runs[at].push(run),
                Err(why) => failed.push(why),
            }
        }
    });
    let entries = options.entries(setup);
    let subject = |(job, runs): (&Job<'_>, Vec<Run>)| {
        let Job { case, number, trace } = job;
        let capacity = trace.capacity(entries);
        let is_there = !runs.is_empty();
        is_there.then(|| Subject::of(case.target.name(), *number, trace, runs, capacity))
    };
    (jobs.iter().zip(runs).filter_map(subject).collect(), failed)
}

/// Takes jobs until there are none.
fn work(
    jobs: &[Job<'_>],
    turns: usize,
    next: &AtomicUsize,
    manner: &Manner,
    results: &Sender<(usize, Result<Run, String>)>,
) {
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= turns {
            return;
        }
        let at = turn % jobs.len();
        let result = case::run(&jobs[at].case, jobs[at].trace, manner);
        // (Nobody listens only if the experiment has panicked.)
        let _ = results.send((at, result));
    }
}

/// How it was played, in words.
fn manner_told(setup: &Setup, options: &Options) -> String {
    let bound = match options.memory {
        Some(memory) => TEXTS.sentence("memory", &[("memory", &memory)]),
        None => TEXTS.sentence("entries", &[("entries", &options.entries(setup))]),
    };
    let pace = if options.unpaced {
        TEXTS.sentence("unpaced", &[])
    } else {
        TEXTS.sentence("paced", &[("seconds", &options.seconds(setup))])
    };
    TEXTS.sentence(
        "manner",
        &[
            ("connections", &options.connections),
            ("pipeline", &options.pipeline),
            ("bound", &bound),
            ("pace", &pace),
        ],
    )
}
