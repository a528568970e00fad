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

/// What one thread counts, or some of them together.
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    polls: AtomicU64,
    events: AtomicU64,
    events_per_poll: [AtomicU64; EVENT_BUCKETS],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// The sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections that were accepted.
    pub connections: u64,
    /// Requests, or messages, that were executed.
    pub requests: u64,
    /// Calls that receive, also those that found nothing.
    pub reads: u64,
    /// Calls that send, also those that found no room.
    pub writes: u64,
    /// Calls that wait for any of many sockets.
    pub polls: u64,
    /// Events that they brought.
    pub events: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

impl Counters {
    /// A shard for the calling thread to keep.
    pub fn shard(&self) -> &Counts {
        &self.shards[self.next.fetch_add(1, Ordering::Relaxed) % SHARDS]
    }

    /// The sums so far.
    pub fn totals(&self) -> Totals {
        let sum = |which: fn(&Counts) -> &AtomicU64| {
            self.shards.iter().map(|shard| which(shard).load(Ordering::Relaxed)).sum()
        };
        Totals {
            connections: sum(|counts| &counts.connections),
            requests: sum(|counts| &counts.requests),
            reads: sum(|counts| &counts.reads),
            writes: sum(|counts| &counts.writes),
            polls: sum(|counts| &counts.polls),
            events: sum(|counts| &counts.events),
            bytes_in: sum(|counts| &counts.bytes_in),
            bytes_out: sum(|counts| &counts.bytes_out),
        }
    }
}

impl Counters {
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

impl Totals {
    /// Names and values, in the order in which they are shown.
    pub fn pairs(&self) -> [(&'static str, u64); 8] {
        [
            ("connections", self.connections),
            ("requests", self.requests),
            ("reads", self.reads),
            ("writes", self.writes),
            ("polls", self.polls),
            ("events", self.events),
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_add_up() {
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
        let values = counters.totals().pairs().map(|(_, value)| value);
        assert_eq!(values, [n, 2 * n, n, n, n, 5 * n, 3 * n, 4 * n]);
    }

    #[test]
    fn polls_are_told_by_their_events() {
        let counters = Counters::default();
        assert_eq!(counters.events_per_poll(), "");
        for events in [0, 1, 1, 2, 3, 4, 255, 256, 100_000] {
            counters.shard().poll(events);
        }
        assert_eq!(counters.events_per_poll(), "0:1,1:2,2:2,4:1,128:1,256:2");
    }
}
