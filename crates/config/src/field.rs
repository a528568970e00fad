//! The types of the typed fields, and how each stores a value of its setting.

use super::db_limit::DbLimit;
use super::ingest::IngestListen;
use super::memory::MemoryShare;
use super::retention::Retention;
use super::schedule::Schedule;
use super::value::{BufferLimit, Events, Value};
use super::{Access, Bind, IoBackend, LogFormat, LogLevel, LogTimes, Supervised};
use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A typed field of a setting.
pub(crate) trait Field {
    /// Stores a value that the setting's kind has parsed.
    fn store(&mut self, value: &Value);
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Field for $number {
            fn store(&mut self, value: &Value) {
                let number = <$number>::try_from(value.number());
                *self = number.expect("a test checks that every setting's bounds fit its field");
            }
        })*
    };
}
numbers! { u16 u32 u64 usize i64 }

macro_rules! words {
    ($($word:ty)*) => {
        $(impl Field for $word {
            fn store(&mut self, value: &Value) {
                *self = <$word>::from_word(value.bytes());
            }
        })*
    };
}
words! { Access AppendFsync IoBackend LogFormat LogLevel LogTimes MaxmemoryPolicy RdbVersion Supervised }

impl Field for MemoryShare {
    fn store(&mut self, value: &Value) {
        *self = Self::new(value);
    }
}

impl Field for bool {
    fn store(&mut self, value: &Value) {
        *self = value.bool();
    }
}

impl Field for PathBuf {
    fn store(&mut self, value: &Value) {
        *self = path(value.bytes());
    }
}

impl Field for Option<PathBuf> {
    fn store(&mut self, value: &Value) {
        *self = Some(path(value.bytes())).filter(|path| !path.as_os_str().is_empty());
    }
}

impl Field for Secret {
    fn store(&mut self, value: &Value) {
        *self = Secret::from(value.bytes());
    }
}

impl Field for Bind {
    fn store(&mut self, value: &Value) {
        *self = Bind::new(value.bytes());
    }
}

impl Field for Vec<Bind> {
    fn store(&mut self, value: &Value) {
        *self = value.words().iter().map(|word| Bind::new(word)).collect();
    }
}

impl Field for Vec<(u64, u64)> {
    fn store(&mut self, value: &Value) {
        if let Value::SavePoints(points) = value {
            self.clone_from(points);
        }
    }
}

impl Field for Retention {
    fn store(&mut self, value: &Value) {
        *self = Retention::parse(value.bytes()).unwrap_or_default();
    }
}

impl Field for Option<Schedule> {
    fn store(&mut self, value: &Value) {
        *self = Schedule::parse(value.words()).ok();
    }
}

impl Field for ShutdownWords {
    fn store(&mut self, value: &Value) {
        *self = ShutdownWords::from_value(value);
    }
}

impl Field for Events {
    fn store(&mut self, value: &Value) {
        if let Value::Events(events) = value {
            *self = *events;
        }
    }
}

impl Field for Vec<f64> {
    fn store(&mut self, value: &Value) {
        if let Value::Percentiles(all) = value {
            self.clone_from(all);
        }
    }
}

/// Classes of clients that the value does not name keep their limits.
impl Field for [BufferLimit; 3] {
    fn store(&mut self, value: &Value) {
        if let Value::Limits(limits) = value {
            for (to, from) in self.iter_mut().zip(limits) {
                *to = from.unwrap_or(*to);
            }
        }
    }
}

/// A value adds listeners; an empty value removes all of them.
impl Field for Vec<IngestListen> {
    fn store(&mut self, value: &Value) {
        match value.words() {
            [] => self.clear(),
            words => self.extend(IngestListen::parse_all(words).unwrap_or_default()),
        }
    }
}

/// A value changes the limits of the databases that it names; an empty value removes all of them.
impl Field for Vec<DbLimit> {
    fn store(&mut self, value: &Value) {
        match value.words() {
            [] => self.clear(),
            words => DbLimit::apply(DbLimit::parse_all(words).unwrap_or_default(), self),
        }
    }
}

/// Bytes as a path.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// A password or token; empty for none. `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Secret(bytes.to_vec())
    }
}

impl Deref for Secret {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "(redacted)" })
    }
}

/// What `maxmemory-policy` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaxmemoryPolicy {
    /// The policy evicts keys to make room.
    pub evicts: bool,
    /// Keys record how often they are used (LFU) instead of when they were used last (LRU).
    pub counts_uses: bool,
    /// Only keys with an expiry are evicted.
    pub is_volatile: bool,
    /// Any key may be the next.
    pub is_random: bool,
    /// The key which expires first is the next.
    pub follows_expiry: bool,
}

impl MaxmemoryPolicy {
    /// Keys must record when they were used.
    pub(crate) fn times_uses(self) -> bool {
        self.evicts && !self.counts_uses && !self.is_random && !self.follows_expiry
    }

    pub(crate) fn from_word(word: &[u8]) -> Self {
        MaxmemoryPolicy {
            evicts: word != b"noeviction",
            counts_uses: word.ends_with(b"-lfu"),
            is_volatile: word.starts_with(b"volatile-"),
            is_random: word.ends_with(b"-random"),
            follows_expiry: word.ends_with(b"-ttl"),
        }
    }
}

/// When what was written to the append-only file is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before the reply to a change leaves.
    Always,
    /// Once a second.
    #[default]
    EverySecond,
    /// When the system likes.
    No,
}

impl AppendFsync {
    fn from_word(word: &[u8]) -> Self {
        match word {
            b"always" => AppendFsync::Always,
            b"no" => AppendFsync::No,
            _ => AppendFsync::EverySecond,
        }
    }
}

/// The version of the files that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RdbVersion {
    /// The lowest one that can hold the data.
    #[default]
    Automatic,
    /// This one; a save fails if it cannot hold the data.
    Only(u16),
}

impl RdbVersion {
    fn from_word(word: &[u8]) -> Self {
        match base::num::parse_u64(word) {
            None | Some(0) => RdbVersion::Automatic,
            Some(version) => RdbVersion::Only(version as u16),
        }
    }
}

/// What a signal that ends the server asks for, in words of SHUTDOWN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownWords {
    /// To save or not; otherwise that depends on whether there are save points.
    pub save: Option<bool>,
    /// To wait for no replica.
    pub now: bool,
    /// To end whatever fails.
    pub force: bool,
}

impl ShutdownWords {
    fn from_value(value: &Value) -> Self {
        let has = |word| value.has_flag(word);
        let save = if has("save") { Some(true) } else { has("nosave").then_some(false) };
        ShutdownWords { save, now: has("now"), force: has("force") }
    }
}
