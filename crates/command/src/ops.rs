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
    /// The connection's line.
    Info,
    /// The lines of those that match.
    List(ClientFilter),
    /// Closes connections.
    Kill(ClientKill),
    /// Spares the connection from client eviction.
    NoEvict(bool),
    /// Its reads leave no trace in the keys' access times.
    NoTouch(bool),
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

/// Which clients `CLIENT LIST` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFilter {
    /// All.
    All,
    /// Those of one kind.
    Type(ClientType),
    /// Those with these ids, in this order.
    Ids(Vec<i64>),
}

/// Which clients `CLIENT KILL` closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientKill {
    /// `CLIENT KILL ip:port`: replies OK, or [`crate::Error::NoSuchClient`].
    Address(Bytes),
    /// Filters, all of which must match; replies how many.
    Filters(KillFilters),
}

/// The filters of `CLIENT KILL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillFilters {
    /// `ID`.
    pub id: Option<u64>,
    /// `TYPE`.
    pub kind: Option<ClientType>,
    /// `ADDR`.
    pub address: Option<Bytes>,
    /// `LADDR`.
    pub local_address: Option<Bytes>,
    /// `USER`; only users that exist come this far.
    pub user: Option<Bytes>,
    /// `SKIPME`, yes unless said otherwise.
    pub skip_me: bool,
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
    /// `SHUTDOWN`.
    Shutdown(ShutdownOp),
    /// `SLOWLOG`.
    Slowlog(SlowlogOp),
    /// `SWAPDB`; whether they exist is for the server to say ([`crate::Error::DbRange`]).
    SwapDb(i32, i32),
}

/// A subcommand of `CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOp {
    /// Settings that match one of these patterns.
    Get(Vec<Bytes>),
    /// Settings to change together, or not at all.
    Set(Vec<(Bytes, Bytes)>),
    /// Writes the configuration file anew.
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
    /// Facts about a key.
    Object {
        /// The key.
        key: Bytes,
    },
    /// Switches the active expiry cycle.
    SetActiveExpire(bool),
    /// Whether a pattern matches a text of so many `a`s.
    StringMatchLen {
        /// The length.
        len: usize,
        /// The pattern.
        pattern: Bytes,
    },
    /// A sample reply.
    Protocol(ProtocolSample),
    /// Makes keys.
    Populate(Populate),
    /// Makes a command panic, to test that nothing else suffers.
    PanicInCommand {
        /// The command's full name, lower case; without one the next command, whatever it is.
        command: Option<Bytes>,
        /// After so many changes through the door; 0 before the first.
        after_changes: u32,
    },
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

/// A subcommand of `SLOWLOG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowlogOp {
    /// The newest entries.
    Get {
        /// At most so many, `None` for all.
        count: Option<u64>,
    },
    /// How many there are.
    Len,
    /// Forget them.
    Reset,
}

/// The default number of entries of `SLOWLOG GET`.
pub const SLOWLOG_GET_DEFAULT: u64 = 10;
