//! What CLIENT is asked for.

use super::bytes::Bytes;
use super::tracking::Tracking;

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
    /// The client says what it can do.
    Capa {
        /// It follows redirections.
        redirect: bool,
    },
    /// Sets whether and how keys are tracked for the client.
    Tracking(Tracking),
    /// Whether the keys of the next command are tracked; `None`: the word is neither YES nor NO.
    Caching(Option<bool>),
    /// The client that is told of tracked keys instead.
    Redirection,
    /// How keys are tracked.
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
