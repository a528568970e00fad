//! Has a figure become steady?

use super::spread::{Spread, median};

/// Throughput of intervals of a second moves by this much on a quiet machine.
pub const TOLERANCE: f64 = 0.03;

/// True if the last `window` values are steady: the medians of their halves differ by at most
/// `tolerance` of the whole, and so does their spread. False while there are fewer than `window`
/// values, or fewer than four. O(window log window).
pub fn is_steady(values: &[f64], window: usize, tolerance: f64) -> bool {
    if window < 4 || values.len() < window {
        return false;
    }
    let last = &values[values.len() - window..];
    let (before, after) = last.split_at(window / 2);
    let Some(spread) = Spread::of(last) else { return false };
    let drift = (median(before) - median(after)).abs();
    spread.median > 0.0 && drift <= tolerance * spread.median && spread.relative() <= tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_is_steady_and_a_ramp_is_not() {
        let ramp: Vec<f64> = (1..=10).map(|i| f64::from(i) * 100.0).collect();
        assert!(!is_steady(&ramp, 6, TOLERANCE));
        let mut plateau = ramp.clone();
        plateau.extend([1000.0, 1010.0, 995.0, 1005.0, 1000.0, 998.0]);
        assert!(is_steady(&plateau, 6, TOLERANCE));
    }

    #[test]
    fn oscillation_and_silence_are_not_steady() {
        assert!(!is_steady(&[100.0, 150.0, 100.0, 150.0, 100.0, 150.0], 6, TOLERANCE));
        assert!(!is_steady(&[0.0; 8], 6, TOLERANCE));
        assert!(!is_steady(&[1.0, 1.0, 1.0], 6, TOLERANCE));
    }
}
