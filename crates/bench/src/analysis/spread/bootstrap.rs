//! An interval for the ratio of two medians.
//!
//! B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile interval):
//! draw repetitions with replacement, take the ratio, look where the middle of all ratios lies.

use base::prng::Prng;

use super::{median, quantile};

/// Enough that the ends of a 95 % interval move by less than its width's hundredth.
const DRAWS: usize = 4000;
/// The same data give the same interval.
const SEED: u64 = 0x5eaf;

/// The interval that holds the ratio of the medians of `candidate` to `baseline` with `confidence`
/// (0.95 for 95 %). `None` if either is empty or a median of the baseline is 0. O(n log n) draws of 4,000.
pub fn ratio_interval(baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if baseline.is_empty() || candidate.is_empty() {
        return None;
    }
    let mut prng = Prng::new(SEED);
    let mut again = |of: &[f64]| {
        let drawn: Vec<f64> =
            (0..of.len()).map(|_| of[prng.below(of.len() as u64) as usize]).collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let below = again(baseline);
            again(candidate) / below
        })
        .collect();
    if ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some((quantile(&ratios, tail), quantile(&ratios, 1.0 - tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_true_ratio_about_as_often_as_it_says() {
        let mut prng = Prng::new(7);
        // A sum of uniform draws: near normal, 100 +- 4 %.
        let mut sample = |centre: f64| -> Vec<f64> {
            let draw = |prng: &mut Prng| {
                (0..4).map(|_| prng.below(1001) as f64 / 1000.0).sum::<f64>() / 4.0 - 0.5
            };
            (0..9).map(|_| centre * (1.0 + 0.3 * draw(&mut prng))).collect()
        };
        let mut held = 0;
        for _ in 0..60 {
            let (a, b) = (sample(100.0), sample(120.0));
            let (low, high) = ratio_interval(&a, &b, 0.95).expect("there are values");
            held += usize::from(low <= 1.2 && 1.2 <= high);
        }
        assert!((52..=60).contains(&held), "{held} of 60");
    }

    #[test]
    fn equal_values_have_no_width_and_nothing_has_no_interval() {
        let (low, high) = ratio_interval(&[2.0; 5], &[3.0; 5], 0.95).expect("there are values");
        assert!((low - 1.5).abs() < 1e-12 && (high - 1.5).abs() < 1e-12);
        assert_eq!(ratio_interval(&[], &[1.0], 0.95), None);
        assert_eq!(ratio_interval(&[0.0, 0.0], &[1.0], 0.95), None);
    }
}
