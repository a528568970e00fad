//! What the tests of experiments share.

#![allow(dead_code)] // each test file uses its part

use bench::analysis::findings::{Blame, entry};
use bench::lab::target::Target;
use bench::lab::{Output, Setup};
use bench::result::FindingKind;

/// The short form with one repetition.
pub fn short(targets: &[impl AsRef<str>], seconds: Option<f64>) -> Setup {
    let targets = targets.iter().map(|text| Target::parse(text.as_ref()).expect("a target"));
    Setup { targets: targets.collect(), seconds, short: true, repetitions: 1 }
}

/// What was found of a target.
pub fn kinds(output: &Output, target: &str) -> Vec<FindingKind> {
    output.findings.iter().filter(|f| f.target == target).map(|f| f.kind).collect()
}

/// Defects of the server that were found of a target, about which something must be said.
pub fn defects(output: &Output, target: &str) -> Vec<FindingKind> {
    let found = kinds(output, target);
    assert!(!found.is_empty(), "{target} was judged");
    found.into_iter().filter(|kind| entry(*kind).blame == Blame::Server).collect()
}
