//! The five published clients, and the same client for all five strategies.

use ingest::Strategy;

use super::point::Way;
use crate::acks::Classic;
use crate::analysis::figure::count;
use crate::result::Measurement;

/// One client for all, so that strategies can be compared: clients, messages on each, messages per
/// write.
pub const COMMON: (usize, u64, usize) = (20, 200_000, 50);
/// The row of that client.
pub const COMMON_LABEL: &str = "the same client for all: 20 x 200,000, 50 per write";

/// What a published client is compared with: request-reply has nothing to compare with but replies.
pub fn yardstick<T>(strategy: Strategy, null: T, echo: T) -> (T, Way) {
    match strategy {
        Strategy::RequestReply => (echo, Way::Echo),
        _ => (null, Way::Null),
    }
}

/// What a published client is called in tables.
pub fn label(classic: &Classic) -> String {
    let Classic { strategy, clients, messages, batch, nodelay, .. } = classic;
    let nagle = if *nodelay { "" } else { ", Nagle" };
    let messages = count(*messages as f64);
    format!("{}: {clients} x {messages}, {batch} per write{nagle}", strategy.name())
}

/// The line that the published clients print, of acknowledged messages.
pub fn line(m: &Measurement) -> String {
    let (usec, calls) = (m.seconds * 1e6, (m.requests as f64).max(1.0));
    format!(
        "elapsed usec={usec:.0} avg(usec/call)={:.6} avg(call/msec)={:.3} avg(call/sec)={:.3}",
        usec / calls,
        calls / (usec / 1e3),
        calls / (usec / 1e6)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_published_format() {
        let m = Measurement { seconds: 2.0, requests: 500_000, ..Measurement::default() };
        let printed = "elapsed usec=2000000 avg(usec/call)=4.000000 avg(call/msec)=250.000 avg(call/sec)=250000.000";
        assert_eq!(line(&m), printed);
    }

    #[test]
    fn the_common_client_matches_its_label() {
        let (clients, messages, batch) = COMMON;
        let messages = count(messages as f64);
        assert!(COMMON_LABEL.ends_with(&format!("{clients} x {messages}, {batch} per write")));
    }
}
