//! Every setting the server knows: one table, its values, the redis.conf and argv syntax, and
//! CONFIG GET, SET and REWRITE over it. Pure code: only `load` reads files, and it does so to
//! follow a configuration file and its includes.
//!
//! [`Config`] holds the wired settings in typed fields, and the text of every setting, so that
//! CONFIG GET returns what CONFIG SET received, whatever the class of the setting. A change makes a
//! new `Config` and leaves the old one unchanged. The server reads the fields; only clients ask by
//! name.

mod db_limit;
pub mod docs;
mod field;
pub mod get_set;
pub mod ingest;
pub mod load;
mod memory;
pub mod parse;
mod retention;
pub mod rewrite;
mod row;
pub mod schedule;
pub mod source;
pub mod table;
pub mod value;

use base::sync::OnceLock;
use std::collections::HashMap;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::value::Value;
use table::{Class, DIR, DIRECTIVES, Index, SETTINGS, Setting};

pub use crate::value::Events;
pub use db_limit::{DB_LIMITS_MAX, DbLimit, POLICIES};
pub use field::{AppendFsync, MaxmemoryPolicy, RdbVersion, Secret, ShutdownWords};
pub use memory::MemoryShare;
pub use retention::Retention;
pub use table::{Config, HandlerSettings, WorkerCopy};

/// Maximum number of worker threads.
pub const THREADS_MAX: u32 = 1024;

/// Which connections may use a protected feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// No connection.
    #[default]
    No,
    /// Every connection.
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

    /// Whether a connection may use the feature. `local`: it comes from this machine.
    pub fn allows(self, local: bool) -> bool {
        self == Access::Yes || (self == Access::Local && local)
    }
}

/// How much is logged; each level includes the ones after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Details that are rarely useful.
    Verbose,
    /// What is worth knowing in production.
    #[default]
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

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// As Redis writes it.
    #[default]
    Legacy,
    /// `name=value` with blanks between them.
    Logfmt,
    /// One JSON object.
    Json,
}

impl LogFormat {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"logfmt" => LogFormat::Logfmt,
            b"json" => LogFormat::Json,
            _ => LogFormat::Legacy,
        }
    }
}

/// How a line of the log gives its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogTimes {
    /// As Redis writes it.
    #[default]
    Legacy,
    /// ISO 8601 with the distance from UTC.
    Iso8601,
    /// Milliseconds since 1970.
    Milliseconds,
}

impl LogTimes {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"iso8601" => LogTimes::Iso8601,
            b"milliseconds" => LogTimes::Milliseconds,
            _ => LogTimes::Legacy,
        }
    }
}

/// Which supervisor is notified when the server is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervised {
    /// None.
    #[default]
    No,
    /// systemd, by a message to `$NOTIFY_SOCKET`.
    Systemd,
    /// upstart, by stopping itself.
    Upstart,
    /// The one that the environment variables indicate.
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

/// The kernel interface for network I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoBackend {
    /// The best choice for most machines: epoll.
    #[default]
    Auto,
    /// io_uring, or epoll where it is not available.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
            std::io::Error::new(std::io::ErrorKind::AddrNotAvailable, "this name has no address")
        })
    }
}

impl Default for Config {
    /// All defaults of the table.
    fn default() -> Self {
        let mut config = Config::blank();
        for (index, setting) in SETTINGS.iter().enumerate() {
            let value = default_value(setting);
            config.store(index, &value);
        }
        config
    }
}

impl Default for HandlerSettings {
    fn default() -> Self {
        Config::default().command
    }
}

impl fmt::Debug for Config {
    /// Shows the settings that are not at their default; secrets are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_map();
        for (setting, text) in SETTINGS.iter().zip(&self.texts) {
            if text != setting.default.as_bytes() {
                shown.entry(&setting.name, &setting.shown(text));
            }
        }
        shown.finish()
    }
}

/// The default of a setting as a value.
fn default_value(setting: &Setting) -> Value {
    // A test checks that every default parses, so the fallback is never used.
    setting.kind.parse(setting.default.as_bytes()).unwrap_or(Value::Text(Vec::new()))
}

/// The setting of this name or alias, regardless of case, and its index.
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

    /// Settings without effect in this version that a file or the command line changed from their
    /// default.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let all = SETTINGS.iter().enumerate();
        let named = all.filter(|(_, setting)| setting.class == Class::Inert);
        let set = named.filter(|(index, _)| self.named[*index]);
        set.filter(|(index, setting)| self.texts[*index] != setting.default.as_bytes())
            .map(|(_, setting)| setting.name)
    }

    /// Whether a file or the command line named this setting.
    pub fn is_named(&self, index: Index) -> bool {
        self.named[index]
    }

    /// Stores a value that was parsed by this setting's kind. The caller has checked that the
    /// setting may change and that the value is not refused.
    fn store(&mut self, index: Index, value: &Value) {
        if let Some(store) = SETTINGS[index].store {
            store(self, value);
        }
        self.texts[index] = match SETTINGS[index].kind {
            value::Kind::Limits => Value::Limits(self.output_limits.map(Some)).show(),
            value::Kind::Listeners => ingest::IngestListen::show_all(&self.ingest_listen),
            value::Kind::DbLimits => DbLimit::show_all(&self.db_limits),
            _ => value.show(),
        };
    }

    /// Stores a value that a line of a file or an option gives. Save points of several lines add
    /// up; an empty line removes those before it, and the first line the default, as in Redis.
    fn store_line(&mut self, index: Index, value: &Value) {
        match value {
            Value::SavePoints(more) if self.named[index] && !more.is_empty() => {
                let all = self.save_points.iter().chain(more).copied().collect();
                self.store(index, &Value::SavePoints(all));
            }
            _ => self.store(index, value),
        }
        self.named[index] = true;
    }

    /// Replaces the working folder by its absolute path.
    pub fn set_dir(&mut self, dir: PathBuf) {
        self.texts[DIR] = dir.clone().into_os_string().into_vec();
        self.dir = dir;
    }
}

/// Why a value of a refused setting is rejected; `None` if the value asks for nothing.
pub fn refusal(setting: &Setting, value: &Value) -> Option<String> {
    let Class::Refused { off, .. } = setting.class else {
        return None;
    };
    let text = value.show();
    if off.iter().any(|o| o.as_bytes() == text) { None } else { refusal_text(setting, &text) }
}

/// The refusal of a text by a refused setting; the text need not be a valid value.
fn refusal_text(setting: &Setting, text: &[u8]) -> Option<String> {
    let Class::Refused { needs, .. } = setting.class else {
        return None;
    };
    Some(needs_text(setting.name, setting.shown(text).as_bytes(), needs))
}

/// Whether the values of this setting or directive are secret.
pub fn is_secret(name: &[u8]) -> bool {
    let same = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    let directive = || DIRECTIVES.iter().any(|d| d.secret && same(d.name));
    find(name).map_or_else(directive, |(_, setting)| setting.secret)
}

/// The text of a refusal.
fn needs_text(name: &str, value: &[u8], needs: &str) -> String {
    let value = parse::printable(value);
    format!("'{name} {value}' needs {needs}, which this version does not have")
}
