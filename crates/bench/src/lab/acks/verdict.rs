//! Which of sync and async wins on this machine, and why.

use std::borrow::Borrow;
use std::fmt::Display;

use ingest::Strategy;

use super::options::TEXTS;
use super::point::Way;
use super::rows::{Row, doubt, find, middle, per_thousand};

/// A difference in throughput below this is none.
const TIE: f64 = 0.05;
/// So much more of something per message explains a difference.
const EXPLAINS: f64 = 1.1;

/// What one strategy costs per message, medians over the points that both went through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    /// Acknowledgements.
    acks: f64,
    /// Receive calls of the server, where it tells.
    reads: Option<f64>,
    /// CPU of the server, microseconds, where it is local.
    server_us: Option<f64>,
    /// CPU of the client, microseconds.
    client_us: f64,
}

/// The verdict on one server in sentences, the answer first; nothing if the two have no point in
/// common. Points at which clients wait are none of it: there async's 5 ms of silence are all that
/// is seen.
pub fn verdict<R: Borrow<Row>>(name: &str, rows: &[R]) -> Vec<String> {
    let rows: Vec<&Row> = rows.iter().map(Borrow::borrow).collect();
    let way = Way::Strategy;
    let sent = rows.iter().copied().filter(|row| row.point.is_none_or(|point| !point.waits));
    let pairs: Vec<(&Row, &Row)> = sent
        .filter(|row| row.is_of(name, way(Strategy::Sync)))
        .filter_map(|sync| {
            Some((sync, find(rows.iter().copied(), &sync.label, name, way(Strategy::Async))?))
        })
        .filter(|(s, a)| s.throughput().is_some() && a.throughput().is_some())
        .collect();
    let ratios: Vec<f64> =
        pairs.iter().filter_map(|(s, a)| Some(a.throughput()? / s.throughput()?)).collect();
    if ratios.is_empty() {
        return Vec::new();
    }
    let (sync, asynchronous): (Vec<&Row>, Vec<&Row>) = pairs.into_iter().unzip();
    let mut text = sentences(&ratios, Cost::of(&sync), Cost::of(&asynchronous));
    text.extend(doubt(sync.into_iter().chain(asynchronous), "a small difference"));
    text
}

impl Cost {
    fn of(rows: &[&Row]) -> Self {
        let over = |figure: &dyn Fn(&Row) -> Option<f64>| {
            middle(rows.iter().filter_map(|row| figure(row)))
        };
        Self {
            acks: over(&|row| row.middle(|seen| Some(seen.acks))).unwrap_or(0.0),
            reads: over(&|row| row.middle(|seen| seen.reads)),
            server_us: over(&Row::server_us),
            client_us: over(&Row::client_us).unwrap_or(0.0),
        }
    }
}

/// `ratios` are async's messages per second over sync's, one for each point.
fn sentences(ratios: &[f64], sync: Cost, asynchronous: Cost) -> Vec<String> {
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let won = ratios.iter().filter(|r| **r > 1.0).count();
    let head = if mean > 1.0 + TIE {
        "async wins"
    } else if mean < 1.0 / (1.0 + TIE) {
        "sync wins"
    } else {
        "neither wins"
    };
    let values: [(&str, &dyn Display); 5] = [
        ("times", &format!("{mean:.2}")),
        ("inverse", &format!("{:.2}", 1.0 / mean)),
        ("won", &won),
        ("lost", &(ratios.len() - won)),
        ("all", &ratios.len()),
    ];
    let head = TEXTS.sentence(head, &values);
    let us = |us: f64| format!("{us:.4}");
    let both = |text: &str, of: fn(&Cost) -> Option<f64>, show: fn(f64) -> String| {
        let values = of(&sync).zip(of(&asynchronous));
        values.map_or(String::new(), |(s, a)| {
            TEXTS.sentence(text, &[("sync", &show(s)), ("async", &show(a))])
        })
    };
    let costs: [(&str, &dyn Display); 6] = [
        ("sync acks", &per_thousand(sync.acks)),
        ("async acks", &per_thousand(asynchronous.acks)),
        ("reads", &both("reads", |cost| cost.reads, per_thousand)),
        ("server", &both("server", |cost| cost.server_us, us)),
        ("sync us", &us(sync.client_us)),
        ("async us", &us(asynchronous.client_us)),
    ];
    let why = TEXTS.sentence(why(mean, sync, asynchronous), &[]);
    vec![head, TEXTS.sentence("costs", &costs), why]
}

/// The cause, from what differs in the winner's favour: the name of its text.
fn why(mean: f64, sync: Cost, asynchronous: Cost) -> &'static str {
    let (winner, loser) = if mean >= 1.0 { (asynchronous, sync) } else { (sync, asynchronous) };
    let more = |a: f64, b: f64| a > b * EXPLAINS;
    let cheaper = winner.server_us.zip(loser.server_us).is_some_and(|(w, l)| more(l, w));
    if (1.0 / (1.0 + TIE)..=1.0 + TIE).contains(&mean) {
        let fewer = more(sync.acks, asynchronous.acks);
        return if fewer { "fewer acknowledgements" } else { "as many acknowledgements" };
    }
    if more(loser.acks, winner.acks) && (cheaper || more(loser.client_us, winner.client_us)) {
        return "by acknowledgements";
    }
    if winner.reads.zip(loser.reads).is_some_and(|(w, l)| more(l, w)) {
        return "by reads";
    }
    if mean < 1.0 { "by silence" } else { "unseen" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Cost = Cost { acks: 0.02, reads: Some(0.02), server_us: Some(0.2), client_us: 0.3 };
    const ASYNC: Cost =
        Cost { acks: 0.001, reads: Some(0.02), server_us: Some(0.1), client_us: 0.2 };

    #[test]
    fn the_winner_and_the_cause_follow_from_the_figures() {
        let text = sentences(&[1.3, 1.2, 0.99], SYNC, ASYNC);
        assert!(text[0].starts_with("Async wins here: 1.16 times"), "{text:?}");
        assert!(text[0].ends_with("ahead at 2 of 3 points."));
        assert!(text[1].contains("sync sends 20 acknowledgements and async 1;"), "{text:?}");
        assert!(text[2].contains("the winner sends fewer"));
        let text = sentences(&[0.5], SYNC, Cost { server_us: Some(0.4), ..ASYNC });
        assert!(text[0].starts_with("Sync wins here: 2.00 times"), "{text:?}");
        assert!(text[2].contains("waits for 5 ms of silence"));
        let text = sentences(&[1.02, 0.99], SYNC, ASYNC);
        assert!(text[0].contains("Neither wins") && text[2].contains("do not pay"), "{text:?}");
    }

    #[test]
    fn every_cause_has_its_text() {
        let costly = |acks, reads| Cost { acks, reads: Some(reads), ..ASYNC };
        for (mean, sync, asynchronous, name) in [
            (1.0, ASYNC, ASYNC, "as many acknowledgements"),
            (2.0, costly(0.001, 0.04), costly(0.001, 0.02), "by reads"),
            (2.0, ASYNC, ASYNC, "unseen"),
        ] {
            assert_eq!(why(mean, sync, asynchronous), name);
            assert!(!TEXTS.sentence(name, &[]).is_empty());
        }
    }

    #[test]
    fn without_points_there_is_no_verdict() {
        assert!(verdict::<Row>("s", &[]).is_empty());
    }
}
