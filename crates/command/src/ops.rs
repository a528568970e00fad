//! Operations on sessions and on the server, as plain data. The table sits below the server and
//! calls nothing upwards: a handler reads the arguments into one of these, and the server matches
//! it exhaustively.

/// Bytes of a client's own making.
pub type Bytes = Box<[u8]>;

/// An operation on the session that sent the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionOp {
    /// `AUTH [user] password`.
    Auth(Credentials),
    /// `HELLO`.
    Hello(Hello),
    /// `SELECT`; whether the database exists is for the server to say ([`crate::Error::DbRange`]).
    Select(i32),
    /// `QUIT`: reply, then close.
    Quit,
    /// `RESET`.
    Reset,
    /// `CLIENT`.
    Client(ClientOp),
    /// `MONITOR`.
    Monitor,
    /// `MULTI`.
    Multi,
    /// `EXEC`.
    Exec,
    /// `DISCARD`.
    Discard,
    /// `WATCH`: the keys are the command's arguments.
    Watch,
    /// `UNWATCH`.
    Unwatch,
}

/// What `AUTH` and `HELLO AUTH` carry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user, if one was named.
    pub user: Option<Bytes>,
    /// The password.
    pub password: Bytes,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// What `HELLO` carries. Authentication comes first, then the name, then the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// 2 or 3, if given.
    pub proto: Option<u8>,
    /// `AUTH user password`.
    pub auth: Option<Credentials>,
    /// `SETNAME name`, already valid.
    pub name: Option<Bytes>,
}

/// A subcommand of `CLIENT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOp {
    /// The connection's name, null if it has none.
    GetName,
    /// Sets the name, already valid; empty removes it.
    SetName(Bytes),
    /// Sets the library's name or version, already valid.
    SetInfo(LibraryFact),
    /// The connection's id.
    Id,
    /// Asks for what is so already: replies OK.
    Idle,
    /// The client says what it can do.
    Capa {
        /// It follows redirections.
        redirect: bool,
    },
    /// The client that tracked keys are told to: none.
    Redirection,
    /// How keys are tracked: not at all.
    TrackingInfo,
    /// The connection's line.
    Info,
    /// The lines of those that match.
    List(ClientFilters),
    /// Closes connections.
    Kill(ClientKill),
    /// Spares the connection from client eviction.
    NoEvict(bool),
    /// Its reads leave no trace in the keys' access times.
    NoTouch(bool),
    /// In import mode it sees keys that are due; `None`: the word is neither ON nor OFF.
    ImportSource(Option<bool>),
    /// Holds clients back.
    Pause {
        /// For how long.
        timeout_ms: u64,
        /// Only writes are held back.
        writes_only: bool,
    },
    /// Ends a pause.
    Unpause,
    /// Which replies are sent.
    Reply(ReplyMode),
    /// Ends the wait of a blocked client.
    Unblock {
        /// Whose.
        id: i64,
        /// With an error, instead of as if its time were up.
        with_error: bool,
    },
}

/// What `CLIENT SETINFO` sets; an empty value removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryFact {
    /// `LIB-NAME`.
    Name(Bytes),
    /// `LIB-VER`.
    Version(Bytes),
}

/// The kinds of clients that filters tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientType {
    /// Everybody else.
    Normal,
    /// The connection to this server's master.
    Master,
    /// A replica.
    Replica,
    /// A subscriber.
    PubSub,
}

/// Which clients `CLIENT KILL` closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientKill {
    /// `CLIENT KILL ip:port`: replies OK, or [`crate::Error::NoSuchClient`].
    Address(Bytes),
    /// Filters, all of which must match; replies how many.
    Filters(ClientFilters),
}

/// The filters of `CLIENT LIST` and `CLIENT KILL`: clients for whom all of them hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFilters {
    /// What must hold.
    pub rules: Vec<ClientRule>,
    /// `SKIPME`: not who asks.
    pub skip_me: bool,
}

/// One filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRule {
    /// The fact.
    pub fact: ClientFact,
    /// It must not be so: the filters that begin with `NOT-`.
    pub is_not: bool,
}

/// What a filter asks of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFact {
    /// `ID`: it has one of these.
    Ids(Vec<i64>),
    /// `TYPE`.
    Type(ClientType),
    /// `USER`; only users that exist come this far.
    User(Bytes),
    /// `ADDR`.
    Address(Bytes),
    /// `LADDR`.
    LocalAddress(Bytes),
    /// `MAXAGE`: connected since at least so long.
    Age {
        /// In milliseconds; what counts is whole seconds.
        at_least_ms: i64,
    },
    /// `IDLE`: no command since at least so long.
    Idle {
        /// In seconds.
        at_least_s: i64,
    },
    /// `FLAGS`: it has all of these letters in `flags=`.
    Flags(Bytes),
    /// `NAME`.
    Name(Bytes),
    /// `LIB-NAME`.
    LibraryName(Bytes),
    /// `LIB-VER`.
    LibraryVersion(Bytes),
    /// `DB`: the database that it has selected.
    Database(i64),
    /// `IP`: the address without its port.
    Ip(Bytes),
    /// `CAPA`: it has said that it can do all of these (letters).
    Capabilities(Bytes),
}

/// What `CLIENT REPLY` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// Replies are sent; this command's own too.
    On,
    /// No replies.
    Off,
    /// No reply to this command and the next.
    Skip,
}

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
    /// `SHUTDOWN`.
    Shutdown(ShutdownOp),
    /// `COMMANDLOG`, and `SLOWLOG` for that of slow commands.
    CommandLog(LogKind, LogOp),
    /// `LATENCY`.
    Latency(LatencyOp),
    /// `MEMORY`, but `MEMORY USAGE`.
    Memory(MemoryOp),
    /// `SWAPDB`; whether they exist is for the server to say ([`crate::Error::DbRange`]).
    SwapDb(i32, i32),
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

/// A subcommand of `DEBUG`.
#[derive(Clone, Debug, PartialEq)]
pub enum DebugOp {
    /// Holds the whole keyspace for so long.
    Sleep {
        /// In seconds; never negative and always finite.
        seconds: f64,
    },
    /// Holds the slot of a key for so long, as a long command does; 0 ends all such holds.
    Hold {
        /// The key.
        key: Bytes,
        /// In seconds; never negative and always finite.
        seconds: f64,
    },
    /// Facts about a key.
    Object {
        /// The key.
        key: Bytes,
    },
    /// Switches the active expiry cycle.
    SetActiveExpire(bool),
    /// Whether a pattern matches a text of `len` times `a`.
    StringMatchLen {
        /// The length.
        len: usize,
        /// The pattern.
        pattern: Bytes,
    },
    /// A sample reply.
    Protocol(ProtocolSample),
    /// Another replication id.
    ChangeReplId,
    /// Prints the elements of a value that is called listpack.
    Listpack {
        /// The key.
        key: Bytes,
    },
    /// Prints how a list that is called quicklist is laid in nodes.
    Quicklist {
        /// The key.
        key: Bytes,
        /// Its elements, too.
        full: bool,
    },
    /// Whether payloads are taken whose checksum is wrong.
    SkipChecksums(bool),
    /// From which size on an element of a list is a node by itself in what is written.
    QuicklistPackedThreshold {
        /// As it was written.
        size: Bytes,
    },
    /// Facts about the table of a database.
    HtStats {
        /// Which.
        db: i64,
    },
    /// Facts about the table inside a value.
    HtStatsKey {
        /// The key.
        key: Bytes,
    },
    /// Whether tables shrink when they have become too large.
    DictResizing(bool),
    /// A digest of all data.
    Digest,
    /// Digests of the values of these keys.
    DigestValue(Vec<Bytes>),
    /// An error reply.
    Error(Bytes),
    /// A line in the server's log.
    Log(Bytes),
    /// Sizes of the server's structures.
    StructSize,
    /// Encodes and decodes every value.
    Reload,
    /// Lengths and allocations of a key and of its text.
    SdsLen {
        /// The key.
        key: Bytes,
    },
    /// Stops what is done now and then: expiry, idle clients, figures.
    PauseCron(bool),
    /// Leaks this much memory.
    Leak(Bytes),
    /// Makes keys.
    Populate(Populate),
    /// Makes a command panic, to test that nothing else suffers.
    PanicInCommand {
        /// The command's full name, lower case; without one the next command, whatever it is.
        command: Option<Bytes>,
        /// After how many changes through the door; 0 is before the first.
        after_changes: u32,
        /// How many runs are spared. Each call of the handler, each step and each serving of a
        /// waiting client is a run.
        after_runs: u32,
        /// It does not panic, but fails with an error.
        is_error: bool,
    },
    /// Changes draw numbers, and replies leave up to this one; without one no change draws any and
    /// every reply leaves.
    SafeUpTo(Option<u64>),
    /// The help text.
    Help,
}

/// What `DEBUG PROTOCOL` replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolSample {
    /// A bulk string.
    String,
    /// An integer.
    Integer,
    /// A double.
    Double,
    /// A big number.
    BigNumber,
    /// Null.
    Null,
    /// An array.
    Array,
    /// A set.
    Set,
    /// A map.
    Map,
    /// An attribute and a string.
    Attribute,
    /// A push and a string.
    Push,
    /// A verbatim string.
    Verbatim,
    /// A boolean.
    Bool(bool),
}

/// What `DEBUG POPULATE` makes: keys `prefix:0` to `prefix:count-1`, those that exist left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Populate {
    /// How many.
    pub count: u64,
    /// In front of the number and a colon.
    pub prefix: Bytes,
    /// Length of a value, 0 for `value:N` as it comes; shorter is cut, longer is filled with NULs.
    pub value_len: u64,
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
    },
    /// How many there are.
    Len,
    /// Forget them.
    Reset,
}

/// The default number of entries of `SLOWLOG GET`.
pub const SLOWLOG_GET_DEFAULT: u64 = 10;
