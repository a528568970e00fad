//! When to let a connection's bytes gather before they are read.
//!
//! Some clients stream small writes without waiting for replies. Reading their bytes at once slows
//! them down: each read wakes this worker, releases the client's next segment, and produces a reply
//! that the client must receive. Other clients wait for each reply and are slowed down by any
//! delay. The server cannot tell the two apart: if the scheduler runs a client as soon as it is
//! woken, its next request arrives before the poll after the reply. So the policy tries it out. If
//! the reads of a connection are small and close together, it delays eight of them. If each read
//! then brings more bytes, and the bytes per second do not fall, the client is streaming, and reads
//! stay delayed as long as this holds. Otherwise the time until the next trial doubles.

use base::MonoNs;

/// How long a read is delayed after the one before it.
pub const WAIT_NS: u64 = 70_000;
/// After a read of this many bytes the next one is not delayed.
pub const ENOUGH: usize = 32 << 10;
/// Reads of a window without delay, with which a trial is compared.
pub const EAGER_READS: u16 = 32;
/// Delayed reads of a trial; after half of them it is known whether bytes gather.
pub const TRIAL_READS: u16 = 8;
/// Windows without delay between a failed trial and the next one: at first.
pub const SKIP_FIRST: u16 = 2;
/// The same: at most. With [`TRIAL_READS`] delays in so many windows, a client that waits for each
/// reply loses less than 1 % of its throughput.
pub const SKIP_MAX: u16 = 512;
/// Windows with delay before reads without delay are measured again.
pub const PATIENT_WINDOWS: u8 = 64;
/// Upper bound of the credit: a good window earns one, and a slower window costs one. A slower
/// window with less than two ends the delay.
const CREDIT_MAX: u8 = 4;
/// Longest gap that counts between reads without delay; longer ones are the scheduler's doing.
const EAGER_GAP_MAX_NS: u64 = 4 * WAIT_NS;
/// The same for delayed reads. Late wake-ups are a cost of the delay and count; only the gaps of
/// idle clients do not.
const PATIENT_GAP_MAX_NS: u64 = 100_000_000;

/// How a connection is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Without delay.
    #[default]
    Eager,
    /// With delay, and it is not known yet whether bytes gather.
    Trial,
    /// With delay.
    Patient,
}

/// The policy of one connection. It reads no clock and no socket.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The time of the last read.
    last: MonoNs,
    /// The current window: its duration, bytes and planned reads, and how many of these reads are
    /// left.
    spent_ns: u32,
    bytes: u32,
    reads: u16,
    left: u16,
    /// The faster one of the last two windows without delay: its duration and bytes.
    eager_ns: u32,
    eager_bytes: u32,
    /// Windows until the next trial, and the number to skip if that trial fails.
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
    /// Records a read of `bytes`. True if the next one is to be delayed by [`WAIT_NS`].
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
            Stage::Patient if !self.has_gathered() => self.stop_delaying(), // it waits for replies
            Stage::Patient if self.is_as_fast() => self.keep_delaying(),
            Stage::Patient if self.credit > 1 => {
                self.credit -= 1;
                self.begin(Stage::Patient, TRIAL_READS);
            }
            Stage::Trial | Stage::Patient => self.stop_delaying(),
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
        // Compared with a window in which the processor was taken away, any trial would look good.
        if self.is_as_fast() {
            (self.eager_ns, self.eager_bytes) = (self.spent_ns, self.bytes);
        }
        (self.credit, self.windows) = (0, 0);
        self.begin(Stage::Trial, TRIAL_READS / 2);
    }

    /// True if each read brought a quarter more bytes than without delay.
    fn has_gathered(&self) -> bool {
        let each = u64::from(self.bytes) * u64::from(EAGER_READS) * 4;
        each >= u64::from(self.eager_bytes) * u64::from(self.reads) * 5
    }

    /// True if the throughput is not lower than without delay.
    fn is_as_fast(&self) -> bool {
        let ours = u64::from(self.bytes) * u64::from(self.eager_ns);
        ours >= u64::from(self.eager_bytes) * u64::from(self.spent_ns)
    }

    fn keep_delaying(&mut self) {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
        if self.credit == CREDIT_MAX {
            self.next_skip = SKIP_FIRST; // luck alone does not earn the full credit
        }
        self.windows += 1;
        if self.windows == PATIENT_WINDOWS {
            self.begin(Stage::Eager, EAGER_READS);
        } else {
            self.begin(Stage::Patient, TRIAL_READS);
        }
    }

    fn stop_delaying(&mut self) {
        self.skip = self.next_skip;
        self.next_skip = (self.next_skip * 2).min(SKIP_MAX);
        self.begin(Stage::Eager, EAGER_READS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated connection: the policy, the time and the totals.
    struct SimulatedConn {
        patience: Patience,
        now: MonoNs,
        waits: bool,
        waited: u64,
        bytes: u64,
    }

    impl SimulatedConn {
        fn new() -> Self {
            let now = MonoNs(1_000_000_000);
            Self { patience: Patience::default(), now, waits: false, waited: 0, bytes: 0 }
        }

        /// Makes `reads` reads. `client` returns the time until its next bytes and their number.
        /// Its argument says whether the read is delayed.
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

    /// A client which waits for each reply and sends its next request `round_ns` after it.
    fn closed_loop(round_ns: u64, bytes: usize) -> impl Fn(bool) -> (u64, usize) {
        move |waits| (round_ns + if waits { WAIT_NS } else { 0 }, bytes)
    }

    /// A client which streams. With delayed reads its throughput is `faster` percent of that
    /// without.
    fn streams(faster: u64) -> impl Fn(bool) -> (u64, usize) {
        move |waits| {
            let ns = if waits { WAIT_NS + 5_000 } else { 5_000 };
            (ns, (ns / 10 * if waits { faster } else { 100 } / 100) as usize)
        }
    }

    #[test]
    fn a_client_which_waits_for_each_reply_loses_less_than_one_percent() {
        for round_ns in [5_000, 10_000, 30_000, 60_000, 69_000] {
            let mut conn = SimulatedConn::new();
            conn.reads(1000, closed_loop(round_ns, 850));
            assert!(conn.waited > 0, "it is tried out: {round_ns}");
            conn.reads(49_000, closed_loop(round_ns, 850));
            let since = conn.now;
            conn.reads(200_000, closed_loop(round_ns, 850));
            let lost = conn.now.since(since) - 200_000 * round_ns;
            assert!(lost * 100 < 200_000 * round_ns, "{round_ns}: {lost}");
        }
    }

    #[test]
    fn many_callers_of_one_connection_are_not_delayed() {
        // Eight callers which each wait for their reply: a delayed read receives more bytes, but
        // the throughput falls.
        let callers = |waits| if waits { (90_000, 8 * 40) } else { (20_000, 4 * 40) };
        let mut conn = SimulatedConn::new();
        conn.reads(100_000, callers);
        assert!(conn.waited < 1000, "{}", conn.waited);
    }

    #[test]
    fn a_streaming_client_is_delayed_while_that_raises_its_throughput() {
        let mut conn = SimulatedConn::new();
        conn.reads(u32::from(2 * EAGER_READS + TRIAL_READS), streams(150));
        let before = conn.waited;
        conn.reads(10_000, streams(150));
        assert!(conn.waited - before > 9000, "{}", conn.waited);
        // Delays which end late, because other threads occupy the processor.
        let late = |waits| if waits { (600_000, 60_000) } else { (5_000, 1_000) };
        let mut conn = SimulatedConn::new();
        conn.reads(100_000, late);
        assert!(conn.waited < 1000, "{}", conn.waited);
        // With TCP_NODELAY the delay may cost the client more than it gains.
        let mut conn = SimulatedConn::new();
        conn.reads(100_000, streams(80));
        assert!(conn.waited < 1000, "{}", conn.waited);
    }

    #[test]
    fn a_client_which_stops_streaming_is_detected_after_few_reads() {
        let mut conn = SimulatedConn::new();
        conn.reads(1000, streams(150));
        assert!(conn.waits);
        // The same bytes per read, and more.
        for (bytes, windows) in [(500, 3), (850, CREDIT_MAX + 3)] {
            let before = conn.waited;
            conn.reads(1000, closed_loop(10_000, bytes));
            let waited = conn.waited - before;
            assert!(waited <= u64::from(TRIAL_READS) * u64::from(windows), "{bytes}: {waited}");
            conn.reads(50_000, streams(150));
            assert!(conn.waits, "and back");
        }
    }

    #[test]
    fn rare_and_large_reads_are_never_delayed() {
        let mut conn = SimulatedConn::new();
        conn.reads(10_000, closed_loop(WAIT_NS, 850));
        conn.reads(10_000, closed_loop(5_000, ENOUGH));
        assert_eq!(conn.waited, 0);
        // The read after a large one is not delayed, even while other reads are.
        conn.reads(1000, streams(150));
        assert!(conn.waits);
        conn.reads(1, |_| (1000, ENOUGH));
        assert!(!conn.waits);
        conn.reads(1, |_| (1000, ENOUGH - 1));
        assert!(conn.waits);
    }

    #[test]
    fn a_scheduling_gap_does_not_end_the_delay() {
        let mut conn = SimulatedConn::new();
        conn.reads(u32::from(2 * EAGER_READS) - 1, streams(150));
        conn.reads(1, |_| (1_000_000_000, 500));
        assert!(conn.waits, "the window was close but for one read");
        conn.reads(1000, streams(150));
        conn.reads(1, |_| (1_000_000_000, 7500));
        conn.reads(u32::from(TRIAL_READS), streams(150));
        assert!(conn.waits, "one bad window behind good ones");
    }
}
