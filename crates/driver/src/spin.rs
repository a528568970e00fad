//! When to spin before sleeping.
//!
//! A sleeping worker costs its client a wake-up (tens of microseconds on a virtual machine), a
//! spinning one almost nothing. So a worker spins for a bounded time after its last work, then
//! sleeps. After eight spins that found nothing the policy skips the next 16 spins, and after every
//! further loss twice as many, up to 1,024; one spin that finds an event resets this. Spinning is
//! off when workers outnumber processors. It pauses while involuntary context switches show that
//! another thread wants this processor.

use base::MonoNs;

/// Losses in a row before spins are skipped.
pub const MISSES_MAX: u32 = 8;
/// How many spins are skipped at first.
pub const SKIP_FIRST: u32 = 16;
/// How many spins are skipped at most.
pub const SKIP_MAX: u32 = 1024;
/// The shortest time between two samples of the context switches.
pub const SAMPLE_NS: u64 = 50_000_000;
/// More switches in that time mean that the processor is contended.
pub const CONTENDED: u64 = 10;
/// The first pause after contention; it doubles while contention is found again.
pub const PAUSE_FIRST_NS: u64 = 250_000_000;
/// The longest pause after contention.
pub const PAUSE_MAX_NS: u64 = 4_000_000_000;

/// The inputs of the policy.
#[derive(Clone, Copy, Debug)]
pub struct SpinOptions {
    /// Spin before sleeping, microseconds.
    pub busy_poll_us: u32,
    /// Workers of the process.
    pub workers: usize,
    /// Processors it may use.
    pub cpus: usize,
}

/// The policy of one worker. It reads no clock and makes no system call.
#[derive(Debug)]
pub struct Spin {
    allowed: bool,
    limit_ns: u64,
    misses: u32,
    skip: u32,
    next_skip: u32,
    /// Time and value of the last sample of context switches.
    sampled: Option<(MonoNs, u64)>,
    paused_until: MonoNs,
    next_pause_ns: u64,
}

impl Spin {
    /// A policy without history.
    pub fn new(options: SpinOptions) -> Self {
        let mut spin = Self {
            allowed: options.workers <= options.cpus,
            limit_ns: 0,
            misses: 0,
            skip: 0,
            next_skip: SKIP_FIRST,
            sampled: None,
            paused_until: MonoNs(0),
            next_pause_ns: PAUSE_FIRST_NS,
        };
        spin.set_limit_us(options.busy_poll_us);
        spin
    }

    /// Sets the longest spin; with more workers than processors spinning stays off.
    pub fn set_limit_us(&mut self, busy_poll_us: u32) {
        self.limit_ns = if self.allowed { u64::from(busy_poll_us) * 1000 } else { 0 };
    }

    /// How long to spin in this wait, in nanoseconds; 0: sleep at once.
    #[inline]
    pub fn budget(&mut self, now: MonoNs) -> u64 {
        if self.limit_ns == 0 || now < self.paused_until {
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

    /// The spin ended without an event; the worker sleeps.
    pub fn lost(&mut self) {
        self.misses = (self.misses + 1).min(MISSES_MAX);
        if self.misses == MISSES_MAX {
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(SKIP_MAX);
        }
    }

    /// True if a sample of the involuntary context switches is due.
    #[inline]
    pub fn wants_sample(&self, now: MonoNs) -> bool {
        self.sampled.is_none_or(|(at, _)| now.since(at) >= SAMPLE_NS)
    }

    /// Records the thread's total of involuntary switches; many new ones pause spinning.
    pub fn sample(&mut self, now: MonoNs, switches: u64) {
        if let Some((at, before)) = self.sampled {
            let samples = (now.since(at) / SAMPLE_NS).max(1);
            if switches.saturating_sub(before) > CONTENDED.saturating_mul(samples) {
                self.paused_until = now.plus(self.next_pause_ns);
                self.next_pause_ns = (self.next_pause_ns * 2).min(PAUSE_MAX_NS);
                self.sampled = None; // switches during the pause are not compared
                return;
            }
            self.next_pause_ns = PAUSE_FIRST_NS;
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
    fn eight_losses_pause_spinning_and_each_further_loss_doubles_the_pause() {
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
    fn a_win_resets_the_policy() {
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
    fn spinning_is_off_when_disabled_or_workers_outnumber_processors() {
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
    fn many_involuntary_context_switches_pause_spinning() {
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
        assert_eq!(s.budget(now.plus(PAUSE_FIRST_NS - 1)), 0, "past it, not");
        assert_eq!(s.budget(now.plus(PAUSE_FIRST_NS)), 50_000);
    }

    #[test]
    fn repeated_contention_doubles_the_pause_and_a_quiet_sample_resets_it() {
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
        assert_eq!(s.next_pause_ns, PAUSE_FIRST_NS);
    }

    #[test]
    fn switches_over_a_long_quiet_interval_are_not_contention() {
        let mut s = spin();
        s.sample(T0, 0);
        s.sample(T0.plus(100 * SAMPLE_NS), 100 * CONTENDED);
        assert_eq!(s.budget(T0.plus(100 * SAMPLE_NS)), 50_000);
    }
}
