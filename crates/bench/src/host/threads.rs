//! Processor time of the single threads of a process.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// CPU seconds of each thread of a process, from the scheduler's account, which is exact to the
/// nanosecond. `None` if there is no such process. O(threads).
pub(super) fn cpu_seconds(pid: u32) -> Option<BTreeMap<u32, f64>> {
    let mut seconds = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) {
            let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
            seconds.insert(thread, ns.unwrap_or(0.0) / 1e9);
        }
    }
    Some(seconds)
}

/// The threads of a process over a run, by repeated looks. What has ended between two looks counts
/// as it was last seen: a server with a thread per connection has none of them left when the run is
/// over.
#[derive(Debug)]
pub struct ThreadWatch {
    pid: u32,
    began: Instant,
    before: BTreeMap<u32, f64>,
    /// When was looked last, and what each thread had used when it was last seen.
    seen: Option<(Instant, BTreeMap<u32, f64>)>,
}

impl ThreadWatch {
    /// Begins; `None` if there is no such process.
    pub fn begin(pid: u32) -> Option<Self> {
        Some(Self { pid, before: cpu_seconds(pid)?, began: Instant::now(), seen: None })
    }

    /// Samples again, unless the last sample is younger than `pause`. O(threads).
    pub fn sample(&mut self, pause: Duration) {
        let last = self.seen.as_ref().map_or(self.began, |(at, _)| *at);
        if last.elapsed() < pause {
            return;
        }
        if let Some(now) = cpu_seconds(self.pid) {
            let mut seen = self.seen.take().map_or_else(BTreeMap::new, |(_, seen)| seen);
            seen.extend(now);
            self.seen = Some((Instant::now(), seen));
        }
    }

    /// Share of a CPU that each thread used from the begin to the last sample, the busiest first;
    /// empty without a sample. A thread that came later counts from its own begin.
    pub fn shares(&self) -> Vec<f64> {
        let Some((at, seen)) = &self.seen else { return Vec::new() };
        let seconds = at.saturating_duration_since(self.began).as_secs_f64().max(1e-9);
        let used = |(thread, now): (&u32, &f64)| now - self.before.get(thread).unwrap_or(&0.0);
        let mut shares: Vec<f64> =
            seen.iter().map(|one| (used(one) / seconds).clamp(0.0, 1.0)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// Works until this thread has used this much CPU time, however busy the machine is.
    fn work(time: Duration) -> u64 {
        let used = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let (until, mut sum) = (used() + time, 0u64);
        while used() < until {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        sum
    }

    #[test]
    fn an_ended_thread_keeps_its_last_sample() {
        let mut watch = ThreadWatch::begin(std::process::id()).expect("this process lives");
        assert!(watch.shares().is_empty(), "nothing was looked at");
        let (worked, seen) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sum = work(Duration::from_millis(60));
                worked.wait();
                seen.wait();
                sum
            });
            worked.wait();
            watch.sample(Duration::ZERO);
            seen.wait();
        });
        let seconds = watch.began.elapsed().as_secs_f64();
        watch.sample(Duration::ZERO);
        let shares = watch.shares();
        assert!(shares[0] * seconds >= 0.05, "{shares:?} of {seconds} s");
        assert!(shares.windows(2).all(|w| w[0] >= w[1]), "{shares:?}");
        assert!(ThreadWatch::begin(u32::MAX).is_none());
    }

    #[test]
    fn shares_are_relative_to_the_sampled_interval() {
        let began = Instant::now();
        let at = began + Duration::from_secs(2);
        let watch = ThreadWatch {
            pid: 0,
            began,
            before: BTreeMap::from([(1, 5.0), (2, 1.0)]),
            seen: Some((at, BTreeMap::from([(1, 5.5), (2, 3.0), (3, 0.2)]))),
        };
        let shares = watch.shares();
        let want = [1.0, 0.25, 0.1];
        assert!(shares.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
    }
}
