//! Shared by the tests of experiments.

#![allow(dead_code)] // each test file uses a part of it

use bench::analysis::findings::{Blame, entry};
use bench::lab::target::Target;
use bench::lab::{Output, Setup};
use bench::result::FindingKind;

/// The short form with one repetition.
pub fn short(targets: &[impl AsRef<str>], seconds: Option<f64>) -> Setup {
    let targets = targets.iter().map(|text| Target::parse(text.as_ref()).expect("a target"));
    Setup { targets: targets.collect(), seconds, short: true, repetitions: 1 }
}

/// The kinds of findings for a target.
pub fn kinds(output: &Output, target: &str) -> Vec<FindingKind> {
    output.findings.iter().filter(|f| f.target == target).map(|f| f.kind).collect()
}

/// Findings for a target which are defects of the server.
pub fn defects(output: &Output, target: &str) -> Vec<FindingKind> {
    let found = kinds(output, target);
    assert!(!found.is_empty(), "{target} was judged");
    found.into_iter().filter(|kind| entry(*kind).blame == Blame::Server).collect()
}
