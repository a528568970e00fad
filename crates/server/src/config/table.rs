//! The one table of settings: name, other names, kind, default, when it may change, and what it
//! does here: wired, inert or refused. CONFIG, the start-up parser, `--help` and
//! `docs/config.md` all read it.

use super::ingest::{INGEST_WINDOW_MAX, INGEST_WINDOW_MIN, IngestListen};
use super::value::{Kind, Value};
use super::{Access, Bind, Config, IoBackend, LogLevel, Supervised};
use ingest::PORTS as INGEST_PORTS;

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At start and by CONFIG SET.
    Anytime,
    /// At start only.
    Start,
    /// At start, and by CONFIG SET where `enable-protected-configs` allows it.
    Protected,
}

/// What a setting does in this version.
#[derive(Clone, Copy)]
pub enum Class {
    /// It does what its text says; the function stores it in its typed field.
    Wired(fn(&mut Config, &Value)),
    /// Tuning of something that works differently or not at all here: accepted, read back,
    /// and nothing is promised by it.
    Inert,
    /// Its absence could lose data or weaken security: only the values that ask for nothing are
    /// taken.
    Refused {
        /// The values that ask for nothing, as CONFIG GET shows them.
        off: &'static [&'static str],
        /// What anything else would need.
        needs: &'static str,
    },
}

/// What the running server does when a setting changes, besides showing its readers the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Changes how many entries the slow log and the logs by size keep.
    Logs,
    /// Changes how much the server logs.
    LogLevel,
    /// Changes what the keyspace keeps of the uses of keys.
    Uses,
    /// Raises the limit of open files. May fail.
    FileLimit,
    /// Changes the working folder. May fail.
    Folder,
    /// Moves the listeners, which always fails: the addresses of a running server are fixed.
    Listeners,
}

/// One setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What its value may be.
    pub kind: Kind,
    /// Its default as CONFIG GET shows it.
    pub default: &'static str,
    /// When it may change.
    pub change: Change,
    /// What it does here.
    pub class: Class,
    /// What the server does when it changes.
    pub effect: Effect,
    /// One line: what it does, or why it does nothing, or what is refused.
    pub about: &'static str,
}

/// Where a setting stands in [`SETTINGS`].
pub type Index = usize;

impl Setting {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        class: Class,
        about: &'static str,
    ) -> Self {
        let (change, effect) = (Change::Anytime, Effect::None);
        Setting { name, aliases: &[], kind, default, change, class, effect, about }
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn start(mut self) -> Self {
        self.change = Change::Start;
        self
    }

    const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Its name and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

const fn wired(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    store: fn(&mut Config, &Value),
    about: &'static str,
) -> Setting {
    Setting::new(name, kind, default, Class::Wired(store), about)
}

const fn inert(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting::new(name, kind, default, Class::Inert, about)
}

const fn refused(
    name: &'static str,
    kind: Kind,
    off: &'static [&'static str],
    needs: &'static str,
    about: &'static str,
) -> Setting {
    Setting::new(name, kind, off[0], Class::Refused { off, needs }, about)
}

const I32: Kind = Kind::Int(0, i32::MAX as i64);
const I64: Kind = Kind::Int(0, i64::MAX);
const PORT: Kind = Kind::Int(0, 65_535);
const SIZE: Kind = Kind::Memory(0, i64::MAX as u64);
const BIG_SIZE: Kind = Kind::Memory(0, u64::MAX);
const SIZE_FROM_1MB: Kind = Kind::Memory(1 << 20, i64::MAX as u64);
const ACCESS: Kind = Kind::Choice(&["no", "yes", "local"]);
const SHUTDOWN: Kind = Kind::Flags(&["default", "save", "nosave", "now", "force"]);
const SHUTDOWN_OFF: &[&str] = &[
    "default",
    "nosave",
    "now",
    "force",
    "nosave now",
    "nosave force",
    "now force",
    "nosave now force",
];

const ACL: &str = "for users other than the default one, which this version does not have";
const AOF: &str = "for the append-only file, which this version does not write";
const RDB: &str = "for snapshot files, which this version neither writes nor reads";
const CLUSTER: &str = "for cluster mode, which is refused";
const DEFRAG: &str = "for active defragmentation, which this server does not do";
const EVICTION: &str = "for eviction policies, which this version does not have";
const REPLICATION: &str = "for replication, which this version does not have";
const NODE_BYTES: &str = "bytes of a node of a stream, as Redis packs it; ~ trims whole nodes";
const NODE_ENTRIES: &str = "entries of a node of a stream; ~ trims whole nodes";
const PAGE: &str =
    "OBJECT ENCODING says quicklist from here on: elements, or -1 to -5 for 4 to 64 KiB";
const FIELDS: &str = "fields of a hash up to which OBJECT ENCODING says listpack";
const FIELD_BYTES: &str = "bytes of a field or value up to which OBJECT ENCODING says listpack";
const INTEGERS: &str = "members up to which OBJECT ENCODING of a set of integers says intset";
const MEMBERS: &str = "members up to which OBJECT ENCODING says listpack";
const MEMBER_BYTES: &str = "bytes of a member up to which OBJECT ENCODING says listpack";
const SPARSE: &str = "bytes up to which a HyperLogLog stays in its sparse form";
const LAZYFREE: &str = "memory is given back in bounded steps whatever this says";
const PINNING: &str = "pins threads to processors; threads run where the kernel puts them";
const SCRIPTS: &str = "for scripts, which this version does not have";
const IO_THREADS: &str = "every worker reads, executes and writes by itself; see `threads`";
const TLS_ABOUT: &str = "encrypted connections";
const TLS: &str = "TLS";
const RDMA: &str = "for RDMA, which is refused";
const TITLE: &str = "the process keeps its name";
const CRASH: &str = "a crash is reported by the panic message alone";
const PERSISTENCE: &str = "persistence";
const REPLICAS: &str = "replication";

/// Directives of a configuration file that are no settings: CONFIG does not know them.
pub const DIRECTIVES: [(&str, &str, &str); 4] = [
    ("include", "", "reads another file at this point; `*`, `?` and `[...]` match several files"),
    ("loadmodule", "modules", "modules"),
    ("rename-command", "renaming of commands", "hiding or renaming commands"),
    ("user", "access control lists", "users other than the default one"),
];

/// Every setting, in alphabetical order.
pub static SETTINGS: &[Setting] = &[
    inert(
        "acl-pubsub-default",
        Kind::Choice(&["allchannels", "resetchannels"]),
        "resetchannels",
        ACL,
    ),
    refused(
        "aclfile",
        Kind::Text,
        &[""],
        "access control lists",
        "users and their rights from a file",
    )
    .start(),
    inert("acllog-max-len", I64, "128", ACL),
    inert("active-defrag-cycle-max", Kind::Int(1, 99), "25", DEFRAG),
    inert("active-defrag-cycle-min", Kind::Int(1, 99), "1", DEFRAG),
    inert("active-defrag-cycle-us", Kind::Int(0, 100_000), "500", DEFRAG),
    inert("active-defrag-ignore-bytes", Kind::Memory(1, i64::MAX as u64), "104857600", DEFRAG),
    inert("active-defrag-max-scan-fields", Kind::Int(1, i64::MAX), "1000", DEFRAG),
    inert("active-defrag-threshold-lower", Kind::Int(0, 1000), "10", DEFRAG),
    inert("active-defrag-threshold-upper", Kind::Int(0, 1000), "100", DEFRAG),
    wired(
        "active-expire-effort",
        Kind::Int(1, 10),
        "1",
        |c, v| c.active_expire_effort = v.number() as u32,
        "how much of the time freeing expired keys may take, from 1 to 10",
    ),
    inert("activedefrag", Kind::Bool, "no", DEFRAG),
    inert("activerehashing", Kind::Bool, "yes", "tables grow in bounded steps by themselves"),
    wired(
        "admin-bind",
        Kind::Text,
        "127.0.0.1",
        |c, v| c.admin_bind = Bind::new(v.bytes()),
        "address of `admin-port`; beyond this machine only with an `admin-token`",
    )
    .start(),
    wired(
        "admin-port",
        PORT,
        "9379",
        |c, v| c.admin_port = v.number() as u16,
        "HTTP port of the live page, /metrics, /healthz and /readyz; 0 = none",
    )
    .start(),
    wired(
        "admin-token",
        Kind::Secret,
        "",
        |c, v| c.admin_token = Some(v.bytes().to_vec()).filter(|t| !t.is_empty()),
        "what a reader of the live page and /metrics must show; empty = nothing",
    ),
    inert("always-show-logo", Kind::Bool, "no", "the banner is always the same").start(),
    inert("aof-disable-auto-gc", Kind::Bool, "no", AOF),
    inert("aof-load-truncated", Kind::Bool, "yes", AOF),
    inert("aof-rewrite-incremental-fsync", Kind::Bool, "yes", AOF),
    inert("aof-timestamp-enabled", Kind::Bool, "no", AOF),
    inert("aof-use-rdb-preamble", Kind::Bool, "yes", AOF),
    inert("aof_rewrite_cpulist", Kind::Text, "", AOF).alias(&["aof-rewrite-cpulist"]).start(),
    inert("appenddirname", Kind::FileName, "appendonlydir", AOF).start(),
    inert("appendfilename", Kind::FileName, "appendonly.aof", AOF).start(),
    inert("appendfsync", Kind::Choice(&["everysec", "always", "no"]), "everysec", AOF),
    refused(
        "appendonly",
        Kind::Bool,
        &["no"],
        PERSISTENCE,
        "logging every change to the append-only file",
    ),
    inert("auto-aof-rewrite-min-size", SIZE, "67108864", AOF),
    inert("auto-aof-rewrite-percentage", I32, "100", AOF),
    inert("availability-zone", Kind::Text, "", "a label that is only read back"),
    inert("bgsave_cpulist", Kind::Text, "", RDB).alias(&["bgsave-cpulist"]).start(),
    wired(
        "bind",
        Kind::Addresses,
        "127.0.0.1 -::1",
        |c, v| c.bind = v.words().iter().map(|w| Bind::new(w)).collect(),
        "addresses to listen on; `*` and `::*` are all; `-` before one: no error if it is missing",
    )
    .effect(Effect::Listeners),
    inert(
        "bind-source-addr",
        Kind::Text,
        "",
        "for outgoing connections, which this version does not make",
    ),
    inert("bio_cpulist", Kind::Text, "", PINNING).alias(&["bio-cpulist"]).start(),
    wired(
        "busy-poll-us",
        Kind::Int(0, 1_000_000),
        "50",
        |c, v| c.busy_poll_us = v.number() as u32,
        "microseconds that a worker looks for new requests before it sleeps; 0 = sleep at once",
    ),
    inert("busy-reply-threshold", I64, "5000", SCRIPTS).alias(&["lua-time-limit"]),
    wired(
        "client-output-buffer-limit",
        Kind::Limits,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        |c, v| {
            if let Value::Limits(limits) = v {
                for (to, from) in c.output_limits.iter_mut().zip(limits) {
                    *to = from.unwrap_or(*to);
                }
            }
        },
        "class, hard limit, soft limit, seconds: unsent bytes at which a client is closed",
    ),
    wired(
        "client-query-buffer-limit",
        SIZE_FROM_1MB,
        "1073741824",
        |c, v| c.client_query_buffer_limit = v.number(),
        "bytes of one unfinished request at which a client is closed",
    ),
    inert("cluster-allow-pubsubshard-when-down", Kind::Bool, "yes", CLUSTER),
    inert("cluster-allow-reads-when-down", Kind::Bool, "no", CLUSTER),
    inert("cluster-allow-replica-migration", Kind::Bool, "yes", CLUSTER),
    inert("cluster-announce-bus-port", PORT, "0", CLUSTER),
    inert("cluster-announce-client-ipv4", Kind::Text, "", CLUSTER),
    inert("cluster-announce-client-ipv6", Kind::Text, "", CLUSTER),
    inert("cluster-announce-client-port", PORT, "0", CLUSTER),
    inert("cluster-announce-client-tls-port", PORT, "0", CLUSTER),
    inert("cluster-announce-hostname", Kind::Hostname, "", CLUSTER),
    inert("cluster-announce-human-nodename", Kind::Text, "", CLUSTER),
    inert("cluster-announce-ip", Kind::Text, "", CLUSTER),
    inert("cluster-announce-port", PORT, "0", CLUSTER),
    inert("cluster-announce-tls-port", PORT, "0", CLUSTER),
    inert("cluster-blacklist-ttl", I64, "60", CLUSTER),
    inert("cluster-compatibility-sample-ratio", Kind::Int(0, 100), "0", CLUSTER),
    inert("cluster-config-file", Kind::Text, "nodes.conf", CLUSTER).start(),
    inert("cluster-config-save-behavior", Kind::Choice(&["sync", "best-effort"]), "sync", CLUSTER),
    inert("cluster-databases", Kind::Int(1, i32::MAX as i64), "1", CLUSTER).start(),
    refused("cluster-enabled", Kind::Bool, &["no"], "cluster mode", "being a node of a cluster")
        .start(),
    inert("cluster-link-sendbuf-limit", BIG_SIZE, "0", CLUSTER),
    inert("cluster-manual-failover-timeout", Kind::Int(1, i32::MAX as i64), "5000", CLUSTER),
    inert("cluster-migration-barrier", I32, "1", CLUSTER),
    inert("cluster-node-timeout", I64, "15000", CLUSTER),
    inert("cluster-port", PORT, "0", CLUSTER).start(),
    inert(
        "cluster-preferred-endpoint-type",
        Kind::Choice(&["ip", "hostname", "unknown-endpoint"]),
        "ip",
        CLUSTER,
    ),
    inert("cluster-replica-no-failover", Kind::Bool, "no", CLUSTER)
        .alias(&["cluster-slave-no-failover"]),
    inert("cluster-replica-validity-factor", I32, "10", CLUSTER)
        .alias(&["cluster-slave-validity-factor"]),
    inert("cluster-require-full-coverage", Kind::Bool, "yes", CLUSTER),
    inert("cluster-slot-migration-log-max-len", I64, "1000", CLUSTER),
    inert("cluster-slot-stats-enabled", Kind::Bool, "no", CLUSTER),
    wired(
        "commandlog-large-reply-max-len",
        I64,
        "128",
        |c, v| c.large_replies.len_max = v.number(),
        "entries that the log of large replies keeps",
    )
    .effect(Effect::Logs),
    wired(
        "commandlog-large-request-max-len",
        I64,
        "128",
        |c, v| c.large_requests.len_max = v.number(),
        "entries that the log of large requests keeps",
    )
    .effect(Effect::Logs),
    wired(
        "commandlog-reply-larger-than",
        Kind::Int(-1, i64::MAX),
        "1048576",
        |c, v| c.large_replies.larger_than = v.number() as i64,
        "bytes from which a reply is large; 0 = all, -1 = none",
    ),
    wired(
        "commandlog-request-larger-than",
        Kind::Int(-1, i64::MAX),
        "1048576",
        |c, v| c.large_requests.larger_than = v.number() as i64,
        "bytes from which a request is large; 0 = all, -1 = none",
    ),
    inert("crash-log-enabled", Kind::Bool, "yes", CRASH),
    inert("crash-memcheck-enabled", Kind::Bool, "yes", CRASH),
    wired(
        "daemonize",
        Kind::Bool,
        "no",
        |c, v| c.daemonize = v.bool(),
        "run in the background, with a pid file",
    )
    .start(),
    wired(
        "databases",
        Kind::Int(1, 65_535),
        "16",
        |c, v| c.databases = v.number() as u32,
        "number of databases for SELECT",
    )
    .start(),
    inert("dbfilename", Kind::FileName, "dump.rdb", RDB).protected(),
    wired(
        "dir",
        Kind::Text,
        ".",
        |c, v| c.dir = super::path(v.bytes()),
        "working folder; relative file names start there",
    )
    .effect(Effect::Folder)
    .protected(),
    inert("disable-thp", Kind::Bool, "yes", "nothing forks, so huge pages do no harm here").start(),
    inert("dual-channel-replication-enabled", Kind::Bool, "no", REPLICATION),
    inert("dynamic-hz", Kind::Bool, "yes", "`hz` is used as it is"),
    wired(
        "enable-debug-command",
        ACCESS,
        "no",
        |c, v| c.enable_debug_command = Access::from_word(v.bytes()),
        "who may use DEBUG: nobody, everybody, or connections from this machine",
    )
    .start(),
    inert("enable-module-command", ACCESS, "no", "there is no MODULE command to permit").start(),
    wired(
        "enable-protected-configs",
        ACCESS,
        "no",
        |c, v| c.enable_protected_configs = Access::from_word(v.bytes()),
        "who may change `dir` and `dbfilename` by CONFIG SET",
    )
    .start(),
    inert(
        "extended-redis-compatibility",
        Kind::Bool,
        "no",
        "clients are always told that this is Redis",
    ),
    wired(
        "hash-max-listpack-entries",
        I64,
        "512",
        |c, v| c.command.hash_max_listpack_entries = v.number(),
        FIELDS,
    )
    .alias(&["hash-max-ziplist-entries"]),
    wired(
        "hash-max-listpack-value",
        SIZE,
        "64",
        |c, v| c.command.hash_max_listpack_value = v.number(),
        FIELD_BYTES,
    )
    .alias(&["hash-max-ziplist-value"]),
    inert("hash-seed", Kind::Text, "", "hashing is seeded at random").start(),
    inert(
        "hide-user-data-from-log",
        Kind::Bool,
        "yes",
        "keys and values are never written to the log",
    ),
    wired(
        "hll-sparse-max-bytes",
        SIZE,
        "3000",
        |c, v| c.command.hll_sparse_max_bytes = v.number(),
        SPARSE,
    ),
    wired(
        "hz",
        Kind::Clamped(1, 500),
        "10",
        |c, v| c.hz = v.number() as u32,
        "background rounds per second",
    ),
    inert("ignore-warnings", Kind::Text, "", "no warning of this kind stops the start"),
    refused(
        "import-mode",
        Kind::Bool,
        &["no"],
        "import mode",
        "holding back expiry while data is copied in",
    ),
    wired(
        "ingest-classic",
        Kind::Bool,
        "no",
        |c, v| c.ingest_classic = v.bool(),
        "open the five classic message protocols, one port each, on the addresses of `bind`",
    )
    .start(),
    wired(
        "ingest-classic-port",
        Kind::Int(1, 65_535 - INGEST_PORTS as i64 + 1),
        "8001",
        |c, v| c.ingest_classic_port = v.number() as u16,
        "the first of the five ports: request-reply, throttled, head-rest, sync, async",
    )
    .start(),
    wired(
        "ingest-idle-timeout",
        I32,
        "5",
        |c, v| c.ingest_idle_timeout = v.number() as u32,
        "seconds without a byte after which an ingest connection is closed; 0 = never",
    ),
    wired(
        "ingest-listen",
        Kind::Listeners,
        "",
        |c, v| match v.words() {
            [] => c.ingest_listen.clear(),
            words => c.ingest_listen.extend(IngestListen::parse_all(words).unwrap_or_default()),
        },
        "one more ingest listener; every line adds one, an empty one takes all back",
    )
    .start(),
    wired(
        "ingest-max-message",
        Kind::Memory(0, u32::MAX as u64),
        "1048576",
        |c, v| c.ingest_max_message = v.number() as u32,
        "bytes of payload at which an ingest message is too large and its connection is closed",
    ),
    wired(
        "ingest-producer-timeout",
        I32,
        "86400",
        |c, v| c.ingest_producer_timeout = v.number() as u32,
        "seconds without a connection after which a producer of ingest protocol 2 is forgotten; 0 = never",
    ),
    wired(
        "ingest-producers-max",
        Kind::Int(1, i32::MAX as i64),
        "100000",
        |c, v| c.ingest_producers_max = v.number() as u32,
        "producers of ingest protocol 2 that are remembered; further ones are refused",
    ),
    wired(
        "ingest-window",
        Kind::Memory(INGEST_WINDOW_MIN, INGEST_WINDOW_MAX),
        "4194304",
        |c, v| c.ingest_window = v.number() as u32,
        "bytes that a producer of ingest protocol 2 may send beyond what the server has taken",
    ),
    wired(
        "io-backend",
        Kind::Choice(&["auto", "io_uring", "epoll"]),
        "auto",
        |c, v| c.io_backend = IoBackend::from_word(v.bytes()),
        "how the kernel is asked for requests; auto is epoll, and so is an io_uring that is refused",
    )
    .start(),
    inert("io-threads", Kind::Int(1, 128), "1", IO_THREADS).start(),
    inert("io-threads-do-reads", Kind::Bool, "no", IO_THREADS).start(),
    inert("jemalloc-bg-thread", Kind::Bool, "yes", "the allocator decides by itself"),
    wired(
        "latency-monitor-threshold",
        I64,
        "0",
        |c, v| c.latency_monitor_ms = v.number(),
        "milliseconds from which LATENCY remembers a command or a step of expiry; 0 = nothing",
    ),
    wired(
        "latency-tracking",
        Kind::Bool,
        "yes",
        |c, v| c.latency_tracking = v.bool(),
        "keep a latency histogram per command",
    ),
    wired(
        "latency-tracking-info-percentiles",
        Kind::Percentiles,
        "50 99 99.9",
        |c, v| {
            if let Value::Percentiles(all) = v {
                c.latency_percentiles.clone_from(all);
            }
        },
        "percentiles that INFO shows",
    ),
    inert("lazyfree-lazy-eviction", Kind::Bool, "no", LAZYFREE),
    inert("lazyfree-lazy-expire", Kind::Bool, "no", LAZYFREE),
    inert("lazyfree-lazy-server-del", Kind::Bool, "no", LAZYFREE),
    inert("lazyfree-lazy-user-del", Kind::Bool, "no", LAZYFREE),
    inert("lazyfree-lazy-user-flush", Kind::Bool, "no", LAZYFREE),
    wired(
        "lfu-decay-time",
        I32,
        "1",
        |c, v| c.lfu_decay_time = v.number() as u32,
        "minutes after which OBJECT FREQ of an unused key loses one; 0 = never",
    )
    .effect(Effect::Uses),
    wired(
        "lfu-log-factor",
        I32,
        "10",
        |c, v| c.lfu_log_factor = v.number() as u32,
        "how many more uses each step of OBJECT FREQ needs than the one before",
    )
    .effect(Effect::Uses),
    inert("list-compress-depth", I32, "0", "the inner part of a list is not compressed"),
    wired(
        "list-max-listpack-size",
        Kind::Int(i32::MIN as i64, i32::MAX as i64),
        "-2",
        |c, v| c.command.list_max_listpack_size = v.number() as i64,
        PAGE,
    )
    .alias(&["list-max-ziplist-size"]),
    inert("locale-collate", Kind::Text, "", "SORT ALPHA compares bytes, whatever the locale"),
    inert("log-format", Kind::Choice(&["legacy", "logfmt"]), "legacy", "the log has one format"),
    inert(
        "log-timestamp-format",
        Kind::Choice(&["legacy", "iso8601", "milliseconds"]),
        "legacy",
        "the log has one format",
    ),
    wired(
        "logfile",
        Kind::Text,
        "",
        |c, v| c.logfile = super::optional_path(v.bytes()),
        "file of the log; empty = standard output",
    )
    .start(),
    wired(
        "loglevel",
        Kind::Choice(&["debug", "verbose", "notice", "warning", "nothing"]),
        "notice",
        |c, v| c.loglevel = LogLevel::from_word(v.bytes()),
        "how much is logged: debug, verbose, notice, warning or nothing",
    )
    .effect(Effect::LogLevel),
    inert("masterauth", Kind::Secret, "", REPLICATION).alias(&["primaryauth"]),
    inert("masteruser", Kind::Text, "", REPLICATION).alias(&["primaryuser"]),
    inert(
        "max-new-connections-per-cycle",
        Kind::Int(1, 1000),
        "10",
        "connections are taken as they come",
    ),
    inert(
        "max-new-tls-connections-per-cycle",
        Kind::Int(1, 1000),
        "1",
        "for TLS, which is refused",
    ),
    wired(
        "maxclients",
        Kind::Int(1, u32::MAX as i64),
        "10000",
        |c, v| c.maxclients = v.number() as u32,
        "connections at most",
    )
    .effect(Effect::FileLimit),
    wired(
        "maxmemory",
        BIG_SIZE,
        "0",
        |c, v| c.maxmemory = v.number(),
        "bytes of data at which writes are answered with an error; 0 = no limit",
    ),
    refused(
        "maxmemory-clients",
        Kind::Share,
        &["0"],
        "a limit on the memory of all clients",
        "closing the clients that hold the most memory",
    ),
    inert("maxmemory-eviction-tenacity", Kind::Int(0, 100), "10", EVICTION),
    wired(
        "maxmemory-policy",
        Kind::Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
        "noeviction",
        |c, v| c.maxmemory_policy = v.bytes().to_vec(),
        "with -lfu, keys count their uses (OBJECT FREQ), else they keep the time of the last one (OBJECT \
         IDLETIME); keys are never deleted to make room, so with a maxmemory only noeviction is taken",
    )
    .effect(Effect::Uses),
    inert("maxmemory-samples", Kind::Int(1, i32::MAX as i64), "5", EVICTION),
    inert("min-replicas-max-lag", I32, "10", REPLICATION).alias(&["min-slaves-max-lag"]),
    refused(
        "min-replicas-to-write",
        I32,
        &["0"],
        REPLICAS,
        "refusing writes that too few replicas would have",
    )
    .alias(&["min-slaves-to-write"]),
    inert("mptcp", Kind::Bool, "no", "connections are plain TCP").start(),
    inert("no-appendfsync-on-rewrite", Kind::Bool, "no", AOF),
    refused(
        "notify-keyspace-events",
        Kind::Events,
        &[""],
        "keyspace notifications",
        "publishing what happens to keys",
    ),
    refused(
        "oom-score-adj",
        Kind::Choice(&["no", "yes", "relative", "absolute"]),
        &["no"],
        "control of the kernel's out-of-memory score",
        "protecting the process from the kernel's out-of-memory killer",
    ),
    inert("oom-score-adj-values", Kind::Scores, "0 200 800", "for oom-score-adj, which is refused"),
    wired(
        "pidfile",
        Kind::Text,
        "",
        |c, v| c.pidfile = super::optional_path(v.bytes()),
        "file that holds the process id while the server runs",
    )
    .start(),
    wired(
        "port",
        PORT,
        "6379",
        |c, v| c.port = v.number() as u16,
        "TCP port; 0 = do not listen on TCP",
    )
    .effect(Effect::Listeners),
    inert("prefetch-batch-max-size", Kind::Int(0, 128), "16", "windows have a fixed size"),
    inert("proc-title-template", Kind::Title, "{title} {listen-addr} {server-mode}", TITLE),
    inert(
        "propagation-error-behavior",
        Kind::Choice(&["ignore", "panic", "panic-on-replicas"]),
        "ignore",
        REPLICATION,
    ),
    wired(
        "protected-mode",
        Kind::Bool,
        "yes",
        |c, v| c.protected_mode = v.bool(),
        "without a password, serve connections from this machine only",
    ),
    wired(
        "proto-max-bulk-len",
        SIZE_FROM_1MB,
        "536870912",
        |c, v| c.proto_max_bulk_len = v.number(),
        "bytes of one argument at most",
    ),
    inert("rdb-del-sync-files", Kind::Bool, "no", RDB),
    inert("rdb-save-incremental-fsync", Kind::Bool, "yes", RDB),
    inert("rdb-version-check", Kind::Choice(&["strict", "relaxed"]), "strict", RDB),
    inert("rdbchecksum", Kind::Bool, "yes", RDB).start(),
    inert("rdbcompression", Kind::Bool, "yes", RDB),
    inert("rdma-bind", Kind::Text, "", RDMA),
    inert("rdma-completion-vector", Kind::Int(-1, 1024), "-1", RDMA),
    refused("rdma-port", PORT, &["0"], "RDMA", "listening on an RDMA device"),
    inert("rdma-rx-size", Kind::Memory(65_536, 16 << 20), "1048576", RDMA),
    inert("repl-backlog-size", Kind::Backlog, "1048576", REPLICATION),
    inert("repl-backlog-ttl", I64, "3600", REPLICATION),
    inert("repl-disable-tcp-nodelay", Kind::Bool, "no", REPLICATION),
    inert(
        "repl-diskless-load",
        Kind::Choice(&["disabled", "on-empty-db", "swapdb"]),
        "disabled",
        REPLICATION,
    ),
    inert("repl-diskless-sync", Kind::Bool, "yes", REPLICATION),
    inert("repl-diskless-sync-delay", I32, "5", REPLICATION),
    inert("repl-diskless-sync-max-replicas", I32, "0", REPLICATION),
    inert("repl-mptcp", Kind::Bool, "no", REPLICATION),
    inert("repl-ping-replica-period", Kind::Int(1, i32::MAX as i64), "10", REPLICATION)
        .alias(&["repl-ping-slave-period"]),
    inert("repl-timeout", Kind::Int(1, i32::MAX as i64), "60", REPLICATION),
    inert("replica-announce-ip", Kind::Text, "", REPLICATION).alias(&["slave-announce-ip"]),
    inert("replica-announce-port", PORT, "0", REPLICATION).alias(&["slave-announce-port"]),
    inert("replica-announced", Kind::Bool, "yes", REPLICATION),
    inert("replica-full-sync-buffer-limit", BIG_SIZE, "0", REPLICATION),
    inert("replica-ignore-disk-write-errors", Kind::Bool, "no", REPLICATION),
    inert("replica-ignore-maxmemory", Kind::Bool, "yes", REPLICATION)
        .alias(&["slave-ignore-maxmemory"]),
    inert("replica-lazy-flush", Kind::Bool, "no", REPLICATION).alias(&["slave-lazy-flush"]),
    inert("replica-priority", I32, "100", REPLICATION).alias(&["slave-priority"]),
    inert("replica-read-only", Kind::Bool, "yes", REPLICATION).alias(&["slave-read-only"]),
    inert("replica-serve-stale-data", Kind::Bool, "yes", REPLICATION)
        .alias(&["slave-serve-stale-data"]),
    refused("replicaof", Kind::Peer, &[""], REPLICAS, "being the copy of another server")
        .alias(&["slaveof"])
        .start(),
    wired(
        "requirepass",
        Kind::Secret,
        "",
        |c, v| c.requirepass = Some(v.bytes().to_vec()).filter(|p| !p.is_empty()),
        "password of the default user; empty = none",
    ),
    inert(
        "sanitize-dump-payload",
        Kind::Choice(&["no", "yes", "clients"]),
        "no",
        "for RESTORE, which this version does not have",
    ),
    refused("save", Kind::SavePoints, &[""], PERSISTENCE, "snapshots to disk by themselves"),
    inert("server_cpulist", Kind::Text, "", PINNING).alias(&["server-cpulist"]).start(),
    wired(
        "set-max-intset-entries",
        I64,
        "512",
        |c, v| c.command.set_max_intset_entries = v.number(),
        INTEGERS,
    ),
    wired(
        "set-max-listpack-entries",
        I64,
        "128",
        |c, v| c.command.set_max_listpack_entries = v.number(),
        MEMBERS,
    ),
    wired(
        "set-max-listpack-value",
        SIZE,
        "64",
        |c, v| c.command.set_max_listpack_value = v.number(),
        MEMBER_BYTES,
    ),
    inert("set-proc-title", Kind::Bool, "yes", TITLE).start(),
    refused("shutdown-on-sigint", SHUTDOWN, SHUTDOWN_OFF, PERSISTENCE, "`save`: saving at Ctrl-C"),
    refused(
        "shutdown-on-sigterm",
        SHUTDOWN,
        SHUTDOWN_OFF,
        PERSISTENCE,
        "`save`: saving when the server is told to end",
    ),
    inert("shutdown-timeout", I32, "10", REPLICATION),
    inert("slot-migration-max-failover-repl-bytes", Kind::Int(-1, i64::MAX), "0", CLUSTER),
    wired(
        "slowlog-log-slower-than",
        Kind::Int(-1, i64::MAX),
        "10000",
        |c, v| c.slowlog_log_slower_than = v.number() as i64,
        "microseconds from which a command is slow; 0 = all, -1 = none",
    )
    .alias(&["commandlog-execution-slower-than"]),
    wired(
        "slowlog-max-len",
        I64,
        "128",
        |c, v| c.slowlog_max_len = v.number(),
        "entries that the slow log keeps",
    )
    .effect(Effect::Logs)
    .alias(&["commandlog-slow-execution-max-len"]),
    refused(
        "socket-mark-id",
        Kind::Int(0, u32::MAX as i64),
        &["0"],
        "marked sockets",
        "marking sockets for the firewall",
    )
    .start(),
    inert("stop-writes-on-bgsave-error", Kind::Bool, "yes", RDB),
    wired(
        "stream-node-max-bytes",
        SIZE,
        "4096",
        |c, v| c.command.stream_node_max_bytes = v.number(),
        NODE_BYTES,
    ),
    wired(
        "stream-node-max-entries",
        I64,
        "100",
        |c, v| c.command.stream_node_max_entries = v.number(),
        NODE_ENTRIES,
    ),
    wired(
        "supervised",
        Kind::Choice(&["upstart", "systemd", "auto", "no"]),
        "no",
        |c, v| c.supervised = Supervised::from_word(v.bytes()),
        "whom to tell that the server is ready: no, systemd, upstart or auto",
    )
    .start(),
    refused(
        "syslog-enabled",
        Kind::Bool,
        &["no"],
        "logging to syslog",
        "a log that others would look for in syslog",
    )
    .start(),
    inert(
        "syslog-facility",
        Kind::Choice(&[
            "user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
        ]),
        "local0",
        "for syslog, which is refused",
    )
    .start(),
    inert("syslog-ident", Kind::Text, "redis", "for syslog, which is refused").start(),
    wired(
        "tcp-backlog",
        I32,
        "511",
        |c, v| c.tcp_backlog = v.number() as u32,
        "connections that may wait to be taken",
    )
    .start(),
    wired(
        "tcp-keepalive",
        I32,
        "300",
        |c, v| c.tcp_keepalive = v.number() as u32,
        "seconds between probes of a silent connection; 0 = none",
    ),
    wired(
        "threads",
        Kind::Int(0, super::THREADS_MAX as i64),
        "0",
        |c, v| c.threads = v.number() as u32,
        "worker threads; 0 = as many as processors are allowed to this process",
    )
    .start(),
    wired(
        "timeout",
        I32,
        "0",
        |c, v| c.timeout = v.number() as u32,
        "seconds after which an idle client is closed; 0 = never",
    ),
    refused("tls-auth-clients", Kind::Choice(&["no", "yes", "optional"]), &["yes"], TLS, TLS_ABOUT),
    refused("tls-auth-clients-user", Kind::Choice(&["cn", "uri", "off"]), &["off"], TLS, TLS_ABOUT),
    refused("tls-auto-reload-interval", I32, &["0"], TLS, TLS_ABOUT),
    refused("tls-ca-cert-dir", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-ca-cert-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-cert-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-ciphers", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-ciphersuites", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-client-cert-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-client-key-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-client-key-file-pass", Kind::Secret, &[""], TLS, TLS_ABOUT),
    refused("tls-cluster", Kind::Bool, &["no"], TLS, TLS_ABOUT),
    refused("tls-dh-params-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-key-file", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-key-file-pass", Kind::Secret, &[""], TLS, TLS_ABOUT),
    refused("tls-port", PORT, &["0"], TLS, TLS_ABOUT),
    refused("tls-prefer-server-ciphers", Kind::Bool, &["no"], TLS, TLS_ABOUT),
    refused("tls-protocols", Kind::Text, &[""], TLS, TLS_ABOUT),
    refused("tls-replication", Kind::Bool, &["no"], TLS, TLS_ABOUT),
    refused("tls-session-cache-size", I32, &["20480"], TLS, TLS_ABOUT),
    refused("tls-session-cache-timeout", I32, &["300"], TLS, TLS_ABOUT),
    refused("tls-session-caching", Kind::Bool, &["yes"], TLS, TLS_ABOUT),
    inert(
        "tracking-table-max-keys",
        I64,
        "1000000",
        "for client-side caching, which this version does not have",
    ),
    wired(
        "unixsocket",
        Kind::Text,
        "",
        |c, v| c.unixsocket = super::optional_path(v.bytes()),
        "path of a unix socket to listen on; empty = none",
    )
    .start(),
    refused(
        "unixsocketgroup",
        Kind::Text,
        &[""],
        "a group for the unix socket",
        "who may connect to the unix socket",
    )
    .start(),
    wired(
        "unixsocketperm",
        Kind::Octal,
        "0",
        |c, v| c.unixsocketperm = v.number() as u32,
        "permissions of the unix socket in octal; 0 = as the process's umask has it",
    )
    .start(),
    wired(
        "work-at-once-elements",
        Kind::Int(1, 1_000_000_000),
        "1000",
        |c, v| c.command.at_once_elements = v.number(),
        "elements up to which a command does its work at once; more is done in steps, while others are served",
    ),
    wired(
        "zset-max-listpack-entries",
        I64,
        "128",
        |c, v| c.command.zset_max_listpack_entries = v.number(),
        MEMBERS,
    )
    .alias(&["zset-max-ziplist-entries"]),
    wired(
        "zset-max-listpack-value",
        SIZE,
        "64",
        |c, v| c.command.zset_max_listpack_value = v.number(),
        MEMBER_BYTES,
    )
    .alias(&["zset-max-ziplist-value"]),
];
