//! The five published clients, and the same client for all five strategies.

use super::subject::{Seen, Subject, Way};
use super::{Plan, Rows, tell};
use crate::acks::{CLASSIC, Classic, Spec};
use crate::lab::{Error, Told};
use crate::result::Measurement;
use ingest::Strategy;

/// One client for all, so that strategies can be compared: clients, messages on each, messages per
/// write.
pub const COMMON: (usize, u64, usize) = (20, 200_000, 50);
/// The row of that client.
pub const COMMON_LABEL: &str = "the same client for all: 20 x 200,000, 50 per write";

/// Runs them on every server, the null reader (request-reply: the loop that sleeps) in turn with
/// each.
pub fn run(
    servers: &[Subject],
    [null, echo, each]: [&Subject; 3],
    plan: &Plan,
    say: &mut dyn FnMut(&str),
) -> Result<Told, Error> {
    let mut rows = Rows::default();
    for repetition in 1..=plan.repetitions {
        for classic in CLASSIC {
            let label = label(&classic);
            say(&format!("{label} ({repetition} of {})", plan.repetitions));
            for server in servers {
                let way = Way::Strategy(classic.strategy);
                let seen = send(server, way, |address| classic.spec(address))?;
                say(&format!("{}: {}", server.name, line(&seen.measurement)));
                rows.add(&label, None, &server.name, way, seen);
            }
            let (model, way) = yardstick(classic.strategy, null, echo);
            let seen = send(model, way, |address| classic.spec(address))?;
            rows.add(&label, None, &model.name, way, seen);
        }
        say(&format!("{COMMON_LABEL} ({repetition} of {})", plan.repetitions));
        let (clients, messages, batch) = COMMON;
        for subject in servers.iter().chain([null, echo, each]) {
            for &(way, _) in &subject.ways {
                let spec = |address| Spec { clients, messages, batch, ..way.spec(address) };
                let seen = send(subject, way, spec)?;
                rows.add(COMMON_LABEL, None, &subject.name, way, seen);
            }
        }
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    Ok(tell::classic(rows, &names, plan))
}

/// What a published client is compared with: request-reply has nothing to compare with but replies.
pub fn yardstick<T>(strategy: Strategy, null: T, echo: T) -> (T, Way) {
    match strategy {
        Strategy::RequestReply => (echo, Way::Echo),
        _ => (null, Way::Null),
    }
}

fn send(
    subject: &Subject,
    way: Way,
    spec: impl FnOnce(std::net::SocketAddr) -> Spec,
) -> Result<Seen, Error> {
    let (_, address) = subject.ways.iter().find(|(w, _)| *w == way).expect("one of its ways");
    subject.measure(way, &Spec { acknowledged: way != Way::Null, ..spec(*address) })
}

/// What a published client is called in tables.
pub fn label(classic: &Classic) -> String {
    let Classic { strategy, clients, messages, batch, nodelay, .. } = classic;
    let nagle = if *nodelay { "" } else { ", Nagle" };
    let messages = crate::analysis::figure::count(*messages as f64);
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
    fn the_line_is_the_published_one() {
        let m = Measurement { seconds: 2.0, requests: 500_000, ..Measurement::default() };
        let told = "elapsed usec=2000000 avg(usec/call)=4.000000 avg(call/msec)=250.000 avg(call/sec)=250000.000";
        assert_eq!(line(&m), told);
    }

    #[test]
    fn the_common_client_is_what_its_label_says() {
        let (clients, messages, batch) = COMMON;
        let messages = crate::analysis::figure::count(messages as f64);
        assert!(COMMON_LABEL.ends_with(&format!("{clients} x {messages}, {batch} per write")));
    }
}
