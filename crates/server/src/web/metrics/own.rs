//! The metrics that only this server has: its batches, its workers, its expiry, its ingest
//! listeners.

use crate::figures::Figures;
use crate::figures::databases::{DATABASES_SHOWN_MAX, DatabaseUse};
use crate::figures::ingest::{ListenerFigures, label};
use crate::figures::io::WorkerFigures as Worker;
use crate::web::metrics::Kind::{Counter, Gauge, Histogram};
use crate::web::metrics::{Metric, Read, Samples, many, one};
use driver::stats::Pow2;
use ingest::v2::Fault;
use observe::heat::{ROWS, row_max};
use observe::hot::Name;

/// Buckets of batch sizes that are shown: up to 2^12 - 1.
const SIZE_BUCKETS: usize = 13;
/// Buckets of bytes that are shown: up to 2^20 - 1.
const BYTE_BUCKETS: usize = 21;

/// The metrics.
pub(crate) const METRICS: &[Metric] = &[
    many("sheafdb_info", Gauge, &["version", "io_backend"], info, "1, with facts as labels"),
    many(
        "sheafdb_db_bytes",
        Gauge,
        &["db"],
        |r, put| databases(r, put, |d| d.bytes),
        "what entries, values and tables of each database take",
    ),
    many(
        "sheafdb_db_limit_bytes",
        Gauge,
        &["db", "policy"],
        limits,
        "what each database with a `db-limit` may take",
    ),
    many(
        "sheafdb_db_commands_total",
        Counter,
        &["db"],
        |r, put| databases(r, put, |d| d.commands),
        "commands executed in each database",
    ),
    many(
        "sheafdb_db_hits_total",
        Counter,
        &["db"],
        |r, put| databases(r, put, |d| d.hits),
        "reads in each database that found their key",
    ),
    many(
        "sheafdb_db_misses_total",
        Counter,
        &["db"],
        |r, put| databases(r, put, |d| d.misses),
        "reads in each database that did not",
    ),
    many(
        "sheafdb_db_evicted_keys_total",
        Counter,
        &["db"],
        |r, put| databases(r, put, |d| d.evicted),
        "keys of each database that were evicted",
    ),
    one(
        "sheafdb_save_keys",
        Gauge,
        |f| f.saves.keys.0 as f64,
        "keys that the save under way has written",
    ),
    one(
        "sheafdb_save_keys_all",
        Gauge,
        |f| f.saves.keys.1 as f64,
        "keys that the save under way has to write",
    ),
    one(
        "sheafdb_save_bytes",
        Gauge,
        |f| f.saves.bytes as f64,
        "bytes that the save under way has written",
    ),
    one(
        "sheafdb_save_captured_bytes",
        Gauge,
        |f| f.saves.captured.0 as f64,
        "bytes that are captured for the save under way",
    ),
    one(
        "sheafdb_save_holds_total",
        Counter,
        |f| f.saves.held as f64,
        "times a worker held writes because too much was captured",
    ),
    one(
        "sheafdb_backup_last_timestamp_seconds",
        Gauge,
        |f| f.saves.backups.last.map_or(0.0, |last| last.moment_s as f64),
        "moment of the last backup by schedule that is whole; 0: none since the start",
    ),
    one(
        "sheafdb_backup_last_bytes",
        Gauge,
        |f| f.saves.backups.last.map_or(0.0, |last| last.bytes as f64),
        "bytes of that backup",
    ),
    one(
        "sheafdb_backup_next_timestamp_seconds",
        Gauge,
        |f| f.saves.next_backup_s.unwrap_or(0) as f64,
        "when the next backup is due; 0: never",
    ),
    one(
        "sheafdb_backups_total",
        Counter,
        |f| f.saves.backups.made as f64,
        "backups by schedule that were made",
    ),
    one(
        "sheafdb_backup_failures_total",
        Counter,
        |f| f.saves.backups.failed as f64,
        "backups by schedule that have failed",
    ),
    one("sheafdb_workers", Gauge, |f| f.io.each.len() as f64, "worker threads"),
    one(
        "sheafdb_commands_per_second",
        Gauge,
        |f| f.stats.rates.ops,
        "commands per second, over the last second or two",
    ),
    one(
        "sheafdb_commands_per_receive",
        Gauge,
        |f| per(f.io.total.published, f.io.total.io.receives),
        "commands for each receive, mean since the start",
    ),
    one(
        "sheafdb_replies_per_send",
        Gauge,
        |f| per(f.io.total.published, f.io.total.io.sends),
        "replies for each send, mean since the start",
    ),
    many(
        "sheafdb_service_time_seconds",
        Histogram,
        &["le"],
        service,
        "time from the receive that completed a request to the send that took its reply's last byte",
    ),
    many(
        "sheafdb_events_per_poll",
        Histogram,
        &["le"],
        |r, put| {
            let io = &r.figures.io.total.io;
            pow2(put, &io.events_per_poll, SIZE_BUCKETS, io.events);
        },
        "ready connections that a poll brought",
    ),
    many(
        "sheafdb_receive_bytes",
        Histogram,
        &["le"],
        |r, put| {
            let io = &r.figures.io.total.io;
            pow2(put, &io.bytes_per_receive, BYTE_BUCKETS, io.bytes_received);
        },
        "bytes that a receive brought",
    ),
    many(
        "sheafdb_send_bytes",
        Histogram,
        &["le"],
        |r, put| {
            let io = &r.figures.io.total.io;
            pow2(put, &io.bytes_per_send, BYTE_BUCKETS, io.bytes_sent);
        },
        "bytes that a send took",
    ),
    worker(
        "sheafdb_worker_connections",
        Gauge,
        |r, put| {
            each(r, put, |w| w.connections);
        },
        "open connections",
    ),
    worker(
        "sheafdb_worker_commands_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.commands);
        },
        "commands executed",
    ),
    worker(
        "sheafdb_worker_windows_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.windows);
        },
        "windows of commands executed",
    ),
    worker(
        "sheafdb_worker_polls_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.polls);
        },
        "polls",
    ),
    worker(
        "sheafdb_worker_events_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.events);
        },
        "ready connections over all polls",
    ),
    worker(
        "sheafdb_worker_receives_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.receives);
        },
        "receives that brought bytes",
    ),
    worker(
        "sheafdb_worker_receives_held_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.receives_held);
        },
        "receives that waited for bytes to gather",
    ),
    worker(
        "sheafdb_worker_sends_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.sends);
        },
        "sends",
    ),
    worker(
        "sheafdb_worker_sleeps_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.sleeps);
        },
        "times the worker slept",
    ),
    worker(
        "sheafdb_worker_spins_won_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.spins_won);
        },
        "spins that ended with an event",
    ),
    worker(
        "sheafdb_worker_spins_lost_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.io.spins_lost);
        },
        "spins that ended with sleep",
    ),
    worker(
        "sheafdb_worker_poll_seconds_total",
        Counter,
        |r, put| {
            for (n, w) in r.figures.io.each.iter().enumerate() {
                put.put("", &[("worker", &n.to_string())], w.io.poll_ns as f64 / 1e9);
            }
        },
        "time in the poll, spinning included",
    ),
    worker(
        "sheafdb_worker_lock_waits_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.locks.waits);
        },
        "slot locks that were not free at once",
    ),
    worker(
        "sheafdb_worker_lock_sleeps_total",
        Counter,
        |r, put| {
            each(r, put, |w| w.locks.sleeps);
        },
        "sleeps until a slot was released",
    ),
    one(
        "sheafdb_moved_clients_total",
        Counter,
        |f| f.stats.moved_clients as f64,
        "clients that moved from a busy worker to an idle one",
    ),
    one(
        "sheafdb_listen_overflows_total",
        Counter,
        |f| f.listen_overflows as f64,
        "connections lost because the listen queue was full",
    ),
    one(
        "sheafdb_accept_errors_total",
        Counter,
        |f| f.io.total.io.accept_errors as f64,
        "times accepting a connection failed",
    ),
    one(
        "sheafdb_blocking_keys",
        Gauge,
        |f| f.clients.blocking_keys as f64,
        "keys that clients wait for",
    ),
    one(
        "sheafdb_hottest_key_ratio",
        Gauge,
        |f| share_of_first(f, &f.hot.by_uses),
        "share of the commands of the last one to two minutes that used the most used key",
    ),
    one(
        "sheafdb_hottest_slot_ratio",
        Gauge,
        |f| share_of_first(f, &f.hot.by_slot),
        "the same of the most used slot; more than 1 if commands have several keys in it",
    ),
    one(
        "sheafdb_largest_value_bytes",
        Gauge,
        |f| f.hot.largest.first().map_or(0.0, |v| v.bytes as f64),
        "memory of the largest value that sampled commands used in that time",
    ),
    one(
        "sheafdb_expire_lag_seconds",
        Gauge,
        |f| f.stats.expire_lag_ms as f64 / 1e3,
        "how late the last key was that expired by the clock",
    ),
    one(
        "sheafdb_expire_lag_max_seconds",
        Gauge,
        |f| f.stats.expire_lag_max_ms as f64 / 1e3,
        "how late the latest key was",
    ),
    one(
        "sheafdb_expire_seconds_total",
        Counter,
        |f| f.stats.expire_ms as f64 / 1e3,
        "time spent on expiring keys by the clock",
    ),
    one(
        "sheafdb_expire_step_max_seconds",
        Gauge,
        |f| f.stats.expire_step_max_us as f64 / 1e6,
        "the longest step of it",
    ),
    one(
        "sheafdb_lazyfreed_objects_total",
        Counter,
        |f| f.memory.lazyfreed as f64,
        "large values that were freed in the background",
    ),
    one(
        "sheafdb_logs_bytes",
        Gauge,
        |f| f.memory.logs as f64,
        "memory of the slow log and of those of large requests and replies",
    ),
    one(
        "sheafdb_pubsub_bytes",
        Gauge,
        |f| f.pubsub.memory as f64,
        "memory of names of channels and patterns, and of messages that are not delivered yet",
    ),
    one(
        "sheafdb_tracking_bytes",
        Gauge,
        |f| f.tracking.memory as f64,
        "memory of tracked keys and of who has read them",
    ),
    one("sheafdb_pubsub_clients", Gauge, |f| f.pubsub.clients as f64, "clients with subscriptions"),
    one(
        "sheafdb_pubsub_shard_channels",
        Gauge,
        |f| f.pubsub.shard_channels as f64,
        "shard channels with subscribers",
    ),
    one(
        "sheafdb_producers_bytes",
        Gauge,
        |f| f.memory.producers as f64,
        "memory of the producers that are remembered",
    ),
    listener(
        "sheafdb_ingest_connections",
        Gauge,
        |r, put| {
            listeners(r, put, |f| f.connections);
        },
        "open ingest connections",
    ),
    listener(
        "sheafdb_ingest_connections_received_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.total_connections);
        },
        "ingest connections accepted",
    ),
    listener(
        "sheafdb_ingest_messages_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.messages);
        },
        "whole messages",
    ),
    listener(
        "sheafdb_ingest_bytes_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.bytes);
        },
        "bytes received by ingest listeners",
    ),
    listener(
        "sheafdb_ingest_acks_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.acks);
        },
        "acknowledgements written",
    ),
    listener(
        "sheafdb_ingest_reads_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.reads);
        },
        "reads that brought bytes",
    ),
    listener(
        "sheafdb_ingest_errors_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.errors);
        },
        "ingest connections that ended badly or were refused",
    ),
    listener(
        "sheafdb_ingest_duplicates_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.duplicates);
        },
        "messages that were dropped because they were held already",
    ),
    listener(
        "sheafdb_ingest_takeovers_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.takeovers);
        },
        "producers that a newer connection took over",
    ),
    listener(
        "sheafdb_ingest_credits_total",
        Counter,
        |r, put| {
            listeners(r, put, |f| f.credits);
        },
        "credits that were given after the first",
    ),
    listener(
        "sheafdb_ingest_blocked_connections",
        Gauge,
        |r, put| {
            listeners(r, put, |f| f.blocked);
        },
        "ingest connections that are held back because their sink takes no more",
    ),
    many(
        "sheafdb_ingest_error_frames_total",
        Counter,
        &["strategy", "address", "sink", "code"],
        error_frames,
        "connections that were told why they end, by the name of the code",
    ),
    one(
        "sheafdb_ingest_producers",
        Gauge,
        |f| f.ingest.producers as f64,
        "producers of ingest protocol 2 that are remembered",
    ),
];

type Fill = fn(&Read<'_>, &mut Samples<'_>);

const fn worker(
    name: &'static str,
    kind: crate::web::metrics::Kind,
    of: Fill,
    help: &'static str,
) -> Metric {
    many(name, kind, &["worker"], of, help)
}

const fn listener(
    name: &'static str,
    kind: crate::web::metrics::Kind,
    of: Fill,
    help: &'static str,
) -> Metric {
    many(name, kind, &["strategy", "address", "sink"], of, help)
}

fn per(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// What part of the commands used the first of these.
fn share_of_first(f: &Figures, list: &[(Name, u64)]) -> f64 {
    list.first().map_or(0.0, |(_, uses)| *uses as f64 / f.hot.commands.max(1) as f64)
}

fn info(r: &Read<'_>, put: &mut Samples<'_>) {
    let (version, backend) = (crate::shared::VERSION, r.shared.facts.io_backend);
    put.put("", &[("version", version), ("io_backend", backend)], 1.0);
}

/// Nothing while service times are not recorded.
fn service(r: &Read<'_>, put: &mut Samples<'_>) {
    let f = r.figures;
    if f.settings.percentiles.is_empty() && f.service.times.count() == 0 {
        return;
    }
    let bounds = (0..ROWS).filter_map(row_max);
    let below = bounds.map(|ns| ((ns + 1) as f64 / 1e9, f.service.times.count_up_to(ns)));
    put.cumulative(below, f.service.times.count(), f.service.sum_ns as f64 / 1e9);
}

/// One sample for each worker.
fn each(r: &Read<'_>, put: &mut Samples<'_>, of: fn(&Worker) -> u64) {
    for (n, w) in r.figures.io.each.iter().enumerate() {
        put.put("", &[("worker", &n.to_string())], of(w) as f64);
    }
}

/// The databases that are shown, with their labels.
fn shown<'a>(r: &Read<'a>) -> impl Iterator<Item = (String, &'a DatabaseUse)> {
    let uses = r.figures.database_uses.iter().take(DATABASES_SHOWN_MAX);
    uses.map(|d| (format!("db{}", d.db.0), d))
}

/// One sample for each database that has keys or a limit, or was used.
fn databases(r: &Read<'_>, put: &mut Samples<'_>, of: fn(&DatabaseUse) -> u64) {
    for (name, d) in shown(r) {
        put.put("", &[("db", &name)], of(d) as f64);
    }
}

/// One sample for each database with a limit.
fn limits(r: &Read<'_>, put: &mut Samples<'_>) {
    for (name, d) in shown(r) {
        if let Some((bytes, policy)) = d.limit {
            put.put("", &[("db", &name), ("policy", policy)], bytes as f64);
        }
    }
}

/// One sample for each ingest listener.
fn listeners(r: &Read<'_>, put: &mut Samples<'_>, of: fn(&ListenerFigures) -> u64) {
    for (port, f) in r.shared.ingest.open.iter().zip(&r.figures.ingest.each) {
        let (strategy, sink) = (port.terms.protocol.to_string(), port.terms.sink_text());
        let labels = [("strategy", &*strategy), ("address", &*port.addr), ("sink", &*sink)];
        put.put("", &labels, of(f) as f64);
    }
}

/// One sample for each listener of protocol 2 and code.
fn error_frames(r: &Read<'_>, put: &mut Samples<'_>) {
    let all = r.shared.ingest.open.iter().zip(&r.figures.ingest.each);
    for (port, f) in all.filter(|(port, _)| !port.is_classic()) {
        let (strategy, sink) = (port.terms.protocol.to_string(), port.terms.sink_text());
        for (fault, n) in Fault::ALL.into_iter().zip(f.faults) {
            let code = label(fault);
            let labels = [
                ("strategy", &*strategy),
                ("address", &*port.addr),
                ("sink", &*sink),
                ("code", &*code),
            ];
            put.put("", &labels, n as f64);
        }
    }
}

/// The first `shown` buckets; bucket `i` holds values below 2^i.
fn pow2(put: &mut Samples<'_>, h: &Pow2, shown: usize, sum: u64) {
    let buckets = h.counts.iter().take(shown).enumerate().map(|(i, n)| ((1 << i) - 1, *n));
    put.histogram(buckets, h.counts.iter().sum(), sum as f64);
}
