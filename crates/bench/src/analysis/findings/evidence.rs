//! What an experiment hands to the rules. Every part is optional: what could not be measured is
//! left out.

use super::super::figure;
use super::super::retrograde::Level;
use super::super::spread::Spread;
use super::proof::Figures;
use crate::host::OTHER_CPUS_MAX;
use crate::result::{Latency, Measurement};

/// Everything that was seen of one target in one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The experiment.
    pub experiment: String,
    /// The target, for the text only: no rule reads it.
    pub target: String,
    /// How far the figures can be trusted.
    pub trust: Trust,
    /// How many of some idle connections were served.
    pub admission: Option<Admission>,
    /// How connecting went.
    pub connects: Option<Connects>,
    /// Batches of requests, with the time they took.
    pub stall: Option<Stall>,
    /// Sends per reply.
    pub sends: Option<Sends>,
    /// Polls per request.
    pub polls: Option<Polls>,
    /// Reads of a client that sends small writes and waits for nothing.
    pub reading: Option<Reading>,
    /// Replies to one batch, then nothing.
    pub stranding: Option<Stranding>,
    /// Throughput against load.
    pub levels: Vec<Level>,
    /// What limits throughput at the end of those levels.
    pub writer: Option<Writer>,
    /// One request at a time on one connection.
    pub wakeups: Option<Wakeups>,
    /// The load generator's own CPU.
    pub client: Option<Client>,
    /// Requests in flight over time.
    pub queue: Option<Queue>,
    /// A trace that was played to a cache.
    pub caching: Option<Caching>,
}

impl Evidence {
    /// What there is evidence of, in words.
    pub(super) fn looked_at(&self) -> Vec<&'static str> {
        let parts = [
            (self.admission.is_some(), "connections served"),
            (self.connects.is_some(), "connecting"),
            (self.reading.is_some(), "reads of small writes"),
            (self.stranding.is_some(), "replies to an unfinished batch"),
            (self.stall.is_some(), "stalls of batches"),
            (self.sends.is_some(), "sends per reply"),
            (self.polls.is_some(), "events per poll"),
            (!self.levels.is_empty(), "throughput against load"),
            (self.writer.is_some(), "reads and writes against PING"),
            (
                self.writer.as_ref().is_some_and(|w| w.wakes.is_some()),
                "threads that a request wakes",
            ),
            (self.wakeups.is_some(), "time asleep"),
            (self.client.is_some(), "CPU of the client"),
            (self.queue.is_some(), "requests in flight over time"),
            (self.caching.is_some(), "hits and memory of a cache"),
        ];
        parts.iter().filter(|(there, _)| *there).map(|(_, what)| *what).collect()
    }
}

/// How the run went, for caveats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// CPUs that neither client nor server used, at the worst.
    pub other_cpus: f64,
    /// CPU share of the load generator's busiest thread, 0 to 1, at the most.
    pub client_busy: Option<f64>,
    /// Spread of the repetitions relative to their median, at the worst.
    pub relative_spread: Option<f64>,
    /// Repetitions of each point.
    pub repetitions: usize,
}

/// Repetitions further apart than this are noisy.
pub const SPREAD_MAX: f64 = 0.10;
/// A thread that works more than this share of its time is saturated: the rest goes to measuring
/// and to sleeps too short to matter.
pub const BUSY: f64 = 0.92;

impl Trust {
    /// Of the repetitions of each point.
    pub fn of(points: &[Vec<&Measurement>], client_busy: Option<f64>) -> Self {
        let spread = |point: &Vec<&Measurement>| {
            let rates: Vec<f64> = point.iter().map(|one| one.throughput).collect();
            Some(Spread::of(&rates)?.relative())
        };
        Self {
            other_cpus: points.iter().flatten().map(|one| one.other_cpus).fold(0.0, f64::max),
            client_busy,
            relative_spread: points.iter().filter_map(spread).reduce(f64::max),
            repetitions: points.iter().map(Vec::len).min().unwrap_or(0),
        }
    }

    /// What a reader must know before believing.
    pub fn caveats(&self) -> Vec<String> {
        let contention = Some(self.other_cpus).filter(|cpus| *cpus > OTHER_CPUS_MAX);
        let noise = self.relative_spread.filter(|spread| *spread > SPREAD_MAX);
        let busy = self.client_busy.filter(|busy| *busy > BUSY);
        Figures::of("trust")
            .maybe("cpus", contention.map(|cpus| format!("{cpus:.2}")))
            .maybe("spread", noise.map(figure::percent))
            .maybe("busy", busy.map(figure::percent))
            .when("once", self.repetitions == 1)
            .proof()
            .caveats
    }
}

/// Connections opened one after the other and kept open; each then asked one PING.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// Connections that were opened.
    pub opened: usize,
    /// Connections whose PING was answered in time.
    pub served: usize,
    /// Connections that received an error or were closed: a limit that is reported is no hang.
    pub refused: usize,
    /// Seconds that each had to answer.
    pub waited_s: f64,
    /// After the first served connection was closed: how many more were served.
    pub served_after_close: Option<usize>,
}

/// Connecting to a listener, many at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connects {
    /// Attempts.
    pub asked: usize,
    /// Those that took at least the first retransmission of a SYN.
    pub slow: usize,
    /// Those that had not succeeded when waiting ended (refusals left out).
    pub failed: usize,
    /// The slowest that succeeded, microseconds.
    pub slowest_us: f64,
    /// Growth of the kernel's `ListenOverflows`, where it can be read.
    pub overflows: Option<u64>,
    /// Growth of `ListenDrops`.
    pub drops: Option<u64>,
    /// The listener's queue length, where it is known.
    pub backlog: Option<u32>,
}

/// A pipelined run whose batches might wait for a delayed acknowledgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stall {
    /// Requests in a batch.
    pub pipeline: usize,
    /// Requests in flight on average.
    pub in_flight: f64,
    /// Replies per second.
    pub throughput: f64,
    /// Latency with its distribution, as the client recorded it.
    pub latency: Latency,
    /// CPU share of the client's busiest thread, 0 to 1.
    pub client_busy: f64,
    /// CPU share of the server's busiest thread (or all of it), where it can be read.
    pub server_busy: Option<f64>,
    /// Throughput of the same load when the client acknowledges at once (`TCP_QUICKACK`).
    pub quick_ack_throughput: Option<f64>,
}

/// Sends of the server under a pipelined load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sends {
    /// Requests in a batch.
    pub pipeline: usize,
    /// Replies that were counted.
    pub replies: u64,
    /// Mean bytes of a reply.
    pub reply_bytes: f64,
    /// Sends that the server or a trace counted.
    pub sends: Option<u64>,
    /// Data segments that the client's kernel received (`TCP_INFO`).
    pub segments: Option<u64>,
}

/// Polls of the server with several connections in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polls {
    /// Connections with a request in flight.
    pub in_flight: f64,
    /// Requests served.
    pub requests: u64,
    /// Calls that wait for events.
    pub polls: u64,
    /// Events that they brought.
    pub events: u64,
    /// Where the figures come from: `INFO io`, `strace`.
    pub source: String,
}

/// Small writes of a client that reads answers without waiting for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Messages in a write.
    pub per_write: usize,
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Reads of the server per message.
    pub reads: f64,
    /// Messages per second.
    pub throughput: f64,
    /// What the same client reaches where everything is read and nothing answered.
    pub discarded: f64,
}

/// One batch on one connection, a wait, and one more request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stranding {
    /// Requests in the batch.
    pub asked: usize,
    /// Replies that came while nothing more was sent.
    pub received: usize,
    /// Seconds that were waited.
    pub waited_s: f64,
    /// Replies that had come after one more request was sent, its own not counted.
    pub received_after_nudge: usize,
}

/// What tells a server whose one thread owns the data from one that is merely full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writer {
    /// Throughput of reads or writes at the highest load, one request at a time per connection.
    pub data_throughput: f64,
    /// Throughput of PING in the same form: it needs no data.
    pub ping_throughput: Option<f64>,
    /// CPU share of the server's busiest thread.
    pub busiest_thread: Option<f64>,
    /// Threads of the server that used at least a twentieth of a CPU.
    pub active_threads: Option<usize>,
    /// CPUs of the machine that nobody used.
    pub idle_cpus: Option<f64>,
    /// Which threads a single request wakes.
    pub wakes: Option<Wakes>,
}

/// One connection asks for data, one request at a time; then a second one does the same. How often
/// each thread of the server went to sleep meanwhile, which it does before each time it is woken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wakes {
    /// Requests on each connection.
    pub requests: u64,
    /// Thread, and how often it slept while the first connection asked.
    pub first: Vec<(u32, u64)>,
    /// The same for the second connection.
    pub second: Vec<(u32, u64)>,
}

impl Wakes {
    /// Threads that nearly every request of a connection woke, and one that nearly every request of
    /// both did. The latter is `None` unless each request woke at least two.
    pub fn owner(&self, share: f64) -> Option<(u32, usize)> {
        let most = |slept: &[(u32, u64)]| -> Vec<u32> {
            let often = |one: &&(u32, u64)| one.1 as f64 >= share * self.requests as f64;
            slept.iter().filter(often).map(|one| one.0).collect()
        };
        let (first, second) = (most(&self.first), most(&self.second));
        let threads = first.len().min(second.len());
        let both = first.into_iter().find(|thread| second.contains(thread))?;
        (threads >= 2).then_some((both, threads))
    }
}

/// One connection, one request at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wakeups {
    /// Median latency, microseconds.
    pub latency_us: f64,
    /// CPU microseconds of the client per request.
    pub client_cpu_us: f64,
    /// CPU microseconds of the server per request.
    pub server_cpu_us: Option<f64>,
    /// What one wake-up of a sleeping core costs on this machine, microseconds.
    pub wake_us: Option<f64>,
    /// CPUs of this machine that nobody used meanwhile (the host's gauge): none of them idle,
    /// nobody slept.
    pub idle_cpus: f64,
    /// The quickest of the variants without sleep: who did not sleep, and its median latency,
    /// microseconds.
    pub awake: Option<(&'static str, f64)>,
}

/// The load generator's CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// Threads that send load.
    pub threads: usize,
    /// CPU share of the busiest, 0 to 1.
    pub busiest_thread: f64,
    /// CPU share of the server's busiest thread.
    pub server_busiest_thread: Option<f64>,
}

/// Requests in flight over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Seconds since the start, and requests in flight then.
    pub samples: Vec<(f64, f64)>,
    /// Replies per second.
    pub throughput: f64,
}

/// A trace that was played to a server with a limit of memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caching {
    /// The trace, for the text only.
    pub trace: String,
    /// Share of the reads that found their key.
    pub hits: f64,
    /// The exact order of which the server's policy takes samples, and its share of hits with as
    /// many entries.
    pub exact: Option<(&'static str, f64)>,
    /// The best of the caches which withstand scans, and its share with as many entries.
    pub resistant: Option<(&'static str, f64)>,
    /// Share of the reads that are of keys which the trace reads once.
    pub read_once: f64,
    /// Seconds that a key waits in an exact LRU before it goes.
    pub age_s: Option<f64>,
    /// Memory above the limit at the most, as a share of it.
    pub over_limit: Option<f64>,
}
