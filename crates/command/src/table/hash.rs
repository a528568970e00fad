//! The table's entries for hashes.

use super::fragments::{CONDITION, COUNT, EXPIRATION_OR_KEEPTTL, EXPIRATION_OR_PERSIST, MATCH};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, LockClass, Traits as T,
};

const BASE: CommandSpec =
    CommandSpec { group: Group::Hash, acl: Acl::HASH, lock: LockClass::Keys, ..CommandSpec::BASE };

/// The fields that a command is about.
const FIELDS: Arg =
    Arg::block("fields", &[Arg::integer("numfields"), Arg::string("field").multiple()])
        .after("FIELDS");

const FIELD_VALUES: Arg =
    Arg::block("data", &[Arg::string("field"), Arg::string("value")]).multiple();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "hdel",
        full_name: "hdel",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        member: 2,
        member_step: 1,
        handler: Handler::Data(crate::hash::hdel),
        docs: &Docs {
            summary: "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
            complexity: "O(N) where N is the number of fields to be removed.",
            history: &[("2.4.0", "Accepts multiple `field` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("field").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hexists",
        full_name: "hexists",
        since: "2.0.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        member: 2,
        handler: Handler::Data(crate::hash::hexists),
        docs: &Docs {
            summary: "Determines whether a field exists in a hash.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hexpire",
        full_name: "hexpire",
        since: "7.4.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(crate::hash::hexpire),
        docs: &Docs {
            summary: "Set the expiration of one or more fields of a hash, in seconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), Arg::integer("seconds"), CONDITION, FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hexpireat",
        full_name: "hexpireat",
        since: "7.4.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::hash::hexpireat),
        docs: &Docs {
            summary: "Set the expiration of one or more fields of a hash to a Unix timestamp in seconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), Arg::unix_time("unix-time-seconds"), CONDITION, FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hexpiretime",
        full_name: "hexpiretime",
        since: "7.4.0",
        arity: -5,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hexpiretime),
        docs: &Docs {
            summary: "Return the Unix timestamp in seconds at which fields of a hash expire.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hget",
        full_name: "hget",
        since: "2.0.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        member: 2,
        handler: Handler::Data(crate::hash::hget),
        docs: &Docs {
            summary: "Returns the value of a field in a hash.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hgetall",
        full_name: "hgetall",
        since: "2.0.0",
        arity: 2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hgetall),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns all fields and values in a hash.",
            complexity: "O(N) where N is the size of the hash.",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hgetdel",
        full_name: "hgetdel",
        since: "8.0.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(crate::hash::hgetdel),
        docs: &Docs {
            summary: "Return the values of one or more fields of a hash and delete the fields.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hgetex",
        full_name: "hgetex",
        since: "8.0.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(crate::hash::hgetex),
        docs: &Docs {
            summary: "Return the values of one or more fields of a hash and optionally set their expiration.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), EXPIRATION_OR_PERSIST, FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hincrby",
        full_name: "hincrby",
        since: "2.0.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        member: 2,
        handler: Handler::Data(crate::hash::hincrby),
        docs: &Docs {
            summary: "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field"), Arg::integer("increment")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hincrbyfloat",
        full_name: "hincrbyfloat",
        since: "2.6.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(crate::hash::hincrbyfloat),
        docs: &Docs {
            summary: "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field"), Arg::double("increment")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hkeys",
        full_name: "hkeys",
        since: "2.0.0",
        arity: 2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hkeys),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns all fields in a hash.",
            complexity: "O(N) where N is the size of the hash.",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hlen",
        full_name: "hlen",
        since: "2.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(crate::hash::hlen),
        docs: &Docs {
            summary: "Returns the number of fields in a hash.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hmget",
        full_name: "hmget",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hmget),
        docs: &Docs {
            summary: "Returns the values of all fields in a hash.",
            complexity: "O(N) where N is the number of fields being requested.",
            args: &[Arg::key("key", 0), Arg::string("field").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hmset",
        full_name: "hmset",
        since: "2.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::UPDATE,
        member: 2,
        member_step: 2,
        handler: Handler::Data(crate::hash::hmset),
        docs: &Docs {
            summary: "Sets the values of multiple fields.",
            complexity: "O(N) where N is the number of fields being set.",
            deprecated: Some(Deprecated {
                since: "4.0.0",
                replaced_by: "`HSET` with multiple field-value pairs",
            }),
            args: &[Arg::key("key", 0), FIELD_VALUES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hpersist",
        full_name: "hpersist",
        since: "7.4.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::hash::hpersist),
        docs: &Docs {
            summary: "Remove the expiration of one or more fields of a hash.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hpexpire",
        full_name: "hpexpire",
        since: "7.4.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(crate::hash::hpexpire),
        docs: &Docs {
            summary: "Set the expiration of one or more fields of a hash, in milliseconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), Arg::integer("milliseconds"), CONDITION, FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hpexpireat",
        full_name: "hpexpireat",
        since: "7.4.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::hash::hpexpireat),
        docs: &Docs {
            summary: "Set the expiration of one or more fields of a hash to a Unix timestamp in milliseconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[
                Arg::key("key", 0),
                Arg::unix_time("unix-time-milliseconds"),
                CONDITION,
                FIELDS,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hpexpiretime",
        full_name: "hpexpiretime",
        since: "7.4.0",
        arity: -5,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hpexpiretime),
        docs: &Docs {
            summary: "Return the Unix timestamp in milliseconds at which fields of a hash expire.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hpttl",
        full_name: "hpttl",
        since: "7.4.0",
        arity: -5,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hpttl),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Return the remaining time to live of one or more fields of a hash, in milliseconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hrandfield",
        full_name: "hrandfield",
        since: "6.2.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hrandfield),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns one or more random fields from a hash.",
            complexity: "O(N) where N is the number of fields returned",
            args: &[
                Arg::key("key", 0),
                Arg::block(
                    "options",
                    &[Arg::integer("count"), Arg::token("withvalues", "WITHVALUES").optional()],
                )
                .optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hscan",
        full_name: "hscan",
        since: "2.8.0",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hscan),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Iterates over fields and values of a hash.",
            complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
            args: &[Arg::key("key", 0), Arg::integer("cursor"), MATCH, COUNT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hset",
        full_name: "hset",
        since: "2.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::UPDATE,
        member: 2,
        member_step: 2,
        handler: Handler::Data(crate::hash::hset),
        docs: &Docs {
            summary: "Creates or modifies the value of a field in a hash.",
            complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
            history: &[("4.0.0", "Accepts multiple `field` and `value` arguments.")],
            args: &[Arg::key("key", 0), FIELD_VALUES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hsetex",
        full_name: "hsetex",
        since: "8.0.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(crate::hash::hsetex),
        docs: &Docs {
            summary: "Set the values of one or more fields of a hash and optionally their expiration.",
            complexity: "O(N) where N is the number of fields being set.",
            args: &[
                Arg::key("key", 0),
                Arg::one_of("key-condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                    .optional(),
                Arg::one_of("condition", &[Arg::token("fnx", "FNX"), Arg::token("fxx", "FXX")])
                    .optional(),
                EXPIRATION_OR_KEEPTTL,
                Arg::block("fields", &[Arg::integer("numfields"), FIELD_VALUES]).after("FIELDS"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hsetnx",
        full_name: "hsetnx",
        since: "2.0.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        member: 2,
        handler: Handler::Data(crate::hash::hsetnx),
        docs: &Docs {
            summary: "Sets the value of a field in a hash only when the field doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field"), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hstrlen",
        full_name: "hstrlen",
        since: "3.2.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(crate::hash::hstrlen),
        docs: &Docs {
            summary: "Returns the length of the value of a field.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("field")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "httl",
        full_name: "httl",
        since: "7.4.0",
        arity: -5,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::hash::httl),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Return the remaining time to live of one or more fields of a hash, in seconds.",
            complexity: "O(N) where N is the number of specified fields",
            args: &[Arg::key("key", 0), FIELDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hvals",
        full_name: "hvals",
        since: "2.0.0",
        arity: 2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::hash::hvals),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns all values in a hash.",
            complexity: "O(N) where N is the size of the hash.",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
];
