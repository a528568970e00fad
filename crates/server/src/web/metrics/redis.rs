//! The names of redis_exporter, with its types and labels: seen by running version 1.45 of it
//! against redis-server 7.0.15 and this server.

use crate::figures::Command;
use crate::web::metrics::Kind::{Counter, Gauge, Summary};
use crate::web::metrics::{Metric, Read, Samples, many, off, one};
use command::REDIS_VERSION;

/// Empty databases are shown up to this one, like every database with keys.
const EMPTY_DATABASES: u16 = 16;

/// What this server does.
pub(crate) const METRICS: &[Metric] = &[
    one("redis_up", Gauge, |_| 1.0, "1: the server answers"),
    many(
        "redis_instance_info",
        Gauge,
        &[
            "maxmemory_policy",
            "os",
            "process_id",
            "redis_build_id",
            "redis_mode",
            "redis_version",
            "role",
            "run_id",
            "tcp_port",
        ],
        instance_info,
        "1, with facts as labels",
    ),
    many(
        "redis_start_time_seconds",
        Gauge,
        &[],
        |r, put| {
            put.put("", &[], (r.shared.facts.started_ms / 1000) as f64);
        },
        "start of the server, Unix time",
    ),
    many(
        "redis_uptime_in_seconds",
        Gauge,
        &[],
        |r, put| {
            put.put("", &[], r.shared.uptime_s(r.figures.unix_ms) as f64);
        },
        "time since the start",
    ),
    one("redis_process_id", Gauge, |_| f64::from(std::process::id()), "id of the process"),
    one("redis_connected_clients", Gauge, |f| f.clients.connected as f64, "open connections"),
    one(
        "redis_blocked_clients",
        Gauge,
        |f| f.clients.blocked as f64,
        "clients that wait in a blocking command",
    ),
    one("redis_pubsub_channels", Gauge, |f| f.pubsub.channels as f64, "channels with subscribers"),
    one(
        "redis_pubsub_patterns",
        Gauge,
        |f| f.pubsub.patterns as f64,
        "different patterns that clients subscribe to",
    ),
    one("redis_tracking_clients", Gauge, |f| f.tracking.clients as f64, "clients that track keys"),
    one(
        "redis_tracking_total_items",
        Gauge,
        |f| f.tracking.items as f64,
        "pairs of a tracked key and a client that has read it",
    ),
    one("redis_tracking_total_keys", Gauge, |f| f.tracking.keys as f64, "tracked keys"),
    one(
        "redis_tracking_total_prefixes",
        Gauge,
        |f| f.tracking.prefixes as f64,
        "different prefixes of which clients are told",
    ),
    one(
        "redis_clients_in_timeout_table",
        Gauge,
        |f| f.clients.in_timeout_table as f64,
        "clients that wait until a time",
    ),
    one(
        "redis_client_recent_max_input_buffer_bytes",
        Gauge,
        |f| f.clients.input_max as f64,
        "the longest input that waits to be executed",
    ),
    one(
        "redis_client_recent_max_output_buffer_bytes",
        Gauge,
        |f| f.clients.output_max as f64,
        "the longest output that waits to be read",
    ),
    many(
        "redis_master_repl_offset",
        Gauge,
        &[],
        |r, put| put.put("", &[], r.shared.stream.shown().position.offset as f64),
        "bytes of the stream of replication; it is counted while changes are appended",
    ),
    many(
        "redis_second_repl_offset",
        Gauge,
        &[],
        |r, put| put.put("", &[], r.shared.stream.shown().second_offset() as f64),
        "the first byte for which the id before does not count; -1: there is none",
    ),
    one("redis_config_maxclients", Gauge, |f| f64::from(f.settings.maxclients), "`maxclients`"),
    one("redis_config_maxmemory", Gauge, |f| f.settings.maxmemory as f64, "`maxmemory`"),
    one(
        "redis_connections_received_total",
        Counter,
        |f| f.stats.connections_received as f64,
        "connections accepted",
    ),
    one(
        "redis_rejected_connections_total",
        Counter,
        |f| f.stats.connections_rejected as f64,
        "connections refused because of `maxclients`",
    ),
    one(
        "redis_commands_processed_total",
        Counter,
        |f| f.stats.commands as f64,
        "commands executed",
    ),
    many(
        "redis_commands_total",
        Counter,
        &["cmd"],
        |r, put| commands(r, put, |c| c.totals.calls as f64),
        "calls of each command",
    ),
    many(
        "redis_commands_duration_seconds_total",
        Counter,
        &["cmd"],
        |r, put| commands(r, put, |c| c.totals.ns as f64 / 1e9),
        "time spent in each command",
    ),
    many(
        "redis_commands_rejected_calls_total",
        Counter,
        &["cmd"],
        |r, put| commands(r, put, |c| c.totals.rejected as f64),
        "refusals of each command before its execution",
    ),
    many(
        "redis_commands_failed_calls_total",
        Counter,
        &["cmd"],
        |r, put| commands(r, put, |c| c.totals.failed as f64),
        "executions of each command that answered an error",
    ),
    many(
        "redis_latency_percentiles_usec",
        Summary,
        &["cmd", "quantile"],
        percentiles,
        "execution time of each command; the quantiles are `latency-tracking-info-percentiles`",
    ),
    many(
        "redis_errors_total",
        Counter,
        &["err"],
        |r, put| {
            for (name, count) in &r.figures.errors {
                put.put("", &[("err", name)], *count as f64);
            }
        },
        "error replies by their first word",
    ),
    one("redis_total_error_replies", Counter, |f| f.stats.error_replies as f64, "error replies"),
    one(
        "redis_keyspace_hits_total",
        Counter,
        |f| f.stats.hits as f64,
        "reads that found their key",
    ),
    one("redis_keyspace_misses_total", Counter, |f| f.stats.misses as f64, "reads that did not"),
    one("redis_evicted_keys_total", Counter, |f| f.stats.evicted as f64, "keys evicted"),
    one(
        "redis_evicted_clients_total",
        Counter,
        |f| f.stats.evicted_clients as f64,
        "clients closed because of `maxmemory-clients`",
    ),
    one("redis_expired_keys_total", Counter, |f| f.stats.expired as f64, "keys expired"),
    one(
        "redis_expired_stale_percentage",
        Gauge,
        |f| f.stats.stale_percent,
        "keys past their time and still there, of those that expire: by samples",
    ),
    many(
        "redis_db_keys",
        Gauge,
        &["db"],
        |r, put| databases(r, put, |keys, _| keys),
        "keys of each database",
    ),
    many(
        "redis_db_keys_expiring",
        Gauge,
        &["db"],
        |r, put| databases(r, put, |_, expires| expires),
        "keys of each database that expire",
    ),
    many(
        "redis_db_avg_ttl_seconds",
        Gauge,
        &["db"],
        |r, put| {
            for d in r.figures.databases.iter().filter(|d| d.expires > 0) {
                put.put("", &[("db", &db_name(d.db.0))], d.average_ttl_ms as f64 / 1e3);
            }
        },
        "how long those keys have left on average",
    ),
    one(
        "redis_rdb_changes_since_last_save",
        Gauge,
        |f| f.saves.changes as f64,
        "changes which no snapshot file holds",
    ),
    one(
        "redis_rdb_last_save_timestamp_seconds",
        Gauge,
        |f| f.saves.last_s as f64,
        "the last successful save, or the start",
    ),
    one(
        "redis_loading_dump_file",
        Gauge,
        |f| f64::from(u8::from(f.loading.is_some())),
        "1 while the snapshot file is loaded",
    ),
    one(
        "redis_rdb_bgsave_in_progress",
        Gauge,
        |f| f64::from(u8::from(f.saves.is_saving)),
        "1 while a save is under way",
    ),
    one(
        "redis_rdb_last_bgsave_status",
        Gauge,
        |f| f64::from(u8::from(!f.saves.has_failed)),
        "0 if the last background save has failed",
    ),
    one(
        "redis_rdb_last_bgsave_duration_sec",
        Gauge,
        |f| f.saves.last_took_s.unwrap_or(-1) as f64,
        "how long the last background save took; -1: there was none",
    ),
    one(
        "redis_rdb_current_bgsave_duration_sec",
        Gauge,
        |f| f.saves.current_s.map_or(-1.0, |s| s as f64),
        "for how long a save is under way; -1: none is",
    ),
    one(
        "redis_rdb_last_cow_size_bytes",
        Gauge,
        |f| f.saves.last_captured as f64,
        "the most that captured values took during the last save",
    ),
    one(
        "redis_rdb_saves_total",
        Counter,
        |f| f.saves.saves as f64,
        "saves that were begun or scheduled",
    ),
    one("redis_net_input_bytes_total", Counter, |f| f.stats.io.bytes_in as f64, "bytes received"),
    one("redis_net_output_bytes_total", Counter, |f| f.stats.io.bytes_out as f64, "bytes sent"),
    one(
        "redis_total_reads_processed",
        Counter,
        |f| f.stats.io.receives as f64,
        "receives that brought bytes",
    ),
    one("redis_total_writes_processed", Counter, |f| f.stats.io.sends as f64, "sends"),
    one(
        "redis_memory_used_bytes",
        Gauge,
        |f| f.memory.used as f64,
        "memory in use: what the allocator gave out, and the tables",
    ),
    one("redis_memory_max_bytes", Gauge, |f| f.memory.max as f64, "`maxmemory`, 0 without a limit"),
    one(
        "redis_memory_used_rss_bytes",
        Gauge,
        |f| f.memory.rss as f64,
        "memory of the process that is resident",
    ),
    one(
        "redis_memory_used_peak_bytes",
        Gauge,
        |f| f.memory.peak as f64,
        "the most in use whenever somebody asked",
    ),
    one("redis_memory_used_startup_bytes", Gauge, |f| f.memory.startup as f64, "in use after boot"),
    one(
        "redis_memory_used_dataset_bytes",
        Gauge,
        |f| f.memory.dataset as f64,
        "memory of the data",
    ),
    one(
        "redis_memory_used_overhead_bytes",
        Gauge,
        |f| f.memory.overhead as f64,
        "memory in use for anything else",
    ),
    one(
        "redis_mem_clients_normal",
        Gauge,
        |f| f.memory.clients as f64,
        "memory of the clients, bytes",
    ),
    one(
        "redis_mem_not_counted_for_eviction_bytes",
        Gauge,
        |f| f.memory.not_counted as f64,
        "what `maxmemory` does not count: values captured for a save, and what is on its way to the \
         append-only file",
    ),
    one(
        "redis_mem_fragmentation_ratio",
        Gauge,
        |f| ratio(f.memory.rss, f.memory.used),
        "resident memory for each byte in use",
    ),
    one(
        "redis_mem_fragmentation_bytes",
        Gauge,
        |f| f.memory.rss as f64 - f.memory.used as f64,
        "resident memory that is not in use",
    ),
    one(
        "redis_allocator_allocated_bytes",
        Gauge,
        |f| f.memory.allocated as f64,
        "given out by the allocator",
    ),
    one(
        "redis_allocator_active_bytes",
        Gauge,
        |f| f.memory.active as f64,
        "in pages that the allocator uses",
    ),
    one(
        "redis_allocator_resident_bytes",
        Gauge,
        |f| f.memory.resident as f64,
        "held by the allocator",
    ),
    one(
        "redis_allocator_frag_ratio",
        Gauge,
        |f| ratio(f.memory.active, f.memory.allocated),
        "used pages of the allocator for each byte that it gave out",
    ),
    one(
        "redis_allocator_frag_bytes",
        Gauge,
        |f| f.memory.active as f64 - f.memory.allocated as f64,
        "in used pages of the allocator and not given out",
    ),
    one(
        "redis_active_defrag_running",
        Gauge,
        |f| f.stats.defrag.running as f64,
        "percent of a processor's time that defragmentation takes",
    ),
    one(
        "redis_defrag_hits",
        Gauge,
        |f| f.stats.defrag.moved as f64,
        "entries moved by defragmentation",
    ),
    one(
        "redis_defrag_key_hits",
        Gauge,
        |f| f.stats.defrag.moved as f64,
        "the same: an entry is a key with its value",
    ),
    one(
        "redis_defrag_misses",
        Gauge,
        |f| f.stats.defrag.stayed as f64,
        "entries that defragmentation met and left where they are",
    ),
    one("redis_defrag_key_misses", Gauge, |f| f.stats.defrag.stayed as f64, "the same"),
    one(
        "redis_allocator_rss_ratio",
        Gauge,
        |f| ratio(f.memory.resident, f.memory.active),
        "held by the allocator for each byte in its used pages",
    ),
    one(
        "redis_allocator_rss_bytes",
        Gauge,
        |f| f.memory.resident as f64 - f.memory.active as f64,
        "held by the allocator in pages that it does not use",
    ),
    one(
        "redis_total_system_memory_bytes",
        Gauge,
        |f| f.memory.system as f64,
        "memory of the machine",
    ),
    one(
        "redis_lazyfree_pending_objects",
        Gauge,
        |f| f.memory.lazyfree_pending as f64,
        "values that wait to be freed in the background",
    ),
    one("redis_cpu_user_seconds_total", Counter, |f| f.cpu.user_s, "processor time in user code"),
    one("redis_cpu_sys_seconds_total", Counter, |f| f.cpu.system_s, "processor time in the kernel"),
    one(
        "redis_cpu_user_main_thread_seconds_total",
        Counter,
        |f| f.cpu.main_user_s,
        "of it worker 0 in user code",
    ),
    one(
        "redis_cpu_sys_main_thread_seconds_total",
        Counter,
        |f| f.cpu.main_system_s,
        "of it worker 0 in the kernel",
    ),
    many(
        "redis_slowlog_length",
        Gauge,
        &[],
        |r, put| {
            put.put("", &[], r.shared.slowlog.len() as f64);
        },
        "entries of the slow log",
    ),
    many(
        "redis_slowlog_last_id",
        Gauge,
        &[],
        |r, put| {
            let last = r.shared.slowlog.newest(1);
            put.put("", &[], last.first().map_or(0.0, |e| e.id as f64));
        },
        "number of its newest entry",
    ),
    many(
        "redis_last_slow_execution_duration_seconds",
        Gauge,
        &[],
        |r, put| {
            let last = r.shared.slowlog.newest(1);
            put.put("", &[], last.first().map_or(0.0, |e| e.value as f64 / 1e6));
        },
        "how long that one took",
    ),
];

const SCRIPTS: &str = "scripts";
const REPLICATION: &str = "replication";
const CLUSTER: &str = "cluster mode";
const MODULES: &str = "modules";
const IO_THREADS: &str = "threads for input and output alone: every worker does its own";

/// What this version does not do; the values are those of a Redis in which the part is off.
pub(crate) const OFF: &[Metric] = &[
    off("redis_cluster_connections", Gauge, 0.0, CLUSTER),
    off("redis_cluster_enabled", Gauge, 0.0, CLUSTER),
    off("redis_config_io_threads", Gauge, 1.0, IO_THREADS),
    off("redis_connected_slaves", Gauge, 0.0, REPLICATION),
    off("redis_cpu_sys_children_seconds_total", Counter, 0.0, "child processes"),
    off("redis_cpu_user_children_seconds_total", Counter, 0.0, "child processes"),
    off("redis_dump_payload_sanitizations", Counter, 0.0, "deep checks of payloads"),
    off("redis_expired_time_cap_reached_total", Gauge, 0.0, "sampled expiry"),
    off("redis_io_threaded_reads_processed", Counter, 0.0, IO_THREADS),
    off("redis_io_threaded_writes_processed", Counter, 0.0, IO_THREADS),
    off("redis_io_threads_active", Gauge, 0.0, IO_THREADS),
    off("redis_latest_fork_seconds", Gauge, 0.0, "child processes"),
    off("redis_mem_clients_slaves", Gauge, 0.0, REPLICATION),
    off("redis_memory_used_lua_bytes", Gauge, 0.0, SCRIPTS),
    off("redis_memory_used_scripts_bytes", Gauge, 0.0, SCRIPTS),
    off(
        "redis_migrate_cached_sockets_total",
        Gauge,
        0.0,
        "sockets that MIGRATE keeps: each one opens its own",
    ),
    off("redis_module_fork_in_progress", Gauge, 0.0, MODULES),
    off("redis_module_fork_last_cow_size", Gauge, 0.0, MODULES),
    off("redis_number_of_cached_scripts", Gauge, 0.0, SCRIPTS),
    off("redis_repl_backlog_first_byte_offset", Gauge, 0.0, REPLICATION),
    off("redis_repl_backlog_history_bytes", Gauge, 0.0, REPLICATION),
    off("redis_repl_backlog_is_active", Gauge, 0.0, REPLICATION),
    off("redis_replica_partial_resync_accepted", Gauge, 0.0, REPLICATION),
    off("redis_replica_partial_resync_denied", Gauge, 0.0, REPLICATION),
    off("redis_replica_resyncs_full", Gauge, 0.0, REPLICATION),
    off("redis_replication_backlog_bytes", Gauge, 1_048_576.0, REPLICATION),
    off("redis_slave_expires_tracked_keys", Gauge, 0.0, REPLICATION),
    off("redis_unexpected_error_replies", Counter, 0.0, REPLICATION),
];

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

fn instance_info(r: &Read<'_>, put: &mut Samples<'_>) {
    let facts = &r.shared.facts;
    let labels = [
        ("maxmemory_policy", "noeviction"),
        ("os", &*crate::figures::os_name()),
        ("process_id", &std::process::id().to_string()),
        ("redis_build_id", "0000000000000000"),
        ("redis_mode", "standalone"),
        ("redis_version", REDIS_VERSION),
        ("role", "master"),
        ("run_id", &facts.run_id),
        ("tcp_port", &facts.port.to_string()),
    ];
    put.put("", &labels, 1.0);
}

/// One sample for each command.
fn commands(r: &Read<'_>, put: &mut Samples<'_>, of: fn(&Command) -> f64) {
    for c in &r.figures.commands {
        put.put("", &[("cmd", c.id.spec().full_name)], of(c));
    }
}

fn percentiles(r: &Read<'_>, put: &mut Samples<'_>) {
    for c in r.figures.commands.iter().filter(|c| c.latency.count() > 0) {
        let cmd = c.id.spec().full_name;
        for percent in &r.figures.settings.percentiles {
            let us = c.latency.percentile(*percent) as f64 / 1000.0;
            put.put("", &[("cmd", cmd), ("quantile", &percent.to_string())], us);
        }
        put.put("_sum", &[("cmd", cmd)], c.totals.us() as f64);
        put.put("_count", &[("cmd", cmd)], c.totals.calls as f64);
    }
}

fn db_name(db: u32) -> String {
    format!("db{db}")
}

/// One sample for each database with keys, and for the first empty ones; `of` picks from keys and
/// expires.
fn databases(r: &Read<'_>, put: &mut Samples<'_>, of: fn(u64, u64) -> u64) {
    let filled = &r.figures.databases;
    let first = u32::from(r.figures.settings.databases.min(EMPTY_DATABASES));
    for db in 0..first {
        let at = filled.iter().find(|d| d.db.0 == db);
        let value = at.map_or(0, |d| of(d.keys, d.expires));
        put.put("", &[("db", &db_name(db))], value as f64);
    }
    for d in filled.iter().filter(|d| d.db.0 >= first) {
        put.put("", &[("db", &db_name(d.db.0))], of(d.keys, d.expires) as f64);
    }
}
