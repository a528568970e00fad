//! *Acks*: the five published acknowledgement strategies for small messages and the three of
//! protocol 2, with the same clients for all, beside a reader that acknowledges nothing, a loop
//! that sleeps between request and reply, and a reader of protocol 2 that acknowledges each read.
//! `docs/laboratory.md` tells the story.

mod adaptive;
mod classic;
mod options;
mod subject;
mod tell;
mod verdict;

use base::prng::splitmix64;
use std::fmt;
use std::net::SocketAddr;

pub use options::Options;

use super::measure::fault;
use super::target::Target;
use super::{Error, Setup, Told};
use subject::{Seen, Subject, Way};

/// The experiment's name.
pub const NAME: &str = "acks";

/// Who is measured if nobody was named.
const CHOICE: &str = "sheafdb";

/// What one run does, all choices made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is sent; the first is what the others are compared with.
    pub points: Vec<Point>,
    /// Seconds per point, roughly.
    pub seconds: f64,
    /// Threads of the load generator.
    pub threads: usize,
    /// Repetitions of each point.
    pub repetitions: usize,
    /// Where a server that runs already answers INFO.
    pub info: Option<SocketAddr>,
    /// Where it takes protocol 2.
    pub protocol2: Option<SocketAddr>,
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Connections.
    pub clients: usize,
    /// Bytes of a classic message with its header of 12; protocol 2 sends the same payload.
    pub message_size: usize,
    /// Messages per `writev`, or in a Data frame.
    pub batch: usize,
    /// A write waits until the one before is acknowledged.
    pub waits: bool,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Acknowledgements are looked at after every write, not after some.
    pub looks: bool,
    /// Blocks of so many bytes instead of batches.
    pub block: Option<usize>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, message_size, batch, waits, nodelay, looks, block } = self;
        write!(f, "{clients} x {message_size} bytes, ")?;
        match block {
            Some(bytes) => write!(f, "blocks of {} KiB", bytes >> 10)?,
            None => write!(f, "{batch} per write")?,
        }
        f.write_str(if *waits { ", waits" } else { "" })?;
        f.write_str(if *looks { ", looks" } else { "" })?;
        f.write_str(if *nodelay { "" } else { ", Nagle" })
    }
}

impl Point {
    /// What differs from `base`, in few letters.
    fn difference(&self, base: &Self) -> String {
        if let Some(bytes) = self.block {
            return format!("{} KiB", bytes >> 10);
        }
        let mut parts = Vec::new();
        if self.clients != base.clients {
            parts.push(format!("c={}", self.clients));
        }
        if self.message_size != base.message_size {
            parts.push(format!("{} B", self.message_size));
        }
        if self.batch != base.batch {
            parts.push(format!("b={}", self.batch));
        }
        if self.waits {
            parts.push("waits".to_owned());
        }
        if self.looks {
            parts.push("looks".to_owned());
        }
        if !self.nodelay {
            parts.push("Nagle".to_owned());
        }
        if parts.is_empty() { "base".to_owned() } else { parts.join(" ") }
    }
}

/// So many per 1,000 messages; small ones with two decimals.
fn per_thousand(value: f64) -> String {
    let value = value * 1000.0;
    let small = value < 10.0 && value.fract() != 0.0;
    if small { format!("{value:.2}") } else { crate::analysis::figure::count(value) }
}

/// All runs of one way of one subject at one point.
struct Row {
    label: String,
    /// `None` for a published client.
    point: Option<Point>,
    subject: String,
    way: Way,
    seen: Vec<Seen>,
}

impl Row {
    /// Runs without failures.
    fn clean(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| seen.measurement.failures.is_empty())
    }

    /// The median of a figure over clean runs.
    fn middle(&self, figure: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.clean().filter_map(figure).collect();
        (!values.is_empty()).then(|| crate::analysis::spread::median(&values))
    }

    fn throughput(&self) -> Option<f64> {
        self.middle(|seen| Some(seen.measurement.throughput))
    }

    fn server_us(&self) -> Option<f64> {
        self.middle(|seen| seen.measurement.server.map(|server| server.cpu_us_per_request))
    }

    fn client_us(&self) -> Option<f64> {
        let us = |seen: &Seen| {
            let m = &seen.measurement;
            (m.requests > 0).then(|| m.client_cpu_s * 1e6 / m.requests as f64)
        };
        self.middle(us)
    }
}

/// All rows so far; a run is added to the row of its kind.
#[derive(Default)]
struct Rows {
    all: Vec<Row>,
    failed: Vec<String>,
}

impl Rows {
    fn add(&mut self, label: &str, point: Option<Point>, subject: &str, way: Way, seen: Seen) {
        if let Some(why) = fault(&seen.measurement) {
            self.failed.push(format!("{subject}, {}, {label}: {why}", way.name()));
        }
        let same = |row: &&mut Row| row.label == label && row.subject == subject && row.way == way;
        if let Some(row) = self.all.iter_mut().find(same) {
            return row.seen.push(seen);
        }
        let (label, subject) = (label.to_owned(), subject.to_owned());
        self.all.push(Row { label, point, subject, way, seen: vec![seen] });
    }

    fn find(&self, label: &str, subject: &str, way: Way) -> Option<&Row> {
        self.all.iter().find(|r| r.label == label && r.subject == subject && r.way == way)
    }
}

/// Runs the experiment. A wrong acknowledgement, a lost message or a broken connection makes it
/// fail ([`Told::failed`]).
pub fn run(setup: &Setup, options: &Options, say: &mut dyn FnMut(&str)) -> Result<Told, Error> {
    let plan = options.plan(setup).map_err(Error::Machine)?;
    let servers = servers(setup, &plan, say)?;
    let null = Subject::model("model:null-reader", Way::Null)?;
    let echo = Subject::model("model:echo-ack", Way::Echo)?;
    let each = Subject::model("model:ack-each-read", Way::EachRead)?;
    if options.classic {
        return classic::run(&servers, [&null, &echo, &each], &plan, say);
    }
    let (mut rows, mut chance) = (Rows::default(), 0);
    for repetition in 1..=plan.repetitions {
        for point in &plan.points {
            say(&format!("{point} ({repetition} of {})", plan.repetitions));
            for subject in servers.iter().chain([&null, &echo, &each]) {
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
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    Ok(tell::grid(rows, &names, &plan))
}

/// Those that open classic ingest; an error if nobody does.
fn servers(setup: &Setup, plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Vec<Subject>, Error> {
    let mut targets = setup.targets.clone();
    if targets.is_empty() {
        targets.push(Target::parse(CHOICE)?);
    }
    let (mut servers, mut refused) = (Vec::new(), None);
    for target in &targets {
        say(&format!("starting {}", target.name()));
        match Subject::server(target, plan, say) {
            Ok(server) => servers.push(server),
            Err(error) => {
                say(&format!("{} is left out: {error}", target.name()));
                refused = Some(error);
            }
        }
    }
    match refused {
        Some(error) if servers.is_empty() => Err(error),
        _ => Ok(servers),
    }
}
