//! Experiment *single-connection*: one request at a time on few connections. What does a request
//! cost, and what does it wait for? `docs/laboratory.md` tells the story.

mod options;
mod section;
mod subject;
mod variants;

pub use options::{NAME, Options};

use crate::analysis::findings::judge;
use crate::lab::subject::{keys, start};
use crate::lab::{Error, Output, Setup, io};
use crate::load::{Amount, Spec};
use subject::Subject;

/// Connections that are measured.
const CONNECTIONS: &[usize] = &[1, 2, 5, 10, 50];
/// The same in the short form.
const CONNECTIONS_SHORT: &[usize] = &[1, 5, 50];
/// Requests per point.
const REQUESTS: u64 = 1_000_000;
/// The same in the short form.
const REQUESTS_SHORT: u64 = 3_000;
/// Keys of the load.
const KEYS: u64 = 100_000;

/// Servers that poll once per event, read before they poll, or wait in a read.
const MODELS: &[&str] = &[
    "model:event-loop",
    "model:event-loop,events=1",
    "model:event-loop,read=first",
    "model:thread-per-connection",
];

/// Measures each target on few connections, counts its calls per request, and finds out what a
/// request waits for.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    let started = start(&setup.targets, MODELS, progress)?;
    let wake_us =
        io::wake_us().map_err(|error| Error::Machine(format!("no pair of sockets: {error}")))?;
    let mut all: Vec<Subject> = started.iter().map(|one| Subject::new(one, wake_us)).collect();
    let load = spec(setup, options);
    let connections = setup.levels(&options.connections, CONNECTIONS, CONNECTIONS_SHORT);
    let mut progress = |what: &str| progress(&format!("single-connection: {what}"));
    for repetition in 1..=setup.repetitions.max(1) {
        for &connections in &connections {
            for (target, subject) in started.iter().zip(&mut all) {
                progress(&format!("{} x {connections} ({repetition})", target.name));
                subject.measure(target, &Spec { connections, ..load.clone() });
            }
        }
        if !options.no_variants {
            for (target, subject) in started.iter().zip(&mut all) {
                progress(&format!("variants of {} ({repetition})", target.name));
                variants::measure(target, &load, subject);
            }
        }
    }
    if !options.no_trace {
        for (target, subject) in started.iter().zip(&mut all) {
            progress(&format!("trace of {}", target.name));
            subject.trace(target, &connections, &load, setup.short);
        }
    }
    let findings = all.iter().flat_map(|subject| judge(&subject.evidence())).collect();
    let counted = all.iter().flat_map(|subject| subject.record.counted());
    Ok(Output::of(section::section(&all, findings), counted))
}

/// The load, without an address and for one connection.
fn spec(setup: &Setup, options: &Options) -> Spec {
    let requests = options.requests.unwrap_or(if setup.short { REQUESTS_SHORT } else { REQUESTS });
    Spec {
        connections: 1,
        amount: match (setup.seconds, options.requests) {
            (Some(seconds), None) => Amount::Seconds(seconds),
            _ => Amount::Requests(requests),
        },
        keys: keys(KEYS),
        ..Spec::default()
    }
}
