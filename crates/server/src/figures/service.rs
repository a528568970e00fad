//! Service times of all workers: from the receive of a request to the send of its reply.

use crate::shared::Shared;
use observe::LatencyTotals;

/// Service times since the start or the last CONFIG RESETSTAT.
#[derive(Default)]
pub struct ServiceFigures {
    /// How many took how long.
    pub times: LatencyTotals,
    /// Nanoseconds of all of them.
    pub sum_ns: u64,
}

impl ServiceFigures {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let mut all = Self::default();
        for w in shared.counting() {
            w.service.times.add_to(&mut all.times);
            all.sum_ns = all.sum_ns.wrapping_add(w.service.sum_ns.get());
        }
        all
    }
}
