//! What DEBUG is asked for.

use super::bytes::Bytes;

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
    /// Loads the snapshot file.
    Reload {
        /// The data is saved there before.
        saves: bool,
        /// It is removed from memory before.
        flushes: bool,
    },
    /// Loads the append-only file.
    LoadAof,
    /// Lengths and allocations of a key and of its text.
    SdsLen {
        /// The key.
        key: Bytes,
    },
    /// Stops what is done now and then: expiry, idle clients, figures.
    PauseCron(bool),
    /// Has each worker hand a client on to the next one again and again.
    MoveClients(bool),
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
