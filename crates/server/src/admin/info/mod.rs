//! INFO: every section with true values; fields of parts that are not built have the value that
//! Redis shows when that part is off.

mod clients;
mod ingest;
mod io;
mod journal;
pub(crate) mod memory;
mod text;

use crate::admin::info::clients::clients_section;
use crate::admin::info::journal::journal_fields;
use crate::admin::info::memory::memory_section;
use crate::admin::info::text::{field, line};
use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::figures::databases::DatabaseUse;
use crate::figures::saves::SaveFigures;
use crate::figures::service::ServiceFigures;
use crate::figures::{self, os_name};
use crate::persist::load::state::Progress;
use crate::shared::Shared;
use crate::shared::VERSION;
use crate::worker::core::Core;
use crate::worker::turn::Turn;
use ::journal::Position;
use base::MonoNs;
use command::REDIS_VERSION;
use config::table::HZ;
use observe::LatencyTotals;
use resp::OutBuf;
use std::fmt::Write;

/// Sections in the order in which they are shown, and whether a bare INFO shows them.
const SECTIONS: [(&str, bool); 18] = [
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
    ("io", true),
    ("ingest", false),
    ("longest", false),
    ("databases", false),
    ("service", false),
];

/// Whether INFO shows a section.
fn is_asked(asked: &[Box<[u8]>], name: &str, by_default: bool) -> bool {
    if asked.is_empty() {
        return by_default;
    }
    asked.iter().any(|a| {
        let a = a.to_ascii_lowercase();
        a == name.as_bytes() || a == b"all" || a == b"everything" || (a == b"default" && by_default)
    })
}

/// Whether INFO shows how many keys there are.
pub(crate) fn counts_keys(asked: &[Box<[u8]>]) -> bool {
    is_asked(asked, "keyspace", true)
}

impl Core {
    /// Replies with the sections asked for.
    pub(crate) fn info_op(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        asked: &[Box<[u8]>],
    ) -> Outcome {
        let text = self.info_text(asked);
        caller.reply(out).verbatim(*b"txt", text.as_bytes());
        Outcome::Done
    }

    fn info_text(&self, asked: &[Box<[u8]>]) -> String {
        let mut text = String::new();
        for (name, by_default) in SECTIONS {
            if !is_asked(asked, name, by_default) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let section = self.section(name);
            for line in section.lines() {
                text.push_str(line);
                text.push_str("\r\n");
            }
        }
        text
    }

    fn section(&self, name: &str) -> String {
        let mut t = String::new();
        let shared = &*self.shared;
        match name {
            "server" => self.server_section(&mut t),
            "clients" => clients_section(&mut t, shared, &self.settings, self.turn.unix_ms()),
            "memory" => memory_section(&mut t, shared),
            "persistence" => persistence_section(&mut t, shared, &self.turn),
            "stats" => self.stats_section(&mut t),
            "replication" => {
                let shown = shared.stream.shown();
                let Position { id, offset } = shown.position;
                let (id2, offset2) = (shown.second_id(), shown.second_offset());
                let _ = write!(
                    t,
                    "{REPLICATION_ROLE}master_replid:{id}\nmaster_replid2:{id2}\n\
                     master_repl_offset:{offset}\nsecond_repl_offset:{offset2}\n{BACKLOG}"
                );
            }
            "cpu" => cpu_section(&mut t),
            "modules" => t.push_str("# Modules\n"),
            "commandstats" => commandstats(&mut t, shared),
            "errorstats" => errorstats(&mut t, shared),
            "latencystats" => latencystats(&mut t, shared),
            "longest" => longest(&mut t, shared),
            "service" => service(&mut t, shared),
            "cluster" => t.push_str("# Cluster\ncluster_enabled:0\n"),
            "keyspace" => self.keyspace_section(&mut t),
            "databases" => databases_section(&mut t, shared, self.turn.now()),
            "ingest" => crate::admin::info::ingest::ingest_section(&mut t, shared),
            _ => crate::admin::info::io::io_section(&mut t, shared),
        }
        t
    }

    fn server_section(&self, t: &mut String) {
        let shared = &*self.shared;
        let facts = &shared.facts;
        let up_s = shared.uptime_s(self.turn.unix_ms());
        let config = shared.config.lock().expect("no panic while the configuration is held");
        line(t, "# Server", "");
        field(t, "redis_version", REDIS_VERSION);
        field(t, "server_name", "sheafdb");
        field(t, "sheafdb_version", VERSION);
        field(t, "redis_git_sha1", "00000000");
        field(t, "redis_git_dirty", 0);
        field(t, "redis_build_id", "0000000000000000");
        field(t, "redis_mode", "standalone");
        field(t, "os", os_name());
        field(t, "arch_bits", usize::BITS);
        field(t, "monotonic_clock", "POSIX clock_gettime");
        field(t, "multiplexing_api", facts.io_backend);
        field(t, "atomicvar_api", "rust");
        field(t, "gcc_version", "0.0.0");
        field(t, "process_id", driver::process_id());
        field(t, "process_supervised", crate::boot::process::supervisor(config.supervised));
        field(t, "run_id", &facts.run_id);
        field(t, "tcp_port", facts.port);
        field(t, "server_time_usec", self.turn.unix_ms().0 * 1000);
        field(t, "uptime_in_seconds", up_s);
        field(t, "uptime_in_days", up_s / 86_400);
        let hz = String::from_utf8_lossy(config.text(HZ)).into_owned();
        field(t, "hz", &hz);
        field(t, "configured_hz", &hz);
        field(t, "lru_clock", (self.turn.unix_ms().0 / 1000) & 0xff_ffff);
        field(t, "executable", &facts.executable);
        field(t, "config_file", &facts.config_file);
        field(t, "io_threads_active", 0);
        field(t, "threads", shared.workers.len());
        if config.port != 0 {
            let bind: Vec<String> =
                config.bind.iter().map(|b| format!("bind={}", b.host)).collect();
            field(t, "listener0", format!("name=tcp,{},port={}", bind.join(","), config.port));
        }
        if let Some(path) = &config.unixsocket {
            let n = u8::from(config.port != 0);
            field(t, &format!("listener{n}"), format!("name=unix,bind={}", path.display()));
        }
    }

    fn stats_section(&self, t: &mut String) {
        let f = figures::Stats::gather(&self.shared, self.turn.now(), self.turn.unix_ms());
        let (io, rates) = (&f.io, &f.rates);
        line(t, "# Stats", "");
        field(t, "total_connections_received", f.connections_received);
        field(t, "total_commands_processed", f.commands);
        field(t, "instantaneous_ops_per_sec", rates.ops as u64);
        field(t, "total_net_input_bytes", io.bytes_in);
        field(t, "total_net_output_bytes", io.bytes_out);
        field(t, "total_net_repl_input_bytes", 0);
        field(t, "total_net_repl_output_bytes", 0);
        field(t, "instantaneous_input_kbps", format!("{:.2}", rates.bytes_in / 1024.0));
        field(t, "instantaneous_output_kbps", format!("{:.2}", rates.bytes_out / 1024.0));
        field(t, "instantaneous_input_repl_kbps", "0.00");
        field(t, "instantaneous_output_repl_kbps", "0.00");
        field(t, "rejected_connections", f.connections_rejected);
        t.push_str("sync_full:0\nsync_partial_ok:0\nsync_partial_err:0\n");
        field(t, "expired_subkeys", f.expired_fields);
        field(t, "expired_keys", f.expired);
        field(t, "expired_fields", f.expired_fields);
        field(t, "expired_stale_perc", format!("{:.2}", f.stale_percent));
        t.push_str("expired_time_cap_reached_count:0\n");
        field(t, "expire_cycle_cpu_milliseconds", f.expire_ms);
        field(t, "expire_lag_ms", f.expire_lag_ms);
        field(t, "expire_lag_max_ms", f.expire_lag_max_ms);
        field(t, "expire_step_max_us", f.expire_step_max_us);
        field(t, "evicted_keys", f.evicted);
        clients_of_stats(t, &f);
        field(t, "total_eviction_exceeded_time", f.exceeded_total_ms);
        field(t, "current_eviction_exceeded_time", f.exceeded_ms);
        field(t, "keyspace_hits", f.hits);
        field(t, "keyspace_misses", f.misses);
        pubsub_fields(t, &self.shared);
        t.push_str(
            "latest_fork_usec:0\ntotal_forks:0\nmigrate_cached_sockets:0\nslave_expires_tracked_keys:0\n",
        );
        // An entry is key and value in one allocation.
        let (moved, stayed) = (f.defrag.moved, f.defrag.stayed);
        for (hits, misses) in [
            ("active_defrag_hits", "active_defrag_misses"),
            ("active_defrag_key_hits", "active_defrag_key_misses"),
        ] {
            field(t, hits, moved);
            field(t, misses, stayed);
        }
        field(t, "total_active_defrag_time", f.defrag.total_ms);
        field(t, "current_active_defrag_time", f.defrag.current_ms);
        field(t, "active_defrag_step_max_us", f.defrag.step_max_us);
        tracking_fields(t, &self.shared);
        field(t, "unexpected_error_replies", 0);
        field(t, "total_error_replies", f.error_replies);
        field(t, "dump_payload_sanitizations", 0);
        field(t, "total_reads_processed", io.receives);
        field(t, "total_writes_processed", io.sends);
        t.push_str(
            "io_threaded_reads_processed:0\nio_threaded_writes_processed:0\nreply_buffer_shrinks:0\n\
             reply_buffer_expands:0\n",
        );
        field(t, "eventloop_cycles", f.turns.count);
        field(t, "eventloop_duration_sum", f.turns.duration_us);
        field(t, "eventloop_duration_cmd_sum", f.command_us);
        field(t, "instantaneous_eventloop_cycles_per_sec", rates.turns as u64);
        field(t, "instantaneous_eventloop_duration_usec", rates.turn_us as u64);
        t.push_str(
            "acl_access_denied_auth:0\nacl_access_denied_cmd:0\nacl_access_denied_key:0\n\
             acl_access_denied_channel:0\n",
        );
    }

    fn keyspace_section(&self, t: &mut String) {
        line(t, "# Keyspace", "");
        let count = self.settings.command.databases;
        for f in figures::databases(&self.shared, count, self.turn.unix_ms()) {
            let (db, keys, expires, ttl) = (f.db.0, f.keys, f.expires, f.average_ttl_ms);
            let _ = write!(t, "db{db}:keys={keys},expires={expires},avg_ttl={ttl}");
            // As Valkey 9, but not if there are none: who reads these lines knows three words
            // (redis_exporter).
            if f.with_fields_that_expire > 0 {
                let _ = write!(t, ",keys_with_volatile_items={}", f.with_fields_that_expire);
            }
            t.push('\n');
        }
    }
}

/// Clients that were closed for their memory, and those that have moved between workers.
fn clients_of_stats(t: &mut String, f: &figures::Stats) {
    field(t, "evicted_clients", f.evicted_clients);
    field(t, "moved_clients", f.moved_clients);
}

/// A name of its own for each line, because clients put all sections into one map.
fn databases_section(t: &mut String, shared: &Shared, now: MonoNs) {
    line(t, "# Databases", "");
    for f in DatabaseUse::gather(shared, now) {
        let DatabaseUse { keys, expires, bytes, hits, misses, evicted, .. } = f;
        let (limit, policy) = f.limit.unwrap_or((0, "none"));
        let _ = writeln!(
            t,
            "database{}:keys={keys},expires={expires},bytes={bytes},limit={limit},policy={policy},\
             hits={hits},misses={misses},evicted={evicted},ops_per_sec={:.0}",
            f.db.0, f.ops
        );
    }
}

const REPLICATION_ROLE: &str =
    "# Replication\nrole:master\nconnected_slaves:0\nmaster_failover_state:no-failover\n";
const BACKLOG: &str = "\
repl_backlog_active:0\nrepl_backlog_size:1048576\nrepl_backlog_first_byte_offset:0\n\
repl_backlog_histlen:0\n";

/// `current_cow_*` and `rdb_last_cow_size` are bytes of captured values, and of what writers have
/// copied because a snapshot shares it.
fn persistence_section(t: &mut String, shared: &Shared, turn: &Turn) {
    line(t, "# Persistence", "");
    let progress = shared.load.progress(turn.now());
    let saves = SaveFigures::gather(shared, turn.now(), turn.unix_ms());
    field(t, "loading", u8::from(progress.is_some()));
    field(t, "async_loading", 0);
    field(t, "current_cow_peak", saves.captured.1);
    field(t, "current_cow_size", saves.captured.0);
    field(t, "current_cow_size_age", 0);
    field(t, "current_fork_perc", format!("{:.2}", saves.percent()));
    field(t, "current_save_keys_processed", saves.keys.0);
    field(t, "current_save_keys_total", saves.keys.1);
    field(t, "rdb_changes_since_last_save", saves.changes);
    field(t, "rdb_bgsave_in_progress", u8::from(saves.is_saving));
    field(t, "rdb_last_save_time", saves.last_s);
    field(t, "rdb_last_bgsave_status", if saves.has_failed { "err" } else { "ok" });
    field(t, "rdb_last_bgsave_time_sec", saves.last_took_s.unwrap_or(-1));
    field(t, "rdb_current_bgsave_time_sec", saves.current_s.map_or(-1, |s| s as i64));
    field(t, "rdb_saves", saves.saves);
    field(t, "rdb_last_cow_size", saves.last_captured);
    let loaded = shared.load.loaded();
    field(t, "rdb_last_load_keys_expired", loaded.expired);
    field(t, "rdb_last_load_keys_loaded", loaded.keys);
    journal_fields(t, shared, turn.now(), turn.unix_ms());
    t.push_str("module_fork_in_progress:0\nmodule_fork_last_cow_size:0\n");
    backup_fields(t, &saves);
    if let Some(progress) = progress {
        loading_fields(t, &progress);
    }
}

/// Backups by schedule. Redis has none.
fn backup_fields(t: &mut String, saves: &SaveFigures) {
    let (backups, last) = (&saves.backups, saves.backups.last);
    field(t, "backup_in_progress", u8::from(saves.backs_up));
    field(t, "backup_last_time", last.map_or(0, |last| last.moment_s));
    field(t, "backup_last_status", if backups.has_failed { "err" } else { "ok" });
    field(t, "backup_last_bytes", last.map_or(0, |last| last.bytes));
    field(t, "backup_last_time_sec", last.map_or(-1, |last| last.took_s));
    field(t, "backup_next_time", saves.next_backup_s.unwrap_or(0));
    field(t, "backups_made", backups.made);
    field(t, "backups_failed", backups.failed);
}

/// What Redis shows only while it loads.
fn loading_fields(t: &mut String, progress: &Progress) {
    field(t, "loading_start_time", progress.started_ms / 1000);
    field(t, "loading_total_bytes", progress.total_bytes);
    field(t, "loading_rdb_used_mem", progress.used_memory);
    field(t, "loading_loaded_bytes", progress.bytes);
    field(t, "loading_loaded_perc", format!("{:.2}", progress.percent()));
    field(t, "loading_eta_seconds", progress.seconds_left);
}

fn cpu_section(t: &mut String) {
    line(t, "# CPU", "");
    let usage = driver::process_times();
    field(t, "used_cpu_sys", format!("{:.6}", usage.system_s));
    field(t, "used_cpu_user", format!("{:.6}", usage.user_s));
    t.push_str("used_cpu_sys_children:0.000000\nused_cpu_user_children:0.000000\n");
    field(t, "used_cpu_sys_main_thread", format!("{:.6}", usage.main_system_s));
    field(t, "used_cpu_user_main_thread", format!("{:.6}", usage.main_user_s));
}

fn commandstats(t: &mut String, shared: &Shared) {
    line(t, "# Commandstats", "");
    for (id, s) in figures::commands(shared) {
        let _ = writeln!(
            t,
            "cmdstat_{}:calls={},usec={},usec_per_call={:.2},rejected_calls={},failed_calls={}",
            id.spec().full_name,
            s.calls,
            s.us(),
            s.us_per_call(),
            s.rejected,
            s.failed
        );
    }
}

/// For how long a worker served nobody else: in a turn, in a command or a step of it (`run`), and
/// under the locks of a command (`hold`). Commands are listed from 100 us on.
fn longest(t: &mut String, shared: &Shared) {
    line(t, "# Longest", "");
    field(t, "longest_turn_usec", figures::longest_turn_ns(shared) / 1000);
    for (id, longest) in figures::longest(shared) {
        let (hold, run) = (longest.hold_ns / 1000, longest.run_ns / 1000);
        let _ = writeln!(t, "longest_{}:hold_usec={hold},run_usec={run}", id.spec().full_name);
    }
}

/// Times from the receive of a request to the send of its reply. Nothing without
/// `latency-tracking`.
fn service(t: &mut String, shared: &Shared) {
    line(t, "# Service", "");
    let Some(wanted) = percentiles(shared) else { return };
    let f = ServiceFigures::gather(shared);
    field(t, "service_time_count", f.times.count());
    field(t, "service_time_usec", f.sum_ns / 1000);
    if f.times.count() > 0 {
        let max = format!("max={:.3}", f.times.percentile(100.0) as f64 / 1000.0);
        let parts = [percentile_parts(&f.times, &wanted), vec![max]].concat();
        field(t, "service_time_percentiles_usec", parts.join(","));
    }
}

fn errorstats(t: &mut String, shared: &Shared) {
    line(t, "# Errorstats", "");
    for (name, count) in figures::errors(shared) {
        let _ = writeln!(t, "errorstat_{name}:count={count}");
    }
}

fn latencystats(t: &mut String, shared: &Shared) {
    line(t, "# Latencystats", "");
    let Some(wanted) = percentiles(shared) else { return };
    for id in command::all() {
        let h = figures::latency_of(shared, id);
        if h.count() == 0 {
            continue;
        }
        let parts = percentile_parts(&h, &wanted).join(",");
        let _ = writeln!(t, "latency_percentiles_usec_{}:{parts}", id.spec().full_name);
    }
}

/// The percentiles to show; none without `latency-tracking`.
fn percentiles(shared: &Shared) -> Option<Vec<f64>> {
    let config = shared.config.lock().expect("no panic while the configuration is held");
    config.latency_tracking.then(|| config.latency_percentiles.clone())
}

/// Each percentile as `pN=microseconds`.
fn percentile_parts(h: &LatencyTotals, wanted: &[f64]) -> Vec<String> {
    wanted.iter().map(|p| format!("p{p}={:.3}", h.percentile(*p) as f64 / 1000.0)).collect()
}

/// Who tracks keys.
fn tracking_fields(t: &mut String, shared: &Shared) {
    let f = figures::tracking::TrackingFigures::gather(shared);
    field(t, "tracking_total_keys", f.keys);
    field(t, "tracking_total_items", f.items);
    field(t, "tracking_total_prefixes", f.prefixes);
}

/// Who subscribes to what.
fn pubsub_fields(t: &mut String, shared: &Shared) {
    let f = figures::pubsub::PubSubFigures::gather(shared);
    field(t, "pubsub_channels", f.channels);
    field(t, "pubsub_patterns", f.patterns);
    field(t, "pubsubshard_channels", f.shard_channels);
}
