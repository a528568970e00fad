//! INFO io: the batches made visible, per worker and in total.

use crate::admin::info::text::{field, line};
use crate::figures::io::{IoFigures, WorkerFigures};
use crate::shared::Shared;
use base::sync::atomic::Ordering::Relaxed;
use driver::stats::Pow2;

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

fn write(t: &mut String, prefix: &str, f: &WorkerFigures) {
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
