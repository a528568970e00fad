//! Comparisons of measurements with a known difference.

use base::prng::Prng;

use super::*;
use crate::result::{Failures, ServerUse};

/// Repetitions with these throughputs. Latency is the inverse.
fn results(throughputs: &[f64]) -> Results {
    let one = |&throughput: &f64| {
        let mut one = Measurement { load: "set".to_owned(), throughput, ..Measurement::default() };
        (one.latency.p50_us, one.latency.p99_us) = (1e6 / throughput, 3e6 / throughput);
        one.server = Some(ServerUse { cpu_us_per_request: 1.0, ..ServerUse::default() });
        one
    };
    Results { measurements: throughputs.iter().map(one).collect(), ..Results::default() }
}

fn verdicts(a: &[f64], b: &[f64]) -> Vec<Verdict> {
    compare(&results(a), &results(b)).rows.into_iter().map(|row| row.verdict).collect()
}

#[test]
fn a_difference_beyond_the_spread_is_significant() {
    let (slow, fast) = ([100.0, 101.0, 99.0, 100.5, 99.5], [120.0, 121.0, 119.0, 118.0, 122.0]);
    let all = compare(&results(&slow), &results(&fast)).rows;
    assert_eq!(all.len(), FIGURES.len());
    assert!(all[..3].iter().all(|row| row.verdict == Verdict::Better), "{all:?}");
    assert_eq!(all[3].verdict, Verdict::Same, "the CPU did not change");
    assert!((all[0].ratio - 1.2).abs() < 0.01 && all[0].interval.0 > 1.17, "{:?}", all[0]);
    assert!(verdicts(&fast, &slow)[..3].iter().all(|verdict| *verdict == Verdict::Worse));
}

#[test]
fn noise_few_repetitions_and_failures_are_not_significant() {
    let noisy = verdicts(&[100.0, 130.0, 80.0, 110.0], &[125.0, 95.0, 140.0, 105.0]);
    assert!(noisy.iter().all(|verdict| *verdict == Verdict::Same), "{noisy:?}");
    let few = verdicts(&[100.0, 100.1], &[200.0, 200.1, 200.2]);
    assert!(few.iter().all(|verdict| matches!(verdict, Verdict::Unknown(_))), "{few:?}");
    let tiny = verdicts(&[100.0, 100.01, 99.99], &[100.5, 100.51, 100.49]);
    assert!(tiny.iter().all(|verdict| *verdict == Verdict::Same), "{tiny:?}");
    let mut failed = results(&[200.0, 201.0, 199.0]);
    failed.measurements[0].failures = Failures { lost: 1, ..Failures::default() };
    let made = compare(&results(&[100.0, 101.0, 99.0]), &failed);
    assert!(made.rows.iter().all(|row| row.verdict == Verdict::Unknown("a run failed".to_owned())));
    assert!(made.warnings.iter().any(|warning| warning == "B: 1 of 3 runs failed"));
}

/// 400 comparisons of equal distributions with 5 % spread: at most one in twenty may be called
/// different.
#[test]
fn the_rate_of_false_differences_is_bounded() {
    let mut prng = Prng::new(9);
    let mut called = 0;
    for _ in 0..400 {
        let mut draw = || {
            let sum: f64 = (0..12).map(|_| crate::load::unit(&mut prng)).sum();
            100.0 * (0.05 * (sum - 6.0)).exp()
        };
        let (a, b): (Vec<f64>, Vec<f64>) =
            ((0..5).map(|_| draw()).collect(), (0..5).map(|_| draw()).collect());
        called += usize::from(verdicts(&a, &b).iter().any(|v| *v != Verdict::Same));
    }
    // At most 20 are expected. Four standard deviations more are 37.
    assert!(called <= 37, "{called} of 400");
}

#[test]
fn loads_are_matched_by_parameters_and_by_target_if_several() {
    let mut a = results(&[1.0, 1.0, 1.0]);
    let mut b = results(&[1.0, 1.0, 1.0]);
    for (results, name) in [(&mut a, "redis"), (&mut b, "sheafdb")] {
        results.measurements.iter_mut().for_each(|one| one.target = name.to_owned());
    }
    assert!(!compare(&a, &b).rows.is_empty(), "two servers, one in each file");
    b.measurements[0].target = "redis".to_owned();
    let made = compare(&a, &b);
    assert!(made.warnings.iter().any(|warning| warning == "only in B: sheafdb: set"), "{made:?}");
    a.measurements[0].parameters.push(("pipeline".to_owned(), "2".to_owned()));
    let made = compare(&a, &b);
    assert!(made.warnings.iter().any(|w| w == "only in A: redis: set pipeline=2"), "{made:?}");
}
