//! When to spin before sleeping.
//!
//! A sleeping worker costs its client a wake-up (tens of microseconds on a virtual machine), a spinning one
//! almost nothing. So: spin up to a bound since the last event, then sleep. After eight spins in
//! a row that won nothing the policy sleeps at once for the next 16 times, doubling up to 1,024; one
//! spin that wins sets it back. It is off when workers outnumber processors, and for a while after
//! involuntary context switches show that somebody else wants this processor.

const MISSES: u32 = 8;
const SKIP_FIRST: u32 = 16;
const SKIP_MAX: u32 = 1024;
/// Sleeps between two looks at the context switches.
const SAMPLE: u32 = 256;
/// Switches per sample that mean "contended".
const CONTENDED: u64 = 32;

/// The policy of one worker.
#[derive(Debug)]
pub struct Spin {
    limit_ns: u64,
    misses: u32,
    skip: u32,
    next_skip: u32,
    until_sample: u32,
    switches: u64,
}

impl Spin {
    /// Spins up to `busy_poll_us`; 0, or more workers than processors, means never.
    pub fn new(busy_poll_us: u32, workers: usize, cpus: usize) -> Self {
        let on = workers <= cpus;
        Self {
            limit_ns: if on { u64::from(busy_poll_us) * 1000 } else { 0 },
            misses: 0,
            skip: 0,
            next_skip: SKIP_FIRST,
            until_sample: SAMPLE,
            switches: 0,
        }
    }

    /// How long to spin now, nanoseconds; 0 to sleep at once. Called once per wait that found nothing ready.
    pub fn budget(&mut self) -> u64 {
        if self.skip > 0 {
            self.skip -= 1;
            return 0;
        }
        self.limit_ns
    }

    /// The spin found an event.
    pub fn won(&mut self) {
        self.misses = 0;
        self.next_skip = SKIP_FIRST;
    }

    /// The spin ended with sleep.
    pub fn lost(&mut self) {
        self.misses += 1;
        if self.misses >= MISSES {
            self.misses = 0;
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(SKIP_MAX);
        }
    }

    /// True if the involuntary context switches should be sampled now.
    pub fn wants_sample(&mut self) -> bool {
        if self.limit_ns == 0 {
            return false;
        }
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = SAMPLE;
            return true;
        }
        false
    }

    /// Takes the thread's involuntary switches so far; many new ones pause spinning.
    pub fn sample(&mut self, switches: u64) {
        let new = switches.saturating_sub(self.switches);
        self.switches = switches;
        if new > CONTENDED {
            self.skip = self.skip.max(SKIP_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_losses_in_a_row_pause_spinning_and_the_pause_doubles() {
        let mut s = Spin::new(50, 1, 2);
        for pause in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            for _ in 0..MISSES {
                assert_eq!(s.budget(), 50_000);
                s.lost();
            }
            for _ in 0..pause {
                assert_eq!(s.budget(), 0);
            }
        }
    }

    #[test]
    fn a_win_sets_the_policy_back() {
        let mut s = Spin::new(50, 1, 2);
        for _ in 0..MISSES {
            s.lost();
        }
        for _ in 0..SKIP_FIRST {
            assert_eq!(s.budget(), 0);
        }
        s.won();
        for _ in 0..MISSES - 1 {
            s.lost();
        }
        assert_eq!(s.budget(), 50_000, "seven losses are not eight");
        s.lost();
        for _ in 0..SKIP_FIRST {
            assert_eq!(s.budget(), 0, "and the pause is the first one again");
        }
        assert_eq!(s.budget(), 50_000);
    }

    #[test]
    fn never_with_more_workers_than_processors_or_when_switched_off() {
        assert_eq!(Spin::new(50, 3, 2).budget(), 0);
        assert_eq!(Spin::new(0, 1, 2).budget(), 0);
    }

    #[test]
    fn contention_pauses_spinning() {
        let mut s = Spin::new(50, 1, 2);
        s.sample(CONTENDED);
        assert_eq!(s.budget(), 50_000);
        s.sample(2 * CONTENDED + 1);
        assert_eq!(s.budget(), 0);
    }
}
