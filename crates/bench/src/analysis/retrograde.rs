//! Does throughput fall when more load comes?

use super::spread::{median, sorted};

/// A fall below this share is within what levels differ by on a shared machine.
pub const FALL_MIN: f64 = 0.20;
/// Repetitions per level from which on the levels must not overlap.
const REPETITIONS_TO_SEPARATE: usize = 3;

/// Throughput at one load, one value per repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// Connections, workers or requests in flight.
    pub load: f64,
    /// Requests per second of each repetition.
    pub throughput: Vec<f64>,
}

impl Level {
    /// A level with its repetitions.
    pub fn new(load: f64, throughput: &[f64]) -> Self {
        Self { load, throughput: throughput.to_vec() }
    }

    /// The median of the repetitions.
    pub fn median(&self) -> f64 {
        median(&self.throughput)
    }
}

/// A fall from a peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// Load with the highest median.
    pub peak_load: f64,
    /// That median.
    pub peak: f64,
    /// The load that `end` belongs to.
    pub end_load: f64,
    /// The better median of the two highest loads beyond the peak.
    pub end: f64,
    /// False if there were too few repetitions to see that peak and end do not overlap.
    pub separated: bool,
}

impl Fall {
    /// Share of the peak that is lost.
    pub fn share(&self) -> f64 {
        1.0 - self.end / self.peak
    }
}

/// The fall from the best level to the end of the ramp, if it is at least [`FALL_MIN`] and not
/// within the spread of the repetitions. One bad level at the end does not count when the one
/// before is well. O(n log n) in the number of values.
pub fn fall(levels: &[Level]) -> Option<Fall> {
    let mut levels: Vec<&Level> = levels.iter().filter(|l| !l.throughput.is_empty()).collect();
    levels.sort_by(|a, b| a.load.total_cmp(&b.load));
    let (at, peak) =
        levels.iter().enumerate().max_by(|a, b| a.1.median().total_cmp(&b.1.median()))?;
    let beyond = &levels[at + 1..];
    let last_two = &beyond[beyond.len().saturating_sub(2)..];
    let end = last_two.iter().max_by(|a, b| a.median().total_cmp(&b.median()))?;
    let repeated = peak.throughput.len().min(end.throughput.len()) >= REPETITIONS_TO_SEPARATE;
    let overlap = sorted(&end.throughput).last() >= sorted(&peak.throughput).first();
    let found = Fall {
        peak_load: peak.load,
        peak: peak.median(),
        end_load: end.load,
        end: end.median(),
        separated: repeated && !overlap,
    };
    (found.share() >= FALL_MIN && !(repeated && overlap)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: &[(f64, &[f64])]) -> Vec<Level> {
        of.iter().map(|(load, values)| Level::new(*load, values)).collect()
    }

    #[test]
    fn a_fall_is_detected() {
        let found = fall(&levels(&[
            (1.0, &[10.0, 11.0, 10.5]),
            (10.0, &[80.0, 82.0, 81.0]),
            (100.0, &[50.0, 48.0, 49.0]),
            (1000.0, &[30.0, 31.0, 29.0]),
        ]))
        .expect("it falls");
        assert!((found.peak_load - 10.0).abs() < 1e-9 && (found.end_load - 100.0).abs() < 1e-9);
        assert!((found.end - 49.0).abs() < 1e-9 && found.separated);
    }

    #[test]
    fn a_plateau_with_noise_or_one_bad_level_is_no_fall() {
        assert_eq!(fall(&levels(&[(1.0, &[10.0]), (10.0, &[80.0]), (100.0, &[75.0])])), None);
        // Sometimes as low at the end as at the peak: noise.
        let noisy: &[f64] = &[80.0, 40.0, 90.0];
        assert_eq!(fall(&levels(&[(10.0, noisy), (100.0, &[50.0, 55.0, 45.0])])), None);
        let hiccup = levels(&[(1.0, &[10.0]), (10.0, &[80.0]), (50.0, &[79.0]), (100.0, &[20.0])]);
        assert_eq!(fall(&hiccup), None);
        assert_eq!(fall(&[]), None);
        assert_eq!(fall(&levels(&[(1.0, &[10.0])])), None);
    }
}
