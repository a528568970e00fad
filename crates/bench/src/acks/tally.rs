//! What a thread, or all of them, did, and the measurement that it makes.

use super::connection::{Account, Broken};
use super::spec::Spec;
use crate::host;
use crate::load;
use crate::result::{Failures, Measurement, PerConnection};
use hdrhistogram::Histogram;
use std::time::Instant;

/// Longest latency that the histogram distinguishes, ns.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// What a run left behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `Failures::wrong` counts connections whose acknowledgements broke the rule, `lost` messages
    /// without one. The server's use and the other CPUs are left to the caller. `per_connection` is
    /// there if the run had a time: what was acknowledged when it was over.
    pub measurement: Measurement,
    /// Acknowledgements that came.
    pub acks: u64,
}

/// What a thread, or all of them, did.
pub struct Tally {
    pub started: Instant,
    pub ended: Instant,
    /// Messages that were made: with a time instead of a number this says how many there were.
    made: u64,
    acknowledged: u64,
    /// Acknowledgements received.
    acks: u64,
    wrong: u64,
    first_error: Option<String>,
    pub latency_ns: Histogram<u64>,
    /// Sum of all latencies.
    pub latency_sum_s: f64,
    pub cpu_s: f64,
    /// Of each connection, acknowledged when the last message was made; of a run by number: in the
    /// end.
    pub by_then: Vec<u64>,
}

impl Tally {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            ended: now,
            made: 0,
            acknowledged: 0,
            acks: 0,
            wrong: 0,
            first_error: None,
            latency_ns: Histogram::new_with_max(LATENCY_MAX_NS, 3).expect("a range and digits"),
            latency_sum_s: 0.0,
            cpu_s: 0.0,
            by_then: Vec::new(),
        }
    }

    /// Adds the tally of a thread. The times of the first thread replace those of the empty sum.
    pub fn add(&mut self, o: Tally) {
        let first = self.cpu_s == 0.0;
        self.started = if first { o.started } else { self.started.min(o.started) };
        self.ended = self.ended.max(o.ended);
        self.made += o.made;
        self.acknowledged += o.acknowledged;
        self.acks += o.acks;
        self.wrong += o.wrong;
        self.first_error = self.first_error.take().or(o.first_error);
        self.latency_ns.add(o.latency_ns).expect("the same range");
        self.latency_sum_s += o.latency_sum_s;
        self.cpu_s += o.cpu_s;
        self.by_then.extend(o.by_then);
    }

    /// One connection at its end.
    pub fn add_connection(&mut self, made: u64, account: &Account) {
        self.made += made;
        self.acknowledged += account.acknowledged;
        self.acks += account.acks;
    }

    pub fn broke(&mut self, why: Broken) {
        match why {
            Broken::Wrong(text) => {
                self.wrong += 1;
                self.failed(text);
            }
            Broken::Closed(text) => self.failed(text),
        }
    }

    /// Keeps the first error only: the others mostly follow from it.
    pub fn failed(&mut self, text: String) {
        self.first_error.get_or_insert(text);
    }

    /// The measurement.
    pub fn outcome(mut self, spec: &Spec) -> Outcome {
        let seconds = self.ended.duration_since(self.started).as_secs_f64();
        let total = match spec.time {
            Some(_) => self.made,
            None => spec.messages * spec.clients as u64,
        };
        self.by_then.sort_unstable();
        let measurement = Measurement {
            load: spec.load().to_owned(),
            target: spec.address.to_string(),
            parameters: parameters(spec),
            seconds,
            requests: self.acknowledged,
            failures: Failures {
                first_error: self.first_error.unwrap_or_default(),
                lost: total - self.acknowledged,
                wrong: self.wrong,
                ..Failures::default()
            },
            throughput: self.acknowledged as f64 / seconds,
            in_flight: self.latency_sum_s / seconds,
            latency: load::summary(&self.latency_ns),
            client_cpu_s: self.cpu_s,
            load_average: host::load_average(),
            per_connection: PerConnection::of(&self.by_then),
            ..Measurement::default()
        };
        Outcome { measurement, acks: self.acks }
    }
}

fn parameters(spec: &Spec) -> Vec<(String, String)> {
    let named = |name: &str, value: String| (name.to_owned(), value);
    let yes_no = |yes: bool| (if yes { "yes" } else { "no" }).to_owned();
    let write = spec.block.map_or(format!("{} messages", spec.batch), |b| format!("{b} bytes"));
    let mut all = vec![
        named("connections", spec.clients.to_string()),
        match spec.time {
            Some(time) => named("seconds", time.as_secs_f64().to_string()),
            None => named("messages", spec.messages.to_string()),
        },
        named("message bytes", spec.message_size.to_string()),
        named("write", write),
        named("nodelay", yes_no(spec.nodelay)),
    ];
    if spec.waits {
        all.push(named("waits", yes_no(true)));
    }
    all
}
