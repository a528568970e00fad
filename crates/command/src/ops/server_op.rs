//! Operations on the server as a whole.

use super::bytes::Bytes;
use super::debug_op::DebugOp;
use super::session_op::{Credentials, PubSubOp};

/// An operation on the server as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOp {
    /// `CONFIG`.
    Config(ConfigOp),
    /// `DEBUG`.
    Debug(DebugOp),
    /// `FLUSHALL`.
    FlushAll(FlushMode),
    /// `FLUSHDB`, of the session's database.
    FlushDb(FlushMode),
    /// `INFO`: the sections asked for, none for the default ones.
    Info(Vec<Bytes>),
    /// `MIGRATE`.
    Migrate(Box<Migrate>),
    /// `LASTSAVE`.
    LastSave,
    /// `BGREWRITEAOF`.
    RewriteAppendOnly,
    /// `SAVE` and `BGSAVE`.
    Save(SaveMode),
    /// `SHUTDOWN`.
    Shutdown(ShutdownOp),
    /// `COMMANDLOG`, and `SLOWLOG` for that of slow commands.
    CommandLog(LogKind, LogOp),
    /// `HOTKEYS`.
    HotKeys(HotKeysOp),
    /// `LATENCY`.
    Latency(LatencyOp),
    /// `MEMORY`, but `MEMORY USAGE`.
    Memory(MemoryOp),
    /// `SWAPDB`; whether they exist is for the server to say ([`crate::Error::DbRange`]).
    SwapDb(i32, i32),
    /// `PUBSUB`.
    PubSub(PubSubOp),
}

/// What `MIGRATE` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrate {
    /// The target's name or address.
    pub host: Bytes,
    /// Its port, as it was written.
    pub port: Bytes,
    /// The keys; those that do not exist are left out.
    pub keys: Vec<Bytes>,
    /// The target's database; -1 for the one that a connection begins with.
    pub db: i64,
    /// How long to wait for the target each time, above 0.
    pub timeout_ms: u64,
    /// The keys stay here, too.
    pub copy: bool,
    /// Keys of the target are overwritten.
    pub replace: bool,
    /// `AUTH` or `AUTH2`.
    pub auth: Option<Credentials>,
}

/// A subcommand of `CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOp {
    /// Settings that match one of these patterns.
    Get(Vec<Bytes>),
    /// Settings to change together, or not at all.
    Set(Vec<(Bytes, Bytes)>),
    /// Rewrites the configuration file.
    Rewrite,
    /// Sets the statistics to zero.
    ResetStat,
}

/// How the data of a flush is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// As `lazyfree-lazy-user-flush` says.
    Default,
    /// In the background.
    Async,
    /// Before the reply.
    Sync,
}

/// When a command that saves is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveMode {
    /// `SAVE`: when the file is written.
    Foreground,
    /// `BGSAVE [SCHEDULE]`: when the moment which the file will show has been taken.
    Background,
}

/// What `SHUTDOWN` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownOp {
    /// To end.
    End {
        /// `SAVE` or `NOSAVE`, if said.
        save: Option<bool>,
        /// `NOW`: wait for no replica.
        now: bool,
        /// `FORCE`: end whatever fails.
        force: bool,
    },
    /// To go on.
    Abort,
}

/// What a log of commands is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Time of execution.
    Slow,
    /// Bytes of the request.
    LargeRequest,
    /// Bytes of the reply.
    LargeReply,
}

/// A subcommand of `LATENCY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LatencyOp {
    /// The last spike of each event.
    Latest,
    /// The spikes of an event.
    History(Bytes),
    /// The spikes of an event as a drawing.
    Graph(Bytes),
    /// Forgets these events, or all if none is named.
    Reset(Vec<Bytes>),
    /// A report in words.
    Doctor,
    /// Latencies per command: of these, or of all if none is named.
    Histogram(Vec<Bytes>),
}

/// A subcommand of `HOTKEYS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotKeysOp {
    /// What was counted.
    Get,
    /// Begins a session.
    Start(HotKeysSession),
    /// Ends it; what it has counted stays.
    Stop,
    /// Forgets it.
    Reset,
}

/// What a session of `HOTKEYS` counts. At least one of `cpu` and `net` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotKeysSession {
    /// Keys by time of execution.
    pub cpu: bool,
    /// Keys by bytes of requests and replies.
    pub net: bool,
    /// So many keys are shown, 1 to [`HOTKEYS_COUNT_MAX`].
    pub count: u8,
    /// It ends after so many seconds; 0: it is ended.
    pub seconds: u32,
    /// One command in so many is looked at, at least 1.
    pub ratio: u32,
}

/// The most keys that `HOTKEYS` shows of each kind.
pub const HOTKEYS_COUNT_MAX: u8 = 64;
/// So many are shown if nothing else is said.
pub const HOTKEYS_COUNT_DEFAULT: u8 = 10;

/// A subcommand of `MEMORY` that is about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOp {
    /// A report in words.
    Doctor,
    /// Numbers.
    Stats,
    /// Returns free memory to the system.
    Purge,
    /// What the allocator tells of itself.
    MallocStats,
}

/// A subcommand of `SLOWLOG` and `COMMANDLOG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOp {
    /// The newest entries.
    Get {
        /// At most this many, `None` for all.
        count: Option<u64>,
        /// With a seventh element: how long each command waited, microseconds.
        waited: bool,
    },
    /// How many there are.
    Len,
    /// Forget them.
    Reset,
}

/// The default number of entries of `SLOWLOG GET`.
pub const SLOWLOG_GET_DEFAULT: u64 = 10;
