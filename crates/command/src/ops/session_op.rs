//! Operations on the session that sent the command.

use super::bytes::Bytes;
use super::client_op::ClientOp;

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
    /// `SUBSCRIBE` and its kin: the channels or patterns are the command's arguments.
    Subscribe(Subject),
    /// `UNSUBSCRIBE` and its kin: of the arguments, or of everything if there are none.
    Unsubscribe(Subject),
    /// `PUBLISH` and `SPUBLISH`: the channel and the message are the command's arguments.
    Publish(Subject),
}

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A channel.
    Channel,
    /// A shard channel.
    Shard,
    /// All channels whose names match a pattern.
    Pattern,
}

/// A question of `PUBSUB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PubSubOp {
    /// `CHANNELS` and `SHARDCHANNELS`: those of this kind which match the pattern.
    Channels(Subject, Option<Bytes>),
    /// `NUMSUB` and `SHARDNUMSUB`: subscribers of these channels.
    Counts(Subject, Vec<Bytes>),
    /// `NUMPAT`.
    Patterns,
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
