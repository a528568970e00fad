//! What a command is: the types of the one table that `COMMAND`, the dispatcher, the gates, the
//! generated documentation and the tests all read. The data itself stands in [`crate::table`].

mod docs;
mod flags;
mod key_runs;
mod keys;

use std::fmt;
use std::ops::Range;

use base::DbIndex;
use keyspace::{Kind, Walk};
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::ops::{ServerOp, SessionOp};

pub use docs::{Arg, ArgKind, Deprecated, Docs};
pub use flags::{Acl, Flags, Secrets, Traits};
pub use key_runs::{KeyAt, KeyRuns};
pub use keys::{BeginSearch, FindKeys, KeyFlags, KeySpec};

/// One command, or one subcommand of a container command.
pub struct CommandSpec {
    /// Lower case. For a subcommand only its own part: `get` for `CONFIG GET`.
    pub name: &'static str,
    /// Lower case, as in statistics and error texts: `config|get` for `CONFIG GET`, else `name`.
    pub full_name: &'static str,
    /// Number of arguments with the name counted; `-n` means at least `n`.
    pub arity: i8,
    /// What the dispatcher and the clients must know before the command runs.
    pub flags: Flags,
    /// What only the server must know.
    pub traits: Traits,
    /// Which arguments logs do not show.
    pub secrets: Secrets,
    /// The categories that do not follow from `flags`; see [`CommandSpec::categories`].
    pub acl: Acl,
    /// The family it is documented in.
    pub group: Group,
    /// The first version that had it.
    pub since: &'static str,
    /// Where its keys stand, as COMMAND replies it.
    pub keys: &'static [KeySpec],
    /// The keys that a request touches, as the handler itself parses them. Needed wherever `keys`
    /// does not find them all by position. (A command that may block has its [`WaitFn`] instead.)
    pub touched: Option<KeysFn>,
    /// What `COMMAND GETKEYS` answers where Redis does not search by `keys`.
    pub getkeys: Option<KeysFn>,
    /// What the command does to its key, where that depends on the arguments.
    pub key_flags: Option<fn(Args<'_>) -> KeyFlags>,
    /// The argument that names a member or field of the collection in its key, which is prefetched.
    /// 0 for none.
    pub member: u8,
    /// How far the next member is behind it, of a command that changes as many as it names; 0
    /// otherwise. What others share of their places is copied ahead ([`crate::unshare`]).
    pub member_step: u8,
    /// What is locked before it runs.
    pub lock: LockClass,
    /// What it reads beyond its keys; a transaction locks that, too. For a command that locks slots
    /// itself and cannot say what it reads, a transaction locks World.
    pub walk: Option<fn(Args<'_>) -> Option<Walk>>,
    /// The other database into which a request puts a key; `None` if it names none that is valid.
    /// Only for commands that can.
    pub into: Option<fn(Args<'_>) -> Option<DbIndex>>,
    /// What runs it.
    pub handler: Handler,
    /// Hints for clients and proxies.
    pub tips: &'static [&'static str],
    /// What `COMMAND DOCS` says about it.
    pub docs: &'static Docs,
    /// The subcommands of a container, empty otherwise.
    pub subcommands: &'static [CommandSpec],
}

impl CommandSpec {
    /// A container with nothing said yet: what the table's entries are built from.
    pub const BASE: CommandSpec = CommandSpec {
        name: "",
        full_name: "",
        arity: -2,
        flags: Flags::NONE,
        traits: Traits::NONE,
        secrets: Secrets::None,
        acl: Acl::NONE,
        group: Group::Generic,
        since: "",
        keys: &[],
        touched: None,
        getkeys: None,
        key_flags: None,
        member: 0,
        member_step: 0,
        lock: LockClass::None,
        walk: None,
        into: None,
        handler: Handler::Container,
        tips: &[],
        docs: &Docs::NONE,
        subcommands: &[],
    };

    /// Whether a client that may not write is held back from it.
    #[inline(always)]
    pub const fn may_change(&self) -> bool {
        self.flags.contains(Flags::WRITE) || self.traits.contains(Traits::MAY_REPLICATE)
    }

    /// Whether a request of `args` arguments, the name counted, fits the arity.
    #[inline(always)]
    pub const fn accepts(&self, args: usize) -> bool {
        if self.arity >= 0 {
            args == self.arity as usize
        } else {
            args >= self.arity.unsigned_abs() as usize
        }
    }

    /// All ACL categories: the declared ones and those that follow from the flags.
    pub const fn categories(&self) -> Acl {
        let mut acl = self.acl;
        if self.flags.contains(Flags::WRITE) {
            acl = acl.with(Acl::WRITE);
        }
        if self.flags.contains(Flags::READONLY) {
            acl = acl.with(Acl::READ);
        }
        if self.flags.contains(Flags::ADMIN) {
            acl = acl.with(Acl::ADMIN).with(Acl::DANGEROUS);
        }
        if self.flags.contains(Flags::BLOCKING) {
            acl = acl.with(Acl::BLOCKING);
        }
        acl.with(if self.flags.contains(Flags::FAST) { Acl::FAST } else { Acl::SLOW })
    }

    /// Whether it has subcommands. `COMMAND` has and runs alone too; all others only contain.
    #[inline(always)]
    pub const fn has_subcommands(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// The argument that is its only key, if its arguments need no closer look.
    #[inline(always)]
    pub const fn single_key(&self) -> Option<usize> {
        match self.keys {
            [
                KeySpec {
                    begin: BeginSearch::Index(at),
                    find: FindKeys::Range { last: 0, .. },
                    ..
                },
            ] => Some(*at as usize),
            _ => None,
        }
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.full_name)
    }
}

/// Finds the keys of a request whose arity is right.
pub type KeysFn = fn(Args<'_>) -> Result<KeyRuns, Error>;

/// Runs a command on data that its locks cover. On `Err` nothing was changed and nothing written.
pub type DataFn = fn(&mut Ctx<'_, '_>) -> Result<Done, Error>;
/// Reads the arguments of a command that may block, before it touches data.
pub type WaitFn = fn(Args<'_>) -> Result<Wait, Error>;
/// Tries to take from the key in one argument and to reply. On `Err` nothing was changed and
/// nothing written.
pub type TakeFn = fn(&mut Ctx<'_, '_>, &Wait, usize) -> Result<Done, Error>;
/// Reads the arguments of a command on the session that sent it.
pub type SessionFn = fn(Args<'_>) -> Result<SessionOp, Error>;
/// Reads the arguments of a command on the server as a whole.
pub type ServerFn = fn(Args<'_>) -> Result<ServerOp, Error>;

/// What a blocking command waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The arguments that are its keys, tried in this order.
    pub keys: Range<usize>,
    /// Milliseconds until it gives up; `None` waits for ever.
    pub timeout_ms: Option<u64>,
    /// The kind of value that it takes from.
    pub kind: Kind,
    /// How many elements a list must have: it takes that many or more.
    pub least: u64,
    /// An argument that is one more key, which it changes when it takes.
    pub further: Option<usize>,
    /// It is answered when a key is gone, too.
    pub ends_without_key: bool,
    /// What it answers where it may not wait, which is also so if its time is 0. (When its time is
    /// up, a command with keys answers the null of arrays: recorded.)
    pub at_once: AtOnce,
}

/// The reply of a blocking command that finds nothing and may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// The null of arrays.
    NullArray,
    /// The null of strings.
    Null,
    /// 0: no replica has anything.
    Zero,
    /// Whether what the client has written is synced here, and 0: no replica has anything.
    Synced {
        /// It asks for the append-only file: without one, and when that ends, it fails.
        asks: bool,
        /// It waits for nothing else.
        ends: bool,
    },
}

/// What runs a command.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Nothing: only its subcommands run.
    Container,
    /// Reads or writes keys under its locks and replies.
    Data(DataFn),
    /// Takes from the first of its keys that has something; waits if none has.
    Blocking(WaitFn, TakeFn),
    /// An operation on the session, as plain data.
    Session(SessionFn),
    /// An operation on the server, as plain data.
    Server(ServerFn),
}

/// What is locked before a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockClass {
    /// No key is touched.
    None,
    /// The slots of all its keys, ascending.
    Keys,
    /// One slot at a time, by the handler itself.
    Each,
    /// The whole keyspace.
    World,
    /// Slots as they are touched, behind the growth token.
    Growing,
}

/// The family a command is documented in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Strings.
    String,
    /// Strings as bits.
    Bitmap,
    /// HyperLogLogs.
    Hyperloglog,
    /// Keys of any type.
    Generic,
    /// The connection and other connections.
    Connection,
    /// MULTI, EXEC and WATCH.
    Transactions,
    /// The server.
    Server,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Places on the globe, in sorted sets.
    Geo,
    /// Streams.
    Stream,
    /// Publishing and subscribing.
    PubSub,
}

impl Group {
    /// All groups, in the order of the documentation.
    pub const ALL: [Group; 14] = [
        Group::String,
        Group::Bitmap,
        Group::Hyperloglog,
        Group::List,
        Group::Hash,
        Group::Set,
        Group::SortedSet,
        Group::Geo,
        Group::Stream,
        Group::Generic,
        Group::Transactions,
        Group::PubSub,
        Group::Connection,
        Group::Server,
    ];

    /// The name that `COMMAND DOCS` shows.
    pub const fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Hyperloglog => "hyperloglog",
            Group::Generic => "generic",
            Group::Connection => "connection",
            Group::Transactions => "transactions",
            Group::Server => "server",
            Group::List => "list",
            Group::Hash => "hash",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::PubSub => "pubsub",
        }
    }
}
