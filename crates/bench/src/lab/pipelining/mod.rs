//! Experiment *pipelining*: batches of requests on every connection. When do the replies leave, and
//! what does that cost? `docs/laboratory.md` tells the story.

mod evidence;
mod measure;
mod probe;
mod section;

use crate::analysis::findings::judge;
use crate::cli::load::ratio;
use crate::lab::target::Target;
use crate::lab::{Error, Setup, Told};
use crate::load::{Amount, Command, Keys, Nil, Populate, Spec};
use crate::result::{Finding, FindingKind};
use measure::Seen;

/// The name in findings.
pub const NAME: &str = "pipelining";
/// Seconds per point.
const SECONDS: f64 = 5.0;
/// Seconds per point of the short form: ten stalls of 40 ms fit.
const SECONDS_SHORT: f64 = 0.4;
/// Keys of the short form.
const KEYS_SHORT: u64 = 100_000;

/// The servers that are there, each way to flush in both architectures, with Nagle's algorithm and
/// without.
const CHOICE: &[&str] = &[
    "sheafdb",
    "redis-server",
    "valkey-server",
    "pogocache",
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
const CHOICE_SHORT: &[&str] = &[
    "sheafdb",
    "redis-server",
    "valkey-server",
    "pogocache",
    "model:event-loop,flush=idle",
    "model:event-loop,flush=reply",
    "model:thread-per-connection,flush=size,nodelay=no",
    "model:thread-per-connection,flush=reply,nodelay=no",
    "model:event-loop,flush=strand",
];

/// What can be set. The defaults are memtier's `-c 32 -d 256 --pipeline=30 --ratio=1:10`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Connections
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub connections: usize,
    /// Requests per batch
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub pipeline: usize,
    /// Bytes of a value
    #[arg(long, default_value_t = 256, value_name = "BYTES")]
    pub data_size: usize,
    /// Keys to draw from [default: 10000000, short form 100000]
    #[arg(long, value_name = "N")]
    pub keys: Option<u64>,
    /// SETs to GETs
    #[arg(long, default_value = "1:10", value_parser = ratio, value_name = "S:G")]
    pub ratio: (u32, u32),
    /// Threads of the load generator
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub client_threads: usize,
    /// Write all keys before each measurement; else most reads miss at first, as memtier's do
    #[arg(long)]
    pub populate: bool,
}

impl Default for Options {
    fn default() -> Self {
        crate::cli::defaults()
    }
}

/// Measures each target in batches, looks for replies that stay behind and for batches that stall.
pub fn run(setup: &Setup, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, Error> {
    let targets = targets(setup)?;
    let load = spec(setup, options);
    let mut all: Vec<Seen> = targets.iter().map(|target| Seen::new(target.name())).collect();
    for repetition in 0..setup.repetitions.max(1) {
        for (target, seen) in targets.iter().zip(&mut all) {
            say(&format!("pipelining: {} ({})", seen.name, repetition + 1));
            measure::measure(target, &load, setup.short, repetition == 0, seen)?;
        }
    }
    let findings: Vec<Finding> = all.iter().flat_map(findings).collect();
    let sections = vec![section::section(&all, &findings, &load)];
    let measurements = all.into_iter().flat_map(Seen::into_measurements).collect();
    Ok(Told { measurements, findings, sections, ..Told::default() })
}

/// What was found of one target. To a stall belongs what a benchmark would say that hides it.
fn findings(seen: &Seen) -> Vec<Finding> {
    let mut found = judge(&evidence::evidence(seen));
    if let Some(batches) = &seen.batches {
        for finding in found.iter_mut().filter(|one| one.kind == FindingKind::NagleStall) {
            finding.evidence.push(format!(
                "Counted by the first reply of each batch the stall is hidden, and {}.",
                batches.by_the_first()
            ));
        }
    }
    found
}

/// Whom to measure: those asked for, else those of the experiment's choice that are there.
fn targets(setup: &Setup) -> Result<Vec<Target>, Error> {
    if !setup.targets.is_empty() {
        return Ok(setup.targets.clone());
    }
    let choice = if setup.short { CHOICE_SHORT } else { CHOICE };
    let all: Result<Vec<Target>, _> = choice.iter().map(|text| Target::parse(text)).collect();
    Ok(all?.into_iter().filter(Target::is_there).collect())
}

/// The load, without an address.
fn spec(setup: &Setup, options: &Options) -> Spec {
    let keys = options.keys.unwrap_or(if setup.short { KEYS_SHORT } else { 10_000_000 });
    let seconds = setup.seconds.unwrap_or(if setup.short { SECONDS_SHORT } else { SECONDS });
    let (sets, gets) = options.ratio;
    let set = Command { weight: sets, ..Command::new(&["SET", "__key__", "__data__"]) };
    let get = Command { weight: gets, ..Command::new(&["GET", "__key__"]) };
    let commands = [set, get].into_iter().filter(|command| command.weight > 0);
    Spec {
        connections: options.connections,
        pipeline: options.pipeline,
        threads: options.client_threads,
        amount: Amount::Seconds(seconds),
        commands: commands.collect(),
        keys: Keys { prefix: "key:".to_owned(), minimum: 0, maximum: keys.max(1) - 1 },
        data: (options.data_size, options.data_size),
        populate: if options.populate { Populate::Yes } else { Populate::No },
        nil: Nil::Allowed,
        sample_s: 0.1,
        ..Spec::default()
    }
}
