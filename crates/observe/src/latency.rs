//! A finer histogram for latencies, logarithmic with linear steps.
//!
//! ```text
//! value in ns     0 .. 63     64 .. 127   128 .. 255   ...   2^39 .. 2^40-1
//! width           1           2           4            ...   2^34
//! buckets         64          32          32           ...   32
//! ```
//!
//! A value is known to 1/32, about 3 %; values above 18 minutes count as 18 minutes. A histogram
//! takes 9 KiB, allocated with the first value. Counters have one writer; readers add up copies.

use crate::Counter;
use base::sync::OnceLock;

/// Linear steps per power of two, as bits.
const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
/// Values of more bits fall into the last bucket.
const VALUE_BITS: u32 = 40;
/// The largest value that can be distinguished from larger ones.
pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;
/// The last bound of [`LatencyTotals::cumulative_us`], in powers of two above 1024 ns: a second.
const POWER_MAX: u32 = 20;
/// Buckets of one histogram.
pub const BUCKETS: usize = (VALUE_BITS - STEP_BITS) as usize * STEPS + STEPS;

/// A latency histogram with a single writer.
#[derive(Debug, Default)]
pub struct Latency {
    buckets: OnceLock<Box<[Counter]>>,
}

/// A copy of one latency histogram's counts, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyTotals {
    buckets: Vec<u64>,
    count: u64,
}

/// The bucket of a value.
#[inline]
const fn bucket_of(value: u64) -> usize {
    let value = if value > VALUE_MAX { VALUE_MAX } else { value };
    if value < 2 * STEPS as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    shift as usize * STEPS + (value >> shift) as usize
}

/// The largest value of a bucket.
const fn bucket_max(bucket: usize) -> u64 {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let shift = (bucket / STEPS - 1) as u32;
    let step = (bucket % STEPS + STEPS) as u64;
    ((step + 1) << shift) - 1
}

impl Latency {
    /// Counts one latency in nanoseconds.
    #[inline]
    pub fn record(&self, ns: u64) {
        self.record_times(1, ns);
    }

    /// Counts `n` latencies of `ns` nanoseconds each.
    #[inline]
    pub fn record_times(&self, n: u64, ns: u64) {
        let buckets =
            self.buckets.get_or_init(|| (0..BUCKETS).map(|_| Counter::default()).collect());
        buckets[bucket_of(ns)].add(n);
    }

    /// Resets all counts. Only the writing worker may call it; otherwise old counts may reappear.
    pub fn reset(&self) {
        if let Some(buckets) = self.buckets.get() {
            buckets.iter().for_each(|b| b.set(0));
        }
    }

    /// Adds the current counts to `totals`.
    pub fn add_to(&self, totals: &mut LatencyTotals) {
        let Some(buckets) = self.buckets.get() else { return };
        totals.buckets.resize(BUCKETS, 0);
        for (total, bucket) in totals.buckets.iter_mut().zip(buckets) {
            let n = bucket.get();
            *total += n;
            totals.count += n;
        }
    }
}

/// A latency histogram with the sum of its values, for service times.
#[derive(Debug, Default)]
pub struct ServiceTimes {
    /// How many took how long.
    pub times: Latency,
    /// Nanoseconds of all of them.
    pub sum_ns: Counter,
}

impl ServiceTimes {
    /// Counts `n` requests of `ns` nanoseconds each.
    #[inline]
    pub fn record(&self, n: u64, ns: u64) {
        self.times.record_times(n, ns);
        self.sum_ns.add(n.wrapping_mul(ns));
    }

    /// Resets all counts. Only the writing worker may call it.
    pub fn reset(&self) {
        self.times.reset();
        self.sum_ns.set(0);
    }
}

impl LatencyTotals {
    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest latency, in nanoseconds, that `percent` of all do not exceed; 0 if nothing was
    /// counted. The result is up to 3 % too large and never too small.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, n) in self.buckets.iter().enumerate() {
            seen += n;
            if *n > 0 && seen >= wanted.min(self.count) {
                return bucket_max(bucket);
            }
        }
        0
    }

    /// How many values did not exceed `ns`, to the precision of the buckets.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        let below = self.buckets.iter().enumerate().take_while(|(at, _)| bucket_max(*at) <= ns);
        below.map(|(_, n)| n).sum()
    }

    /// The cumulative distribution as `LATENCY HISTOGRAM` shows it: an upper bound in microseconds
    /// and how many latencies did not exceed it, for the powers of two that add any. The bounds are
    /// those that redis-server 7.0 answers with. The last one includes all latencies above a
    /// second.
    pub fn cumulative_us(&self) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        let mut before = 0;
        for power in 0..=POWER_MAX {
            let bound_ns: u64 = 1024 << power;
            let seen = if power == POWER_MAX { self.count } else { self.count_up_to(bound_ns - 1) };
            if seen > before {
                all.push(((bound_ns + bound_ns / 128 - 1) / 1000, seen));
            }
            before = seen;
        }
        all
    }

    /// The buckets that are not empty: largest value in nanoseconds, count.
    pub fn occupied(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        buckets.map(|(bucket, n)| (bucket_max(bucket), *n))
    }

    /// Adds other totals.
    pub fn merge(&mut self, other: &LatencyTotals) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn totals(values: impl IntoIterator<Item = u64>) -> LatencyTotals {
        let latency = Latency::default();
        values.into_iter().for_each(|v| latency.record(v));
        let mut totals = LatencyTotals::default();
        latency.add_to(&mut totals);
        totals
    }

    #[test]
    fn the_buckets_are_contiguous() {
        assert_eq!(bucket_of(VALUE_MAX), BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_max(BUCKETS - 1), VALUE_MAX);
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(bucket_of(bucket_max(bucket)), bucket);
            assert_eq!(bucket_of(bucket_max(bucket) + 1), bucket + 1);
        }
    }

    #[test]
    fn percentiles_of_known_data_are_right() {
        let t = totals(1..=1000);
        assert_eq!(t.count(), 1000);
        for (percent, exact) in [(0.0, 1), (1.0, 10), (50.0, 500), (99.0, 990), (100.0, 1000)] {
            let reported = t.percentile(percent);
            let wrong = reported.abs_diff(exact) as f64 / exact as f64;
            assert!(reported >= exact && wrong <= 0.032, "p{percent}: {reported} for {exact}");
        }
        assert_eq!(t.count_up_to(63), 63);
        let pairs: Vec<_> = totals([5, 5, 130]).occupied().collect();
        assert_eq!(pairs, [(5, 2), (131, 1)]);
        assert_eq!(totals([]).percentile(50.0), 0);
        assert_eq!(totals([7]).percentile(99.9), 7);
        assert_eq!(totals([u64::MAX]).percentile(50.0), VALUE_MAX);
    }

    /// Recorded from redis-server 7.0 for sleeps of these durations.
    #[test]
    fn cumulative_counts_use_powers_of_two() {
        assert_eq!(totals([]).cumulative_us(), []);
        assert_eq!(totals([0, 500, 1_023]).cumulative_us(), [(1, 3)]);
        let t = totals([4_000_000, 13_100_000, 13_200_000, 100_000_000, 3_000_000_000]);
        assert_eq!(t.cumulative_us(), [(4_227, 1), (16_908, 3), (135_266, 4), (1_082_130, 5)]);
        assert_eq!(totals([1_024, 30_000, 30_000]).cumulative_us(), [(2, 1), (33, 3)]);
    }

    #[test]
    fn totals_are_merged_and_reset() {
        let mut a = totals([1, 2, 3]);
        a.merge(&totals([]));
        a.merge(&totals([1_000_000]));
        assert_eq!(a, totals([1, 2, 3, 1_000_000]));
        let mut empty = LatencyTotals::default();
        empty.merge(&a);
        assert_eq!(empty, a);
        let latency = Latency::default();
        latency.reset();
        latency.record(5);
        latency.reset();
        let mut totals = LatencyTotals::default();
        latency.add_to(&mut totals);
        assert_eq!(totals.count(), 0);
    }

    proptest! {
        #[test]
        fn a_value_is_resolved_to_three_percent(value in 1..=VALUE_MAX) {
            let reported = bucket_max(bucket_of(value));
            prop_assert!(reported >= value);
            prop_assert!((reported - value) as f64 <= value as f64 * 0.032);
        }

        #[test]
        fn percentiles_agree_with_a_sorted_list(
            mut values in proptest::collection::vec(0..10_000_000u64, 1..200),
            percent in 0.0..=100.0f64,
        ) {
            let reported = totals(values.iter().copied()).percentile(percent);
            values.sort_unstable();
            let rank = (percent / 100.0 * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1];
            prop_assert_eq!(reported, bucket_max(bucket_of(exact)));
        }
    }
}
