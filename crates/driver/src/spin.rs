//! When to spin before sleeping.
//!
//! A sleeping worker costs its client a wake-up (tens of microseconds on a virtual machine), a
//! spinning one almost nothing. So: spin up to a bound since the last work was done, then sleep.
//! After eight spins that won nothing the policy sleeps at once for the next 16 times, and after
//! every further loss for twice as many, up to 1,024; one spin that wins sets it back. It is off
//! when workers outnumber processors, and rests while involuntary context switches show that
//! somebody else wants this processor.

use base::MonoNs;

/// Losses in a row before the policy pauses.
pub const MISSES_MAX: u32 = 8;
/// Sleeps of the first pause.
pub const SKIP_FIRST: u32 = 16;
/// Sleeps of the longest.
pub const SKIP_MAX: u32 = 1024;
/// The context switches are looked at no more often than this.
pub const SAMPLE_NS: u64 = 50_000_000;
/// Switches in that time that mean "contended".
pub const CONTENDED: u64 = 10;
/// The first rest after contention; it doubles while contention is found again.
pub const REST_FIRST_NS: u64 = 250_000_000;
/// The longest rest.
pub const REST_MAX_NS: u64 = 4_000_000_000;

/// What spinning depends on.
#[derive(Clone, Copy, Debug)]
pub struct SpinOptions {
    /// Spin before sleeping, microseconds.
    pub busy_poll_us: u32,
    /// Workers of the process.
    pub workers: usize,
    /// Processors it may use.
    pub cpus: usize,
}

/// The policy of one worker. It knows no clock and no system call.
#[derive(Debug)]
pub struct Spin {
    allowed: bool,
    limit_ns: u64,
    misses: u32,
    skip: u32,
    next_skip: u32,
    /// When the switches were looked at, and how many there were.
    sampled: Option<(MonoNs, u64)>,
    rest_until: MonoNs,
    next_rest_ns: u64,
}

impl Spin {
    /// A policy that has seen nothing yet.
    pub fn new(options: SpinOptions) -> Self {
        let mut spin = Self {
            allowed: options.workers <= options.cpus,
            limit_ns: 0,
            misses: 0,
            skip: 0,
            next_skip: SKIP_FIRST,
            sampled: None,
            rest_until: MonoNs(0),
            next_rest_ns: REST_FIRST_NS,
        };
        spin.set_limit_us(options.busy_poll_us);
        spin
    }

    /// Spins up to this long from now on; never with more workers than processors.
    pub fn set_limit_us(&mut self, busy_poll_us: u32) {
        self.limit_ns = if self.allowed { u64::from(busy_poll_us) * 1000 } else { 0 };
    }

    /// How long to spin in this wait, nanoseconds; 0 to sleep at once.
    #[inline]
    pub fn budget(&mut self, now: MonoNs) -> u64 {
        if self.limit_ns == 0 || now < self.rest_until {
            return 0;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return 0;
        }
        self.limit_ns
    }

    /// The spin found an event.
    #[inline]
    pub fn won(&mut self) {
        self.misses = 0;
        self.next_skip = SKIP_FIRST;
    }

    /// The spin ended with sleep.
    pub fn lost(&mut self) {
        self.misses = (self.misses + 1).min(MISSES_MAX);
        if self.misses == MISSES_MAX {
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(SKIP_MAX);
        }
    }

    /// True if the involuntary context switches should be looked at now.
    #[inline]
    pub fn wants_sample(&self, now: MonoNs) -> bool {
        self.sampled.is_none_or(|(at, _)| now.since(at) >= SAMPLE_NS)
    }

    /// Takes the thread's involuntary switches so far; many new ones make the policy rest.
    pub fn sample(&mut self, now: MonoNs, switches: u64) {
        if let Some((at, before)) = self.sampled {
            let samples = (now.since(at) / SAMPLE_NS).max(1);
            if switches.saturating_sub(before) > CONTENDED.saturating_mul(samples) {
                self.rest_until = now.plus(self.next_rest_ns);
                self.next_rest_ns = (self.next_rest_ns * 2).min(REST_MAX_NS);
                self.sampled = None; // what happens while it rests says nothing
                return;
            }
            self.next_rest_ns = REST_FIRST_NS;
        }
        self.sampled = Some((now, switches));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: MonoNs = MonoNs(1_000_000_000);

    fn spin() -> Spin {
        Spin::new(SpinOptions { busy_poll_us: 50, workers: 2, cpus: 2 })
    }

    fn assert_pause(s: &mut Spin, sleeps: u32) {
        for i in 0..sleeps {
            assert_eq!(s.budget(T0), 0, "sleep {i} of {sleeps}");
        }
        assert_eq!(s.budget(T0), 50_000, "after {sleeps}");
    }

    #[test]
    fn eight_losses_pause_spinning_and_every_further_one_doubles_the_pause() {
        let mut s = spin();
        for _ in 0..MISSES_MAX {
            assert_eq!(s.budget(T0), 50_000);
            s.lost();
        }
        for pause in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            assert_pause(&mut s, pause);
            s.lost();
        }
    }

    #[test]
    fn a_win_sets_the_policy_back() {
        let mut s = spin();
        for _ in 0..MISSES_MAX {
            s.lost();
        }
        assert_pause(&mut s, SKIP_FIRST);
        s.won();
        for _ in 0..MISSES_MAX - 1 {
            s.lost();
            assert_eq!(s.budget(T0), 50_000, "seven losses are not eight");
        }
        s.lost();
        assert_pause(&mut s, SKIP_FIRST);
    }

    #[test]
    fn never_with_more_workers_than_processors_or_when_switched_off() {
        let mut many = Spin::new(SpinOptions { busy_poll_us: 50, workers: 3, cpus: 2 });
        assert_eq!(many.budget(T0), 0);
        many.set_limit_us(50);
        assert_eq!(many.budget(T0), 0, "whatever the configuration says");
        let mut s = spin();
        s.set_limit_us(0);
        assert_eq!(s.budget(T0), 0);
        s.set_limit_us(20);
        assert_eq!(s.budget(T0), 20_000);
    }

    #[test]
    fn many_involuntary_switches_make_it_rest() {
        let mut s = spin();
        assert!(s.wants_sample(T0));
        s.sample(T0, 500);
        assert!(!s.wants_sample(T0.plus(SAMPLE_NS - 1)), "rarely");
        let now = T0.plus(SAMPLE_NS);
        assert!(s.wants_sample(now));
        s.sample(now, 500 + CONTENDED);
        assert_eq!(s.budget(now), 50_000, "at the bound it goes on");
        let now = now.plus(SAMPLE_NS);
        s.sample(now, 500 + 2 * CONTENDED + 1);
        assert_eq!(s.budget(now.plus(REST_FIRST_NS - 1)), 0, "past it, not");
        assert_eq!(s.budget(now.plus(REST_FIRST_NS)), 50_000);
    }

    #[test]
    fn contention_again_doubles_the_rest_and_a_quiet_sample_sets_it_back() {
        let mut s = spin();
        let mut now = T0;
        for rest_ms in [250, 500, 1000, 2000, 4000, 4000] {
            s.sample(now, 0);
            now = now.plus(SAMPLE_NS);
            s.sample(now, 1000);
            assert_eq!(s.budget(now.plus(rest_ms * 1_000_000 - 1)), 0);
            now = now.plus(rest_ms * 1_000_000);
            assert_eq!(s.budget(now), 50_000);
        }
        s.sample(now, 1000);
        s.sample(now.plus(SAMPLE_NS), 1000);
        assert_eq!(s.next_rest_ns, REST_FIRST_NS);
    }

    #[test]
    fn switches_of_a_long_quiet_time_are_not_contention() {
        let mut s = spin();
        s.sample(T0, 0);
        s.sample(T0.plus(100 * SAMPLE_NS), 100 * CONTENDED);
        assert_eq!(s.budget(T0.plus(100 * SAMPLE_NS)), 50_000);
    }
}
