//! *Acks*: the five published acknowledgement strategies for small messages and the three of
//! protocol 2, with the same clients for all, beside a reader that acknowledges nothing, a loop
//! that sleeps between request and reply, and a reader of protocol 2 that acknowledges each read.
//! `docs/laboratory.md` tells the story.

mod adaptive;
mod classic;
mod evidence;
mod options;
mod point;
mod rows;
mod section;
mod subject;
mod verdict;

use base::prng::splitmix64;

pub use options::{NAME, Options};

use super::target::Target;
use super::{Error, Output, Setup};
use crate::acks::{CLASSIC, Spec};
use classic::{COMMON, COMMON_LABEL, label, line, yardstick};
use options::Plan;
use point::Way;
use rows::{Rows, Seen};
use subject::Subject;

/// What is measured if no target was named.
const CHOICE: &str = "sheafdb";

/// Runs the experiment. A wrong acknowledgement, a lost message or a broken connection makes it
/// fail ([`Output::failed`]).
pub fn run(
    setup: &Setup,
    options: &Options,
    progress: &mut dyn FnMut(&str),
) -> Result<Output, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let servers = servers(setup, &plan, progress)?;
    let models = [
        Subject::model("model:null-reader", Way::Null)?,
        Subject::model("model:echo-ack", Way::Echo)?,
        Subject::model("model:ack-each-read", Way::EachRead)?,
    ];
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    if options.classic {
        return Ok(section::classic(
            &published(&servers, &models, &plan, progress)?,
            &names,
            &plan,
        ));
    }
    let (mut rows, mut chance) = (Rows::default(), 0);
    for repetition in 1..=plan.repetitions {
        for point in &plan.points {
            progress(&format!("{point} ({repetition} of {})", plan.repetitions));
            for subject in servers.iter().chain(&models) {
                let ways = subject.ways.iter().map(|(way, _)| *way);
                let mut ways: Vec<Way> = ways.filter(|way| way.takes(point)).collect();
                // Where the scheduler has put a thread depends on what ran before: not always the
                // same.
                if repetition > 1 {
                    ways.sort_by_cached_key(|_| splitmix64(&mut chance));
                }
                for way in ways {
                    let seen = subject.run(way, point, plan.seconds, plan.threads)?;
                    rows.add(&point.to_string(), Some(*point), &subject.name, way, seen);
                }
            }
        }
    }
    Ok(section::grid(&rows, &names, &plan))
}

/// Runs the published clients on every server, the null reader (request-reply: the loop that
/// sleeps) in turn with each; then the one client that is the same for all.
fn published(
    servers: &[Subject],
    models: &[Subject; 3],
    plan: &Plan,
    progress: &mut dyn FnMut(&str),
) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    let [null, echo, _] = models;
    for repetition in 1..=plan.repetitions {
        for classic in CLASSIC {
            let label = label(&classic);
            progress(&format!("{label} ({repetition} of {})", plan.repetitions));
            let own = Way::Strategy(classic.strategy);
            let yard = yardstick(classic.strategy, null, echo);
            for (subject, way) in servers.iter().map(|server| (server, own)).chain([yard]) {
                let seen = send(subject, way, classic.spec(subject.listener(way)))?;
                if way == own {
                    progress(&format!("{}: {}", subject.name, line(&seen.measurement)));
                }
                rows.add(&label, None, &subject.name, way, seen);
            }
        }
        progress(&format!("{COMMON_LABEL} ({repetition} of {})", plan.repetitions));
        let (clients, messages, batch) = COMMON;
        for subject in servers.iter().chain(models) {
            for &(way, address) in &subject.ways {
                let spec = Spec { clients, messages, batch, ..way.spec(address) };
                let seen = send(subject, way, spec)?;
                rows.add(COMMON_LABEL, None, &subject.name, way, seen);
            }
        }
    }
    Ok(rows)
}

fn send(subject: &Subject, way: Way, spec: Spec) -> Result<Seen, Error> {
    subject.measure(way, &Spec { acknowledged: way != Way::Null, ..spec })
}

/// The targets that open classic ingest; an error if none does.
fn servers(
    setup: &Setup,
    plan: &Plan,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Subject>, Error> {
    let mut targets = setup.targets.clone();
    if targets.is_empty() {
        targets.push(Target::parse(CHOICE)?);
    }
    let (mut servers, mut refused) = (Vec::new(), None);
    for target in &targets {
        progress(&format!("starting {}", target.name()));
        match Subject::server(target, plan, progress) {
            Ok(server) => servers.push(server),
            Err(error) => {
                progress(&format!("{} is left out: {error}", target.name()));
                refused = Some(error);
            }
        }
    }
    match refused {
        Some(error) if servers.is_empty() => Err(error),
        _ => Ok(servers),
    }
}
