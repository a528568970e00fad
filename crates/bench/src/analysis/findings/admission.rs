//! Rules on who is served at all.

use super::evidence::{Admission, Connects};
use super::proof::{Figures, Proof};
use crate::analysis::figure;

/// The first retransmission of a SYN comes after 1 s (RFC 6298, section 2.1); clocks are not exact.
pub const SYN_RETRY_US: f64 = 900_000.0;

/// One connection is served, every other waits until it closes.
pub fn sequential(seen: &Admission) -> Option<Proof> {
    (seen.served == 1 && hung(seen) > 0 && seen.served_after_close.is_none_or(|more| more <= 1))
        .then(|| proof(seen))
}

/// A fixed number of connections is served, every other waits.
pub fn pool_exhausted(seen: &Admission) -> Option<Proof> {
    let frees = seen.served_after_close.is_none_or(|more| more >= 1);
    (seen.served > 1 && hung(seen) > 0 && frees).then(|| proof(seen))
}

/// Connections that got neither an answer nor a refusal.
fn hung(seen: &Admission) -> usize {
    seen.opened.saturating_sub(seen.served + seen.refused)
}

fn proof(seen: &Admission) -> Proof {
    let after = seen.served_after_close;
    Figures::of("admission")
        .with("opened", seen.opened)
        .with("served", seen.served)
        .with("waited", seen.waited_s)
        .with("hung", hung(seen))
        .maybe("freed", after)
        .when("untried", after.is_none())
        .when("dead", after == Some(0))
        .proof()
}

/// The listener's queue was full: connections were dropped and had to be tried again.
pub fn backlog_overflow(seen: &Connects) -> Option<Proof> {
    let overflows = seen.overflows.unwrap_or(0);
    let waited = seen.slow + seen.failed;
    if overflows == 0 && waited == 0 {
        return None;
    }
    Some(
        Figures::of("backlog_overflow")
            .with("asked", seen.asked)
            .with("slow", seen.slow)
            .with("slowest", figure::time(seen.slowest_us))
            .with("failed", seen.failed)
            .maybe("overflows", seen.overflows)
            .with("drops", seen.drops.unwrap_or(0))
            .maybe("queue", seen.backlog)
            .when("network", overflows == 0)
            .when("others", waited == 0)
            .proof(),
    )
}
