//! What the loop did: polls, batch sizes, time spent waiting.

/// Buckets of a power-of-two histogram: values 0, 1, 2-3, 4-7, ... up to 2^30 and above.
pub const BUCKETS: usize = 32;

/// A histogram of powers of two, written by its owner alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pow2 {
    /// Observations per bucket; bucket 0 holds zeros, bucket i holds `2^(i-1) .. 2^i`.
    pub counts: [u64; BUCKETS],
}

impl Pow2 {
    /// Counts one observation.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
    }
}

/// Figures of one driver since its start.
#[derive(Clone, Debug, Default)]
pub struct DriverStats {
    /// Times the poll returned.
    pub polls: u64,
    /// Ready connections over all polls.
    pub events: u64,
    /// Ready connections per poll.
    pub events_per_poll: Pow2,
    /// Receives that brought bytes.
    pub receives: u64,
    /// Bytes they brought.
    pub bytes_received: u64,
    /// Bytes per receive.
    pub bytes_per_receive: Pow2,
    /// Send calls.
    pub sends: u64,
    /// Bytes they took.
    pub bytes_sent: u64,
    /// Bytes per send.
    pub bytes_per_send: Pow2,
    /// Spins that ended with an event.
    pub spins_won: u64,
    /// Spins that ended with sleep.
    pub spins_lost: u64,
    /// Times the worker slept.
    pub sleeps: u64,
    /// Nanoseconds in the poll, spinning included.
    pub poll_ns: u64,
    /// Nanoseconds per poll.
    pub ns_per_poll: Pow2,
}
