//! Every setting the server knows: one table, its values, the redis.conf and argv syntax, and
//! CONFIG GET, SET and REWRITE over it. Pure code: only `load` reads files, and it does so to
//! follow a configuration file and its includes.
//!
//! [`Config`] holds the wired settings in typed fields and the text of every setting, so that
//! CONFIG GET reads back what CONFIG SET was told, whatever the class. A change makes a new
//! `Config`; the old one stays as it was.

pub mod docs;
pub mod get_set;
pub mod ingest;
pub mod load;
pub mod parse;
pub mod rewrite;
pub mod table;
pub mod value;

use base::sync::OnceLock;
use keyspace::Uses;
use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use table::{Class, Index, SETTINGS, Setting};
use value::{BufferLimit, Value};

/// Worker threads at most.
pub const THREADS_MAX: u32 = 1024;

/// Who may use something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody.
    No,
    /// Everybody.
    Yes,
    /// Connections from this machine: loopback and unix sockets.
    Local,
}

impl Access {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"yes" => Access::Yes,
            b"local" => Access::Local,
            _ => Access::No,
        }
    }

    /// Whether a connection may, `local` telling where it comes from.
    pub fn allows(self, local: bool) -> bool {
        self == Access::Yes || (self == Access::Local && local)
    }
}

/// How much is logged; each level includes the ones after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Much that is rarely useful.
    Verbose,
    /// What one wants to know in production.
    Notice,
    /// Only what is wrong.
    Warning,
    /// Nothing at all.
    Nothing,
}

impl LogLevel {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"debug" => LogLevel::Debug,
            b"verbose" => LogLevel::Verbose,
            b"warning" => LogLevel::Warning,
            b"nothing" => LogLevel::Nothing,
            _ => LogLevel::Notice,
        }
    }
}

/// Whom to tell that the server is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    /// Nobody.
    No,
    /// systemd, by a message to `$NOTIFY_SOCKET`.
    Systemd,
    /// upstart, by stopping itself.
    Upstart,
    /// Whichever of them the environment speaks of.
    Auto,
}

impl Supervised {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"systemd" => Supervised::Systemd,
            b"upstart" => Supervised::Upstart,
            b"auto" => Supervised::Auto,
            _ => Supervised::No,
        }
    }
}

/// How the kernel is asked for requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoBackend {
    /// What is best on most machines: epoll.
    Auto,
    /// io_uring, or epoll where it is not to be had.
    IoUring,
    /// epoll.
    Epoll,
}

impl IoBackend {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"epoll" => IoBackend::Epoll,
            b"io_uring" => IoBackend::IoUring,
            _ => IoBackend::Auto,
        }
    }
}

/// One address of `bind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The address as it was written, without the mark of an optional one.
    pub host: String,
    /// Whether the server starts without it if this machine has no such address.
    pub optional: bool,
}

impl Bind {
    fn new(word: &[u8]) -> Self {
        let text = String::from_utf8_lossy(word);
        let (host, optional) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (&*text, false),
        };
        Bind { host: host.to_owned(), optional }
    }

    /// The socket address to listen on at `port`; a name is looked up.
    pub fn address(&self, port: u16) -> std::io::Result<SocketAddr> {
        let host = match self.host.as_str() {
            "*" => "0.0.0.0",
            "::*" => "::",
            other => other,
        };
        (host, port).to_socket_addrs()?.next().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::AddrNotAvailable, "no such address")
        })
    }
}

/// A log of commands by their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeLog {
    /// Bytes from which a command is logged; negative = never.
    pub larger_than: i64,
    /// Entries at most.
    pub len_max: u64,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Effort of the active expiry, 1 to 10.
    pub active_expire_effort: u32,
    /// Address of the admin port.
    pub admin_bind: Bind,
    /// HTTP port of the live page and the metrics; 0 = none.
    pub admin_port: u16,
    /// What a reader of them must show.
    pub admin_token: Option<Vec<u8>>,
    /// Addresses to listen on; none = no TCP.
    pub bind: Vec<Bind>,
    /// Microseconds of spinning before sleeping.
    pub busy_poll_us: u32,
    /// Limits of unsent bytes: normal, replica, pubsub.
    pub output_limits: [BufferLimit; 3],
    /// What handlers read; `bulk_len_max` and `databases` have fields of their own here.
    pub command: command::Settings,
    /// Bytes of an unfinished request at most.
    pub client_query_buffer_limit: u64,
    /// Run in the background.
    pub daemonize: bool,
    /// Number of databases.
    pub databases: u32,
    /// Working folder, absolute once loaded.
    pub dir: PathBuf,
    /// Who may use DEBUG.
    pub enable_debug_command: Access,
    /// Who may change protected settings.
    pub enable_protected_configs: Access,
    /// Background rounds per second.
    pub hz: u32,
    /// Open the five classic ingest ports.
    pub ingest_classic: bool,
    /// The first of the five.
    pub ingest_classic_port: u16,
    /// Seconds of silence after which an ingest connection is closed; 0 = never.
    pub ingest_idle_timeout: u32,
    /// Ingest listeners beside the classic five.
    pub ingest_listen: Vec<ingest::IngestListen>,
    /// Bytes of an ingest message's payload at most.
    pub ingest_max_message: u32,
    /// Seconds after which a producer without a connection is forgotten; 0 = never.
    pub ingest_producer_timeout: u32,
    /// Producers that are remembered.
    pub ingest_producers_max: u32,
    /// Bytes that a producer may have under way.
    pub ingest_window: u32,
    /// The I/O back end.
    pub io_backend: IoBackend,
    /// Milliseconds from which a latency is remembered; 0 = never.
    pub latency_monitor_ms: u64,
    /// The log of large requests.
    pub large_requests: SizeLog,
    /// The log of large replies.
    pub large_replies: SizeLog,
    /// Minutes after which a counter of uses loses one; 0 = never.
    pub lfu_decay_time: u32,
    /// How many more uses each step of a counter needs.
    pub lfu_log_factor: u32,
    /// Keep latency histograms.
    pub latency_tracking: bool,
    /// Percentiles to show.
    pub latency_percentiles: Vec<f64>,
    /// File of the log; none = standard output.
    pub logfile: Option<PathBuf>,
    /// How much is logged.
    pub loglevel: LogLevel,
    /// Connections at most.
    pub maxclients: u32,
    /// Bytes of data at most; 0 = no limit.
    pub maxmemory: u64,
    /// What would be deleted to make room; says what is kept of the uses of keys.
    pub maxmemory_policy: Vec<u8>,
    /// File of the process id.
    pub pidfile: Option<PathBuf>,
    /// TCP port; 0 = none.
    pub port: u16,
    /// Serve only this machine while there is no password.
    pub protected_mode: bool,
    /// Bytes of one argument at most.
    pub proto_max_bulk_len: u64,
    /// Password of the default user.
    pub requirepass: Option<Vec<u8>>,
    /// Microseconds from which a command is slow; negative = never.
    pub slowlog_log_slower_than: i64,
    /// Entries of the slow log.
    pub slowlog_max_len: u64,
    /// Whom to tell that the server is ready.
    pub supervised: Supervised,
    /// Length of the listen queue.
    pub tcp_backlog: u32,
    /// Seconds between keepalive probes; 0 = none.
    pub tcp_keepalive: u32,
    /// Workers; 0 = one for each allowed processor.
    pub threads: u32,
    /// Seconds an idle client is kept; 0 = for ever.
    pub timeout: u32,
    /// Unix socket to listen on.
    pub unixsocket: Option<PathBuf>,
    /// Permissions of the unix socket; 0 = by umask.
    pub unixsocketperm: u32,
    /// The text of every setting, by [`Index`].
    texts: Vec<Vec<u8>>,
    /// Whether a file or the command line named it, by [`Index`].
    named: Vec<bool>,
    /// The configuration file, for CONFIG REWRITE.
    pub file: Option<PathBuf>,
}

impl Default for Config {
    /// All defaults of the table.
    fn default() -> Self {
        let mut config = Config {
            active_expire_effort: 0,
            admin_bind: Bind { host: String::new(), optional: false },
            admin_port: 0,
            admin_token: None,
            bind: Vec::new(),
            busy_poll_us: 0,
            output_limits: [BufferLimit::default(); 3],
            command: command::Settings::default(),
            client_query_buffer_limit: 0,
            daemonize: false,
            databases: 0,
            dir: PathBuf::new(),
            enable_debug_command: Access::No,
            enable_protected_configs: Access::No,
            hz: 0,
            ingest_classic: false,
            ingest_classic_port: 0,
            ingest_idle_timeout: 0,
            ingest_listen: Vec::new(),
            ingest_max_message: 0,
            ingest_producer_timeout: 0,
            ingest_producers_max: 0,
            ingest_window: 0,
            io_backend: IoBackend::Auto,
            latency_monitor_ms: 0,
            large_requests: SizeLog::default(),
            large_replies: SizeLog::default(),
            lfu_decay_time: 0,
            lfu_log_factor: 0,
            latency_tracking: false,
            latency_percentiles: Vec::new(),
            logfile: None,
            loglevel: LogLevel::Notice,
            maxclients: 0,
            maxmemory: 0,
            maxmemory_policy: Vec::new(),
            pidfile: None,
            port: 0,
            protected_mode: false,
            proto_max_bulk_len: 0,
            requirepass: None,
            slowlog_log_slower_than: 0,
            slowlog_max_len: 0,
            supervised: Supervised::No,
            tcp_backlog: 0,
            tcp_keepalive: 0,
            threads: 0,
            timeout: 0,
            unixsocket: None,
            unixsocketperm: 0,
            texts: vec![Vec::new(); SETTINGS.len()],
            named: vec![false; SETTINGS.len()],
            file: None,
        };
        for (index, setting) in SETTINGS.iter().enumerate() {
            let value = default_value(setting);
            config.store(index, &value);
        }
        config
    }
}

/// The default of a setting as a value.
fn default_value(setting: &Setting) -> Value {
    // The default of a template is a template, of a list of words its words: a test parses all.
    setting.kind.parse(setting.default.as_bytes()).unwrap_or(Value::Text(Vec::new()))
}

/// The setting of this name, regardless of case, and where it stands.
pub fn find(name: &[u8]) -> Option<(Index, &'static Setting)> {
    static NAMES: OnceLock<HashMap<&'static str, Index>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let all = SETTINGS.iter().enumerate();
        all.flat_map(|(index, s)| s.names().map(move |name| (name, index))).collect()
    });
    let name = name.to_ascii_lowercase();
    let index = *names.get(std::str::from_utf8(&name).ok()?)?;
    Some((index, &SETTINGS[index]))
}

impl Config {
    /// The text of a setting as CONFIG GET shows it.
    pub fn text(&self, index: Index) -> &[u8] {
        &self.texts[index]
    }

    /// The text of the setting with this name, empty if there is none.
    pub fn text_of(&self, name: &str) -> &[u8] {
        find(name.as_bytes()).map_or(&[], |(index, _)| self.text(index))
    }

    /// Whether a file or the command line named this setting.
    pub fn is_named(&self, name: &str) -> bool {
        find(name.as_bytes()).is_some_and(|(index, _)| self.named[index])
    }

    /// Takes a value that was parsed by this setting's kind, without asking whether it may
    /// change or is refused.
    fn store(&mut self, index: Index, value: &Value) {
        if let Class::Wired(store) = SETTINGS[index].class {
            store(self, value);
        }
        self.texts[index] = match SETTINGS[index].kind {
            value::Kind::Limits => Value::Limits(self.output_limits.map(Some)).show(),
            value::Kind::Listeners => ingest::IngestListen::show_all(&self.ingest_listen),
            _ => value.show(),
        };
    }

    /// What is kept of the uses of keys, as `maxmemory-policy` says.
    pub fn uses(&self) -> Uses {
        if self.maxmemory_policy.ends_with(b"-lfu") {
            let (log_factor, decay_minutes) = (self.lfu_log_factor, self.lfu_decay_time);
            Uses::Counts { log_factor, decay_minutes }
        } else {
            Uses::Times
        }
    }

    /// Why these settings do not go together, if they do not: a limit on memory promises what its policy
    /// says.
    pub fn conflict(&self) -> Option<String> {
        if self.maxmemory == 0 || self.maxmemory_policy == b"noeviction" {
            return None;
        }
        let why = needs_text("maxmemory-policy", &self.maxmemory_policy, "eviction");
        Some(format!("with a maxmemory, {why}"))
    }

    /// Replaces the working folder by what it turned out to be.
    pub fn set_dir(&mut self, dir: PathBuf) {
        if let Some((index, _)) = find(b"dir") {
            self.texts[index] = dir.clone().into_os_string().into_vec();
        }
        self.dir = dir;
    }
}

/// Why a value of a refused setting is not taken; `None` if it asks for nothing.
pub fn refusal(setting: &Setting, value: &Value) -> Option<String> {
    let Class::Refused { off, needs } = setting.class else {
        return None;
    };
    let shown = value.show();
    if off.iter().any(|o| o.as_bytes() == shown) {
        return None;
    }
    let shown = if setting.kind == value::Kind::Secret { b"...".to_vec() } else { shown };
    Some(needs_text(setting.name, &shown, needs))
}

/// The text of a refusal.
fn needs_text(name: &str, value: &[u8], needs: &str) -> String {
    let value = parse::printable(value);
    format!("'{name} {value}' needs {needs}, which this version does not have")
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn optional_path(bytes: &[u8]) -> Option<PathBuf> {
    if bytes.is_empty() { None } else { Some(path(bytes)) }
}
