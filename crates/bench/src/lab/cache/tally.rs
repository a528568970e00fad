//! Hits over a trace: in windows of equal length, and in total once the cache is warm.

/// Windows of a trace.
pub const WINDOWS: usize = 40;
/// The first windows, in which the cache fills: the total leaves them out.
pub const WARM_UP: usize = 10;

/// Reads and hits by window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    accesses: usize,
    reads: [u64; WINDOWS],
    hits: [u64; WINDOWS],
}

impl Tally {
    /// Nothing yet of a trace of so many accesses.
    pub fn of(accesses: usize) -> Self {
        Self { accesses, reads: [0; WINDOWS], hits: [0; WINDOWS] }
    }

    /// Adds the access number `at`.
    pub fn add(&mut self, at: usize, is_hit: bool) {
        let window = window(at, self.accesses);
        self.reads[window] += 1;
        self.hits[window] += u64::from(is_hit);
    }

    /// Adds those of another tally of the same trace.
    pub fn merge(&mut self, other: &Self) {
        for window in 0..WINDOWS {
            self.reads[window] += other.reads[window];
            self.hits[window] += other.hits[window];
        }
    }

    /// The share of hits behind the warm-up.
    pub fn ratio(&self) -> f64 {
        let sum = |of: &[u64; WINDOWS]| of[WARM_UP..].iter().sum::<u64>() as f64;
        sum(&self.hits) / sum(&self.reads).max(1.0)
    }

    /// Accesses up to the end of each window, and the share of hits in it.
    pub fn over_time(&self) -> Vec<(f64, f64)> {
        let end = |window: usize| ((window + 1) * self.accesses / WINDOWS) as f64;
        let share = |window: usize| self.hits[window] as f64 / self.reads[window] as f64;
        let seen = (0..WINDOWS).filter(|window| self.reads[*window] > 0);
        seen.map(|window| (end(window), share(window))).collect()
    }

    /// Reads of all windows.
    pub fn reads(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// Hits of all windows.
    pub fn hits(&self) -> u64 {
        self.hits.iter().sum()
    }
}

/// Whether the access number `at` belongs to the warm-up.
pub fn is_warm_up(at: usize, accesses: usize) -> bool {
    window(at, accesses) < WARM_UP
}

fn window(at: usize, accesses: usize) -> usize {
    (at * WINDOWS / accesses.max(1)).min(WINDOWS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_leaves_the_warm_up_out() {
        let mut tally = Tally::of(400);
        (0..400).for_each(|at| tally.add(at, (100..250).contains(&at)));
        assert!((tally.ratio() - 0.5).abs() < 1e-9, "{}", tally.ratio());
        assert_eq!((tally.reads(), tally.hits()), (400, 150));
        let windows = tally.over_time();
        assert_eq!(
            (windows[0], windows[10], windows[39]),
            ((10.0, 0.0), (110.0, 1.0), (400.0, 0.0))
        );
        assert!(is_warm_up(99, 400) && !is_warm_up(100, 400));
    }

    #[test]
    fn parts_of_a_trace_add_up() {
        let (mut even, mut odd, mut all) = (Tally::of(99), Tally::of(99), Tally::of(99));
        for at in 0..99 {
            all.add(at, at.is_multiple_of(3));
            let part = if at.is_multiple_of(2) { &mut even } else { &mut odd };
            part.add(at, at.is_multiple_of(3));
        }
        even.merge(&odd);
        assert_eq!(even, all);
    }
}
