//! The append-only file in INFO.

use crate::admin::info::text::field;
use crate::shared::Shared;
use base::sync::atomic::Ordering::{Acquire, Relaxed};
use base::{MonoNs, UnixMs};

/// The fields of the append-only file: those of Redis, and what else tells how far the disk is
/// behind (`journal_*`, for as long as changes are recorded).
pub(super) fn journal_fields(t: &mut String, shared: &Shared, now: MonoNs, unix_ms: UnixMs) {
    let status = &shared.journal;
    let is_on = status.is_on();
    // A rewrite that begins meanwhile is told as scheduled or under way: `cut_journal` stores these
    // in the other order.
    let is_scheduled = status.is_scheduled.load(Acquire);
    let is_rewriting = status.is_rewriting.load(Acquire);
    // CONFIG SET appendonly yes was answered, and the file does not hold everything yet that was
    // acknowledged.
    let is_wanted =
        shared.config.lock().expect("no panic while the configuration is held").appendonly;
    let begins = is_wanted && !status.is_whole.load(Relaxed) && !is_rewriting;
    let is_scheduled = begins || is_scheduled;
    let failed = status.rewrite_failed.load(Relaxed);
    let since_s = unix_ms.0 / 1000 - status.rewrite_since_s.load(Relaxed);
    field(t, "aof_enabled", u8::from(is_on));
    field(t, "aof_rewrite_in_progress", u8::from(is_rewriting));
    field(t, "aof_rewrite_scheduled", u8::from(is_scheduled));
    field(t, "aof_last_rewrite_time_sec", status.last_rewrite_s.load(Relaxed));
    field(t, "aof_current_rewrite_time_sec", if is_rewriting { since_s.max(0) } else { -1 });
    field(t, "aof_last_bgrewrite_status", if failed { "err" } else { "ok" });
    field(t, "aof_rewrites", status.rewrites.load(Relaxed));
    field(t, "aof_rewrites_consecutive_failures", status.failures.load(Relaxed));
    field(t, "aof_last_write_status", if status.has_trouble() { "err" } else { "ok" });
    field(t, "aof_last_cow_size", status.last_captured.load(Relaxed));
    if !is_on {
        return;
    }
    field(t, "aof_current_size", status.size.load(Relaxed));
    field(t, "aof_base_size", status.base_size.load(Relaxed));
    field(t, "aof_pending_rewrite", 0);
    field(t, "aof_buffer_length", status.unwritten.load(Relaxed));
    field(t, "aof_pending_bio_fsync", u8::from(status.is_syncing.load(Relaxed)));
    field(t, "aof_delayed_fsync", status.held.load(Relaxed));
    field(t, "journal_last_number", shared.keyspace.numbers().last().0);
    field(t, "journal_durable_number", status.durable.load(Relaxed));
    field(t, "journal_lag_bytes", status.backlog.load(Relaxed));
    field(t, "journal_history_bytes", status.history.load(Relaxed));
    field(t, "journal_syncs", status.syncs.load(Relaxed));
    field(t, "journal_last_sync_usec", status.last_sync_ns.load(Relaxed) / 1000);
    let synced_at = status.synced_at.load(Relaxed);
    let age_ms =
        if synced_at == 0 { -1 } else { (now.since(MonoNs(synced_at)) / 1_000_000) as i64 };
    field(t, "journal_last_sync_age_msec", age_ms);
}
