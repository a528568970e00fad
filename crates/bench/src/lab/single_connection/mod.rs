//! Experiment *single-connection*: one request at a time on few connections. What does a request
//! cost, and what does it wait for? `docs/laboratory.md` tells the story.

mod evidence;
mod measure;
mod section;
mod variants;

use crate::analysis::findings::judge;
use crate::lab::{Error, Setup, Told};
use crate::lab::{io, subject};
use crate::load::{Amount, Keys, Spec};
use crate::result::Finding;
use measure::Seen;

/// The name in findings.
pub const NAME: &str = "single-connection";
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

/// The servers that are there, and who polls once per event, reads before it polls, or waits in a
/// read.
const CHOICE: &[&str] = &[
    "sheafdb",
    "redis-server",
    "valkey-server",
    "pogocache",
    "model:event-loop",
    "model:event-loop,events=1",
    "model:event-loop,read=first",
    "model:thread-per-connection",
];

/// What can be set.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Connections at a time [default: 1,2,5,10,50, short form 1,5,50]
    #[arg(long, value_delimiter = ',', value_name = "N,N...")]
    pub connections: Vec<usize>,
    /// SETs per point, unless seconds are given [default: 1000000, short form 3000]
    #[arg(long, value_name = "N")]
    pub requests: Option<u64>,
    /// Leave out the variants: busy polling off and on, a client that does not sleep, shared
    /// connections
    #[arg(long)]
    pub no_variants: bool,
    /// Leave out the runs under trace
    #[arg(long)]
    pub no_trace: bool,
}

/// Measures each target on few connections, counts what it does per request, and looks for what it
/// waits for.
pub fn run(setup: &Setup, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, Error> {
    let started = subject::start(&setup.targets, CHOICE, say)?;
    let wake_us =
        io::wake_us().map_err(|error| Error::Machine(format!("no pair of sockets: {error}")))?;
    let mut all: Vec<Seen> = started.iter().map(|one| Seen::new(one, wake_us)).collect();
    let load = spec(setup, options);
    let connections = match &options.connections[..] {
        [] if setup.short => CONNECTIONS_SHORT,
        [] => CONNECTIONS,
        asked => asked,
    };
    for repetition in 0..setup.repetitions.max(1) {
        for &connections in connections {
            for (target, seen) in started.iter().zip(&mut all) {
                say(&format!(
                    "single-connection: {} x {connections} ({})",
                    seen.name,
                    repetition + 1
                ));
                let spec = Spec { connections, ..load.clone() };
                measure::measure(target, &spec, seen);
            }
        }
        if !options.no_variants {
            for (target, seen) in started.iter().zip(&mut all) {
                say(&format!("single-connection: variants of {} ({})", seen.name, repetition + 1));
                variants::measure(target, &load, seen);
            }
        }
    }
    if !options.no_trace {
        for (target, seen) in started.iter().zip(&mut all) {
            say(&format!("single-connection: trace of {}", seen.name));
            measure::trace(target, connections, &load, setup.short, seen);
        }
    }
    let findings: Vec<Finding> =
        all.iter().flat_map(|seen| judge(&evidence::evidence(seen))).collect();
    let sections = vec![section::section(&all, &findings)];
    let measurements = all.into_iter().flat_map(Seen::into_measurements).collect();
    Ok(Told { measurements, findings, sections, ..Told::default() })
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
        keys: Keys { prefix: "key:".to_owned(), minimum: 0, maximum: KEYS - 1 },
        ..Spec::default()
    }
}
