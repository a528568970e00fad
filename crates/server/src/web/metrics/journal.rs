//! The append-only file: under the names of redis_exporter, and what tells how far the disk is
//! behind.

use crate::persist::journal::status::JournalStatus;
use crate::web::metrics::Kind::{Counter, Gauge};
use crate::web::metrics::{Metric, many};
use base::sync::atomic::Ordering::Relaxed;

/// One value of the append-only file.
macro_rules! journal {
    ($name:literal, $kind:expr, $of:expr, $help:literal) => {
        many(
            $name,
            $kind,
            &[],
            |r, put| {
                let of: fn(&JournalStatus) -> f64 = $of;
                put.put("", &[], of(&r.shared.journal));
            },
            $help,
        )
    };
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

pub(crate) const METRICS: &[Metric] = &[
    journal!("redis_aof_enabled", Gauge, |j| flag(j.is_on()), "1: every change is appended"),
    journal!(
        "redis_aof_rewrite_in_progress",
        Gauge,
        |j| flag(j.is_rewriting.load(Relaxed)),
        "1: the append-only file is being rewritten"
    ),
    journal!(
        "redis_aof_rewrite_scheduled",
        Gauge,
        |j| flag(j.is_scheduled.load(Relaxed)),
        "1: a rewrite waits for a save to end"
    ),
    journal!(
        "redis_aof_last_rewrite_duration_sec",
        Gauge,
        |j| j.last_rewrite_s.load(Relaxed) as f64,
        "how long the last rewrite took; -1: there was none"
    ),
    journal!(
        "redis_aof_current_rewrite_duration_sec",
        Gauge,
        |j| if j.is_rewriting.load(Relaxed) { 0.0 } else { -1.0 },
        "-1: no rewrite is under way"
    ),
    journal!(
        "redis_aof_last_bgrewrite_status",
        Gauge,
        |j| flag(!j.rewrite_failed.load(Relaxed)),
        "0: the last rewrite has failed"
    ),
    journal!(
        "redis_aof_last_write_status",
        Gauge,
        |j| flag(!j.has_trouble()),
        "0: the append-only file cannot be written"
    ),
    journal!(
        "redis_aof_last_cow_size_bytes",
        Gauge,
        |j| j.last_captured.load(Relaxed) as f64,
        "the most that captured values took in the last rewrite"
    ),
    journal!(
        "redis_aof_current_size_bytes",
        Gauge,
        |j| j.size.load(Relaxed) as f64,
        "length of all files of the append-only file"
    ),
    journal!(
        "redis_aof_base_size_bytes",
        Gauge,
        |j| j.base_size.load(Relaxed) as f64,
        "length of its base"
    ),
    journal!(
        "sheafdb_journal_unwritten_bytes",
        Gauge,
        |j| j.unwritten.load(Relaxed) as f64,
        "changes in memory which are not written"
    ),
    journal!(
        "sheafdb_journal_lag_bytes",
        Gauge,
        |j| j.backlog.load(Relaxed) as f64,
        "changes which are not durable"
    ),
    journal!(
        "sheafdb_journal_history_bytes",
        Gauge,
        |j| j.history.load(Relaxed) as f64,
        "files which rewrites of the append-only file have replaced and which are kept"
    ),
    journal!(
        "sheafdb_journal_syncs_total",
        Counter,
        |j| j.syncs.load(Relaxed) as f64,
        "syncs of the append-only file"
    ),
    journal!(
        "sheafdb_journal_last_sync_seconds",
        Gauge,
        |j| j.last_sync_ns.load(Relaxed) as f64 / 1e9,
        "how long the last one took"
    ),
    journal!(
        "sheafdb_journal_holds_total",
        Counter,
        |j| j.held.load(Relaxed) as f64,
        "how often writers had to wait because too much was in memory"
    ),
];
