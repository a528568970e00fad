//! What a measurement leaves behind: the one form that tables, CSV, JSON, comparisons and reports
//! read.

use serde::{Deserialize, Serialize};

/// One measured run of one load against one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was asked of it, in a word or two: `set`, `1:10 set:get`, `request-reply`.
    pub load: String,
    /// The server that was measured.
    pub target: String,
    /// Parameters that a table shows as columns, in order (`connections` = `50`, `pipeline` = `16`
    /// ...).
    pub parameters: Vec<(String, String)>,
    /// Seconds that the load lasted, without warm-up.
    pub seconds: f64,
    /// Requests that got their right reply.
    pub requests: u64,
    /// Requests that did not: see `Failures`.
    pub failures: Failures,
    /// Replies per second.
    pub throughput: f64,
    /// Requests under way on average, as the client counted them.
    pub in_flight: f64,
    /// Latency of a request, from its intended send time in an open loop.
    pub latency: Latency,
    /// Throughput and p99 over time.
    pub series: Vec<Sample>,
    /// CPU seconds of the load generator.
    pub client_cpu_s: f64,
    /// What the server used, where it is a local process.
    pub server: Option<ServerUse>,
    /// CPU that neither of the two used, in CPUs: above 0.15 the run is not to be trusted.
    pub other_cpus: f64,
    /// 1-minute load average of the machine at the end.
    pub load_average: f64,
    /// Requests per second that an open loop was to send; 0 for a closed loop.
    #[serde(default)]
    pub offered: f64,
    /// Requests of an open loop that were due before its end and never sent, because neither server
    /// nor client kept up. What they had waited is part of the latency.
    #[serde(default)]
    pub unsent: u64,
    /// Most requests under way at a time.
    #[serde(default)]
    pub in_flight_max: u64,
    /// How evenly the connections were served.
    #[serde(default)]
    pub per_connection: PerConnection,
    /// Share of the reads that found their key, where a trace was played to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
}

impl Measurement {
    /// Whether it has a rate, latencies and a series: replies that are all errors say nothing of
    /// how fast the server is.
    pub fn has_rate(&self) -> bool {
        self.requests > 0 || self.failures.is_empty()
    }
}

/// Replies on the connections of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerConnection {
    /// On the one that got the fewest.
    pub least: u64,
    /// On the one in the middle.
    pub median: u64,
    /// On the one that got the most.
    pub most: u64,
}

impl PerConnection {
    /// Of the replies on each connection, in ascending order; all zero if there is none.
    pub fn of(ascending: &[u64]) -> Self {
        let (Some(&least), Some(&most)) = (ascending.first(), ascending.last()) else {
            return Self::default();
        };
        Self { least, median: ascending[ascending.len() / 2], most }
    }

    /// True if some connection got less than half of what the one in the middle got, and that was
    /// enough to judge by.
    pub fn is_uneven(&self) -> bool {
        const ENOUGH: u64 = 20;
        self.median >= ENOUGH && self.least < self.median / 2
    }
}

/// Requests that failed, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Error replies.
    pub errors: u64,
    /// The first error reply's text.
    pub first_error: String,
    /// Requests without a reply when the run ended or the connection broke.
    pub lost: u64,
    /// Nil where a value must be.
    pub nil: u64,
    /// A value other than the one that was written.
    pub wrong: u64,
}

impl Failures {
    /// True if nothing failed.
    pub fn is_empty(&self) -> bool {
        self.errors + self.lost + self.nil + self.wrong == 0
    }
}

/// A distribution of latencies, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub stdev_us: f64,
    /// Smallest.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest.
    pub max_us: f64,
    /// The distribution itself: upper bound of a step in microseconds, and the share at or below
    /// it.
    pub cumulative: Vec<(f64, f64)>,
}

/// One interval of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start, at the interval's end.
    pub at_s: f64,
    /// Replies per second in it.
    pub throughput: f64,
    /// 99th percentile in it, microseconds.
    pub p99_us: f64,
    /// Requests under way at its end.
    #[serde(default)]
    pub in_flight: f64,
}

/// What a local server process used during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU seconds.
    pub cpu_s: f64,
    /// CPU microseconds per request.
    pub cpu_us_per_request: f64,
    /// Resident bytes at the end.
    pub resident_bytes: u64,
}

/// The machine it ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU model.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Virtual machine or container, as far as it is known.
    pub virtualization: String,
    /// Clock source of the kernel.
    pub clock_source: String,
}

/// A file of measurements: what `--json` writes and `compare` reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of this format: 1.
    pub format: u32,
    /// Seconds since 1970 when it began.
    pub started_unix_s: u64,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// All runs, repetitions included, in the order in which they were made.
    pub measurements: Vec<Measurement>,
    /// What the laboratory found, if it was asked.
    pub findings: Vec<Finding>,
}

/// One finding of the laboratory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which: a name of the closed list in `docs/laboratory.md`.
    pub kind: FindingKind,
    /// The experiment that found it.
    pub experiment: String,
    /// About whom.
    pub target: String,
    /// The figures that show it, one sentence each.
    pub evidence: Vec<String>,
    /// What could make it wrong (noise, contention, a saturated client).
    pub caveats: Vec<String>,
}

/// The closed list of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A second connection is not served while the first is open.
    Sequential,
    /// Small replies wait for a delayed acknowledgement: throughput does not fit in-flight over
    /// latency.
    NagleStall,
    /// One send per reply where a batch could share it.
    FlushPerReply,
    /// One thread owns the data: throughput stays flat while cores are idle.
    SingleWriterFlat,
    /// Wake-ups of a sleeping core, not work, bound the latency.
    WakeupBound,
    /// The load generator is the bottleneck.
    ClientSaturated,
    /// The client sends without a bound: requests pile up.
    UnboundedClient,
    /// The listen queue overflowed.
    BacklogOverflow,
    /// Throughput falls with more concurrency.
    Retrograde,
    /// A pool smaller than the number of connections: the rest is not served.
    PoolExhausted,
    /// Replies stay in the server until more requests come.
    StrandedReply,
    /// Many polls that bring one event each.
    PollPerRequest,
    /// Small writes of a client that waits for nothing are read one by one.
    EagerReads,
    /// A sampled policy finds less than the exact order that it stands for.
    SamplingLoses,
    /// Keys that are read once push out those that are read again.
    ScanPollution,
    /// A server uses more memory than its limit.
    OverLimit,
    /// Nothing stands out.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starved_connections_are_reported() {
        let even = PerConnection::of(&[30, 40, 41, 90]);
        assert_eq!(even, PerConnection { least: 30, median: 41, most: 90 });
        assert!(!even.is_uneven());
        assert!(PerConnection::of(&[19, 40, 41]).is_uneven());
        assert!(!PerConnection::of(&[0, 19, 25]).is_uneven(), "too few to tell");
        assert_eq!(PerConnection::of(&[]), PerConnection::default());
    }
}
