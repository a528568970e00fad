//! When to let a connection's bytes gather before they are read.
//!
//! A client that sends small writes and waits for nothing is slowed down by being read from at
//! once: each read wakes this worker, frees the client's next segment, and brings an answer that
//! the client has to take. A client that waits for each answer is slowed down by anything else.
//! From outside the two look alike: a scheduler that runs the client as soon as it is woken makes
//! its next request stand there before the poll behind the answer. So it is tried out. Of a
//! connection whose reads are small and follow each other closely, eight are made to wait; if they
//! bring more each, and more bytes come in the same time than before, its client did not wait for
//! us, and it stays so while that holds. If not, the next trial is twice as far away.

use base::MonoNs;

/// So long a read waits behind the one before it.
pub const WAIT_NS: u64 = 70_000;
/// Behind a read of so many bytes the next one does not wait.
pub const ENOUGH: usize = 32 << 10;
/// Reads at once that a trial is compared with.
pub const EAGER_READS: u16 = 32;
/// Reads of a trial: half of them show whether anything gathers at all.
pub const TRIAL_READS: u16 = 8;
/// Windows of reads at once between a trial that failed and the next one, at first and at most.
pub const SKIP_FIRST: u16 = 2;
/// With [`TRIAL_READS`] waits in so many windows, a client that waits for each answer loses less
/// than a hundredth.
pub const SKIP_MAX: u16 = 512;
/// Windows of patience before reads at once are looked at anew.
pub const KEPT_WINDOWS: u8 = 64;
/// Windows that fail may be so many more than good ones before they end it, if there were as many
/// good ones before.
const CREDIT_MAX: u8 = 4;
/// A longer silence between reads at once counts as this one: the scheduler took somebody's
/// processor.
const EAGER_GAP_MAX_NS: u64 = 4 * WAIT_NS;
/// The same of reads that wait. They pay for late wake-ups as well, so these count; only idle
/// clients do not.
const PATIENT_GAP_MAX_NS: u64 = 100_000_000;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It is read from at once.
    #[default]
    Eager,
    /// Its reads wait, and it is not known yet whether anything gathers.
    Trial,
    /// Its reads wait.
    Patient,
}

/// The decisions of one connection. It knows no clock and no socket.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The last read.
    last: MonoNs,
    /// Of this window: time, bytes, reads, and the reads that are left of it.
    spent_ns: u32,
    bytes: u32,
    reads: u16,
    left: u16,
    /// Of the faster one of the last two windows at once.
    eager_ns: u32,
    eager_bytes: u32,
    /// Windows until the next trial, and how many there will be if that fails.
    skip: u16,
    next_skip: u16,
    stage: Stage,
    credit: u8,
    /// Good windows since the trial began.
    windows: u8,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            last: MonoNs(0),
            spent_ns: 0,
            bytes: 0,
            reads: 0,
            left: EAGER_READS,
            eager_ns: 0,
            eager_bytes: 0,
            skip: 1,
            next_skip: SKIP_FIRST,
            stage: Stage::Eager,
            credit: 0,
            windows: 0,
        }
    }
}

impl Patience {
    /// A read brought so many bytes. True if the next one is to wait for [`WAIT_NS`].
    #[inline]
    pub fn read(&mut self, now: MonoNs, bytes: usize) -> bool {
        let eager = self.stage == Stage::Eager;
        let gap_max = if eager { EAGER_GAP_MAX_NS } else { PATIENT_GAP_MAX_NS };
        self.spent_ns += now.since(self.last).min(gap_max) as u32;
        self.last = now;
        self.bytes += bytes as u32;
        self.left -= 1;
        if self.left == 0 {
            self.end_window();
        }
        self.stage != Stage::Eager && bytes < ENOUGH
    }

    /// A window is over.
    #[cold]
    fn end_window(&mut self) {
        match self.stage {
            Stage::Eager => self.consider_trial(),
            Stage::Trial if self.has_gathered() => {
                (self.stage, self.left) = (Stage::Patient, TRIAL_READS / 2);
                self.reads = TRIAL_READS;
            }
            Stage::Patient if !self.has_gathered() => self.give_up(), // it waits for us now
            Stage::Patient if self.is_as_fast() => self.continue_waiting(),
            Stage::Patient if self.credit > 1 => {
                self.credit -= 1;
                self.begin(Stage::Patient, TRIAL_READS);
            }
            Stage::Trial | Stage::Patient => self.give_up(),
        }
    }

    fn begin(&mut self, stage: Stage, reads: u16) {
        (self.stage, self.reads, self.left) = (stage, reads, reads);
        (self.spent_ns, self.bytes) = (0, 0);
    }

    fn consider_trial(&mut self) {
        let small = (self.bytes as usize) < ENOUGH * usize::from(EAGER_READS);
        let close = u64::from(self.spent_ns) < WAIT_NS * u64::from(EAGER_READS);
        if !small || !close || self.skip > 0 {
            self.skip = self.skip.saturating_sub(u16::from(small && close));
            (self.eager_ns, self.eager_bytes) = (self.spent_ns, self.bytes);
            return self.begin(Stage::Eager, EAGER_READS);
        }
        // A window in which the processor was elsewhere would make any trial look good.
        if self.is_as_fast() {
            (self.eager_ns, self.eager_bytes) = (self.spent_ns, self.bytes);
        }
        (self.credit, self.windows) = (0, 0);
        self.begin(Stage::Trial, TRIAL_READS / 2);
    }

    /// Each read brought a quarter more than those at once.
    fn has_gathered(&self) -> bool {
        let each = u64::from(self.bytes) * u64::from(EAGER_READS) * 4;
        each >= u64::from(self.eager_bytes) * u64::from(self.reads) * 5
    }

    /// As many bytes came in the same time as at once, or more.
    fn is_as_fast(&self) -> bool {
        let ours = u64::from(self.bytes) * u64::from(self.eager_ns);
        ours >= u64::from(self.eager_bytes) * u64::from(self.spent_ns)
    }

    fn continue_waiting(&mut self) {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        if self.credit == CREDIT_MAX {
            self.next_skip = SKIP_FIRST; // chance alone does not come so far
        }
        self.windows += 1;
        if self.windows == KEPT_WINDOWS {
            self.begin(Stage::Eager, EAGER_READS);
        } else {
            self.begin(Stage::Patient, TRIAL_READS);
        }
    }

    fn give_up(&mut self) {
        self.skip = self.next_skip;
        self.next_skip = (self.next_skip * 2).min(SKIP_MAX);
        self.begin(Stage::Eager, EAGER_READS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client, played: how many bytes the next read brings and when, if it comes at once or after
    /// a wait.
    struct Play {
        patience: Patience,
        now: MonoNs,
        waits: bool,
        waited: u64,
        bytes: u64,
    }

    impl Play {
        fn new() -> Self {
            let now = MonoNs(1_000_000_000);
            Self { patience: Patience::default(), now, waits: false, waited: 0, bytes: 0 }
        }

        /// So many reads of a client that has this many bytes there after so many nanoseconds, by
        /// whether we wait.
        fn reads(&mut self, reads: u32, client: impl Fn(bool) -> (u64, usize)) {
            for _ in 0..reads {
                let (ns, bytes) = client(self.waits);
                self.waited += u64::from(self.waits);
                self.bytes += bytes as u64;
                self.now = self.now.plus(ns);
                self.waits = self.patience.read(self.now, bytes);
            }
        }
    }

    /// It waits for each answer, and asks again so long after it.
    fn closed(round_ns: u64, bytes: usize) -> impl Fn(bool) -> (u64, usize) {
        move |waits| (round_ns + if waits { WAIT_NS } else { 0 }, bytes)
    }

    /// It goes on by itself: with our patience it makes `faster` as many bytes in the same time, in
    /// percent.
    fn streams(faster: u64) -> impl Fn(bool) -> (u64, usize) {
        move |waits| {
            let ns = if waits { WAIT_NS + 5_000 } else { 5_000 };
            (ns, (ns / 10 * if waits { faster } else { 100 } / 100) as usize)
        }
    }

    #[test]
    fn who_waits_for_each_answer_loses_less_than_a_hundredth() {
        for round_ns in [5_000, 10_000, 30_000, 60_000, 69_000] {
            let mut play = Play::new();
            play.reads(1000, closed(round_ns, 850));
            assert!(play.waited > 0, "it is tried out: {round_ns}");
            play.reads(49_000, closed(round_ns, 850));
            let since = play.now;
            play.reads(200_000, closed(round_ns, 850));
            let lost = play.now.since(since) - 200_000 * round_ns;
            assert!(lost * 100 < 200_000 * round_ns, "{round_ns}: {lost}");
        }
    }

    #[test]
    fn many_callers_of_one_connection_are_not_bound_together() {
        // Eight callers, each of whom waits: more gathers while we wait, but less comes in all.
        let callers = |waits| if waits { (90_000, 8 * 40) } else { (20_000, 4 * 40) };
        let mut play = Play::new();
        play.reads(100_000, callers);
        assert!(play.waited < 1000, "{}", play.waited);
    }

    #[test]
    fn who_goes_on_by_himself_is_waited_for_as_long_as_that_makes_him_faster() {
        let mut play = Play::new();
        play.reads(u32::from(2 * EAGER_READS + TRIAL_READS), streams(150));
        let before = play.waited;
        play.reads(10_000, streams(150));
        assert!(play.waited - before > 9000, "{}", play.waited);
        // Waits that end late, because the processor is wanted by others.
        let late = |waits| if waits { (600_000, 60_000) } else { (5_000, 1_000) };
        let mut play = Play::new();
        play.reads(100_000, late);
        assert!(play.waited < 1000, "{}", play.waited);
        // With TCP_NODELAY waiting may cost the client more than it brings.
        let mut play = Play::new();
        play.reads(100_000, streams(80));
        assert!(play.waited < 1000, "{}", play.waited);
    }

    #[test]
    fn a_client_that_begins_to_wait_is_noticed_after_few_reads() {
        let mut play = Play::new();
        play.reads(1000, streams(150));
        assert!(play.waits);
        // As much per read as before, and more.
        for (bytes, windows) in [(500, 3), (850, CREDIT_MAX + 3)] {
            let before = play.waited;
            play.reads(1000, closed(10_000, bytes));
            let waited = play.waited - before;
            assert!(waited <= u64::from(TRIAL_READS) * u64::from(windows), "{bytes}: {waited}");
            play.reads(50_000, streams(150));
            assert!(play.waits, "and back");
        }
    }

    #[test]
    fn rare_reads_and_large_ones_never_wait() {
        let mut play = Play::new();
        play.reads(10_000, closed(WAIT_NS, 850));
        play.reads(10_000, closed(5_000, ENOUGH));
        assert_eq!(play.waited, 0);
        // In the middle of patience a large read is followed by the next one at once.
        play.reads(1000, streams(150));
        assert!(play.waits);
        play.reads(1, |_| (1000, ENOUGH));
        assert!(!play.waits);
        play.reads(1, |_| (1000, ENOUGH - 1));
        assert!(play.waits);
    }

    #[test]
    fn a_processor_that_was_away_for_long_is_held_against_nobody() {
        let mut play = Play::new();
        play.reads(u32::from(2 * EAGER_READS) - 1, streams(150));
        play.reads(1, |_| (1_000_000_000, 500));
        assert!(play.waits, "the window was close but for one read");
        play.reads(1000, streams(150));
        play.reads(1, |_| (1_000_000_000, 7500));
        play.reads(u32::from(TRIAL_READS), streams(150));
        assert!(play.waits, "one bad window behind good ones");
    }
}
