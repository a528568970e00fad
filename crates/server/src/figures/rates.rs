//! Rates for INFO: commands and bytes per second over the last second or so; and the totals of now
//! that they come from.

use crate::figures::databases::DatabaseUse;
use crate::figures::totals::{IoTotals, Sample};
use crate::shared::Shared;
use base::{DbIndex, MonoNs};

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
    /// Microseconds of one turn.
    pub turn_us: f64,
}

impl Shared {
    /// Takes a sample.
    pub fn sample_rates(&self, now: MonoNs) {
        let (commands, io) = (self.sum(|w| w.processed.get()), totals(self));
        let of_all = (0..self.keyspace.databases()).map(|db| self.commands_of(DbIndex::new(db)));
        let mut samples = self.samples.lock().expect("no panic while the samples are held");
        let mut databases = samples.take_oldest();
        databases.extend(of_all);
        samples.push(Sample { at: now, commands, databases, io });
    }

    /// The commands per second of these databases since the oldest recent sample.
    pub(super) fn rate_databases(&self, now: MonoNs, all: &mut [DatabaseUse]) {
        let samples = self.samples.lock().expect("no panic while the samples are held");
        let Some(Sample { at, databases, .. }) = samples.oldest_recent(now) else { return };
        let s = (now.since(*at) as f64 / 1e9).max(0.001);
        for f in all {
            let then = databases.get(f.db.index()).copied().unwrap_or(0);
            f.ops = f.commands.saturating_sub(then) as f64 / s;
        }
    }

    /// Rates since the oldest recent sample.
    pub fn rates(&self, now: MonoNs, io: &IoTotals) -> Rates {
        let samples = self.samples.lock().expect("no panic while the samples are held");
        let Some(Sample { at, commands, io: then, .. }) = samples.oldest_recent(now) else {
            return Rates::default();
        };
        let s = (now.since(*at) as f64 / 1e9).max(0.001);
        let per = |now: u64, then: u64| now.saturating_sub(then) as f64 / s;
        let turns = per(io.polls, then.polls);
        let busy_us =
            (self.workers.len() as f64 * 1e6 - per(io.poll_ns, then.poll_ns) / 1e3).max(0.0);
        Rates {
            turns,
            turn_us: busy_us / turns.max(1.0),
            ops: per(self.sum(|w| w.processed.get()), *commands),
            bytes_in: per(io.bytes_in, then.bytes_in),
            bytes_out: per(io.bytes_out, then.bytes_out),
        }
    }
}

/// Adds up what the workers published.
pub fn totals(shared: &Shared) -> IoTotals {
    let mut sum = IoTotals::default();
    for w in &shared.workers {
        let io = w.io.lock().expect("no panic while figures are held");
        sum.bytes_in += io.bytes_received;
        sum.bytes_out += io.bytes_sent;
        sum.receives += io.receives;
        sum.sends += io.sends;
        sum.polls += io.polls;
        sum.poll_ns += io.poll_ns;
    }
    sum
}
