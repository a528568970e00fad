//! Rules on who is served at all.

use super::evidence::{Admission, Connects};
use super::proof::Proof;
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
    let Admission { opened, served, waited_s, .. } = seen;
    let freed = seen
        .served_after_close
        .map(|more| format!("When a served connection closed, {more} more got its answer."));
    let open = seen
        .served_after_close
        .is_none()
        .then(|| "It was not tried whether closing a served connection helps another.".to_owned());
    let dead = (seen.served_after_close == Some(0))
        .then(|| "Closing a served connection helped nobody: the server may hang.".to_owned());
    Proof::of(format!(
        "Of {opened} open connections {served} got an answer to PING within {waited_s} s, {} did not.",
        hung(seen)
    ))
    .and(freed)
    .caveat(open)
    .caveat(dead)
}

/// The listener's queue was full: connections were dropped and had to be tried again.
pub fn backlog_overflow(seen: &Connects) -> Option<Proof> {
    let overflows = seen.overflows.unwrap_or(0);
    let waited = seen.slow + seen.failed;
    if overflows == 0 && waited == 0 {
        return None;
    }
    let asked = seen.asked;
    let counters = seen.overflows.map(|overflows| {
        let drops = seen.drops.unwrap_or(0);
        format!("The kernel counted {overflows} overflows of listen queues and {drops} drops.")
    });
    let queue = seen.backlog.map(|length| format!("The listener's queue holds {length}."));
    let network = (overflows == 0).then(|| {
        "The kernel's counters show no overflow here: packets may have been lost on the way, \
         or the listener is on another machine."
            .to_owned()
    });
    let others = (waited == 0)
        .then(|| "No connection had to wait: the counters are the whole machine's.".to_owned());
    Some(
        Proof::of(format!(
            "Of {asked} connections {} took a second or more (slowest {}), {} did not succeed.",
            seen.slow,
            figure::time(seen.slowest_us),
            seen.failed
        ))
        .and(counters)
        .and(queue)
        .caveat(network)
        .caveat(others),
    )
}
