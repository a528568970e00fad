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

impl Pow2 {
    /// Adds another histogram.
    pub fn merge(&mut self, other: &Pow2) {
        self.counts.iter_mut().zip(other.counts).for_each(|(a, b)| *a += b);
    }
}

impl DriverStats {
    /// Adds another worker's figures.
    pub fn add(&mut self, o: &DriverStats) {
        for (a, b) in [
            (&mut self.polls, o.polls),
            (&mut self.events, o.events),
            (&mut self.receives, o.receives),
            (&mut self.bytes_received, o.bytes_received),
            (&mut self.receives_held, o.receives_held),
            (&mut self.sends, o.sends),
            (&mut self.bytes_sent, o.bytes_sent),
            (&mut self.accept_errors, o.accept_errors),
            (&mut self.spins_won, o.spins_won),
            (&mut self.spins_lost, o.spins_lost),
            (&mut self.sleeps, o.sleeps),
            (&mut self.poll_ns, o.poll_ns),
        ] {
            *a += b;
        }
        self.events_per_poll.merge(&o.events_per_poll);
        self.bytes_per_receive.merge(&o.bytes_per_receive);
        self.bytes_per_send.merge(&o.bytes_per_send);
        self.ns_per_poll.merge(&o.ns_per_poll);
    }
}

/// Figures of one driver since its start.
#[derive(Clone, Debug, Default)]
pub struct DriverStats {
    /// Turns that the poll began.
    pub polls: u64,
    /// Ready connections over all polls.
    pub events: u64,
    /// Ready connections per poll.
    pub events_per_poll: Pow2,
    /// Receives that brought bytes.
    pub receives: u64,
    /// Bytes they brought.
    pub bytes_received: u64,
    /// Receives that waited for bytes to gather.
    pub receives_held: u64,
    /// Bytes per receive.
    pub bytes_per_receive: Pow2,
    /// Send calls.
    pub sends: u64,
    /// Bytes they took.
    pub bytes_sent: u64,
    /// Bytes per send.
    pub bytes_per_send: Pow2,
    /// Times accepting failed: no descriptor was free, or the peer had gone.
    pub accept_errors: u64,
    /// Spins that ended with an event.
    pub spins_won: u64,
    /// Spins that ended with sleep.
    pub spins_lost: u64,
    /// Times the worker slept.
    pub sleeps: u64,
    /// Nanoseconds in the poll, spinning included.
    pub poll_ns: u64,
    /// The longest turn since somebody has taken this: the time between two waits, nanoseconds.
    pub longest_turn_ns: u64,
    /// Nanoseconds per poll.
    pub ns_per_poll: Pow2,
}
