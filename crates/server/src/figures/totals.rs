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
    /// The same of each database, up to the last one that was used.
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
    /// Adds one; the oldest leaves when there are too many.
    pub fn push(&mut self, sample: Sample) {
        self.0.push_back(sample);
        if self.0.len() > SAMPLES {
            self.0.pop_front();
        }
    }

    /// The oldest one that is recent, or else the last.
    pub fn oldest_recent(&self, now: MonoNs) -> Option<&Sample> {
        self.0.iter().find(|s| now.since(s.at) < HORIZON_NS).or(self.0.back())
    }
}
