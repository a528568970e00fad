//! Rates for INFO: commands and bytes per second over the last second or so.

use crate::admin::info::{IoTotals, totals};
use crate::shared::Shared;
use base::MonoNs;
use std::collections::VecDeque;

/// Samples kept; one is taken per housekeeping of the acceptor.
const SAMPLES: usize = 16;

/// Totals at past moments.
#[derive(Debug, Default)]
pub struct Samples(VecDeque<(MonoNs, u64, IoTotals)>);

/// Per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Commands.
    pub ops: f64,
    /// Bytes received.
    pub bytes_in: f64,
    /// Bytes sent.
    pub bytes_out: f64,
    /// Turns of all workers' loops.
    pub turns: f64,
    /// Microseconds that one of them takes.
    pub turn_us: f64,
}

/// Totals older than this say nothing about now.
const HORIZON_NS: u64 = 2_000_000_000;

impl Shared {
    /// Takes a sample.
    pub fn sample_rates(&self, now: MonoNs) {
        let sample = (now, self.sum(|w| w.processed.get()), totals(self));
        let mut samples = self.samples.lock().expect("no panic while the samples are held");
        samples.0.push_back(sample);
        if samples.0.len() > SAMPLES {
            samples.0.pop_front();
        }
    }

    /// What happened per second since the oldest recent sample.
    pub fn rates(&self, now: MonoNs, io: &IoTotals) -> Rates {
        let samples = self.samples.lock().expect("no panic while the samples are held");
        let recent = samples.0.iter().find(|s| now.since(s.0) < HORIZON_NS).or(samples.0.back());
        let Some((at, ops, then)) = recent else { return Rates::default() };
        let s = (now.since(*at) as f64 / 1e9).max(0.001);
        let per = |now: u64, then: u64| now.saturating_sub(then) as f64 / s;
        let turns = per(io.polls, then.polls);
        let busy_us =
            (self.workers.len() as f64 * 1e6 - per(io.poll_ns, then.poll_ns) / 1e3).max(0.0);
        Rates {
            turns,
            turn_us: busy_us / turns.max(1.0),
            ops: per(self.sum(|w| w.processed.get()), *ops),
            bytes_in: per(io.bytes_in, then.bytes_in),
            bytes_out: per(io.bytes_out, then.bytes_out),
        }
    }
}

impl crate::shared::WorkerCounters {
    /// Forgets everything; only its own worker may.
    pub fn reset(&self) {
        self.commands.reset();
        self.errors.reset();
        let expiry = [&self.expire_ns, &self.expire_step_max_ns];
        for c in [&self.processed, &self.published, &self.hits, &self.misses, &self.windows]
            .into_iter()
            .chain(expiry)
        {
            c.set(0);
        }
    }
}
