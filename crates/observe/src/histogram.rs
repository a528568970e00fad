//! Histograms by powers of two, for sizes and counts: cheap to write and small.
//!
//! Bucket 0 holds the value 0, bucket `n` the values from `2^(n-1)` to `2^n - 1`.

use crate::Counter;

/// Buckets of a histogram: one for 0 and one for each bit.
pub const BUCKETS: usize = 65;

/// A histogram with a single writer.
#[derive(Debug)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    sum: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: std::array::from_fn(|_| Counter::default()), sum: Counter::default() }
    }
}

/// A copy of one histogram's counts, or the sum of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramTotals {
    /// Values per bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of all values.
    pub sum: u64,
}

impl Default for HistogramTotals {
    fn default() -> Self {
        HistogramTotals { buckets: [0; BUCKETS], sum: 0 }
    }
}

/// The bucket of a value.
#[inline]
pub const fn bucket_of(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

/// The largest value of a bucket.
pub const fn bucket_max(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { u64::MAX >> (BUCKETS - 1 - bucket) }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.buckets[bucket_of(value)].add(1);
        self.sum.add(value);
    }

    /// Resets all counts. Only the writing worker may call it; otherwise old counts may reappear.
    pub fn reset(&self) {
        self.buckets.iter().for_each(|b| b.set(0));
        self.sum.set(0);
    }

    /// Adds the current counts to `totals`.
    pub fn add_to(&self, totals: &mut HistogramTotals) {
        for (total, bucket) in totals.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.get();
        }
        totals.sum = totals.sum.wrapping_add(self.sum.get());
    }

    /// A copy of the current counts.
    pub fn totals(&self) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        self.add_to(&mut totals);
        totals
    }
}

impl HistogramTotals {
    /// Values counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean, 0 if nothing was counted.
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }

    /// Adds other totals.
    pub fn merge(&mut self, other: &HistogramTotals) {
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// The buckets that are not empty: largest value, count.
    pub fn occupied(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        buckets.map(|(bucket, n)| (bucket_max(bucket), *n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_counted_in_their_buckets() {
        let h = Histogram::default();
        for value in [0, 1, 2, 3, 4, 7, 8, 1023, 1024, u64::MAX] {
            h.record(value);
        }
        let occupied: Vec<_> = h.totals().occupied().collect();
        let expected =
            [(0, 1), (1, 1), (3, 2), (7, 2), (15, 1), (1023, 1), (2047, 1), (u64::MAX, 1)];
        assert_eq!(occupied, expected);
        h.reset();
        assert_eq!(h.totals(), HistogramTotals::default());
    }

    #[test]
    fn totals_are_added() {
        let (a, b) = (Histogram::default(), Histogram::default());
        a.record(10);
        b.record(20);
        b.record(30);
        let mut totals = a.totals();
        assert!((totals.mean() - 10.0).abs() < f64::EPSILON);
        totals.merge(&b.totals());
        assert_eq!((totals.count(), totals.sum), (3, 60));
        assert!((totals.mean() - 20.0).abs() < f64::EPSILON);
        assert!(HistogramTotals::default().mean().abs() < f64::EPSILON);
    }

    proptest! {
        #[test]
        fn the_bounds_of_a_bucket_contain_its_value(value in any::<u64>()) {
            let bucket = bucket_of(value);
            prop_assert!(bucket < BUCKETS && value <= bucket_max(bucket));
            prop_assert!(bucket == 0 || value > bucket_max(bucket - 1));
        }
    }
}
