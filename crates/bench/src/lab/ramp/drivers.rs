//! Each way to drive a server, at each server: what is under way over time, and whether the driver
//! holds back when the server is slower than it.

use super::options::{NAME, Plan, TEXTS};
use super::subject::Subject;
use crate::analysis::figure::{count, time};
use crate::analysis::findings::{self, Evidence, Queue, Trust};
use crate::lab::record::Point;
use crate::load::{Amount, Driver, Spec};
use crate::result::{Finding, FindingKind, Measurement, Sample};

/// Connections that each driver has.
const CONNECTIONS: usize = 4;
/// Requests that a batch or a window holds, and callers per connection.
const WINDOW: usize = 16;
/// The unbounded driver makes as many requests as the window was answered in this time: a server
/// that is overtaken catches up in about as long again.
const UNBOUNDED_S: f64 = 0.4;
/// But at least this many: with fewer, the queue would be gone before a sample shows it.
const UNBOUNDED_REQUESTS_MIN: f64 = 300_000.0;
/// It makes them in some hundredths of a second: short samples see it.
const UNBOUNDED_SAMPLE_S: f64 = 0.001;
/// Samples that are kept of the time in which the rest is answered.
const SAMPLES_KEPT: usize = 60;

/// One driver at one server.
#[derive(Debug)]
pub struct Driven {
    /// The server.
    pub target: String,
    /// Requests that it may have under way; `None` without a bound.
    pub allowed: Option<u64>,
    /// What was seen under the driver's name, or why there is nothing.
    pub point: Point,
}

/// Drives a server in each way; the table in this process needs no driver.
pub fn drive(subject: &Subject, plan: &Plan) -> Vec<Driven> {
    if subject.server.is_none() {
        return Vec::new();
    }
    let callers = CONNECTIONS * WINDOW;
    let bounded = [
        ("lock-step", Driver::LockStep),
        ("pipelined", Driver::Window),
        ("multiplexed", Driver::Multiplexed { callers }),
    ];
    let driven = |name: &str, allowed, spec: &Spec| {
        let point = subject.record.measure(name, spec, &mut |_| false);
        Driven { target: subject.name().to_owned(), allowed, point }
    };
    let mut all: Vec<Driven> = bounded
        .map(|(name, driver)| {
            let spec = Spec { driver, ..base(subject, plan) };
            driven(name, Some((CONNECTIONS * WINDOW) as u64), &spec)
        })
        .into();
    // What it can do when it is not overtaken.
    let rates = all.iter().filter_map(|one| one.point.valid().ok());
    let rate = rates.map(|seen| seen.measurement.throughput).fold(0.0, f64::max);
    let requests = (rate * UNBOUNDED_S).max(UNBOUNDED_REQUESTS_MIN) as u64;
    let spec = Spec {
        driver: Driver::Unbounded,
        amount: Amount::Requests(requests),
        sample_s: UNBOUNDED_SAMPLE_S,
        ..base(subject, plan)
    };
    let mut unbounded = driven("unbounded", None, &spec);
    if let Some(seen) = &mut unbounded.point.seen {
        thin(&mut seen.measurement.series);
    }
    all.push(unbounded);
    all
}

fn base(subject: &Subject, plan: &Plan) -> Spec {
    let seconds = plan.seconds.min(1.0);
    Spec {
        connections: CONNECTIONS,
        pipeline: WINDOW,
        amount: Amount::Seconds(seconds),
        sample_s: (seconds / 16.0).max(0.01),
        ..subject.spec(&["SET", "__key__", "__data__"], CONNECTIONS, plan)
    }
}

/// The sample at which most was under way.
fn highest(series: &[Sample]) -> usize {
    let top = series.iter().map(|sample| sample.in_flight).fold(0.0, f64::max);
    series.iter().position(|sample| sample.in_flight >= top).unwrap_or(0)
}

/// Thins the samples behind the highest out; those before it show how it piled up.
fn thin(series: &mut Vec<Sample>) {
    let top = highest(series);
    let every = (series.len() - top).div_ceil(SAMPLES_KEPT).max(1);
    let mut at = 0;
    series.retain(|_| {
        at += 1;
        at <= top + 1 || (at - top).is_multiple_of(every)
    });
}

impl Driven {
    /// Requests under way over time, as long as requests were made: up to the highest point of a
    /// driver without a bound, for then only the rest is answered.
    fn queue(&self, measured: &Measurement) -> Queue {
        let all = measured.series.iter().map(|sample| (sample.at_s, sample.in_flight));
        let mut samples: Vec<(f64, f64)> = all.collect();
        if self.allowed.is_some() {
            // At the end of the load nothing is under way.
            samples.pop();
        } else {
            samples.truncate(highest(&measured.series) + 1);
        }
        Queue { samples, throughput: measured.throughput }
    }

    /// The finding, if it sends without a bound.
    pub fn finding(&self) -> Option<Finding> {
        let seen = self.point.valid().ok()?;
        let found = findings::judge(&Evidence {
            experiment: NAME.to_owned(),
            target: format!("{} driver at {}", self.point.load, self.target),
            trust: Trust { repetitions: 1, ..Trust::default() },
            queue: Some(self.queue(&seen.measurement)),
            ..Evidence::default()
        });
        found.into_iter().find(|finding| finding.kind == FindingKind::UnboundedClient)
    }

    /// Whether it holds back, in a sentence.
    pub fn verdict(&self) -> String {
        let seen = match self.point.valid() {
            Ok(seen) => &seen.measurement,
            Err(why) => return format!("not valid: {why}"),
        };
        let most = seen.in_flight_max;
        let shown = count(most as f64);
        match (self.allowed, self.finding().is_some()) {
            (Some(allowed), false) if most <= allowed => {
                TEXTS.sentence("holds back", &[("most", &shown)])
            }
            (Some(allowed), false) => {
                TEXTS.sentence("exceeds", &[("most", &most), ("allowed", &allowed)])
            }
            (_, true) => {
                let wait = time(most as f64 / seen.throughput * 1e6);
                TEXTS.sentence("piles up", &[("most", &shown), ("wait", &wait)])
            }
            (None, false) => TEXTS.sentence("kept up", &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::measure::Seen;

    fn driven(allowed: Option<u64>, flights: &[f64]) -> Driven {
        let sample = |(at, flight): (usize, &f64)| Sample {
            at_s: (at + 1) as f64 * 0.01,
            throughput: 1000.0,
            p99_us: 1.0,
            in_flight: *flight,
        };
        let measurement = Measurement {
            throughput: 1000.0,
            series: flights.iter().enumerate().map(sample).collect(),
            in_flight_max: flights.iter().copied().fold(0.0, f64::max) as u64,
            ..Measurement::default()
        };
        let seen = Some(Seen { measurement, ..Seen::default() });
        Driven { target: "t".to_owned(), allowed, point: Point { seen, ..Point::default() } }
    }

    #[test]
    fn the_verdict_names_the_bound_or_its_absence() {
        let steady = [64.0; 12];
        assert!(driven(Some(64), &steady).verdict().contains("never more than 64"));
        assert!(driven(Some(32), &steady).verdict().contains("although 32"));
        let grows: Vec<f64> = (1..=12).map(|n| f64::from(n) * 500.0).chain([9.0, 1.0]).collect();
        let mut unbounded = driven(None, &grows);
        let verdict = unbounded.verdict();
        let want = "does not hold back: 6,000 under way, the last waits 6.00 s";
        assert!(verdict.contains(want), "{verdict}");
        assert!(driven(None, &steady).verdict().contains("kept up"));
        unbounded.point.fault = Some("3 lost".to_owned());
        assert!(unbounded.verdict().contains("3 lost"));
    }
}
