//! The table's entries for sets.

use super::fragments::{AT_MOST, COUNT, MATCH};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec, LockClass,
    Traits as T,
};

const BASE: CommandSpec =
    CommandSpec { group: Group::Set, acl: Acl::SET, lock: LockClass::Keys, ..CommandSpec::BASE };

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "sadd",
        full_name: "sadd",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        member: 2,
        member_step: 1,
        handler: Handler::Data(crate::set::sadd),
        docs: &Docs {
            summary: "Adds one or more members to a set. Creates the key if it doesn't exist.",
            complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            history: &[("2.4.0", "Accepts multiple `member` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("member").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "scard",
        full_name: "scard",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(crate::set::scard),
        docs: &Docs {
            summary: "Returns the number of members in a set.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sdiff",
        full_name: "sdiff",
        since: "1.0.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ_ALL,
        handler: Handler::Data(crate::set::sdiff),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns the difference of multiple sets.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sdiffcard",
        full_name: "sdiffcard",
        since: "8.10.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::set::card_keys),
        handler: Handler::Data(crate::set::sdiffcard),
        docs: &Docs {
            summary: "Returns the number of members of the difference between the first set and all successive sets.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[Arg::integer("numkeys"), Arg::key("key", 0).multiple(), AT_MOST],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sdiffstore",
        full_name: "sdiffstore",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::OW, K::UPDATE])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])).to_end(1),
        ],
        handler: Handler::Data(crate::set::sdiffstore),
        docs: &Docs {
            summary: "Stores the difference of multiple sets in a key.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[Arg::key("destination", 0), Arg::key("key", 1).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sinter",
        full_name: "sinter",
        since: "1.0.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ_ALL,
        handler: Handler::Data(crate::set::sinter),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns the intersect of multiple sets.",
            complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sintercard",
        full_name: "sintercard",
        since: "7.0.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::set::card_keys),
        handler: Handler::Data(crate::set::sintercard),
        docs: &Docs {
            summary: "Returns the number of members of the intersect of multiple sets.",
            complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
            args: &[Arg::integer("numkeys"), Arg::key("key", 0).multiple(), AT_MOST],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sinterstore",
        full_name: "sinterstore",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RW, K::UPDATE])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])).to_end(1),
        ],
        handler: Handler::Data(crate::set::sinterstore),
        docs: &Docs {
            summary: "Stores the intersect of multiple sets in a key.",
            complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
            args: &[Arg::key("destination", 0), Arg::key("key", 1).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sismember",
        full_name: "sismember",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        member: 2,
        handler: Handler::Data(crate::set::sismember),
        docs: &Docs {
            summary: "Determines whether a member belongs to a set.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("member")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "smembers",
        full_name: "smembers",
        since: "1.0.0",
        arity: 2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::set::smembers),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns all members of a set.",
            complexity: "O(N) where N is the set cardinality.",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "smismember",
        full_name: "smismember",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::set::smismember),
        docs: &Docs {
            summary: "Determines whether multiple members belong to a set.",
            complexity: "O(N) where N is the number of elements being checked for membership",
            args: &[Arg::key("key", 0), Arg::string("member").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "smove",
        full_name: "smove",
        since: "1.0.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::MOVE,
        handler: Handler::Data(crate::set::smove),
        docs: &Docs {
            summary: "Moves a member from one set to another.",
            complexity: "O(1)",
            args: &[Arg::key("source", 0), Arg::key("destination", 1), Arg::string("member")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "spop",
        full_name: "spop",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(crate::set::spop),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns one or more random members from a set after removing them. Deletes the set if the last member was popped.",
            complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
            history: &[("3.2.0", "Added the `count` argument.")],
            args: &[Arg::key("key", 0), Arg::integer("count").optional().since("3.2.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "srandmember",
        full_name: "srandmember",
        since: "1.0.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::set::srandmember),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Get one or multiple random members from a set",
            complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
            history: &[("2.6.0", "Added the optional `count` argument.")],
            args: &[Arg::key("key", 0), Arg::integer("count").optional().since("2.6.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "srem",
        full_name: "srem",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        member: 2,
        member_step: 1,
        handler: Handler::Data(crate::set::srem),
        docs: &Docs {
            summary: "Removes one or more members from a set. Deletes the set if the last member was removed.",
            complexity: "O(N) where N is the number of members to be removed.",
            history: &[("2.4.0", "Accepts multiple `member` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("member").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sscan",
        full_name: "sscan",
        since: "2.8.0",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::set::sscan),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Iterates over members of a set.",
            complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
            args: &[Arg::key("key", 0), Arg::integer("cursor"), MATCH, COUNT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sunion",
        full_name: "sunion",
        since: "1.0.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ_ALL,
        handler: Handler::Data(crate::set::sunion),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns the union of multiple sets.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sunioncard",
        full_name: "sunioncard",
        since: "8.10.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::set::card_keys),
        handler: Handler::Data(crate::set::sunioncard),
        docs: &Docs {
            summary: "Returns the number of members of the union of multiple sets.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[
                Arg::integer("numkeys"),
                Arg::key("key", 0).multiple(),
                Arg::token("approx", "APPROX").optional(),
                AT_MOST,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sunionstore",
        full_name: "sunionstore",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::OW, K::UPDATE])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])).to_end(1),
        ],
        handler: Handler::Data(crate::set::sunionstore),
        docs: &Docs {
            summary: "Stores the union of multiple sets in a key.",
            complexity: "O(N) where N is the total number of elements in all given sets.",
            args: &[Arg::key("destination", 0), Arg::key("key", 1).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
];
