//! Sums of the drivers' figures, and samples of them at past moments.

use base::MonoNs;
use std::collections::VecDeque;

/// Sums of the drivers' figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoTotals {
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Receive calls that brought bytes.
    pub receives: u64,
    /// Send calls.
    pub sends: u64,
    /// Turns that the poll began.
    pub polls: u64,
    /// Nanoseconds in the poll.
    pub poll_ns: u64,
}

impl IoTotals {
    /// What came after `base`.
    #[must_use]
    pub fn since(&self, base: &IoTotals) -> IoTotals {
        IoTotals {
            bytes_in: self.bytes_in.saturating_sub(base.bytes_in),
            bytes_out: self.bytes_out.saturating_sub(base.bytes_out),
            receives: self.receives.saturating_sub(base.receives),
            sends: self.sends.saturating_sub(base.sends),
            polls: self.polls.saturating_sub(base.polls),
            poll_ns: self.poll_ns.saturating_sub(base.poll_ns),
        }
    }
}

/// Totals at a past moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was taken.
    pub at: MonoNs,
    /// Commands executed.
    pub commands: u64,
    /// The same of each database.
    pub databases: Vec<u64>,
    /// What the drivers did.
    pub io: IoTotals,
}

/// Samples kept; one is taken per housekeeping of the acceptor.
const SAMPLES: usize = 16;
/// Totals older than this say nothing about now.
const HORIZON_NS: u64 = 2_000_000_000;

/// The last samples, oldest first.
#[derive(Debug, Default)]
pub struct Samples(VecDeque<Sample>);

impl Samples {
    /// Removes the oldest one if there is no place for another. Returns its memory for the counts
    /// of databases, empty: so samples allocate nothing once there are enough of them.
    pub fn take_oldest(&mut self) -> Vec<u64> {
        let oldest = if self.0.len() < SAMPLES { None } else { self.0.pop_front() };
        let mut databases = oldest.map_or_else(Vec::new, |sample| sample.databases);
        databases.clear();
        databases
    }

    /// Adds one; the caller has called [`Samples::take_oldest`].
    pub fn push(&mut self, sample: Sample) {
        debug_assert!(self.0.len() < SAMPLES, "there is a place for it");
        self.0.push_back(sample);
    }

    /// The oldest one that is recent, or else the last.
    pub fn oldest_recent(&self, now: MonoNs) -> Option<&Sample> {
        self.0.iter().find(|s| now.since(s.at) < HORIZON_NS).or(self.0.back())
    }
}
