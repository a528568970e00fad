//! The client side of the five classic ingest strategies: sends numbered messages, checks every acknowledgement.
//!
//! Messages are numbered from 0 on each connection, as little-endian u64. An acknowledgement of several messages
//! must satisfy `previous + skipped + 1 == id`, from -1 on; one of request-reply is the next id. Each thread drives its
//! share of the connections with one epoll loop and never waits for one of them alone.

mod classic;
mod connection;
mod drive;

pub use classic::{CLASSIC, Classic};

use crate::result::{Failures, Latency, Measurement};
use drive::Tally;
use hdrhistogram::Histogram;
use ingest::{HEADER_BYTES, Strategy};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Messages that one `writev` takes at most (`IOV_MAX`).
pub const BATCH_MAX: usize = 1024;
/// Bytes of one write at most.
pub const BLOCK_MAX: usize = 16 << 20;

/// What to send to whom.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The listener.
    pub address: SocketAddr,
    /// Its strategy.
    pub strategy: Strategy,
    /// Connections.
    pub clients: usize,
    /// Messages on each of them.
    pub messages: u64,
    /// Bytes of a message on the wire, its 12 of header included.
    pub message_size: usize,
    /// Messages in one `writev`; with request-reply the next one waits until all of them are answered.
    pub batch: usize,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Write blocks of so many bytes (rounded down to whole messages) instead of batches.
    pub block: Option<usize>,
    /// Threads that share the connections.
    pub threads: usize,
    /// Wait for acknowledgements and check them. If not (a null reader), the end of the connection ends the run.
    pub acknowledged: bool,
    /// Nobody waits longer than this without progress.
    pub patience: Duration,
}

impl Spec {
    /// One connection that sends 100,000 messages of 17 bytes, one by one.
    pub fn new(address: SocketAddr, strategy: Strategy) -> Self {
        Self {
            address,
            strategy,
            clients: 1,
            messages: 100_000,
            message_size: 17,
            batch: 1,
            nodelay: true,
            block: None,
            threads: 1,
            acknowledged: true,
            patience: Duration::from_secs(10),
        }
    }

    /// Messages of one write.
    fn batch_len(&self) -> usize {
        self.block.map_or(self.batch, |bytes| (bytes / self.message_size).max(1))
    }

    fn check(&self) -> Result<(), Error> {
        let bad = |what: &str| Err(Error::Spec(what.to_owned()));
        if self.clients == 0 || self.messages == 0 || self.threads == 0 {
            return bad("clients, messages and threads are at least 1");
        }
        if self.message_size < HEADER_BYTES || self.message_size > BLOCK_MAX {
            return bad("a message has from 12 bytes to 16 MiB");
        }
        if self.batch == 0 || self.batch > BATCH_MAX {
            return bad("a batch has from 1 to 1024 messages");
        }
        if self.batch_len() * self.message_size > BLOCK_MAX {
            return bad("one write has at most 16 MiB");
        }
        Ok(())
    }
}

/// Why there is no measurement.
#[derive(Debug)]
pub enum Error {
    /// The specification asks for what cannot be.
    Spec(String),
    /// No connection to the listener.
    Connect(SocketAddr, io::Error),
    /// The client's own system calls failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Spec(what) => f.write_str(what),
            Error::Connect(addr, e) => write!(f, "cannot connect to {addr}: {e}"),
            Error::Io(e) => write!(f, "the client failed: {e}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Io(e)
    }
}

/// Sends everything and waits for the last acknowledgement. `Failures::wrong` counts connections whose
/// acknowledgements broke the rule, `lost` messages without one. The server's use and the other CPUs are left to the caller.
pub fn run(spec: &Spec) -> Result<Measurement, Error> {
    run_counted(spec).map(|(measurement, _)| measurement)
}

/// The same, and the number of acknowledgements that came.
pub fn run_counted(spec: &Spec) -> Result<(Measurement, u64), Error> {
    spec.check()?;
    let threads = spec.threads.min(spec.clients);
    let gate = std::sync::Barrier::new(threads);
    let parts: Vec<Result<Tally, Error>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|n| {
                let clients = spec.clients / threads + usize::from(n < spec.clients % threads);
                let gate = &gate;
                scope.spawn(move || drive::run(spec, clients, gate))
            })
            .collect();
        handles.into_iter().map(|h| h.join().expect("a client thread does not panic")).collect()
    });
    let mut tally = Tally::new();
    for part in parts {
        tally.add(part?);
    }
    Ok((measurement(spec, &tally), tally.acks))
}

fn measurement(spec: &Spec, tally: &Tally) -> Measurement {
    let seconds = tally.ended.duration_since(tally.started).as_secs_f64();
    let write = spec.block.map_or(format!("{} messages", spec.batch), |b| format!("{b} bytes"));
    let named = |name: &str, value: String| (name.to_owned(), value);
    let total = spec.messages * spec.clients as u64;
    Measurement {
        load: spec.strategy.name().to_owned(),
        target: spec.address.to_string(),
        parameters: vec![
            named("connections", spec.clients.to_string()),
            named("messages", spec.messages.to_string()),
            named("message bytes", spec.message_size.to_string()),
            named("write", write),
            named("nodelay", (if spec.nodelay { "yes" } else { "no" }).to_owned()),
        ],
        seconds,
        requests: tally.acknowledged,
        failures: Failures {
            first_error: tally.first_error.clone().unwrap_or_default(),
            lost: total - tally.acknowledged,
            wrong: tally.wrong,
            ..Failures::default()
        },
        throughput: tally.acknowledged as f64 / seconds,
        in_flight: tally.latency_sum_s / seconds,
        latency: latency(&tally.latency_ns),
        client_cpu_s: tally.cpu_s,
        load_average: load_average(),
        ..Measurement::default()
    }
}

fn latency(h: &Histogram<u64>) -> Latency {
    const NS_PER_US: f64 = 1000.0;
    if h.is_empty() {
        return Latency::default();
    }
    let at = |q: f64| h.value_at_quantile(q) as f64 / NS_PER_US;
    let total = h.len() as f64;
    let mut seen = 0;
    let cumulative = h.iter_recorded().map(|step| {
        seen += step.count_since_last_iteration();
        (step.value_iterated_to() as f64 / NS_PER_US, seen as f64 / total)
    });
    Latency {
        mean_us: h.mean() / NS_PER_US,
        stdev_us: h.stdev() / NS_PER_US,
        min_us: h.min() as f64 / NS_PER_US,
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        max_us: h.max() as f64 / NS_PER_US,
        cumulative: cumulative.collect(),
    }
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}
