//! The one table of settings: name, typed field and who reads it, kind, default, when it may
//! change, and what it does here. CONFIG, the start-up parser, redaction, `--help`,
//! `docs/config.md` and the sample configuration all read it. A new setting is one row here, and
//! its use.

use super::db_limit::{DbLimit, POLICIES};
use super::field::{AppendFsync, Field, MaxmemoryPolicy, RdbVersion, Secret, ShutdownWords};
use super::ingest::{INGEST_WINDOW_MAX, INGEST_WINDOW_MIN, IngestListen};
use super::memory::MemoryShare;
use super::retention::Retention;
use super::row::{inert, refused, settings, wired};
use super::schedule::Schedule;
use super::value::{BufferLimit, Events, Kind};
use super::{Access, Bind, IoBackend, LogFormat, LogLevel, LogTimes, Supervised};
use ingest::PORTS as INGEST_PORTS;
use std::path::PathBuf;

pub use super::row::{Change, Class, Effect, Index, Setting};

const I32: Kind = Kind::Int(0, i32::MAX as i64);
const I64: Kind = Kind::Int(0, i64::MAX);
const PORT: Kind = Kind::Int(0, 65_535);
const SIZE: Kind = Kind::Memory(0, i64::MAX as u64);
const BIG_SIZE: Kind = Kind::Memory(0, u64::MAX);
const SIZE_FROM_1MB: Kind = Kind::Memory(1 << 20, i64::MAX as u64);
const QUERY_BUFFER: Kind = Kind::Memory(1 << 20, QUERY_BUFFER_MAX);
const ACCESS: Kind = Kind::Choice(&["no", "yes", "local"]);
const SHUTDOWN: Kind = Kind::Flags(&["default", "save", "nosave", "now", "force"]);

const ACL: &str = "for ACL users, which this version does not have";
const CLUSTER: &str = "for cluster mode, which is refused";
const DEFRAG: &str =
    "a step of defragmentation is planned for 150 microseconds, and moves whole entries";
const REPLICATION: &str = "for replication, which this version does not have";
const NODE_BYTES: &str =
    "Bytes per node of a stream, as Redis would pack it. Trimming with ~ removes whole nodes.";
const NODE_ENTRIES: &str = "Entries per node of a stream. Trimming with ~ removes whole nodes.";
const PAGE: &str = "OBJECT ENCODING answers quicklist above this: a number of elements, or -1 to -5 for 4 to 64 \
     KiB.";
const FIELDS: &str = "OBJECT ENCODING answers listpack for hashes with up to so many fields.";
const FIELD_BYTES: &str = "OBJECT ENCODING answers listpack while no field or value is longer.";
const INTEGERS: &str = "OBJECT ENCODING answers intset for sets of up to so many integers.";
const MEMBERS: &str = "OBJECT ENCODING answers listpack for up to so many members.";
const MEMBER_BYTES: &str = "OBJECT ENCODING answers listpack while no member is longer.";
const SPARSE: &str = "A HyperLogLog is sparse up to so many bytes.";
const LAZYFREE: &str = "memory is always freed in bounded steps";
const PINNING: &str = "pins threads to processors; here the kernel places the threads";
const SCRIPTS: &str = "for scripts, which this version does not have";
const IO_THREADS: &str = "every worker reads, executes and writes by itself; see `threads`";
const TLS_ABOUT: &str = "encrypted connections";
const TLS: &str = "TLS";
const RDMA: &str = "for RDMA, which is refused";
const TITLE: &str = "the process keeps its name";
const CRASH: &str = "a crash is reported by the panic message only";
const REPLICAS: &str = "replication";

/// The largest `client-query-buffer-limit`: a command of an append-only file may have 2 GiB, and a
/// record may be somewhat longer than its request.
pub const QUERY_BUFFER_MAX: u64 = (2 << 30) - (64 << 20);

/// A directive of a configuration file that is not a setting: CONFIG does not know it.
pub struct Directive {
    /// Its name.
    pub name: &'static str,
    /// The missing feature that it needs; empty if it is supported.
    pub needs: &'static str,
    /// What it does or would do.
    pub about: &'static str,
    /// Its words are secret.
    pub secret: bool,
}

const fn directive(name: &'static str, needs: &'static str, about: &'static str) -> Directive {
    Directive { name, needs, about, secret: false }
}

/// Directives of a configuration file that are not settings.
pub static DIRECTIVES: [Directive; 4] = [
    directive(
        "include",
        "",
        "reads another file at this point; `*`, `?` and `[...]` match several files",
    ),
    directive("loadmodule", "modules", "modules"),
    directive("rename-command", "renaming of commands", "hiding or renaming commands"),
    Directive {
        name: "user",
        needs: "access control lists",
        about: "users other than the default one",
        secret: true,
    },
];

/// The index of a setting, for constants: a name that is not in the table does not compile.
const fn index_of(name: &str) -> Index {
    let mut index = 0;
    while index < SETTINGS.len() {
        if is_same(SETTINGS[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("there is no such setting")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// `admin-bind`.
pub const ADMIN_BIND: Index = index_of("admin-bind");
/// `admin-port`.
pub const ADMIN_PORT: Index = index_of("admin-port");
/// `appenddirname`.
pub const APPENDDIRNAME: Index = index_of("appenddirname");
/// `appendfilename`.
pub const APPENDFILENAME: Index = index_of("appendfilename");
/// `db-limit`.
pub const DB_LIMIT: Index = index_of("db-limit");
/// `dir`.
pub const DIR: Index = index_of("dir");
/// `hz`.
pub const HZ: Index = index_of("hz");
/// `maxmemory`.
pub const MAXMEMORY: Index = index_of("maxmemory");
/// `maxmemory-policy`.
pub const MAXMEMORY_POLICY: Index = index_of("maxmemory-policy");

settings! {
    "acl-pubsub-default" = inert(
        Kind::Choice(&["allchannels", "resetchannels"]), "resetchannels", ACL
    );
    "aclfile" = refused(
        Kind::Text, &[""], "access control lists", "users and their rights from a file"
    ).start();
    "acllog-max-len" = inert(I64, "128", ACL);
    "active-defrag-cycle-max" worker(defrag_cycle_max: u64) = wired(
        Kind::Int(1, 99), "25",
        "Percent of one processor's time that defragmentation takes at the upper threshold."
    );
    "active-defrag-cycle-min" worker(defrag_cycle_min: u64) = wired(
        Kind::Int(1, 99), "1",
        "Percent of one processor's time that defragmentation takes at the lower threshold."
    );
    "active-defrag-cycle-us" = inert(Kind::Int(0, 100_000), "500", DEFRAG);
    "active-defrag-ignore-bytes" worker(defrag_ignore_bytes: u64) = wired(
        Kind::Memory(1, i64::MAX as u64), "104857600",
        "Fewer free bytes between entries are no reason for defragmentation. With `maxmemory` an \
         eighth of it, if that is less."
    );
    "active-defrag-max-scan-fields" = inert(Kind::Int(1, i64::MAX), "1000", DEFRAG);
    "active-defrag-threshold-lower" worker(defrag_lower_percent: u64) = wired(
        Kind::Int(0, 1000), "10",
        "Free bytes between entries, in percent of their bytes, from which on they are moved."
    );
    "active-defrag-threshold-upper" worker(defrag_upper_percent: u64) = wired(
        Kind::Int(0, 1000), "100",
        "Free bytes between entries, in percent, at which active-defrag-cycle-max is spent."
    );
    "active-expire-effort" = inert(
        Kind::Int(1, 10), "1", "expired keys are removed in time, in steps between requests"
    );
    "activedefrag" worker(activedefrag: bool) = wired(
        Kind::Bool, "yes",
        "Move entries together, in steps planned for 150 microseconds, so that memory between them \
         goes back to the system."
    );
    "activerehashing" = inert(Kind::Bool, "yes", "tables grow in bounded steps by themselves");
    "admin-bind" server(admin_bind: Bind) = wired(
        Kind::Text,
        "127.0.0.1",
        "Address of `admin-port`. Other than loopback, the live page needs an `admin-token`.",
    ).start();
    "admin-port" server(admin_port: u16) = wired(
        PORT,
        "9379",
        "HTTP port of the live page and /metrics. 0: none. With `port 0`, opened only if this or \
         `admin-bind` is set.",
    ).start();
    "admin-token" server(admin_token: Secret) = wired(
        Kind::Text, "", "Token for the live page and /metrics. Empty: none needed."
    ).secret();
    "always-show-logo" = inert(Kind::Bool, "no", "the banner is always the same").start();
    "aof-disable-auto-gc" = inert(
        Kind::Bool, "no", "files which a rewrite has replaced are always removed"
    );
    "aof-history" worker(aof_history: Retention) = wired(
        Kind::Retention, "0",
        "Keep files which a rewrite of the append-only file has replaced: so many bytes, or as many \
         as are needed to go back so long. 0: none."
    );
    "aof-load-truncated" server(aof_load_truncated: bool) = wired(
        Kind::Bool, "yes",
        "An append-only file whose last command is incomplete is cut off there at the start. no: \
         the start fails."
    );
    "aof-rewrite-incremental-fsync" server(aof_syncs_early: bool) = wired(
        Kind::Bool, "yes",
        "Sync the base of the append-only file while it is written, every 4 MiB. `no`: only at its \
         end."
    );
    "aof-timestamp-enabled" worker(aof_timestamp_enabled: bool) = wired(
        Kind::Bool, "no", "Lines with the time in the append-only file, once a second."
    );
    "aof-use-rdb-preamble" server(aof_base_is_rdb: bool) = wired(
        Kind::Bool, "yes",
        "A rewrite of the append-only file writes its base as a snapshot file. no: as commands, \
         which takes more space and time."
    );
    "aof_rewrite_cpulist" = inert(Kind::Text, "", PINNING).alias(&["aof-rewrite-cpulist"]).start();
    "appenddirname" server(appenddirname: PathBuf) = wired(
        Kind::NameOf("dirname"), "appendonlydir", "Folder of the append-only file in `dir`."
    ).start();
    "appendfilename" server(appendfilename: PathBuf) = wired(
        Kind::NameOf("filename"), "appendonly.aof",
        "How the names of the files of the append-only file begin."
    ).start();
    "appendfsync" worker(appendfsync: AppendFsync) = wired(
        Kind::Choice(&["everysec", "always", "no"]), "everysec",
        "When the append-only file is synced. always: before a client is answered; many share one \
         sync. everysec: once a second. no: when the system likes."
    ).effect(Effect::AppendFsync);
    "appendonly" worker(appendonly: bool) = wired(
        Kind::Bool, "no",
        "Write every change to the append-only file, and load that at the start."
    ).effect(Effect::AppendOnly);
    "auto-aof-rewrite-min-size" worker(aof_rewrite_min_size: u64) = wired(
        SIZE, "67108864", "A smaller append-only file is not rewritten by itself."
    );
    "auto-aof-rewrite-percentage" worker(aof_rewrite_percentage: u64) = wired(
        I32, "100",
        "The append-only file is rewritten when it has grown by this share of its size behind the \
         last rewrite. 0: not by itself."
    );
    "availability-zone" = inert(Kind::Text, "",
    "a label that CONFIG GET reads back and nothing else shows");
    "backup-dir" server(backup_dir: PathBuf) = wired(
        Kind::Text, "backups",
        "Folder of the backups that `backup-schedule` makes; relative to `dir`. Made if missing."
    ).protected();
    "backup-keep" server(backup_keep: usize) = wired(
        Kind::Int(0, 1_000_000), "7",
        "So many of these backups are kept, the newest ones. 0: all."
    );
    "backup-schedule" server(backup_schedule: Option<Schedule>) = wired(
        Kind::Schedule, "",
        "When the server makes a backup of itself, in UTC: every 6h, or 0 3 * * *. Empty: never."
    );
    "bgsave_cpulist" = inert(Kind::Text, "", PINNING).alias(&["bgsave-cpulist"]).start();
    "bind" server(bind: Vec<Bind>) = wired(
        Kind::Addresses,
        "127.0.0.1 -::1",
        "Addresses to listen on. `*` and `::*`: all. With `-` in front, a missing address is no \
         error.",
    ).effect(Effect::Bind);
    "bind-source-addr" = inert(
        Kind::Text, "",
        "for replication; the kernel chooses the address from which MIGRATE connects"
    );
    "bio_cpulist" = inert(Kind::Text, "", PINNING).alias(&["bio-cpulist"]).start();
    "busy-poll-us" worker(busy_poll_us: u32) = wired(
        Kind::Int(0, 1_000_000),
        "50",
        "How long an idle worker polls before it sleeps, in microseconds. More: lower latency, \
         more CPU. 0: never polls.",
    );
    "busy-reply-threshold" = inert(I64, "5000", SCRIPTS).alias(&["lua-time-limit"]);
    "client-output-buffer-limit" server(output_limits: [BufferLimit; 3]) = wired(
        Kind::Limits,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        "Unsent bytes at which a client is closed: class, hard limit, soft limit, and how many \
         seconds it may stay above the soft limit.",
    );
    "client-query-buffer-limit" worker(query_buffer_max: u64) = wired(
        QUERY_BUFFER, "1073741824",
        "A client is closed when an unfinished request reaches this size. At most 2080374784: the \
         append-only file could not be loaded with a longer one."
    );
    "cluster-allow-pubsubshard-when-down" = inert(Kind::Bool, "yes", CLUSTER);
    "cluster-allow-reads-when-down" = inert(Kind::Bool, "no", CLUSTER);
    "cluster-allow-replica-migration" = inert(Kind::Bool, "yes", CLUSTER);
    "cluster-announce-bus-port" = inert(PORT, "0", CLUSTER);
    "cluster-announce-client-ipv4" = inert(Kind::Text, "", CLUSTER);
    "cluster-announce-client-ipv6" = inert(Kind::Text, "", CLUSTER);
    "cluster-announce-client-port" = inert(PORT, "0", CLUSTER);
    "cluster-announce-client-tls-port" = inert(PORT, "0", CLUSTER);
    "cluster-announce-hostname" = inert(Kind::Hostname, "", CLUSTER);
    "cluster-announce-human-nodename" = inert(Kind::Text, "", CLUSTER);
    "cluster-announce-ip" = inert(Kind::Text, "", CLUSTER);
    "cluster-announce-port" = inert(PORT, "0", CLUSTER);
    "cluster-announce-tls-port" = inert(PORT, "0", CLUSTER);
    "cluster-blacklist-ttl" = inert(I64, "60", CLUSTER);
    "cluster-compatibility-sample-ratio" = inert(Kind::Int(0, 100), "0", CLUSTER);
    "cluster-config-file" = inert(Kind::Text, "nodes.conf", CLUSTER).start();
    "cluster-config-save-behavior" = inert(Kind::Choice(&["sync", "best-effort"]), "sync", CLUSTER);
    "cluster-databases" = inert(Kind::Int(1, i32::MAX as i64), "1", CLUSTER).start();
    "cluster-enabled" = refused(
        Kind::Bool, &["no"], "cluster mode", "being a node of a cluster"
    ).start();
    "cluster-link-sendbuf-limit" = inert(BIG_SIZE, "0", CLUSTER);
    "cluster-manual-failover-timeout" = inert(Kind::Int(1, i32::MAX as i64), "5000", CLUSTER);
    "cluster-migration-barrier" = inert(I32, "1", CLUSTER);
    "cluster-node-timeout" = inert(I64, "15000", CLUSTER);
    "cluster-port" = inert(PORT, "0", CLUSTER).start();
    "cluster-preferred-endpoint-type" = inert(
        Kind::Choice(&["ip", "hostname", "unknown-endpoint"]), "ip", CLUSTER
    );
    "cluster-replica-no-failover" = inert(
        Kind::Bool, "no", CLUSTER
    ).alias(&["cluster-slave-no-failover"]);
    "cluster-replica-validity-factor" = inert(
        I32, "10", CLUSTER
    ).alias(&["cluster-slave-validity-factor"]);
    "cluster-require-full-coverage" = inert(Kind::Bool, "yes", CLUSTER);
    "cluster-slot-migration-log-max-len" = inert(I64, "1000", CLUSTER);
    "cluster-slot-stats-enabled" = inert(Kind::Bool, "no", CLUSTER);
    "commandlog-large-reply-max-len" server(large_replies_len_max: usize) = wired(
        I64, "128", "Maximum length of the log of large replies."
    ).effect(Effect::Logs);
    "commandlog-large-request-max-len" server(large_requests_len_max: usize) = wired(
        I64, "128", "Maximum length of the log of large requests."
    ).effect(Effect::Logs);
    "commandlog-reply-larger-than" worker(reply_larger_than: i64) = wired(
        Kind::Int(-1, i64::MAX), "1048576",
        "Replies of at least so many bytes are logged as large. 0: all. -1: none."
    );
    "commandlog-request-larger-than" worker(request_larger_than: i64) = wired(
        Kind::Int(-1, i64::MAX),
        "1048576",
        "Requests of at least so many bytes are logged as large. 0: all. -1: none.",
    );
    "crash-log-enabled" = inert(Kind::Bool, "yes", CRASH);
    "crash-memcheck-enabled" = inert(Kind::Bool, "yes", CRASH);
    "daemonize" server(daemonize: bool) = wired(
        Kind::Bool, "no", "Run in the background, with a pid file."
    ).start();
    "databases" handler(databases: u16) = wired(
        Kind::Int(1, 65_535), "16", "Number of databases for SELECT."
    ).start();
    "db-limit" worker(db_limits: Vec<DbLimit>) = wired(
        Kind::DbLimits,
        "",
        "What one database may take, and which of its keys go at the limit: its number, bytes or a \
         percentage of `maxmemory` (without one, of the memory which the process may use), and a \
         policy as in `maxmemory-policy`. Repeat the line for more databases; others keep their \
         limits. A limit of 0 removes one, an empty value all.",
    ).effect(Effect::Uses);
    "dbfilename" server(dbfilename: PathBuf) = wired(
        Kind::FileName, "dump.rdb", "Name of the snapshot file in `dir`. Empty: none is written."
    ).protected();
    "dir" server(dir: PathBuf) = wired(
        Kind::Text, ".", "Working folder. Relative file names start there."
    ).effect(Effect::Folder).protected();
    "disable-thp" = inert(
        Kind::Bool, "yes", "huge pages are always used; the server never forks, so they do no harm"
    ).start();
    "disk-wait-ms" worker(disk_wait_ms: u64) = wired(
        I32, "1000",
        "With `appendfsync always`: once the append-only file cannot be written, or the disk does \
         not answer, for so long, reads of what is not on the disk yet are refused with MISCONF. \
         Until then they wait. 0: they wait as long as it takes."
    );
    "dual-channel-replication-enabled" = inert(Kind::Bool, "no", REPLICATION);
    "dynamic-hz" = inert(Kind::Bool, "yes", "`hz` does nothing either");
    "enable-debug-command" worker(enable_debug_command: Access) = wired(
        ACCESS, "no", "Who may use DEBUG: nobody, everybody, or clients on this machine."
    ).start();
    "enable-module-command" = inert(ACCESS, "no",
    "there are no modules, and no MODULE LOAD to permit").start();
    "enable-protected-configs" server(enable_protected_configs: Access) = wired(
        ACCESS, "no", "Who may change `dir` and `dbfilename` with CONFIG SET."
    ).start();
    "extended-redis-compatibility" = inert(
        Kind::Bool, "no", "clients are always told that this is Redis"
    );
    "hash-max-listpack-entries" handler(hash_max_listpack_entries: u64) = wired(
        I64, "512", FIELDS
    ).alias(&["hash-max-ziplist-entries"]);
    "hash-max-listpack-value" handler(hash_max_listpack_value: u64) = wired(
        SIZE, "64", FIELD_BYTES
    ).alias(&["hash-max-ziplist-value"]);
    "hash-seed" = inert(Kind::Text, "", "hashing is seeded at random").start();
    "hide-user-data-from-log" = inert(
        Kind::Bool, "yes", "keys and values are never written to the log"
    );
    "hll-sparse-max-bytes" handler(hll_sparse_max_bytes: u64) = wired(SIZE, "3000", SPARSE);
    "hz" = inert(
        Kind::Clamped(1, 500), "10", "shown by INFO; background work runs when it is needed"
    );
    "ignore-warnings" = inert(Kind::Text, "", "no warning of this kind stops the start");
    "import-mode" server(import_mode: bool) = wired(
        Kind::Bool,
        "no",
        "For the time of a data import: keys do not expire, and only import sources (CLIENT \
         IMPORT-SOURCE) see expired ones.",
    ).effect(Effect::Import);
    "ingest-classic" server(ingest_classic: bool) = wired(
        Kind::Bool,
        "no",
        "Open the five classic message protocols, one port each, on the addresses of `bind`.",
    ).start();
    "ingest-classic-port" server(ingest_classic_port: u16) = wired(
        Kind::Int(1, 65_535 - INGEST_PORTS as i64 + 1),
        "8001",
        "First of the five ports: request-reply, throttled, head-rest, sync, async.",
    ).start();
    "ingest-idle-timeout" server(ingest_idle_timeout_s: u32) = wired(
        I32, "5", "An ingest connection is closed after so many seconds without a byte. 0: never."
    );
    "ingest-listen" server(ingest_listen: Vec<IngestListen>) = wired(
        Kind::Listeners,
        "",
        "An ingest listener. Repeat the line for more listeners. An empty value removes those set \
         so far.",
    ).start();
    "ingest-max-message" worker(ingest_payload_max: u32) = wired(
        Kind::Memory(0, u32::MAX as u64),
        "1048576",
        "Maximum payload of an ingest message. A larger one closes its connection.",
    );
    "ingest-producer-timeout" server(ingest_producer_timeout_s: u32) = wired(
        I32,
        "86400",
        "A producer of ingest protocol 2 is forgotten after so many seconds without a connection. \
         0: never.",
    );
    "ingest-producers-max" worker(ingest_producers_max: usize) = wired(
        Kind::Int(1, i32::MAX as i64),
        "100000",
        "Maximum number of remembered producers of ingest protocol 2. Further ones are refused.",
    );
    "ingest-window" worker(ingest_window: u32) = wired(
        Kind::Memory(INGEST_WINDOW_MIN, INGEST_WINDOW_MAX),
        "4194304",
        "How many bytes a producer of ingest protocol 2 may send ahead of what the server has \
         accepted.",
    );
    "io-backend" server(io_backend: IoBackend) = wired(
        Kind::Choice(&["auto", "io_uring", "epoll"]),
        "auto",
        "Interface to the kernel. auto is io_uring, or epoll where io_uring is not available. \
         If io_uring is asked for and not available, epoll is used and the log says why.",
    ).start();
    "io-threads" = inert(Kind::Int(1, 128), "1", IO_THREADS).start();
    "io-threads-do-reads" = inert(Kind::Bool, "no", IO_THREADS).start();
    "jemalloc-bg-thread" = inert(Kind::Bool, "yes", "the allocator decides by itself");
    "key-load-delay" server(load_delay_us: u64) = wired(
        I32, "0",
        "A loading thread waits so many microseconds for each key; 0 lets it go on. For tests."
    );
    "latency-monitor-threshold" server(latency_monitor_ms: u64) = wired(
        I64,
        "0",
        "LATENCY records commands, expiry steps and operations on the append-only file of at least \
         so many milliseconds. 0: none.",
    );
    "latency-tracking" worker(latency_tracking: bool) = wired(
        Kind::Bool, "yes", "Keep latency histograms: execution per command, and service time."
    );
    "latency-tracking-info-percentiles" server(latency_percentiles: Vec<f64>) = wired(
        Kind::Percentiles, "50 99 99.9", "Percentiles shown by INFO."
    );
    "lazyfree-lazy-eviction" = inert(Kind::Bool, "no", LAZYFREE);
    "lazyfree-lazy-expire" = inert(Kind::Bool, "no", LAZYFREE);
    "lazyfree-lazy-server-del" = inert(Kind::Bool, "no", LAZYFREE);
    "lazyfree-lazy-user-del" = inert(Kind::Bool, "no", LAZYFREE);
    "lazyfree-lazy-user-flush" worker(lazy_user_flush: bool) = wired(
        Kind::Bool,
        "no",
        "FLUSHALL and FLUSHDB without SYNC or ASYNC reply before the memory is freed.",
    );
    "lfu-decay-time" server(lfu_decay_time: u32) = wired(
        I32, "1", "OBJECT FREQ of an unused key falls by one per so many minutes. 0: never."
    ).effect(Effect::Uses);
    "lfu-log-factor" server(lfu_log_factor: u32) = wired(
        I32, "10", "The higher, the more uses a key needs to raise its OBJECT FREQ by one."
    ).effect(Effect::Uses);
    "list-compress-depth" = inert(I32, "0", "the inner part of a list is not compressed");
    "list-max-listpack-size" handler(list_max_listpack_size: i64) = wired(
        Kind::Int(i32::MIN as i64, i32::MAX as i64), "-2", PAGE
    ).alias(&["list-max-ziplist-size"]);
    "locale-collate" = refused(
        Kind::Text,
        &["", "C", "POSIX"],
        "sorting by a language",
        "the order of SORT ALPHA; here it is always that of the bytes",
    );
    "log-format" server(log_format: LogFormat) = wired(
        Kind::Choice(&["legacy", "logfmt", "json"]),
        "legacy",
        "Format of log lines: legacy (as Redis), logfmt (name=value) or json.",
    ).effect(Effect::Log);
    "log-timestamp-format" server(log_times: LogTimes) = wired(
        Kind::Choice(&["legacy", "iso8601", "milliseconds"]),
        "legacy",
        "Format of the time in log lines.",
    ).effect(Effect::Log);
    "logfile" server(logfile: Option<PathBuf>) = wired(
        Kind::Text, "", "Log file. Empty: standard output."
    ).start();
    "loglevel" server(loglevel: LogLevel) = wired(
        Kind::Choice(&["debug", "verbose", "notice", "warning", "nothing"]),
        "notice",
        "How much is logged: debug, verbose, notice, warning or nothing.",
    ).effect(Effect::Log);
    "masterauth" = inert(Kind::Text, "", REPLICATION).secret().alias(&["primaryauth"]);
    "masteruser" = inert(Kind::Text, "", REPLICATION).secret().alias(&["primaryuser"]);
    "max-new-connections-per-cycle" = inert(
        Kind::Int(1, 1000), "10", "connections are accepted as they arrive"
    );
    "max-new-tls-connections-per-cycle" = inert(
        Kind::Int(1, 1000), "1", "for TLS, which is refused"
    );
    "maxclients" worker(maxclients: u32) = wired(
        Kind::Int(1, u32::MAX as i64), "10000", "Maximum number of connections."
    ).effect(Effect::FileLimit);
    "maxmemory" worker(maxmemory: MemoryShare) = wired(
        Kind::MachineShare, "0",
        "Limit of data and client buffers, in bytes or as a percentage of the memory which the \
         control group allows, or else the machine has. At the limit, `maxmemory-policy` says \
         which keys go; writes fail if none may. 0: no limit."
    );
    "maxmemory-clients" worker(maxmemory_clients: MemoryShare) = wired(
        Kind::Share, "0",
        "Limit of what is held for all clients, in bytes or as a percentage of `maxmemory`. Above \
         it, those which hold the most are closed, but for CLIENT NO-EVICT ON. 0: no limit."
    );
    "maxmemory-eviction-tenacity" worker(eviction_tenacity: u64) = wired(
        Kind::Int(0, 100), "10",
        "How long writes may wait for keys to be evicted before they go on above the limit: 50 us \
         for each step, without end at 100."
    );
    "maxmemory-policy" worker(maxmemory_policy: MaxmemoryPolicy) = wired(
        Kind::Choice(&POLICIES),
        "noeviction",
        "An -lfu policy counts the uses of keys (OBJECT FREQ). Others keep the time of the last \
         use (OBJECT IDLETIME).",
    ).effect(Effect::Uses);
    "maxmemory-samples" worker(maxmemory_samples: usize) = wired(
        Kind::Int(1, i32::MAX as i64), "5",
        "How many keys are compared for each that is evicted, at least; 64 at most."
    );
    "min-replicas-max-lag" = inert(I32, "10", REPLICATION).alias(&["min-slaves-max-lag"]);
    "min-replicas-to-write" = refused(
        I32, &["0"], REPLICAS, "refusing writes that too few replicas would have"
    ).alias(&["min-slaves-to-write"]);
    "mptcp" = inert(Kind::Bool, "no", "connections are plain TCP").start();
    "no-appendfsync-on-rewrite" worker(no_appendfsync_on_rewrite: bool) = wired(
        Kind::Bool, "no",
        "With `appendfsync everysec`, no sync while the data is saved or rewritten: a crash may \
         then lose more than a second."
    );
    "notify-keyspace-events" server(notify_keyspace_events: Events) = wired(
        Kind::Events, "",
        "Which events of keys are published to subscribers: `K` to `__keyspace@<db>__:<key>`, `E` \
         to `__keyevent@<db>__:<event>`, and the classes: `g` generic, `$` strings, `l` lists, `s` \
         sets, `h` hashes, `z` sorted sets, `t` streams, `x` expired, `e` evicted, `d` modules, \
         `A` all of these, `n` new keys, `m` keys that a read did not find."
    ).effect(Effect::Events);
    "oom-score-adj" = refused(
        Kind::Choice(&["no", "yes", "relative", "absolute"]),
        &["no"],
        "control of the kernel's out-of-memory score",
        "protecting the process from the kernel's out-of-memory killer",
    );
    "oom-score-adj-values" = inert(
        Kind::Scores, "0 200 800", "for oom-score-adj, which is refused"
    );
    "pidfile" server(pidfile: Option<PathBuf>) = wired(
        Kind::Text, "", "File with the process id while the server runs."
    ).start();
    "port" server(port: u16) = wired(
        PORT, "6379", "TCP port. 0: do not listen on TCP."
    ).effect(Effect::Port);
    "prefetch-batch-max-size" = inert(Kind::Int(0, 128), "16", "windows have a fixed size");
    "proc-title-template" = inert(Kind::Title, "{title} {listen-addr} {server-mode}", TITLE);
    "propagation-error-behavior" = inert(
        Kind::Choice(&["ignore", "panic", "panic-on-replicas"]), "ignore", REPLICATION
    );
    "protected-mode" worker(protected_mode: bool) = wired(
        Kind::Bool,
        "yes",
        "Without a password, refuse clients from other machines. Classic ingest listeners refuse \
         them even with one.",
    );
    "proto-max-bulk-len" handler(bulk_len_max: u64) = wired(
        SIZE_FROM_1MB, "536870912", "Maximum size of one argument."
    );
    "rdb-del-sync-files" = inert(Kind::Bool, "no", REPLICATION);
    "rdb-key-save-delay" server(save_delay_us: u64) = wired(
        I32, "0",
        "A save waits so many microseconds for each key; 0 lets it go on. For tests."
    );
    "rdb-save-incremental-fsync" server(save_syncs_early: bool) = wired(
        Kind::Bool, "yes",
        "Sync a snapshot file while it is written, every 4 MiB. `no`: only at its end."
    );
    "rdb-skip-unknown" server(rdb_skip_unknown: bool) = wired(
        Kind::Bool, "no",
        "Values of modules in a snapshot file are skipped and counted. `no`: they end the start."
    ).start();
    "rdb-version" server(rdb_version: RdbVersion) = wired(
        Kind::Choice(&["0", "10", "11", "12", "80"]), "0",
        "Version of the snapshot files that are written. 0: 10, which Redis 7.0 reads, or 12 where \
         fields of hashes expire. 80: for Valkey 9. Data which the version cannot hold is not saved."
    );
    "rdb-version-check" = inert(
        Kind::Choice(&["strict", "relaxed"]), "strict",
        "a snapshot file of an unknown version is always refused"
    );
    "rdbchecksum" server(rdb_checksum: bool) = wired(
        Kind::Bool, "yes", "Snapshot files end with a checksum."
    ).start();
    "rdbcompression" server(rdb_compression: bool) = wired(
        Kind::Bool, "yes", "Strings in snapshot files are compressed (LZF)."
    );
    "rdma-bind" = inert(Kind::Text, "", RDMA);
    "rdma-completion-vector" = inert(Kind::Int(-1, 1024), "-1", RDMA);
    "rdma-port" = refused(PORT, &["0"], "RDMA", "listening on an RDMA device");
    "rdma-rx-size" = inert(Kind::Memory(65_536, 16 << 20), "1048576", RDMA);
    "repl-backlog-size" = inert(Kind::Backlog, "1048576", REPLICATION);
    "repl-backlog-ttl" = inert(I64, "3600", REPLICATION);
    "repl-disable-tcp-nodelay" = inert(Kind::Bool, "no", REPLICATION);
    "repl-diskless-load" = inert(
        Kind::Choice(&["disabled", "on-empty-db", "swapdb"]), "disabled", REPLICATION
    );
    "repl-diskless-sync" = inert(Kind::Bool, "yes", REPLICATION);
    "repl-diskless-sync-delay" = inert(I32, "5", REPLICATION);
    "repl-diskless-sync-max-replicas" = inert(I32, "0", REPLICATION);
    "repl-mptcp" = inert(Kind::Bool, "no", REPLICATION);
    "repl-ping-replica-period" = inert(
        Kind::Int(1, i32::MAX as i64), "10", REPLICATION
    ).alias(&["repl-ping-slave-period"]);
    "repl-timeout" = inert(Kind::Int(1, i32::MAX as i64), "60", REPLICATION);
    "replica-announce-ip" = inert(Kind::Text, "", REPLICATION).alias(&["slave-announce-ip"]);
    "replica-announce-port" = inert(PORT, "0", REPLICATION).alias(&["slave-announce-port"]);
    "replica-announced" = inert(Kind::Bool, "yes", REPLICATION);
    "replica-full-sync-buffer-limit" = inert(BIG_SIZE, "0", REPLICATION);
    "replica-ignore-disk-write-errors" = inert(Kind::Bool, "no", REPLICATION);
    "replica-ignore-maxmemory" = inert(
        Kind::Bool, "yes", REPLICATION
    ).alias(&["slave-ignore-maxmemory"]);
    "replica-lazy-flush" = inert(Kind::Bool, "no", REPLICATION).alias(&["slave-lazy-flush"]);
    "replica-priority" = inert(I32, "100", REPLICATION).alias(&["slave-priority"]);
    "replica-read-only" = inert(Kind::Bool, "yes", REPLICATION).alias(&["slave-read-only"]);
    "replica-serve-stale-data" = inert(
        Kind::Bool, "yes", REPLICATION
    ).alias(&["slave-serve-stale-data"]);
    "replicaof" = refused(
        Kind::Peer, &[""], REPLICAS, "being the copy of another server"
    ).alias(&["slaveof"]).start();
    "requirepass" worker(password: Secret) = wired(
        Kind::Text, "", "Password of the default user. Empty: none."
    ).secret();
    "sanitize-dump-payload" = inert(
        Kind::Choice(&["no", "yes", "clients"]),
        "no",
        "RESTORE and loading always check the whole value, of every client and file",
    );
    "save" worker(save_points: Vec<(u64, u64)>) = wired(
        Kind::SavePoints, "3600 1 300 100 60 10000",
        "A snapshot is saved after so many seconds with at least so many changes. Lines add up. \
         Empty: never."
    );
    "server_cpulist" = inert(Kind::Text, "", PINNING).alias(&["server-cpulist"]).start();
    "set-max-intset-entries" handler(set_max_intset_entries: u64) = wired(I64, "512", INTEGERS);
    "set-max-listpack-entries" handler(set_max_listpack_entries: u64) = wired(I64, "128", MEMBERS);
    "set-max-listpack-value" handler(set_max_listpack_value: u64) = wired(SIZE, "64", MEMBER_BYTES);
    "set-proc-title" = inert(Kind::Bool, "yes", TITLE).start();
    "shutdown-on-sigint" server(on_sigint: ShutdownWords) = wired(
        SHUTDOWN, "default",
        "What SIGINT (Ctrl-C) does, in words of SHUTDOWN. `default`: as SHUTDOWN without any."
    );
    "shutdown-on-sigterm" server(on_sigterm: ShutdownWords) = wired(
        SHUTDOWN, "default", "The same for SIGTERM."
    );
    "shutdown-timeout" worker(shutdown_timeout_s: u64) = wired(
        I32, "10",
        "Seconds for which a client that has left (QUIT) waits for replies which the append-only \
         file holds, at least 1. SHUTDOWN gives up once nothing of the file becomes durable for so \
         long, at least 60."
    );
    "slot-migration-max-failover-repl-bytes" = inert(Kind::Int(-1, i64::MAX), "0", CLUSTER);
    "slowlog-log-slower-than" worker(slower_than_us: i64) = wired(
        Kind::Int(-1, i64::MAX),
        "10000",
        "Commands of at least so many microseconds are logged as slow. 0: all. -1: none.",
    ).alias(&["commandlog-execution-slower-than"]);
    "slowlog-max-len" server(slowlog_len_max: usize) = wired(
        I64, "128", "Maximum length of the slow log."
    ).effect(Effect::Logs).alias(&["commandlog-slow-execution-max-len"]);
    "socket-mark-id" = refused(
        Kind::Int(0, u32::MAX as i64), &["0"], "marked sockets", "marking sockets for the firewall"
    ).start();
    "stop-writes-on-bgsave-error" worker(stop_writes_on_save_error: bool) = wired(
        Kind::Bool, "yes",
        "Writes are refused while there are save points and the last background save has failed."
    );
    "stream-node-max-bytes" handler(stream_node_max_bytes: u64) = wired(SIZE, "4096", NODE_BYTES);
    "stream-node-max-entries" handler(stream_node_max_entries: u64) = wired(I64,
    "100", NODE_ENTRIES);
    "supervised" server(supervised: Supervised) = wired(
        Kind::Choice(&["upstart", "systemd", "auto", "no"]),
        "no",
        "Supervisor to notify when the server is ready.",
    ).start();
    "syslog-enabled" = refused(
        Kind::Bool, &["no"], "logging to syslog", "writing the log to syslog"
    ).start();
    "syslog-facility" = inert(
        Kind::Choice(&[
            "user", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
            "local7",
        ]),
        "local0",
        "for syslog, which is refused",
    ).start();
    "syslog-ident" = inert(Kind::Text, "redis", "for syslog, which is refused").start();
    "tcp-backlog" server(tcp_backlog: u32) = wired(
        I32, "511", "Length of the listen queue."
    ).start();
    "tcp-keepalive" worker(keepalive_s: u32) = wired(
        I32, "300", "Seconds between keepalive probes of a silent connection. 0: none."
    );
    "threads" server(threads: u32) = wired(
        Kind::Int(0, super::THREADS_MAX as i64),
        "0",
        "Number of worker threads. 0: one per processor that the process may use.",
    ).start();
    "timeout" worker(timeout_s: u32) = wired(
        I32, "0", "An idle client is closed after so many seconds. 0: never."
    );
    "tls-auth-clients" = refused(
        Kind::Choice(&["no", "yes", "optional"]), &["yes"], TLS, TLS_ABOUT
    );
    "tls-auth-clients-user" = refused(
        Kind::Choice(&["cn", "uri", "off"]), &["off"], TLS, TLS_ABOUT
    );
    "tls-auto-reload-interval" = refused(I32, &["0"], TLS, TLS_ABOUT);
    "tls-ca-cert-dir" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-ca-cert-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-cert-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-ciphers" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-ciphersuites" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-client-cert-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-client-key-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-client-key-file-pass" = refused(Kind::Text, &[""], TLS, TLS_ABOUT).secret();
    "tls-cluster" = refused(Kind::Bool, &["no"], TLS, TLS_ABOUT);
    "tls-dh-params-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-key-file" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-key-file-pass" = refused(Kind::Text, &[""], TLS, TLS_ABOUT).secret();
    "tls-port" = refused(PORT, &["0"], TLS, TLS_ABOUT);
    "tls-prefer-server-ciphers" = refused(Kind::Bool, &["no"], TLS, TLS_ABOUT);
    "tls-protocols" = refused(Kind::Text, &[""], TLS, TLS_ABOUT);
    "tls-replication" = refused(Kind::Bool, &["no"], TLS, TLS_ABOUT);
    "tls-session-cache-size" = refused(I32, &["20480"], TLS, TLS_ABOUT);
    "tls-session-cache-timeout" = refused(I32, &["300"], TLS, TLS_ABOUT);
    "tls-session-caching" = refused(Kind::Bool, &["yes"], TLS, TLS_ABOUT);
    "tracking-table-max-keys" worker(tracking_keys_max: u64) = wired(
        I64, "1000000",
        "Maximum number of keys that are remembered for clients that track what they read. Beyond \
         it the readers of keys at random are told that these have changed. 0: no bound."
    );
    "unixsocket" server(unixsocket: Option<PathBuf>) = wired(
        Kind::Text, "", "Path of a unix socket to listen on. Empty: none."
    ).start();
    "unixsocketgroup" = refused(
        Kind::Text, &[""], "a group for the unix socket",
        "the group that may connect to the unix socket"
    ).start();
    "unixsocketperm" server(unixsocketperm: u32) = wired(
        Kind::Octal,
        "0",
        "Permissions of the unix socket, in octal. 0: those of the umask.",
    ).start();
    "work-at-once-elements" handler(at_once_elements: u64) = wired(
        Kind::Int(1, 1_000_000_000),
        "1000",
        "Commands that touch more elements than this run in steps, so that other clients are \
         served in between.",
    );
    "zset-max-listpack-entries" handler(zset_max_listpack_entries: u64) = wired(
        I64, "128", MEMBERS
    ).alias(&["zset-max-ziplist-entries"]);
    "zset-max-listpack-value" handler(zset_max_listpack_value: u64) = wired(
        SIZE, "64", MEMBER_BYTES
    ).alias(&["zset-max-ziplist-value"]);
}
