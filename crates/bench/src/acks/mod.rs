//! The client side of message ingest: sends numbered messages, checks every acknowledgement.
//!
//! Classic: messages are numbered from 0 on each connection, as little-endian u64. An
//! acknowledgement of several messages must satisfy `previous + skipped + 1 == id`, from -1 on; one
//! of request-reply is the next id. Protocol 2: each connection is a producer that the server has
//! not met, so its numbers begin with 1 and the same rule holds from 0 on; no more Data is sent
//! than was granted. Each thread drives its share of the connections with one epoll loop and never
//! waits for one of them alone.

mod classic;
mod connection;
mod drive;
mod error;
mod published;
mod spec;
mod tally;
mod two;

pub use error::Error;
pub use published::{CLASSIC, Classic};
pub use spec::{BATCH_MAX, BLOCK_MAX, Producers, Protocol, SIZE_BYTES, Spec, acking};
pub use tally::Outcome;

use crate::host::Usage;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tally::Tally;

/// Sends everything and waits for the last acknowledgement.
pub fn run(spec: &Spec) -> Result<Outcome, Error> {
    spec.check()?;
    driver::process::raise_file_limit(spec.clients as u32);
    let threads = spec.threads.min(spec.clients);
    let gate = std::sync::Barrier::new(threads);
    let name = name();
    let parts: Vec<Result<Tally, Error>> = std::thread::scope(|scope| {
        let share = |n: usize| n * spec.clients / threads;
        let handles: Vec<_> = (0..threads)
            .map(|n| {
                let (gate, name) = (&gate, &name);
                let clients = share(n)..share(n + 1);
                scope.spawn(move || drive::run(spec, name, clients, gate))
            })
            .collect();
        handles.into_iter().map(|h| h.join().expect("a client thread does not panic")).collect()
    });
    let mut tally = Tally::new();
    for part in parts {
        tally.add(part?);
    }
    Ok(tally.outcome(spec))
}

/// The same, with what the server used: its process, if that is on this machine, and its name.
pub fn run_at(spec: &Spec, name: &str, server: Option<u32>) -> Result<Outcome, Error> {
    let usage = Usage::start(server);
    let mut outcome = run(spec)?;
    let measurement = &mut outcome.measurement;
    let (_, server, other_cpus) = usage.stop(measurement.requests);
    (measurement.server, measurement.other_cpus) = (server, other_cpus);
    name.clone_into(&mut measurement.target);
    Ok(outcome)
}

/// A name that no run had before, here or in another process.
fn name() -> String {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    format!("bench-{now:x}-{:x}-{run:x}", std::process::id())
}
