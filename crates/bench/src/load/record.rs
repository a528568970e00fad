//! Latencies: recorded per batch into a histogram per sample, gathered over threads and time.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use crate::result::{Latency, Sample};

/// Longest latency that is recorded, nanoseconds: an hour. Longer ones count as this.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
/// Steps of the distribution that a measurement keeps.
const STEPS_MAX: usize = 400;

/// Nanoseconds of a clock that only goes forward.
#[inline]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A histogram of nanoseconds, three digits exact.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("these bounds are valid")
}

/// What one thread did, or all together, in one sample.
#[derive(Debug)]
pub struct Interval {
    /// Number of the sample.
    pub index: u64,
    /// Replies in it.
    pub replies: u64,
    /// Their latencies.
    pub latencies: Histogram<u64>,
    /// Requests under way at its end.
    pub in_flight: u64,
}

/// A thread's record.
#[derive(Debug)]
pub struct Recorder {
    started: u64,
    sample_ns: u64,
    index: u64,
    ends: u64,
    replies: u64,
    latencies: Histogram<u64>,
    to: Sender<Interval>,
}

impl Recorder {
    /// A record that begins at `started`; before that nothing is kept.
    pub fn new(started: u64, sample_ns: u64, to: Sender<Interval>) -> Self {
        let ends = started + sample_ns;
        Self { started, sample_ns, index: 0, ends, replies: 0, latencies: histogram(), to }
    }

    /// `count` requests took `latency_ns`.
    #[inline]
    pub fn latency(&mut self, latency_ns: u64, count: u64) {
        self.latencies.saturating_record_n(latency_ns.max(1), count);
    }

    /// So many replies came.
    #[inline]
    pub fn replies(&mut self, count: u64) {
        self.replies += count;
    }

    /// When [`Recorder::turn`] has something to do again.
    #[inline]
    pub fn ends(&self) -> u64 {
        self.ends
    }

    /// Hands over the sample that is complete at `now`, if one is; so many requests are under way.
    #[inline]
    pub fn turn(&mut self, now: u64, in_flight: u64) {
        if now < self.ends {
            return;
        }
        self.hand_over(in_flight);
        self.index = (now - self.started) / self.sample_ns;
        self.ends = self.started + (self.index + 1) * self.sample_ns;
    }

    /// Forgets what was recorded: the warm-up is over at `now`.
    pub fn restart(&mut self, now: u64) {
        self.latencies.reset();
        self.replies = 0;
        self.index = 0;
        self.started = now;
        self.ends = now + self.sample_ns;
    }

    /// Hands over what is left.
    pub fn finish(mut self) {
        self.hand_over(0);
    }

    fn hand_over(&mut self, in_flight: u64) {
        let latencies = std::mem::replace(&mut self.latencies, histogram());
        let replies = std::mem::take(&mut self.replies);
        let interval = Interval { index: self.index, replies, latencies, in_flight };
        // The receiver outlives all threads; without it the record is not needed.
        let _ = self.to.send(interval);
    }
}

/// The records of all threads.
#[derive(Debug)]
pub struct Gathered {
    total: Histogram<u64>,
    samples: BTreeMap<u64, Interval>,
    closed: Vec<Sample>,
    closed_until: u64,
    sample_s: f64,
}

impl Gathered {
    /// Nothing yet.
    pub fn new(sample_s: f64) -> Self {
        let samples = BTreeMap::new();
        Self { total: histogram(), samples, closed: Vec::new(), closed_until: 0, sample_s }
    }

    /// Adds a thread's sample.
    pub fn add(&mut self, interval: &Interval) {
        self.total.add(&interval.latencies).expect("all histograms have the same bounds");
        let index = interval.index.max(self.closed_until);
        let empty = || Interval { index, replies: 0, latencies: histogram(), in_flight: 0 };
        let merged = self.samples.entry(index).or_insert_with(empty);
        merged.replies += interval.replies;
        merged.in_flight += interval.in_flight;
        merged.latencies.add(&interval.latencies).expect("all histograms have the same bounds");
    }

    /// Adds latencies that belong to no sample: of requests that were never sent.
    pub fn add_unsent(&mut self, latencies: &Histogram<u64>) {
        self.total.add(latencies).expect("all histograms have the same bounds");
    }

    /// Closes all samples below number `until`; returns the last one.
    pub fn close(&mut self, until: u64) -> Option<Sample> {
        while let Some(first) = self.samples.first_entry().filter(|first| *first.key() < until) {
            let Interval { index, replies, latencies, in_flight } = first.remove();
            self.closed.push(Sample {
                at_s: (index + 1) as f64 * self.sample_s,
                throughput: replies as f64 / self.sample_s,
                p99_us: us(latencies.value_at_quantile(0.99)),
                in_flight: in_flight as f64,
            });
        }
        self.closed_until = self.closed_until.max(until);
        self.closed.last().copied()
    }

    /// Requests whose latency is known.
    pub fn count(&self) -> u64 {
        self.total.len()
    }

    /// The series, all samples closed. The last one is cut off where the load ended, `seconds`
    /// after its begin; one that lasted for less than a tenth of a sample is left out.
    pub fn series(&mut self, seconds: f64) -> Vec<Sample> {
        self.close(u64::MAX);
        let mut series = std::mem::take(&mut self.closed);
        if let Some(last) = series.last_mut() {
            let lasted = seconds - (last.at_s - self.sample_s);
            if lasted < self.sample_s {
                last.throughput *= self.sample_s / lasted.max(1e-9);
                last.at_s = seconds;
            }
            if lasted < self.sample_s / 10.0 && series.len() > 1 {
                series.pop();
            }
        }
        series
    }

    /// The distribution of all latencies.
    pub fn latency(&self) -> Latency {
        summary(&self.total)
    }
}

/// A distribution, summed up.
pub fn summary(latencies: &Histogram<u64>) -> Latency {
    if latencies.is_empty() {
        return Latency::default();
    }
    let at = |quantile| us(latencies.value_at_quantile(quantile));
    Latency {
        mean_us: latencies.mean() / 1e3,
        stdev_us: latencies.stdev() / 1e3,
        min_us: us(latencies.min()),
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: us(latencies.max()),
        cumulative: cumulative(latencies),
    }
}

/// The distribution as steps, thinned evenly until there are at most [`STEPS_MAX`]; the last one is
/// kept.
fn cumulative(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    let (total, mut below) = (latencies.len() as f64, 0);
    let steps: Vec<(f64, f64)> = latencies
        .iter_recorded()
        .map(|step| {
            below += step.count_since_last_iteration();
            (us(latencies.highest_equivalent(step.value_iterated_to())), below as f64 / total)
        })
        .collect();
    let every = steps.len().div_ceil(STEPS_MAX);
    let last = steps.len() - 1;
    let kept = |at: usize| at == last || (last - at).is_multiple_of(every);
    steps.into_iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, step)| step).collect()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn figures_of_a_known_distribution_are_right() {
        let mut latencies = histogram();
        for us in 1..=1000 {
            latencies.record(us * 1000).expect("inside the bounds");
        }
        let found = summary(&latencies);
        let near = |a: f64, b: f64| assert!((a - b).abs() <= b / 500.0, "{a} for {b}");
        near(found.mean_us, 500.5);
        near(found.stdev_us, 288.675);
        near(found.min_us, 1.0);
        near(found.p50_us, 500.0);
        near(found.p90_us, 900.0);
        near(found.p99_us, 990.0);
        near(found.p999_us, 999.0);
        near(found.max_us, 1000.0);
        assert!(found.cumulative.len() <= STEPS_MAX + 1);
        let (at, share) = found.cumulative[found.cumulative.len() / 2];
        near(at / 1000.0, share);
        assert!((found.cumulative.last().expect("there are steps").1 - 1.0).abs() < 1e-12);
        assert_eq!(summary(&histogram()), Latency::default());
    }

    #[test]
    fn samples_of_threads_are_merged_and_the_last_is_dropped() {
        let (to, from) = channel();
        let mut gathered = Gathered::new(0.5);
        let ns = |s: f64| (s * 1e9) as u64;
        for _ in 0..2 {
            let mut one = Recorder::new(0, ns(0.5), to.clone());
            one.latency(1000, 10);
            one.replies(10);
            one.turn(ns(0.4), 9);
            one.turn(ns(0.6), 7);
            one.latency(2000, 5);
            one.replies(5);
            one.finish();
        }
        drop(to);
        for interval in from {
            gathered.add(&interval);
        }
        assert_eq!(gathered.count(), 30);
        let series = gathered.series(0.75);
        assert_eq!(series.len(), 2);
        assert!((series[0].throughput - 40.0).abs() < 1e-9 && (series[0].at_s - 0.5).abs() < 1e-9);
        assert!((series[1].throughput - 40.0).abs() < 1e-9 && (series[1].at_s - 0.75).abs() < 1e-9);
        assert!((series[1].p99_us - 2.0).abs() < 0.01);
        assert!((series[0].in_flight - 14.0).abs() < 1e-9 && series[1].in_flight.abs() < 1e-9);
        assert!((gathered.latency().max_us - 2.0).abs() < 0.01);
    }

    #[test]
    fn the_warm_up_is_not_recorded() {
        let (to, from) = channel();
        let mut one = Recorder::new(0, 100, to);
        one.latency(5, 7);
        one.restart(50);
        one.latency(9, 1);
        one.finish();
        let interval = from.recv().expect("it was handed over");
        assert_eq!((interval.index, interval.latencies.len(), interval.replies), (0, 1, 0));
    }
}
