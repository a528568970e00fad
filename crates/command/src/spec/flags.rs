//! Sets of flags and of ACL categories, with the names that clients see.

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
    /// Publishes, subscribes, or tells who does.
    pub const PUBSUB: Flags = Flags(1 << 4);
    /// Not from scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 5);
    /// May block the client.
    pub const BLOCKING: Flags = Flags(1 << 6);
    /// Allowed while data is being loaded.
    pub const LOADING: Flags = Flags(1 << 7);
    /// Allowed on a replica with stale data.
    pub const STALE: Flags = Flags(1 << 8);
    /// Not in the slow log.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// Constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 12);
    /// Allowed without authentication.
    pub const NO_AUTH: Flags = Flags(1 << 13);
    /// Not while data is being loaded beside older data that is served.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 16);
    /// Not inside a transaction.
    pub const NO_MULTI: Flags = Flags(1 << 17);
    /// The key specs do not tell all keys by position.
    pub const MOVABLEKEYS: Flags = Flags(1 << 18);
    /// Allowed while a script keeps the server busy.
    pub const ALLOW_BUSY: Flags = Flags(1 << 19);

    /// Names in the order in which they are shown.
    pub const NAMES: [(Flags, &'static str); 16] = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
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

    /// Whether anything of `other` is set.
    #[inline(always)]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of what is set, in the order of [`Flags::NAMES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        Flags::NAMES.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, n)| n)
    }
}

/// What only the server needs to know about a command: clients do not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(u32);

impl Traits {
    /// None of them.
    pub const NONE: Traits = Traits(0);
    /// May change data or be propagated although it is no write: CLIENT PAUSE WRITE holds it back.
    pub const MAY_REPLICATE: Traits = Traits(1);
    /// Runs the commands that MULTI has queued: a gate that would stop one of them stops it.
    pub const RUNS_QUEUE: Traits = Traits(1 << 1);
    /// Ends an open transaction, and so runs although memory is full.
    pub const ENDS_MULTI: Traits = Traits(1 << 2);
    /// Acts on the open transaction or the connection instead of being queued.
    pub const NOT_QUEUED: Traits = Traits(1 << 3);
    /// Refused inside MULTI, because it waits for another server.
    pub const AWAITS_SERVER: Traits = Traits(1 << 4);
    /// Takes bounded time for any arguments and any value, although it does not have the flag
    /// `fast`. (Setting a big value moves a reference.)
    pub const BOUNDED: Traits = Traits(1 << 5);
    /// Runs although another worker holds World for long.
    pub const PASSES_CLOSED_GATE: Traits = Traits(1 << 6);
    /// Freezes the slots of its keys: waits only for those of them that are frozen already.
    pub const FREEZES: Traits = Traits(1 << 7);
    /// Allowed only where `enable-debug-command` says so.
    pub const DEBUG: Traits = Traits(1 << 8);
    /// Its effect depends on more than its request and the data: on the time, on chance, on other
    /// clients. To replay the effect, something else than the request must be recorded.
    pub const OWN_RECORD: Traits = Traits(1 << 9);
    /// Reads a small database at one moment, for which all other commands wait. Reads a larger one
    /// in steps.
    pub const ONE_MOMENT: Traits = Traits(1 << 10);
    /// Runs other commands. When the undo log of all of them grows too large, those that have ended
    /// are committed: from then on they cannot be rolled back.
    pub const COMMITS_IN_PARTS: Traits = Traits(1 << 11);
    /// Leaves watches at its keys, which take memory: refused where memory is full.
    pub const WATCHES: Traits = Traits(1 << 12);
    /// Tells who watches the server that its saves fail: refused like a write while they stop
    /// writes (`stop-writes-on-bgsave-error`).
    pub const TELLS_SAVE_ERRORS: Traits = Traits(1 << 13);
    /// A RESP2 client that has subscriptions may send it.
    pub const WHILE_SUBSCRIBED: Traits = Traits(1 << 14);
    /// Each part of its reply is complete by itself and is sent whatever CLIENT REPLY says.
    pub const CONFIRMS: Traits = Traits(1 << 15);
    /// May have its client told of changes from here on: World, unless changes are told already.
    pub const TRACKS: Traits = Traits(1 << 16);
    /// What CLIENT CACHING has said about the next command holds on behind it.
    pub const KEEPS_CACHING: Traits = Traits(1 << 17);
    /// Publishes a message: its first argument is the channel.
    pub const PUBLISHES: Traits = Traits(1 << 18);

    /// The union of a list, for tables.
    pub const fn of(list: &[Traits]) -> Traits {
        let mut all = 0;
        let mut i = 0;
        while i < list.len() {
            all |= list[i].0;
            i += 1;
        }
        Traits(all)
    }

    /// Whether all of `other` is set.
    #[inline(always)]
    pub const fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Which arguments are secrets: logs do not show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// None.
    None,
    /// A user and a password, the first arguments.
    Credentials,
    /// A user and a password behind AUTH.
    BehindAuth,
    /// Those of the target, up to KEYS.
    OfTarget,
    /// The values of secret settings.
    Settings,
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
    /// Publishing and subscribing.
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

    /// Names in the order in which they are shown, without the `@`.
    pub const NAMES: [(Acl, &'static str); 20] = [
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
