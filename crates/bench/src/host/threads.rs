//! Processor time of the single threads of a process.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// CPU seconds of each thread of a process, from the scheduler's account, which is exact to the nanosecond.
/// `None` if there is no such process. O(threads).
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

/// What each thread of a process had used at a moment.
#[derive(Clone, Debug)]
pub struct ThreadTimes {
    at: Instant,
    seconds: BTreeMap<u32, f64>,
}

impl ThreadTimes {
    /// Looks now; `None` if there is no such process.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { seconds: cpu_seconds(pid)?, at: Instant::now() })
    }

    /// When it was looked.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Share of a CPU that each thread used since `before`, the busiest first. A thread that is new counts
    /// from its begin; of one that has ended nothing is known.
    pub fn shares_since(&self, before: &Self) -> Vec<f64> {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64().max(1e-9);
        let used = |(thread, now): (&u32, &f64)| now - before.seconds.get(thread).unwrap_or(&0.0);
        let mut shares: Vec<f64> =
            self.seconds.iter().map(|one| (used(one) / seconds).clamp(0.0, 1.0)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_thread_that_works_is_the_busiest() {
        let pid = std::process::id();
        let before = ThreadTimes::of(pid).expect("this process lives");
        let worker = std::thread::spawn(|| {
            let until = Instant::now() + Duration::from_millis(80);
            let mut sum = 0u64;
            while Instant::now() < until {
                sum = sum.wrapping_mul(31).wrapping_add(7);
            }
            // Seen while it is there.
            let after = ThreadTimes::of(std::process::id()).expect("this process lives");
            (after, sum)
        });
        let (after, _) = worker.join().expect("it only counts");
        let shares = after.shares_since(&before);
        assert!(shares[0] > 0.1 && shares.windows(2).all(|w| w[0] >= w[1]), "{shares:?}");
        assert!(ThreadTimes::of(u32::MAX).is_none());
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let at = Instant::now();
        let before = ThreadTimes { at, seconds: BTreeMap::from([(1, 5.0), (2, 1.0)]) };
        let later = at + Duration::from_secs(2);
        let after =
            ThreadTimes { at: later, seconds: BTreeMap::from([(1, 5.5), (2, 3.0), (3, 0.2)]) };
        let shares = after.shares_since(&before);
        let want = [1.0, 0.25, 0.1];
        assert!(shares.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
    }
}
