//! Repetitions of one measurement: where they lie and how far apart. Whether two sets of them
//! differ is decided by [`crate::compare`].

/// Scales the MAD of a normal distribution to its standard deviation (Rousseeuw and Croux,
/// "Alternatives to the Median Absolute Deviation", JASA 88, 1993).
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// A robust summary of repetitions, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// Median absolute deviation from the median, not scaled.
    pub mad: f64,
}

impl Spread {
    /// Summarises `values`; `None` if there are none or one is not a number. O(n log n).
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| v.is_nan()) {
            return None;
        }
        let ordered = sorted(values);
        let median = middle(&ordered);
        let deviations: Vec<f64> = ordered.iter().map(|v| (v - median).abs()).collect();
        Some(Self {
            min: ordered[0],
            median,
            max: ordered[ordered.len() - 1],
            mad: self::median(&deviations),
        })
    }

    /// The spread as a share of the median, comparable with a coefficient of variation; 0 for one
    /// value.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { MAD_TO_SIGMA * self.mad / self.median.abs() }
    }
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut ordered = values.to_vec();
    ordered.sort_by(f64::total_cmp);
    ordered
}

/// The median, between the two middle values if their number is even; not a number if there are
/// none. O(n log n).
pub fn median(values: &[f64]) -> f64 {
    middle(&sorted(values))
}

fn middle(ordered: &[f64]) -> f64 {
    let Some(last) = ordered.len().checked_sub(1) else { return f64::NAN };
    let (low, high) = (ordered[last / 2], ordered[last.div_ceil(2)]);
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_spread_of_known_values_is_right() {
        // The median is 2, the deviations are 1 1 0 0 2 4 7, their median is 1.
        let spread = Spread::of(&[1.0, 9.0, 2.0, 1.0, 6.0, 4.0, 2.0]).expect("there are values");
        assert!(same(spread.median, 2.0) && same(spread.mad, 1.0));
        assert!(same(spread.min, 1.0) && same(spread.max, 9.0));
        assert!(same(spread.relative(), MAD_TO_SIGMA / 2.0));
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        for (values, want) in
            [(&[4.0, 1.0, 3.0, 2.0][..], 2.5), (&[3.0, 1.0, 2.0], 2.0), (&[7.0], 7.0)]
        {
            assert!(same(median(values), want), "{values:?}");
        }
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn one_outlier_does_not_change_the_spread() {
        let spread = Spread::of(&[100.0, 101.0, 99.0, 100.0, 5.0]).expect("there are values");
        assert!(same(spread.median, 100.0) && spread.relative() < 0.02);
    }

    #[test]
    fn no_values_have_no_spread() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert!(Spread::of(&[7.0]).is_some_and(|s| same(s.relative(), 0.0)));
    }
}
