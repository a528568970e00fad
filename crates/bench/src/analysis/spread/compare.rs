//! Is one set of repetitions better than another, or is it noise?

use super::{median, rank_sum_p, ratio_interval};

/// Fewer repetitions on either side cannot show a difference: of 3 against 3 even complete separation
/// happens by chance in one case of ten.
pub const REPETITIONS_MIN: usize = 4;
/// Chance at most that equal things are called different.
pub const LEVEL: f64 = 0.05;
/// A smaller difference of medians is called none even if it is steady: the order of linking and the size of
/// the environment alone move programs by that much (Mytkowicz et al., "Producing Wrong Data Without Doing
/// Anything Obviously Wrong!", ASPLOS 2009).
pub const EFFECT_MIN: f64 = 0.02;

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate's values are higher.
    Higher,
    /// The candidate's values are lower.
    Lower,
    /// No difference beyond noise.
    Noise,
    /// Too few repetitions to say anything.
    TooFew,
}

/// Two sets of repetitions side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the candidate over median of the baseline.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of a rank sum like this if both were alike.
    pub p: f64,
    /// Repetitions of baseline and candidate.
    pub repetitions: (usize, usize),
    /// What can be said.
    pub verdict: Verdict,
}

impl Comparison {
    /// The ratio with its interval and what it means, `+12 % (95 %: +9 % to +15 %): higher`.
    pub fn sentence(&self) -> String {
        let change = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
        let verdict = match self.verdict {
            Verdict::Higher => format!("higher (p = {:.3})", self.p),
            Verdict::Lower => format!("lower (p = {:.3})", self.p),
            Verdict::Noise => format!("no difference beyond noise (p = {:.2})", self.p),
            Verdict::TooFew => {
                let (a, b) = self.repetitions;
                format!("nothing can be said of {a} and {b} repetitions; make {REPETITIONS_MIN}")
            }
        };
        let (low, high) = (change(self.low), change(self.high));
        format!("{} (95 %: {low} to {high}): {verdict}", change(self.ratio))
    }
}

/// Compares `candidate` with `baseline`. A difference is called one only if all hold: both have
/// [`REPETITIONS_MIN`] repetitions, the rank-sum test gives at most [`LEVEL`], the bootstrap interval of the
/// ratio of medians leaves 1 out, and the medians differ by [`EFFECT_MIN`]. `None` if either is empty, holds
/// what is not a number, or the baseline has a median of 0.
pub fn compare(baseline: &[f64], candidate: &[f64]) -> Option<Comparison> {
    if baseline.iter().chain(candidate).any(|v| !v.is_finite()) {
        return None;
    }
    let (low, high) = ratio_interval(baseline, candidate, 1.0 - LEVEL)?;
    let ratio = median(candidate) / median(baseline);
    let p = rank_sum_p(baseline, candidate);
    let repetitions = (baseline.len(), candidate.len());
    let verdict = decide(repetitions, ratio, (low, high), p);
    Some(Comparison { ratio, low, high, p, repetitions, verdict })
}

fn decide(repetitions: (usize, usize), ratio: f64, (low, high): (f64, f64), p: f64) -> Verdict {
    let shown = p <= LEVEL && !(low..=high).contains(&1.0) && (ratio - 1.0).abs() >= EFFECT_MIN;
    match shown {
        _ if repetitions.0.min(repetitions.1) < REPETITIONS_MIN => Verdict::TooFew,
        true if ratio > 1.0 => Verdict::Higher,
        true => Verdict::Lower,
        false => Verdict::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;
    use proptest::prelude::*;

    fn verdict(a: &[f64], b: &[f64]) -> Verdict {
        compare(a, b).expect("there are values").verdict
    }

    #[test]
    fn a_clear_win_and_a_clear_loss() {
        let slow = [100.0, 101.0, 99.0, 100.5, 99.5];
        let fast = [112.0, 111.0, 113.0, 110.0, 112.5];
        assert_eq!(verdict(&slow, &fast), Verdict::Higher);
        assert_eq!(verdict(&fast, &slow), Verdict::Lower);
        let told = compare(&slow, &fast).expect("there are values").sentence();
        assert!(told.starts_with("+12.0 %") && told.contains("higher"), "{told}");
    }

    #[test]
    fn noise_is_not_a_win() {
        let a = [100.0, 92.0, 108.0, 97.0, 103.0];
        let b = [104.0, 96.0, 110.0, 94.0, 105.0];
        assert_eq!(verdict(&a, &b), Verdict::Noise);
    }

    #[test]
    fn a_steady_trifle_is_not_a_win() {
        let a = [100.0, 100.1, 100.2, 99.9, 99.8, 100.0];
        let b = [101.0, 101.1, 101.2, 100.9, 100.8, 101.0];
        assert_eq!(verdict(&a, &b), Verdict::Noise);
    }

    #[test]
    fn every_condition_must_hold() {
        assert_eq!(decide((5, 5), 1.1, (1.05, 1.2), 0.01), Verdict::Higher);
        assert_eq!(decide((5, 5), 0.9, (0.8, 0.95), 0.01), Verdict::Lower);
        assert_eq!(decide((5, 5), 1.1, (1.05, 1.2), 0.06), Verdict::Noise);
        assert_eq!(decide((5, 5), 1.1, (0.99, 1.2), 0.01), Verdict::Noise);
        assert_eq!(decide((5, 5), 1.01, (1.005, 1.02), 0.01), Verdict::Noise);
        assert_eq!(decide((5, 3), 1.1, (1.05, 1.2), 0.01), Verdict::TooFew);
    }

    #[test]
    fn three_repetitions_show_nothing() {
        assert_eq!(verdict(&[1.0, 1.0, 1.0], &[9.0, 9.0, 9.0]), Verdict::TooFew);
        assert_eq!(verdict(&[1.0; 4], &[9.0; 4]), Verdict::Higher);
        assert_eq!(compare(&[], &[1.0]), None);
        assert_eq!(compare(&[f64::NAN], &[1.0]), None);
    }

    /// Repeated comparisons of a thing with itself: wrong at most about one time in twenty.
    #[test]
    fn a_thing_compared_with_itself_is_seldom_called_different() {
        let mut prng = Prng::new(3);
        let mut sample =
            || -> Vec<f64> { (0..6).map(|_| 100.0 + prng.below(20_001) as f64 / 1000.0).collect() };
        let wrong = (0..200).filter(|_| verdict(&sample(), &sample()) != Verdict::Noise).count();
        assert!(wrong <= 16, "{wrong} of 200");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn turning_it_round_turns_the_verdict_round(
            a in proptest::collection::vec(50.0_f64..150.0, 1..8),
            b in proptest::collection::vec(50.0_f64..150.0, 1..8),
        ) {
            let there = compare(&a, &b).expect("positive values");
            let back = compare(&b, &a).expect("positive values");
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 1e-9);
            prop_assert_eq!(there.verdict == Verdict::TooFew, back.verdict == Verdict::TooFew);
            prop_assert!(there.verdict != Verdict::Higher || back.verdict != Verdict::Higher);
        }
    }
}
