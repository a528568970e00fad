//! Experiment *pipelining*: batches of requests on every connection. When do the replies leave, and
//! what does that cost? `docs/laboratory.md` tells the story.

mod options;
mod probe;
mod section;
mod subject;

pub use options::{NAME, Options};

use crate::analysis::findings::judge;
use crate::lab::subject::{keys, targets};
use crate::lab::{Error, Output, Setup};
use crate::load::{Amount, Command, Nil, Populate, Spec};
use crate::result::{Finding, FindingKind};
use options::TEXTS;
use subject::Subject;

/// Seconds per point.
const SECONDS: f64 = 5.0;
/// Seconds per point of the short form: ten stalls of 40 ms fit.
const SECONDS_SHORT: f64 = 0.4;
/// Keys of the short form.
const KEYS_SHORT: u64 = 100_000;

/// Each way to flush in both architectures, with Nagle's algorithm and without.
const MODELS: &[&str] = &[
    "model:event-loop,flush=idle",
    "model:event-loop,flush=idle,nodelay=no",
    "model:event-loop,flush=size",
    "model:event-loop,flush=size,nodelay=no",
    "model:event-loop,flush=reply",
    "model:event-loop,flush=reply,nodelay=no",
    "model:event-loop,flush=strand",
    "model:thread-per-connection,flush=idle",
    "model:thread-per-connection,flush=idle,nodelay=no",
    "model:thread-per-connection,flush=size",
    "model:thread-per-connection,flush=size,nodelay=no",
    "model:thread-per-connection,flush=reply",
    "model:thread-per-connection,flush=reply,nodelay=no",
    "model:thread-per-connection,flush=strand",
];

/// The same for the short form: one of each finding.
const MODELS_SHORT: &[&str] = &[
    "model:event-loop,flush=idle",
    "model:event-loop,flush=reply",
    "model:thread-per-connection,flush=size,nodelay=no",
    "model:thread-per-connection,flush=reply,nodelay=no",
    "model:event-loop,flush=strand",
];

/// Measures each target in batches, looks for replies that stay behind and for batches that stall.
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    let models = if setup.short { MODELS_SHORT } else { MODELS };
    let targets = targets(&setup.targets, models, progress)?;
    let load = spec(setup, options);
    let mut all: Vec<Subject> = targets.iter().map(|target| Subject::new(target.name())).collect();
    for repetition in 0..setup.repetitions.max(1) {
        for (target, subject) in targets.iter().zip(&mut all) {
            progress(&format!("pipelining: {} ({})", target.name(), repetition + 1));
            subject.measure(target, &load, setup.short, repetition == 0)?;
        }
    }
    let section = section::section(&all, all.iter().flat_map(findings).collect(), &load);
    Ok(Output::of(section, all.iter().flat_map(|subject| subject.record.counted())))
}

/// What was found of one target. To a stall belongs what a benchmark would say that hides it.
fn findings(subject: &Subject) -> Vec<Finding> {
    let mut found = judge(&subject.evidence());
    if let Some(batches) = &subject.batches {
        for finding in found.iter_mut().filter(|one| one.kind == FindingKind::NagleStall) {
            finding.evidence.push(TEXTS.sentence("hidden", &[("law", &batches.by_the_first())]));
        }
    }
    found
}

/// The load, without an address.
fn spec(setup: &Setup, options: &Options) -> Spec {
    let count = options.keys.unwrap_or(if setup.short { KEYS_SHORT } else { 10_000_000 });
    let (sets, gets) = options.ratio;
    let set = Command { weight: sets, ..Command::new(&["SET", "__key__", "__data__"]) };
    let get = Command { weight: gets, ..Command::new(&["GET", "__key__"]) };
    let commands = [set, get].into_iter().filter(|command| command.weight > 0);
    Spec {
        connections: options.connections,
        pipeline: options.pipeline,
        threads: options.client_threads,
        amount: Amount::Seconds(setup.seconds(SECONDS, SECONDS_SHORT)),
        commands: commands.collect(),
        keys: keys(count),
        data: (options.data_size, options.data_size),
        populate: if options.populate { Populate::Yes } else { Populate::No },
        nil: Nil::Allowed,
        sample_s: 0.1,
        ..Spec::default()
    }
}
