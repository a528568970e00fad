//! What a thread of the load generator is to do, and what it did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;

use super::expect::Tally;
use super::record::histogram;
use super::schedule::Schedule;
use super::spec::{Amount, Spec};

/// What a thread is to do.
pub struct Task<'a> {
    /// Of all threads: begin, in nanoseconds of the monotonic clock.
    pub started: u64,
    /// End of the warm-up.
    pub measured_from: u64,
    /// This thread's part.
    pub amount: Amount,
    /// What was asked for.
    pub spec: &'a Spec,
    /// Send times, for an open loop.
    pub schedule: Option<Schedule>,
    /// A connection of any thread broke: end.
    pub stop: &'a AtomicBool,
}

impl Task<'_> {
    /// Nanoseconds without a reply after which requests are lost.
    pub fn timeout_ns(&self) -> u64 {
        (self.spec.timeout_s * 1e9) as u64
    }

    /// When no further request is made, if that is a time.
    pub fn end(&self) -> Option<u64> {
        match self.amount {
            Amount::Seconds(s) => Some(self.measured_from + (s * 1e9) as u64),
            Amount::Requests(_) => None,
        }
    }

    /// What was due before the end and never sent, with the time it had waited then; `due` had been
    /// taken from the schedule.
    pub fn unsent(&mut self, due: &VecDeque<u64>) -> Option<Histogram<u64>> {
        let end = self.end()?;
        let schedule = self.schedule.as_mut()?;
        let mut waited = histogram();
        for &intended in due {
            waited.saturating_record(end.saturating_sub(intended).max(1));
        }
        while !self.stop.load(Ordering::Relaxed) && schedule.peek() < end {
            waited.saturating_record(end - schedule.advance());
        }
        Some(waited)
    }
}

/// What a thread did.
#[derive(Debug)]
pub struct Outcome {
    /// Replies and failures.
    pub tally: Tally,
    /// Requests under way, times nanoseconds.
    pub area: f64,
    /// Most requests under way at a time.
    pub peak: u64,
    /// When the last reply came.
    pub last_reply: u64,
    /// How long requests of an open loop had waited that were never sent.
    pub unsent: Option<Histogram<u64>>,
    /// Replies on each connection that lasted.
    pub served: Vec<u64>,
}
