//! What a command is: the types of the one table that `COMMAND`, the dispatcher, the gates, the
//! generated documentation and the tests all read. The data itself stands in [`crate::table`].

use std::fmt;

use resp::Args;

use crate::ctx::Ctx;
use crate::error::Error;
use crate::ops::{ServerOp, SessionOp};

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
    /// The categories that do not follow from `flags`; see [`CommandSpec::categories`].
    pub acl: Acl,
    /// The family it is documented in.
    pub group: Group,
    /// The first version that had it.
    pub since: &'static str,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// What is locked before it runs.
    pub lock: LockClass,
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
        if self.flags.contains(Flags::PUBSUB) {
            acl = acl.with(Acl::PUBSUB);
        }
        if self.flags.contains(Flags::BLOCKING) {
            acl = acl.with(Acl::BLOCKING);
        }
        acl.with(if self.flags.contains(Flags::FAST) { Acl::FAST } else { Acl::SLOW })
    }

    /// The subcommand of this name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static CommandSpec> {
        self.subcommands.iter().find(|sub| sub.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether this command exists only as the parent of its subcommands.
    pub const fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.full_name)
    }
}

/// Runs a command on data that its locks cover. On `Err` nothing was changed and nothing written.
pub type DataFn = fn(&mut Ctx<'_, '_>) -> Result<(), Error>;
/// Starts a command that runs in steps.
pub type ResumableFn = fn(&mut Ctx<'_, '_>) -> Result<Box<dyn Resumable>, Error>;
/// Reads the arguments of a command on the session that sent it.
pub type SessionFn = fn(Args<'_>) -> Result<SessionOp, Error>;
/// Reads the arguments of a command on the server as a whole.
pub type ServerFn = fn(Args<'_>) -> Result<ServerOp, Error>;

/// A command under way whose locks are dropped between steps.
pub trait Resumable: Send {
    /// One step of at most about 200 microseconds; `true` when the reply is complete.
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error>;
}

/// What runs a command.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Nothing: only its subcommands run.
    Container,
    /// Reads or writes keys under its locks and replies.
    Data(DataFn),
    /// Runs in steps with its locks dropped between them.
    Resumable(ResumableFn),
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

/// Flags of a command, with the names that `COMMAND INFO` gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// May change keys.
    pub const WRITE: Flags = Flags(1);
    /// Reads keys and changes none.
    pub const READONLY: Flags = Flags(1 << 1);
    /// Refused when memory is full.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// Administration of the server.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// Publish and subscribe.
    pub const PUBSUB: Flags = Flags(1 << 4);
    /// Not from scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 5);
    /// May block the client.
    pub const BLOCKING: Flags = Flags(1 << 6);
    /// Allowed while data is being loaded.
    pub const LOADING: Flags = Flags(1 << 7);
    /// Allowed on a replica with stale data.
    pub const STALE: Flags = Flags(1 << 8);
    /// Not shown to MONITOR.
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    /// Not in the slow log.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// Allowed on a slot that is being imported.
    pub const ASKING: Flags = Flags(1 << 11);
    /// Constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 12);
    /// Allowed without authentication.
    pub const NO_AUTH: Flags = Flags(1 << 13);
    /// May be propagated although it is not a write.
    pub const MAY_REPLICATE: Flags = Flags(1 << 14);
    /// Its key list may be empty.
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 15);
    /// Refused while data is loaded in the background.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 16);
    /// Not inside a transaction.
    pub const NO_MULTI: Flags = Flags(1 << 17);
    /// The key specs do not tell all keys by position.
    pub const MOVABLEKEYS: Flags = Flags(1 << 18);
    /// Allowed while a script keeps the server busy.
    pub const ALLOW_BUSY: Flags = Flags(1 << 19);

    /// Names in the order in which they are shown.
    pub const NAMES: [(Flags, &'static str); 20] = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::ASKING, "asking"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::MAY_REPLICATE, "may_replicate"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::MOVABLEKEYS, "movablekeys"),
        (Flags::ALLOW_BUSY, "allow_busy"),
    ];

    /// The union of a list, for tables.
    pub const fn of(list: &[Flags]) -> Flags {
        let mut all = 0;
        let mut i = 0;
        while i < list.len() {
            all |= list[i].0;
            i += 1;
        }
        Flags(all)
    }

    /// Whether all of `other` is set.
    #[inline(always)]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of what is set, in the order of [`Flags::NAMES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        Flags::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, n)| n)
    }
}

/// A set of ACL categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acl(u32);

impl Acl {
    /// No category.
    pub const NONE: Acl = Acl(0);
    /// Commands on keys of any type.
    pub const KEYSPACE: Acl = Acl(1);
    /// Reads keys.
    pub const READ: Acl = Acl(1 << 1);
    /// Writes keys.
    pub const WRITE: Acl = Acl(1 << 2);
    /// Sets.
    pub const SET: Acl = Acl(1 << 3);
    /// Sorted sets.
    pub const SORTEDSET: Acl = Acl(1 << 4);
    /// Lists.
    pub const LIST: Acl = Acl(1 << 5);
    /// Hashes.
    pub const HASH: Acl = Acl(1 << 6);
    /// Strings.
    pub const STRING: Acl = Acl(1 << 7);
    /// Bitmaps.
    pub const BITMAP: Acl = Acl(1 << 8);
    /// HyperLogLogs.
    pub const HYPERLOGLOG: Acl = Acl(1 << 9);
    /// Places.
    pub const GEO: Acl = Acl(1 << 10);
    /// Streams.
    pub const STREAM: Acl = Acl(1 << 11);
    /// Publish and subscribe.
    pub const PUBSUB: Acl = Acl(1 << 12);
    /// Administration.
    pub const ADMIN: Acl = Acl(1 << 13);
    /// Constant or logarithmic time.
    pub const FAST: Acl = Acl(1 << 14);
    /// Everything that is not fast.
    pub const SLOW: Acl = Acl(1 << 15);
    /// May block.
    pub const BLOCKING: Acl = Acl(1 << 16);
    /// Can harm the server or its data.
    pub const DANGEROUS: Acl = Acl(1 << 17);
    /// The connection and other connections.
    pub const CONNECTION: Acl = Acl(1 << 18);
    /// Transactions.
    pub const TRANSACTION: Acl = Acl(1 << 19);
    /// Scripts and functions.
    pub const SCRIPTING: Acl = Acl(1 << 20);

    /// Names in the order in which they are shown, without the `@`.
    pub const NAMES: [(Acl, &'static str); 21] = [
        (Acl::KEYSPACE, "keyspace"),
        (Acl::READ, "read"),
        (Acl::WRITE, "write"),
        (Acl::SET, "set"),
        (Acl::SORTEDSET, "sortedset"),
        (Acl::LIST, "list"),
        (Acl::HASH, "hash"),
        (Acl::STRING, "string"),
        (Acl::BITMAP, "bitmap"),
        (Acl::HYPERLOGLOG, "hyperloglog"),
        (Acl::GEO, "geo"),
        (Acl::STREAM, "stream"),
        (Acl::PUBSUB, "pubsub"),
        (Acl::ADMIN, "admin"),
        (Acl::FAST, "fast"),
        (Acl::SLOW, "slow"),
        (Acl::BLOCKING, "blocking"),
        (Acl::DANGEROUS, "dangerous"),
        (Acl::CONNECTION, "connection"),
        (Acl::TRANSACTION, "transaction"),
        (Acl::SCRIPTING, "scripting"),
    ];

    /// The union of a list, for tables.
    pub const fn of(list: &[Acl]) -> Acl {
        let mut all = Acl::NONE;
        let mut i = 0;
        while i < list.len() {
            all = all.with(list[i]);
            i += 1;
        }
        all
    }

    /// This and `other`.
    #[must_use]
    pub const fn with(self, other: Acl) -> Acl {
        Acl(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    pub const fn contains(self, other: Acl) -> bool {
        self.0 & other.0 == other.0
    }

    /// The category of this name, in any case, without the `@`.
    pub fn named(name: &[u8]) -> Option<Acl> {
        Acl::NAMES.into_iter().find(|(_, n)| n.as_bytes().eq_ignore_ascii_case(name)).map(|x| x.0)
    }

    /// The names of what is set, in the order of [`Acl::NAMES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        Acl::NAMES.into_iter().filter(move |(acl, _)| self.contains(*acl)).map(|(_, n)| n)
    }
}

/// The family a command is documented in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Strings.
    String,
    /// Keys of any type.
    Generic,
    /// The connection and other connections.
    Connection,
    /// MULTI, EXEC and WATCH.
    Transactions,
    /// The server.
    Server,
}

impl Group {
    /// All groups, in the order of the documentation.
    pub const ALL: [Group; 5] =
        [Group::String, Group::Generic, Group::Transactions, Group::Connection, Group::Server];

    /// The name that `COMMAND DOCS` shows.
    pub const fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Generic => "generic",
            Group::Connection => "connection",
            Group::Transactions => "transactions",
            Group::Server => "server",
        }
    }
}

/// Where some keys of a command stand, and what it does to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// A remark for readers, or empty.
    pub notes: &'static str,
    /// What is done to the keys.
    pub flags: KeyFlags,
    /// Where they begin.
    pub begin: BeginSearch,
    /// How they go on from there.
    pub find: FindKeys,
}

/// Where the keys of a [`KeySpec`] begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this argument.
    Index(u8),
    /// Behind this word, looked for from argument `from` on; backwards from the end if negative.
    Keyword {
        /// The word, in any case.
        word: &'static str,
        /// Where the search starts.
        from: i8,
    },
}

/// How the keys of a [`KeySpec`] go on from where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// Up to an argument.
    Range {
        /// The last key counted from the first; if negative, counted from the last argument.
        last: i8,
        /// Arguments from one key to the next.
        step: u8,
        /// With `last` -1: a divisor of the arguments left over; 0 and 1 mean all of them.
        limit: u8,
    },
    /// As many as an argument says.
    KeyNum {
        /// Where the number stands, counted from the beginning.
        at: u8,
        /// Where the first key stands, counted from the beginning.
        first: u8,
        /// Arguments from one key to the next.
        step: u8,
    },
}

/// What a command does to the keys of a [`KeySpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    /// Reads the value or facts about it.
    pub const RO: KeyFlags = KeyFlags(1);
    /// Changes data that may depend on what was there.
    pub const RW: KeyFlags = KeyFlags(1 << 1);
    /// Overwrites.
    pub const OW: KeyFlags = KeyFlags(1 << 2);
    /// Removes.
    pub const RM: KeyFlags = KeyFlags(1 << 3);
    /// Returns, copies or uses the user's data.
    pub const ACCESS: KeyFlags = KeyFlags(1 << 4);
    /// Changes the user's data.
    pub const UPDATE: KeyFlags = KeyFlags(1 << 5);
    /// Adds data and changes none.
    pub const INSERT: KeyFlags = KeyFlags(1 << 6);
    /// Deletes the user's data.
    pub const DELETE: KeyFlags = KeyFlags(1 << 7);
    /// Looks like a key to a cluster, but names none.
    pub const NOT_KEY: KeyFlags = KeyFlags(1 << 8);
    /// The spec may miss keys.
    pub const INCOMPLETE: KeyFlags = KeyFlags(1 << 9);
    /// The flags depend on the arguments.
    pub const VARIABLE_FLAGS: KeyFlags = KeyFlags(1 << 10);

    /// Names in the order in which they are shown.
    pub const NAMES: [(KeyFlags, &'static str); 11] = [
        (KeyFlags::RO, "RO"),
        (KeyFlags::RW, "RW"),
        (KeyFlags::OW, "OW"),
        (KeyFlags::RM, "RM"),
        (KeyFlags::ACCESS, "access"),
        (KeyFlags::UPDATE, "update"),
        (KeyFlags::INSERT, "insert"),
        (KeyFlags::DELETE, "delete"),
        (KeyFlags::NOT_KEY, "not_key"),
        (KeyFlags::INCOMPLETE, "incomplete"),
        (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
    ];

    /// The union of a list, for tables.
    pub const fn of(list: &[KeyFlags]) -> KeyFlags {
        let mut all = 0;
        let mut i = 0;
        while i < list.len() {
            all |= list[i].0;
            i += 1;
        }
        KeyFlags(all)
    }

    /// Whether all of `other` is set.
    pub const fn contains(self, other: KeyFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of what is set, in the order of [`KeyFlags::NAMES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        KeyFlags::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, n)| n)
    }
}

/// What `COMMAND DOCS` says about a command.
#[derive(Debug)]
pub struct Docs {
    /// One line.
    pub summary: &'static str,
    /// How its time grows.
    pub complexity: &'static str,
    /// Since when it should not be used, and what replaces it.
    pub deprecated: Option<Deprecated>,
    /// Whether it speaks to the server's internals.
    pub syscmd: bool,
    /// Changes by version.
    pub history: &'static [(&'static str, &'static str)],
    /// The syntax.
    pub args: &'static [Arg],
}

impl Docs {
    /// Nothing said: what the others are built from.
    pub const NONE: Docs = Docs {
        summary: "",
        complexity: "",
        deprecated: None,
        syscmd: false,
        history: &[],
        args: &[],
    };
}

/// Since when a command should not be used, and what to use.
#[derive(Clone, Copy, Debug)]
pub struct Deprecated {
    /// The version.
    pub since: &'static str,
    /// In words, with the command's name in back quotes.
    pub replaced_by: &'static str,
}

/// One argument of a command's syntax.
#[derive(Debug)]
pub struct Arg {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: ArgKind,
    /// The word in front of it, or empty.
    pub token: &'static str,
    /// The version that added it, or empty for the command's own.
    pub since: &'static str,
    /// The version that deprecated it, or empty.
    pub deprecated_since: &'static str,
    /// Remarks, or empty.
    pub summary: &'static str,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated with it.
    pub multiple_token: bool,
    /// For keys: the number of the key spec that finds it.
    pub key_spec: Option<u8>,
    /// What a `oneof` or a `block` consists of.
    pub args: &'static [Arg],
}

impl Arg {
    /// An argument with nothing said: what the others are built from.
    pub const NONE: Arg = Arg {
        name: "",
        kind: ArgKind::String,
        token: "",
        since: "",
        deprecated_since: "",
        summary: "",
        optional: false,
        multiple: false,
        multiple_token: false,
        key_spec: None,
        args: &[],
    };
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A double.
    Double,
    /// A key.
    Key,
    /// A glob pattern.
    Pattern,
    /// Seconds or milliseconds since 1970.
    UnixTime,
    /// The word itself.
    PureToken,
    /// One of its parts.
    OneOf,
    /// All of its parts.
    Block,
}

impl ArgKind {
    /// The name that `COMMAND DOCS` shows.
    pub const fn name(self) -> &'static str {
        match self {
            ArgKind::String => "string",
            ArgKind::Integer => "integer",
            ArgKind::Double => "double",
            ArgKind::Key => "key",
            ArgKind::Pattern => "pattern",
            ArgKind::UnixTime => "unix-time",
            ArgKind::PureToken => "pure-token",
            ArgKind::OneOf => "oneof",
            ArgKind::Block => "block",
        }
    }
}
