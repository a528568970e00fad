//! Each way to drive a server, at each server: what is under way over time.

use super::levels::Subject;
use super::{NAME, Plan};
use crate::analysis::findings::{self, Evidence, Queue, Trust};
use crate::lab::measure::{self, Seen};
use crate::load::{Amount, Driver, Spec};
use crate::result::{Finding, FindingKind, Measurement, Sample};

/// Connections that each driver has.
const CONNECTIONS: usize = 4;
/// Requests that a batch or a window holds, and callers per connection.
const WINDOW: usize = 16;
/// The unbounded driver makes as many requests as the window was answered in this time: a server
/// that is overtaken catches up in about as long again.
const UNBOUNDED_S: f64 = 0.4;
/// But so many at least: made in less time, nobody could see them pile up.
const UNBOUNDED_REQUESTS_MIN: f64 = 300_000.0;
/// It makes them in some hundredths of a second: short samples see it.
const UNBOUNDED_SAMPLE_S: f64 = 0.001;
/// Samples that are kept of the time in which the rest is answered.
const SAMPLES_KEPT: usize = 60;

/// One driver at one server.
#[derive(Clone, Debug)]
pub struct Driven {
    /// The server.
    pub target: String,
    /// The driver's name.
    pub driver: &'static str,
    /// Requests that it may have under way; `None` without a bound.
    pub allowed: Option<u64>,
    /// What was seen, or why there is nothing.
    pub seen: Result<Seen, String>,
}

/// Drives a server in each way; the table in this process needs no driver.
pub fn drive(subject: &Subject, plan: &Plan) -> Vec<Driven> {
    if subject.server.is_none() {
        return Vec::new();
    }
    let window = (CONNECTIONS * WINDOW) as u64;
    let callers = CONNECTIONS * WINDOW;
    let bounded = [
        ("lock-step", Driver::LockStep),
        ("pipelined", Driver::Window),
        ("multiplexed", Driver::Multiplexed { callers }),
    ];
    let mut driven = Vec::new();
    for (name, driver) in bounded {
        let seen = run(subject, &Spec { driver, ..base(subject, plan) });
        let target = subject.name.clone();
        driven.push(Driven { target, driver: name, allowed: Some(window), seen });
    }
    // What it can do when it is not overtaken.
    let rates = driven.iter().filter_map(|one| one.seen.as_ref().ok());
    let rate = rates.map(|seen| seen.measurement.throughput).fold(0.0, f64::max);
    let requests = (rate * UNBOUNDED_S).max(UNBOUNDED_REQUESTS_MIN) as u64;
    let spec = Spec {
        driver: Driver::Unbounded,
        amount: Amount::Requests(requests),
        sample_s: UNBOUNDED_SAMPLE_S,
        ..base(subject, plan)
    };
    let (target, mut seen) = (subject.name.clone(), run(subject, &spec));
    if let Ok(seen) = &mut seen {
        thin(&mut seen.measurement.series);
    }
    driven.push(Driven { target, driver: "unbounded", allowed: None, seen });
    driven
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

fn run(subject: &Subject, spec: &Spec) -> Result<Seen, String> {
    let seen =
        measure::run(spec, subject.record.sight, &mut |_| false).map_err(|e| e.to_string())?;
    match seen.fault() {
        Some(fault) => Err(fault),
        None => Ok(seen),
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
    pub fn queue(measured: &Measurement, bounded: bool) -> Queue {
        let all = measured.series.iter().map(|sample| (sample.at_s, sample.in_flight));
        let mut samples: Vec<(f64, f64)> = all.collect();
        if bounded {
            // At the end of the load nothing is under way.
            samples.pop();
        } else {
            samples.truncate(highest(&measured.series) + 1);
        }
        Queue { samples, throughput: measured.throughput }
    }

    /// The finding, if it sends without a bound.
    pub fn finding(&self) -> Option<Finding> {
        let seen = self.seen.as_ref().ok()?;
        let found = findings::judge(&Evidence {
            experiment: NAME.to_owned(),
            target: format!("{} driver at {}", self.driver, self.target),
            trust: Trust { repetitions: 1, ..Trust::default() },
            queue: Some(Self::queue(&seen.measurement, self.allowed.is_some())),
            ..Evidence::default()
        });
        found.into_iter().find(|finding| finding.kind == FindingKind::UnboundedClient)
    }
}
