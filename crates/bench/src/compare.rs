//! Are two series of repeated measurements different, by how much, and can it be chance?
//!
//! Repetitions of the same load are compared by the ratio of their geometric means, B to A. The
//! logarithms of the repetitions are taken as samples of two populations whose variances need not
//! be equal, so the interval of the ratio and its p-value come from Welch's t-test on them (B. L.
//! Welch, "The generalization of 'Student's' problem when several different population variances
//! are involved", Biometrika 34, 1947). Every figure of every load is one test, and with many tests
//! some succeed by chance: the p-values of one comparison are corrected by Holm's step-down
//! procedure (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
//! Journal of Statistics 6, 1979), so that the probability of calling anything at all different
//! that is not stays below 5 %. The approach (intervals instead of single figures) follows A.
//! Georges, D. Buytaert and L. Eeckhout, "Statistically rigorous Java performance evaluation",
//! OOPSLA 2007.
//!
//! Nothing is called different that has fewer than [`REPETITIONS_MIN`] repetitions on either side,
//! or that differs by less than [`EFFECT_MIN`]: a difference that nobody would notice is no win.

mod student;

use std::collections::BTreeMap;

use crate::host::OTHER_CPUS_MAX;
use crate::result::{Measurement, Results};

/// Fewest repetitions on each side.
pub const REPETITIONS_MIN: usize = 3;
/// Smallest difference of a ratio from 1 that is worth a word.
pub const EFFECT_MIN: f64 = 0.01;
/// Probability of calling anything different in a comparison of equals.
pub const ERROR_RATE: f64 = 0.05;

/// A figure of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// More is better.
    pub more_is_better: bool,
    value: fn(&Measurement) -> Option<f64>,
}

/// The figures that are compared.
pub const FIGURES: &[Figure] = &[
    Figure { name: "throughput", more_is_better: true, value: |m| Some(m.throughput) },
    Figure { name: "p50 latency", more_is_better: false, value: |m| Some(m.latency.p50_us) },
    Figure { name: "p99 latency", more_is_better: false, value: |m| Some(m.latency.p99_us) },
    Figure {
        name: "server CPU per request",
        more_is_better: false,
        value: |m| m.server.map(|server| server.cpu_us_per_request),
    },
];

/// What can be said.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// B is better, beyond chance.
    Better,
    /// B is worse, beyond chance.
    Worse,
    /// A difference may be chance, or is too small to matter.
    Same,
    /// No statement is possible: why.
    Unknown(String),
}

/// One figure of one load in both files.
#[derive(Clone, Debug)]
pub struct Row {
    /// The load and its parameters.
    pub load: String,
    /// Which figure.
    pub figure: Figure,
    /// Geometric mean of A.
    pub a: f64,
    /// Geometric mean of B.
    pub b: f64,
    /// Repetitions of both.
    pub repetitions: (usize, usize),
    /// B to A.
    pub ratio: f64,
    /// 95 % interval of the ratio, without correction for the number of tests.
    pub interval: (f64, f64),
    /// Probability of a difference at least as large between equals, corrected.
    pub p: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// A comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The figures.
    pub rows: Vec<Row>,
    /// What a reader must know besides.
    pub warnings: Vec<String>,
}

/// Compares two files.
pub fn compare(a: &Results, b: &Results) -> Comparison {
    let mut made = Comparison { rows: Vec::new(), warnings: warnings(a, b) };
    // A file about one server each is about two servers: their names are not part of the load.
    let by_target = targets(a).len() > 1 || targets(b).len() > 1;
    let (ours, theirs) = (groups(a, by_target), groups(b, by_target));
    for (load, first) in &ours {
        let Some(second) = theirs.get(load) else {
            made.warnings.push(format!("only in A: {load}"));
            continue;
        };
        for figure in FIGURES {
            made.rows.extend(row(load, *figure, first, second));
        }
    }
    for load in theirs.keys().filter(|load| !ours.contains_key(*load)) {
        made.warnings.push(format!("only in B: {load}"));
    }
    judge(&mut made.rows);
    made
}

fn targets(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = results.measurements.iter().map(|m| m.target.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Repetitions of the same load, in a stable order.
fn groups(results: &Results, by_target: bool) -> BTreeMap<String, Vec<&Measurement>> {
    let mut groups: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
    for one in &results.measurements {
        let mut name = one.load.clone();
        if by_target {
            name = format!("{}: {name}", one.target);
        }
        for (key, value) in &one.parameters {
            name.extend([" ", key, "=", value]);
        }
        groups.entry(name).or_default().push(one);
    }
    groups
}

fn warnings(a: &Results, b: &Results) -> Vec<String> {
    let mut list = Vec::new();
    if a.machine != b.machine {
        list.push("the two files come from different machines".to_owned());
    }
    for (name, results) in [("A", a), ("B", b)] {
        let all = &results.measurements;
        let noisy = all.iter().filter(|one| one.other_cpus > OTHER_CPUS_MAX).count();
        if noisy > 0 {
            list.push(format!(
                "{name}: in {noisy} of {} runs something else used more than {OTHER_CPUS_MAX} CPUs",
                all.len()
            ));
        }
        let failed = all.iter().filter(|one| !one.failures.is_empty()).count();
        if failed > 0 {
            list.push(format!("{name}: {failed} of {} runs failed", all.len()));
        }
    }
    list
}

fn row(load: &str, figure: Figure, a: &[&Measurement], b: &[&Measurement]) -> Option<Row> {
    let logs = |of: &[&Measurement]| -> Vec<f64> {
        let values = of.iter().filter_map(|one| (figure.value)(one));
        values.filter(|value| *value > 0.0).map(f64::ln).collect()
    };
    let (first, second) = (logs(a), logs(b));
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let failed = a.iter().chain(b).any(|one| !one.failures.is_empty());
    let (mean_a, mean_b) = (mean(&first), mean(&second));
    let difference = mean_b - mean_a;
    let (p, half, verdict) = if failed {
        (1.0, f64::INFINITY, Verdict::Unknown("a run failed".to_owned()))
    } else if first.len().min(second.len()) < REPETITIONS_MIN {
        let why = format!("fewer than {REPETITIONS_MIN} repetitions");
        (1.0, f64::INFINITY, Verdict::Unknown(why))
    } else {
        let (p, half) = welch(&first, &second);
        (p, half, Verdict::Same)
    };
    Some(Row {
        load: load.to_owned(),
        figure,
        a: mean_a.exp(),
        b: mean_b.exp(),
        repetitions: (first.len(), second.len()),
        ratio: difference.exp(),
        interval: ((difference - half).exp(), (difference + half).exp()),
        p,
        verdict,
    })
}

/// Two-sided p-value and half the width of the 95 % interval of the difference of means.
fn welch(a: &[f64], b: &[f64]) -> (f64, f64) {
    let part = |of: &[f64]| variance(of) / of.len() as f64;
    let (va, vb) = (part(a), part(b));
    // Repetitions that agree in every digit are no proof of anything: the clock has a resolution.
    let error = (va + vb).sqrt().max(1e-9);
    let freedom = if va + vb > 0.0 {
        (va + vb).powi(2) / (va.powi(2) / (a.len() - 1) as f64 + vb.powi(2) / (b.len() - 1) as f64)
    } else {
        (a.len() + b.len() - 2) as f64
    };
    let t = (mean(b) - mean(a)) / error;
    (student::two_sided(t, freedom), student::quantile(1.0 - ERROR_RATE / 2.0, freedom) * error)
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

fn variance(of: &[f64]) -> f64 {
    let mean = mean(of);
    of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (of.len() - 1) as f64
}

/// Holm's correction over all rows that can be judged, then the verdicts.
fn judge(rows: &mut [Row]) {
    let mut order: Vec<usize> =
        (0..rows.len()).filter(|&at| rows[at].verdict == Verdict::Same).collect();
    order.sort_by(|&a, &b| rows[a].p.total_cmp(&rows[b].p));
    let tests = order.len();
    let mut largest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        let row = &mut rows[at];
        largest = largest.max((row.p * (tests - rank) as f64).min(1.0));
        row.p = largest;
        if row.p < ERROR_RATE && (row.ratio - 1.0).abs() >= EFFECT_MIN {
            let more = row.ratio > 1.0;
            let better = more == row.figure.more_is_better;
            row.verdict = if better { Verdict::Better } else { Verdict::Worse };
        }
    }
}

#[cfg(test)]
mod tests;
