//! What a model did: system calls, bytes and requests. `INFO model` shows them, so that an
//! experiment can tell system calls per request.
//!
//! A thread counts in a shard of its own, so that counting costs no shared cache line.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::sync::CachePadded;

/// Shards; with more threads than that, some share one.
const SHARDS: usize = 64;
/// Buckets of the events of a poll: 0, 1, 2-3, 4-7 ... 256 and more.
const EVENT_BUCKETS: usize = 10;

/// The counters of a server.
#[derive(Debug)]
pub struct Counters {
    shards: Box<[CachePadded<Counts>]>,
    next: AtomicUsize,
}

/// Makes [`Counts`], [`Totals`] and what leads from one to the other out of one list of counters.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What one thread counts, or some of them together.
        #[derive(Debug, Default)]
        pub struct Counts {
            $($name: AtomicU64,)*
            events_per_poll: [AtomicU64; EVENT_BUCKETS],
        }

        /// The sums.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// The sums so far.
            pub fn totals(&self) -> Totals {
                let sum = |which: fn(&Counts) -> &AtomicU64| {
                    self.shards.iter().map(|shard| which(shard).load(Ordering::Relaxed)).sum()
                };
                Totals { $($name: sum(|counts| &counts.$name),)* }
            }
        }

        impl Totals {
            /// Names and values, in the order in which they are shown.
            pub fn pairs(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Connections that were accepted.
    connections,
    /// Requests, or messages, that were executed.
    requests,
    /// Calls that receive, also those that found nothing.
    reads,
    /// Calls that send, also those that found no room.
    writes,
    /// Calls that wait for any of many sockets.
    polls,
    /// Events that they brought.
    events,
    /// Bytes received.
    bytes_in,
    /// Bytes sent.
    bytes_out,
}

impl Counters {
    /// A shard for the calling thread to keep.
    pub fn shard(&self) -> &Counts {
        &self.shards[self.next.fetch_add(1, Ordering::Relaxed) % SHARDS]
    }

    /// Polls by the events that they brought: `from:count` of each bucket that holds something,
    /// `from` being its smallest number of events.
    pub fn events_per_poll(&self) -> String {
        let count = |bucket: usize| -> u64 {
            let shards = self.shards.iter();
            shards.map(|shard| shard.events_per_poll[bucket].load(Ordering::Relaxed)).sum()
        };
        let buckets = (0..EVENT_BUCKETS).map(|bucket| (smallest(bucket), count(bucket)));
        let filled: Vec<String> =
            buckets.filter(|(_, n)| *n > 0).map(|(from, n)| format!("{from}:{n}")).collect();
        filled.join(",")
    }
}

/// The smallest number of events of a bucket.
fn smallest(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { 1 << (bucket - 1) }
}

impl Default for Counters {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| CachePadded::default()).collect();
        Self { shards, next: AtomicUsize::new(0) }
    }
}

impl Counts {
    /// A connection came.
    pub fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests were executed.
    pub fn request(&self, many: u64) {
        self.requests.fetch_add(many, Ordering::Relaxed);
    }

    /// One receive brought so many bytes.
    pub fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// One send took so many bytes.
    pub fn write(&self, bytes: usize) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// One wait for any of many sockets brought so many events.
    pub fn poll(&self, events: usize) {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
        let bucket = (usize::BITS - events.leading_zeros()) as usize;
        self.events_per_poll[bucket.min(EVENT_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_added() {
        let counters = Counters::default();
        for _ in 0..=SHARDS {
            let mine = counters.shard();
            mine.connection();
            mine.request(2);
            mine.read(3);
            mine.write(4);
            mine.poll(5);
        }
        let n = SHARDS as u64 + 1;
        let values: Vec<u64> = counters.totals().pairs().iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [n, 2 * n, n, n, n, 5 * n, 3 * n, 4 * n]);
    }

    #[test]
    fn polls_are_counted_by_their_events() {
        let counters = Counters::default();
        assert_eq!(counters.events_per_poll(), "");
        for events in [0, 1, 1, 2, 3, 4, 255, 256, 100_000] {
            counters.shard().poll(events);
        }
        assert_eq!(counters.events_per_poll(), "0:1,1:2,2:2,4:1,128:1,256:2");
    }
}
