//! The table's entries for HyperLogLogs.

use super::keys;
use crate::hll;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec, LockClass,
    Traits as T,
};

const BASE: CommandSpec = CommandSpec {
    group: Group::Hyperloglog,
    acl: Acl::HYPERLOGLOG,
    lock: LockClass::Keys,
    ..CommandSpec::BASE
};

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "pfadd",
        full_name: "pfadd",
        since: "2.8.9",
        arity: -2,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(hll::pfadd),
        docs: &Docs {
            summary: "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
            complexity: "O(1) to add every element.",
            args: &[Arg::key("key", 0), Arg::string("element").optional().multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pfcount",
        full_name: "pfcount",
        since: "2.8.9",
        arity: -2,
        flags: F::READONLY,
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS])).to_end(1).note(
            "RW because it may change the internal representation of the key, and propagate to replicas",
        )],
        traits: T::MAY_REPLICATE,
        handler: Handler::Data(hll::pfcount),
        docs: &Docs {
            summary: "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
            complexity: "O(1) with a very small average constant time when called with a single key. O(N) with N being the number of keys, and much bigger constant times, when called with multiple keys.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pfdebug",
        full_name: "pfdebug",
        since: "2.8.9",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::ADMIN]),
        keys: &[KeySpec::at(2, K::of(&[K::RW, K::ACCESS]))],
        handler: Handler::Data(hll::pfdebug),
        docs: &Docs {
            summary: "Internal commands for debugging HyperLogLog values.",
            complexity: "N/A",
            syscmd: true,
            args: &[Arg::string("subcommand"), Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pfmerge",
        full_name: "pfmerge",
        since: "2.8.9",
        arity: -2,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::INSERT])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])).to_end(1),
        ],
        handler: Handler::Data(hll::pfmerge),
        docs: &Docs {
            summary: "Merges one or more HyperLogLog values into a single key.",
            complexity: "O(N) to merge N HyperLogLogs, but with high constant times.",
            args: &[Arg::key("destkey", 0), Arg::key("sourcekey", 1).optional().multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pfselftest",
        full_name: "pfselftest",
        since: "2.8.9",
        arity: 1,
        flags: F::ADMIN,
        lock: LockClass::None,
        traits: T::MAY_REPLICATE,
        handler: Handler::Data(hll::pfselftest),
        docs: &Docs {
            summary: "An internal command for testing HyperLogLog values.",
            complexity: "N/A",
            syscmd: true,
            ..Docs::NONE
        },
        ..BASE
    },
];
