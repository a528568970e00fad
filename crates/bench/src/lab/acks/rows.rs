//! What was measured: runs, gathered by what was sent to whom and in which way.

use super::options::TEXTS;
use super::point::{Point, Way};
use crate::analysis::figure::count;
use crate::analysis::spread::median;
use crate::host::OTHER_CPUS_MAX;
use crate::lab::measure::fault;
use crate::result::Measurement;

/// Fewer repetitions do not tell a difference from noise.
const TIMES_MIN: usize = 4;

/// One run of one way at one point.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The measurement.
    pub measurement: Measurement,
    /// Acknowledgements per message.
    pub acks: f64,
    /// Receive calls of the server per message, where INFO ingest tells.
    pub reads: Option<f64>,
}

/// All runs of one way of one subject at one point.
pub struct Row {
    /// The point, or the published client.
    pub label: String,
    /// `None` for a published client.
    pub point: Option<Point>,
    /// The subject's name.
    pub subject: String,
    /// How it acknowledges.
    pub way: Way,
    /// The runs.
    pub seen: Vec<Seen>,
}

impl Row {
    /// Runs without failures.
    pub fn clean(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| seen.measurement.failures.is_empty())
    }

    /// True if it is what this way of this subject was sent.
    pub fn is_of(&self, subject: &str, way: Way) -> bool {
        self.subject == subject && self.way == way
    }

    /// The median of a figure over clean runs.
    pub fn middle(&self, figure: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
        middle(self.clean().filter_map(figure))
    }

    /// Acknowledged messages per second.
    pub fn throughput(&self) -> Option<f64> {
        middle(self.rates())
    }

    /// The same of each clean run.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        self.clean().map(|seen| seen.measurement.throughput)
    }

    /// CPU of the server per message, microseconds.
    pub fn server_us(&self) -> Option<f64> {
        self.middle(|seen| seen.measurement.server.map(|server| server.cpu_us_per_request))
    }

    /// CPU of the client per message, microseconds.
    pub fn client_us(&self) -> Option<f64> {
        self.middle(|Seen { measurement: m, .. }| {
            (m.requests > 0).then(|| m.client_cpu_s * 1e6 / m.requests as f64)
        })
    }
}

/// The rates of rows that differ from the base in their clients alone, ascending.
pub fn by_clients(rows: &[&Row], base: Point) -> Vec<(f64, Vec<f64>)> {
    by(rows, |point| Point { clients: base.clients, ..point } == base, |point| point.clients)
}

/// The rates of rows that differ from the base in the size of messages alone, ascending.
pub fn by_size(rows: &[&Row], base: Point) -> Vec<(f64, Vec<f64>)> {
    let same = |point| Point { message_size: base.message_size, ..point } == base;
    by(rows, same, |point| point.message_size)
}

fn by(
    rows: &[&Row],
    counts: impl Fn(Point) -> bool,
    x: impl Fn(Point) -> usize,
) -> Vec<(f64, Vec<f64>)> {
    let points = rows.iter().filter_map(|row| Some((row, row.point?)));
    let points = points.filter(|(_, point)| counts(*point));
    let mut levels: Vec<(f64, Vec<f64>)> =
        points.map(|(row, point)| (x(point) as f64, row.rates().collect())).collect();
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels
}

/// The median, if there is any.
pub fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(median(&values.collect::<Vec<f64>>())).filter(|value| !value.is_nan())
}

/// CPUs that other programs used while these were measured, at the worst.
pub fn other_cpus<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    rows.flat_map(Row::clean).map(|seen| seen.measurement.other_cpus).fold(0.0, f64::max)
}

/// Why a verdict on these rows may be noise, if it may: `what` is then to be doubted.
pub fn doubt<'a>(rows: impl Iterator<Item = &'a Row> + Clone, what: &str) -> Option<String> {
    let times = rows.clone().map(|row| row.clean().count()).min().unwrap_or(0);
    let others = other_cpus(rows);
    (times < TIMES_MIN || others > OTHER_CPUS_MAX).then(|| {
        let cpus = format!("{others:.2}");
        TEXTS.sentence("doubt", &[("times", &times), ("cpus", &cpus), ("what", &what)])
    })
}

/// All rows so far; a run is added to the row of its kind.
#[derive(Default)]
pub struct Rows {
    /// The rows, in the order of their first runs.
    pub all: Vec<Row>,
    /// What must not be, a sentence each.
    pub failed: Vec<String>,
}

impl Rows {
    /// Adds a run.
    pub fn add(&mut self, label: &str, point: Option<Point>, subject: &str, way: Way, seen: Seen) {
        if let Some(why) = fault(&seen.measurement) {
            self.failed.push(format!("{subject}, {}, {label}: {why}", way.name()));
        }
        let same = |row: &&mut Row| row.label == label && row.is_of(subject, way);
        if let Some(row) = self.all.iter_mut().find(same) {
            return row.seen.push(seen);
        }
        let (label, subject) = (label.to_owned(), subject.to_owned());
        self.all.push(Row { label, point, subject, way, seen: vec![seen] });
    }
}

/// The row of this kind.
pub fn find<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    label: &str,
    subject: &str,
    way: Way,
) -> Option<&'a Row> {
    rows.into_iter().find(|row| row.label == label && row.is_of(subject, way))
}

/// So many per 1,000 messages; small ones with two decimals.
pub fn per_thousand(value: f64) -> String {
    let value = value * 1000.0;
    let small = value < 10.0 && value.fract() != 0.0;
    if small { format!("{value:.2}") } else { count(value) }
}
