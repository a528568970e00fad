//! Rules on what a cache with a limit of memory keeps.

use super::evidence::Caching;
use super::proof::{Figures, Proof};
use crate::analysis::figure;

/// Share of the reads that a sampled order may find less than the exact one: runs of one trace
/// differ by some tenths of a point.
pub const LOST_SHARE: f64 = 0.02;
/// Servers keep the second of the last use. A key must wait so many seconds before it goes, so that
/// they can tell keys apart.
pub const AGE_S: f64 = 10.0;
/// Share of the reads that a cache which withstands scans must find more.
pub const RESISTANT_SHARE: f64 = 0.02;
/// Share of the reads that are of keys which are read once: below this they push out little.
pub const READ_ONCE_SHARE: f64 = 0.05;
/// Memory above the limit: a server may evict after the command that needs room, and commands of
/// some connections meet.
pub const OVER_LIMIT_SHARE: f64 = 0.05;

/// The server finds less than the exact order of which its policy takes samples.
pub fn sampling_loses(seen: &Caching) -> Option<Proof> {
    let (name, exact) = seen.exact?;
    let lost = exact - seen.hits;
    (lost >= LOST_SHARE && seen.age_s? >= AGE_S).then(|| {
        figures("sampling_loses", seen)
            .with("exact", name)
            .with("more", points(exact))
            .with("lost", points(lost))
            .proof()
    })
}

/// What is read once takes the place of what is read often.
pub fn scan_pollution(seen: &Caching) -> Option<Proof> {
    let (name, resistant) = seen.resistant?;
    let gain = resistant - seen.hits;
    (gain >= RESISTANT_SHARE && seen.read_once >= READ_ONCE_SHARE).then(|| {
        figures("scan_pollution", seen)
            .with("once", figure::percent(seen.read_once))
            .with("resistant", name)
            .with("more", points(resistant))
            .with("gain", points(gain))
            .proof()
    })
}

/// The server uses more than its limit.
pub fn over_limit(seen: &Caching) -> Option<Proof> {
    let over = seen.over_limit.filter(|over| *over >= OVER_LIMIT_SHARE)?;
    Some(figures("over_limit", seen).with("over", figure::percent(over)).proof())
}

fn figures(rule: &'static str, seen: &Caching) -> Figures {
    Figures::of(rule).with("trace", &seen.trace).with("hits", points(seen.hits))
}

/// A share in per cent with one decimal, so that points can be compared.
fn points(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}
