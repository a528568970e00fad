//! INFO io: the batches made visible, per worker and in total.

use crate::admin::info::{field, line};
use crate::shared::{Shared, WorkerCounters};
use base::sync::atomic::Ordering::Relaxed;
use driver::DriverStats;
use driver::stats::Pow2;
use keyspace::Contention;

/// What one worker, or all of them, did.
#[derive(Default)]
pub struct Figures {
    /// The driver's figures.
    pub io: DriverStats,
    /// Commands executed.
    pub commands: u64,
    /// Those of the time of `io`.
    pub published: u64,
    /// Windows executed.
    pub windows: u64,
    /// Open connections.
    pub connections: u64,
    /// How often it was in another's way.
    pub locks: Contention,
}

/// All workers' figures.
pub struct IoFigures {
    /// Their sum.
    pub total: Figures,
    /// Each worker's.
    pub each: Vec<Figures>,
}

impl IoFigures {
    /// The figures of now.
    pub fn gather(shared: &Shared) -> Self {
        let each: Vec<Figures> =
            shared.workers.iter().enumerate().map(|(i, w)| of_worker(shared, i, w)).collect();
        let mut total = Figures::default();
        for f in &each {
            total.add(f);
        }
        IoFigures { total, each }
    }
}

/// Total first, then each worker under `worker<N>_`.
pub fn io_section(t: &mut String, shared: &Shared) {
    line(t, "# Io", "");
    field(t, "io_backend", shared.facts.io_backend);
    field(t, "io_workers", shared.workers.len());
    field(t, "io_listen_overflows", shared.listen_overflows.load(Relaxed));
    let f = IoFigures::gather(shared);
    write(t, "io_", &f.total);
    for (i, f) in f.each.iter().enumerate() {
        write(t, &format!("worker{i}_"), f);
    }
}

fn of_worker(shared: &Shared, index: usize, w: &WorkerCounters) -> Figures {
    let io = w.io.lock().expect("no panic while figures are held");
    let published = w.published.get();
    Figures {
        io: io.clone(),
        published,
        commands: w.processed.get(),
        windows: w.windows.get(),
        connections: u64::from(w.connections.load(Relaxed)),
        locks: shared.keyspace.contention(index),
    }
}

impl Figures {
    fn add(&mut self, o: &Figures) {
        self.io.add(&o.io);
        self.commands += o.commands;
        self.published += o.published;
        self.windows += o.windows;
        self.connections += o.connections;
        self.locks.waits += o.locks.waits;
        self.locks.sleeps += o.locks.sleeps;
        self.locks.parks += o.locks.parks;
        self.locks.worlds += o.locks.worlds;
    }
}

fn write(t: &mut String, prefix: &str, f: &Figures) {
    let io = &f.io;
    let per = |a: u64, b: u64| format!("{:.2}", a as f64 / b.max(1) as f64);
    let mut put = |name: &str, value: String| field(t, &format!("{prefix}{name}"), value);
    put("connections", f.connections.to_string());
    put("commands", f.commands.to_string());
    put("windows", f.windows.to_string());
    put("commands_per_window", per(f.commands, f.windows));
    put("polls", io.polls.to_string());
    put("events", io.events.to_string());
    put("events_per_poll", histogram(&io.events_per_poll));
    put("accept_errors", io.accept_errors.to_string());
    put("receives", io.receives.to_string());
    put("receives_held", io.receives_held.to_string());
    put("bytes_received", io.bytes_received.to_string());
    put("bytes_per_receive", histogram(&io.bytes_per_receive));
    put("commands_per_receive", per(f.published, io.receives));
    put("sends", io.sends.to_string());
    put("bytes_sent", io.bytes_sent.to_string());
    put("bytes_per_send", histogram(&io.bytes_per_send));
    put("replies_per_send", per(f.published, io.sends));
    put("spins_won", io.spins_won.to_string());
    put("spins_lost", io.spins_lost.to_string());
    put("sleeps", io.sleeps.to_string());
    put("poll_usec", (io.poll_ns / 1000).to_string());
    put("poll_nsec", histogram(&io.ns_per_poll));
    put("lock_waits", f.locks.waits.to_string());
    put("lock_sleeps", f.locks.sleeps.to_string());
    put("lock_parks", f.locks.parks.to_string());
    put("world_holds", f.locks.worlds.to_string());
}

/// `from:count` pairs of the buckets that hold something, `from` being the smallest value of a
/// bucket.
fn histogram(h: &Pow2) -> String {
    let pairs: Vec<String> = h
        .counts
        .iter()
        .enumerate()
        .filter(|(_, n)| **n > 0)
        .map(|(i, n)| format!("{}:{n}", if i == 0 { 0 } else { 1u64 << (i - 1) }))
        .collect();
    pairs.join(",")
}
