//! Which of sync and async wins on this machine, and why.

use std::fmt::Write;

use super::subject::Way;
use super::{Row, per_thousand};
use crate::host::OTHER_CPUS_MAX;
use ingest::Strategy;

/// A difference in throughput below this is none.
const TIE: f64 = 0.05;
/// Fewer repetitions do not tell a difference from noise.
pub const TIMES_MIN: usize = 4;
/// So much more of something per message explains a difference.
const EXPLAINS: f64 = 1.1;

/// What one strategy costs per message, medians over the points that both went through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Acknowledgements.
    pub acks: f64,
    /// Receive calls of the server, where it tells.
    pub reads: Option<f64>,
    /// CPU of the server, microseconds, where it is local.
    pub server_us: Option<f64>,
    /// CPU of the client, microseconds.
    pub client_us: f64,
}

/// The verdict on one server in sentences, the answer first; nothing if the two have no point in
/// common. Points at which clients wait are none of it: there async's 5 ms of silence are all that
/// is seen.
pub fn verdict(name: &str, rows: &[Row]) -> Vec<String> {
    let of = |strategy| {
        let way = Way::Strategy(strategy);
        let sent = rows.iter().filter(|row| row.point.is_none_or(|point| !point.waits));
        sent.filter(move |row| row.subject == name && row.way == way)
    };
    let pairs: Vec<(&Row, &Row)> = of(Strategy::Sync)
        .filter_map(|sync| Some((sync, of(Strategy::Async).find(|r| r.label == sync.label)?)))
        .filter(|(s, a)| s.throughput().is_some() && a.throughput().is_some())
        .collect();
    let ratios: Vec<f64> =
        pairs.iter().filter_map(|(s, a)| Some(a.throughput()? / s.throughput()?)).collect();
    if ratios.is_empty() {
        return Vec::new();
    }
    let (sync, asynchronous): (Vec<&Row>, Vec<&Row>) = pairs.into_iter().unzip();
    let mut told = say(&ratios, cost(&sync), cost(&asynchronous));
    let both = || sync.iter().chain(&asynchronous);
    let times = both().map(|row| row.clean().count()).min().unwrap_or(0);
    let others = both().flat_map(|row| row.clean()).map(|seen| seen.measurement.other_cpus);
    let others = others.fold(0.0, f64::max);
    if times < TIMES_MIN || others > OTHER_CPUS_MAX {
        told.push(format!(
            "But: each point was run {times} times at least, and other programs used up to {others:.2} CPUs: a small difference may be noise."
        ));
    }
    told
}

fn cost(rows: &[&Row]) -> Cost {
    let middle = |figure: &dyn Fn(&Row) -> Option<f64>| {
        let values: Vec<f64> = rows.iter().filter_map(|row| figure(row)).collect();
        (!values.is_empty()).then(|| crate::analysis::spread::median(&values))
    };
    Cost {
        acks: middle(&|row| row.middle(|seen| Some(seen.acks))).unwrap_or(0.0),
        reads: middle(&|row| row.middle(|seen| seen.reads)),
        server_us: middle(&Row::server_us),
        client_us: middle(&Row::client_us).unwrap_or(0.0),
    }
}

/// `ratios` are async's messages per second over sync's, one for each point.
fn say(ratios: &[f64], sync: Cost, asynchronous: Cost) -> Vec<String> {
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let won = ratios.iter().filter(|r| **r > 1.0).count();
    let all = ratios.len();
    let head = if mean > 1.0 + TIE {
        format!(
            "Async wins here: {mean:.2} times sync's messages/s (geometric mean), ahead at {won} of {all} points"
        )
    } else if mean < 1.0 / (1.0 + TIE) {
        let times = 1.0 / mean;
        format!(
            "Sync wins here: {times:.2} times async's messages/s (geometric mean), ahead at {} of {all} points",
            all - won
        )
    } else {
        format!(
            "Neither wins here: async has {mean:.2} times sync's messages/s (geometric mean), ahead at {won} of {all} points"
        )
    };
    let mut costs = format!(
        "Per 1,000 messages sync sends {} acknowledgements and async {}",
        per_thousand(sync.acks),
        per_thousand(asynchronous.acks)
    );
    if let (Some(s), Some(a)) = (sync.reads, asynchronous.reads) {
        let _ =
            write!(costs, "; the server reads {} and {} times", per_thousand(s), per_thousand(a));
    }
    if let (Some(s), Some(a)) = (sync.server_us, asynchronous.server_us) {
        let _ = write!(costs, "; a message takes {s:.4} and {a:.4} us of the server's CPU");
    }
    let _ = write!(
        costs,
        "; {:.4} and {:.4} us of the client's (medians over the points).",
        sync.client_us, asynchronous.client_us
    );
    vec![format!("{head}."), costs, why(mean, sync, asynchronous)]
}

/// The cause, from what differs in the winner's favour.
fn why(mean: f64, sync: Cost, asynchronous: Cost) -> String {
    let (winner, loser) = if mean >= 1.0 { (asynchronous, sync) } else { (sync, asynchronous) };
    let more = |a: f64, b: f64| a > b * EXPLAINS;
    let cheaper = winner.server_us.zip(loser.server_us).is_some_and(|(w, l)| more(l, w));
    if (1.0 / (1.0 + TIE)..=1.0 + TIE).contains(&mean) {
        return if more(sync.acks, asynchronous.acks) {
            "Fewer acknowledgements do not pay here: one per read is already few, and it leaves with what the read costs anyway."
        } else {
            "Both acknowledge about as often, so there is nothing to win."
        }
        .to_owned();
    }
    if more(loser.acks, winner.acks) && (cheaper || more(loser.client_us, winner.client_us)) {
        return "Why: an acknowledgement costs a send in the server and a wake-up and a receive in the client; the winner sends fewer.".to_owned();
    }
    if winner.reads.zip(loser.reads).is_some_and(|(w, l)| more(l, w)) {
        return "Why: the winner's reads bring more messages each, so polls and receives are shared by more.".to_owned();
    }
    if mean < 1.0 {
        return "Why: async's last acknowledgement waits for 5 ms of silence or the 22nd read; sync's is there at once.".to_owned();
    }
    "Why: not seen in acknowledgements, reads or CPU per message; repeat it on a quiet machine."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Cost = Cost { acks: 0.02, reads: Some(0.02), server_us: Some(0.2), client_us: 0.3 };
    const ASYNC: Cost =
        Cost { acks: 0.001, reads: Some(0.02), server_us: Some(0.1), client_us: 0.2 };

    #[test]
    fn the_winner_and_the_cause_follow_from_the_figures() {
        let told = say(&[1.3, 1.2, 0.99], SYNC, ASYNC);
        assert!(told[0].starts_with("Async wins here: 1.16 times"), "{told:?}");
        assert!(told[0].ends_with("ahead at 2 of 3 points."));
        assert!(told[1].contains("sync sends 20 acknowledgements and async 1;"), "{told:?}");
        assert!(told[2].contains("the winner sends fewer"));
        let told = say(&[0.5], SYNC, Cost { server_us: Some(0.4), ..ASYNC });
        assert!(told[0].starts_with("Sync wins here: 2.00 times"), "{told:?}");
        assert!(told[2].contains("waits for 5 ms of silence"));
        let told = say(&[1.02, 0.99], SYNC, ASYNC);
        assert!(told[0].contains("Neither wins") && told[2].contains("do not pay"), "{told:?}");
    }

    #[test]
    fn without_points_there_is_no_verdict() {
        assert!(verdict("s", &[]).is_empty());
    }
}
