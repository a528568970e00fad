//! Little's law: what is in flight equals throughput times the time each request spends.
//!
//! J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9(3), 1961. It
//! needs no assumption on arrivals or service, so a run that breaks it was measured wrongly: some
//! of the time that requests spend is not in the latency that was recorded.

use super::figure;

/// How far the ratio may be from 1: ramps at both ends of a run of seconds and the resolution of
/// the latency histogram stay below a few per cent; a stall hides multiples.
pub const TOLERANCE: f64 = 0.10;

/// Throughput times mean latency over what was in flight: 1 where the three figures agree.
///
/// `in_flight` in requests, `throughput` in requests per second, `mean_latency_s` in seconds. Not a
/// number if nothing was in flight.
pub fn littles_law(in_flight: f64, throughput: f64, mean_latency_s: f64) -> f64 {
    if in_flight <= 0.0 { f64::NAN } else { throughput * mean_latency_s / in_flight }
}

/// What a ratio of Little's law says about the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The figures agree within the tolerance.
    Fits,
    /// Fewer replies than in-flight over latency promises: the latency hides time.
    HiddenTime,
    /// More replies than in-flight over latency allows: the latency counts time twice, or more was
    /// in flight.
    TooFast,
    /// There is nothing to compare.
    Unknown,
}

/// Judges a ratio by [`TOLERANCE`].
pub fn balance(ratio: f64) -> Balance {
    if !ratio.is_finite() {
        Balance::Unknown
    } else if ratio < 1.0 - TOLERANCE {
        Balance::HiddenTime
    } else if ratio > 1.0 + TOLERANCE {
        Balance::TooFast
    } else {
        Balance::Fits
    }
}

/// The check in one sentence.
pub fn sentence(in_flight: f64, throughput: f64, mean_latency_s: f64) -> String {
    let ratio = littles_law(in_flight, throughput, mean_latency_s);
    let promised = in_flight / mean_latency_s;
    let verdict = match balance(ratio) {
        Balance::Fits => "the figures agree",
        Balance::HiddenTime => "requests spend time that the latency does not show",
        Balance::TooFast => "more was in flight than was counted, or latency counts time twice",
        Balance::Unknown => return "Little's law: nothing was in flight".to_owned(),
    };
    format!(
        "Little's law: {} in flight over {} promises {}/s, {}/s came (ratio {ratio:.2}): {verdict}",
        figure::count(in_flight),
        figure::time(mean_latency_s * 1e6),
        figure::count(promised),
        figure::count(throughput),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistent_figures_fit() {
        // 50 connections, 500 us each: 100,000 requests per second.
        let ratio = littles_law(50.0, 100_000.0, 500e-6);
        assert!((ratio - 1.0).abs() < 1e-12);
        assert_eq!(balance(ratio), Balance::Fits);
        assert_eq!(balance(littles_law(50.0, 95_000.0, 500e-6)), Balance::Fits);
    }

    #[test]
    fn hidden_time_is_detected() {
        // A stall: 33,000 requests per second, although the reported latency promises 193,000.
        let ratio = littles_law(800.0, 33_000.0, 800.0 / 193_000.0);
        assert_eq!(balance(ratio), Balance::HiddenTime);
        assert!(sentence(800.0, 33_000.0, 800.0 / 193_000.0).contains("does not show"));
    }

    #[test]
    fn impossible_throughput_and_no_throughput_are_distinguished() {
        assert_eq!(balance(littles_law(10.0, 100_000.0, 500e-6)), Balance::TooFast);
        assert_eq!(balance(littles_law(0.0, 1.0, 1.0)), Balance::Unknown);
    }
}
