//! The table's entries for strings.

use super::fragments::{EXPIRATION_OR_KEEPTTL, EXPIRATION_OR_PERSIST};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec,
    LockClass, Traits as T,
};
use crate::string;

const BASE: CommandSpec = CommandSpec {
    group: Group::String,
    acl: Acl::STRING,
    lock: LockClass::Keys,
    ..CommandSpec::BASE
};

const KEY_VALUES: Arg = Arg::block("data", &[Arg::key("key", 0), Arg::string("value")]).multiple();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "append",
        full_name: "append",
        since: "2.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(string::append),
        docs: &Docs {
            summary: "Appends a string to the value of a key. Creates the key if it doesn't exist.",
            complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small and the already present value is of any size, since the dynamic string library used by Redis will double the free space available on every reallocation.",
            args: &[Arg::key("key", 0), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "decr",
        full_name: "decr",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::decr),
        docs: &Docs {
            summary: "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "decrby",
        full_name: "decrby",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::decrby),
        docs: &Docs {
            summary: "Decrements a number from the integer value of a key. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::integer("decrement")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "delex",
        full_name: "delex",
        since: "8.4.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::DELETE, K::VARIABLE_FLAGS]))],
        key_flags: Some(string::delex_key_flags),
        handler: Handler::Data(string::delex),
        docs: &Docs {
            summary: "Conditionally removes the specified key based on value or digest comparison.",
            complexity: "O(1) for IFEQ/IFNE, O(N) for IFDEQ/IFDNE where N is the length of the string value.",
            args: &[
                Arg::key("key", 0),
                Arg::one_of(
                    "condition",
                    &[
                        Arg::string("ifeq-value").after("IFEQ"),
                        Arg::string("ifne-value").after("IFNE"),
                        Arg::string("ifdeq-digest").after("IFDEQ"),
                        Arg::string("ifdne-digest").after("IFDNE"),
                    ],
                )
                .optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "delifeq",
        full_name: "delifeq",
        since: "9.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(string::delifeq),
        docs: &Docs {
            summary: "Delete key if value matches string.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "digest",
        full_name: "digest",
        since: "8.4.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(string::digest),
        docs: &Docs {
            summary: "Returns the XXH3 hash of a string value.",
            complexity: "O(N) where N is the length of the string value.",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "get",
        full_name: "get",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(string::get),
        docs: &Docs {
            summary: "Returns the string value of a key.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "getdel",
        full_name: "getdel",
        since: "6.2.0",
        arity: 2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(string::getdel),
        docs: &Docs {
            summary: "Returns the string value of a key after deleting the key.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "getex",
        full_name: "getex",
        since: "6.2.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::UPDATE]))
            .note("RW and UPDATE because it changes the TTL")],
        traits: T::OWN_RECORD,
        handler: Handler::Data(string::getex),
        docs: &Docs {
            summary: "Returns the string value of a key after setting its expiration time.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), EXPIRATION_OR_PERSIST],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "getrange",
        full_name: "getrange",
        since: "2.4.0",
        arity: 4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(string::getrange),
        docs: &Docs {
            summary: "Returns a substring of the string stored at a key.",
            complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("end")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "getset",
        full_name: "getset",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::getset),
        docs: &Docs {
            summary: "Returns the previous string value of a key after setting it to a new value.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`SET` with the `!GET` argument",
            }),
            args: &[Arg::key("key", 0), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "incr",
        full_name: "incr",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::incr),
        docs: &Docs {
            summary: "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "incrby",
        full_name: "incrby",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::incrby),
        docs: &Docs {
            summary: "Increments the integer value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::integer("increment")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "incrbyfloat",
        full_name: "incrbyfloat",
        since: "2.6.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(string::incrbyfloat),
        docs: &Docs {
            summary: "Increment the floating point value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::double("increment")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "increx",
        full_name: "increx",
        since: "8.8.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(string::increx),
        docs: &Docs {
            summary: "Increments the numeric value of a key by a number and sets its expiration time. Uses 0 as initial value if the key doesn't exist.",
            complexity: "O(1)",
            args: &[
                Arg::key("key", 0),
                Arg::one_of(
                    "condition",
                    &[Arg::token("nx", "NX").since("9.2.0"), Arg::token("xx", "XX").since("9.2.0")],
                )
                .optional(),
                Arg::one_of(
                    "increment",
                    &[
                        Arg::double("float").after("BYFLOAT"),
                        Arg::integer("integer").after("BYINT"),
                    ],
                )
                .optional(),
                Arg::token("saturate", "SATURATE").optional(),
                Arg::string("lowerbound").after("LBOUND").optional(),
                Arg::string("upperbound").after("UBOUND").optional(),
                EXPIRATION_OR_PERSIST,
                Arg::token("enx", "ENX").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lcs",
        full_name: "lcs",
        since: "7.0.0",
        arity: -3,
        flags: F::READONLY,
        keys: &[KeySpec::at(1, K::of(&[K::RO, K::ACCESS])).and_next(1)],
        handler: Handler::Data(string::lcs),
        docs: &Docs {
            summary: "Finds the longest common substring.",
            complexity: "O(N*M) where N and M are the lengths of s1 and s2, respectively",
            args: &[
                Arg::key("key1", 0),
                Arg::key("key2", 0),
                Arg::token("len", "LEN").optional(),
                Arg::token("idx", "IDX").optional(),
                Arg::integer("min-match-len").after("MINMATCHLEN").optional(),
                Arg::token("withmatchlen", "WITHMATCHLEN").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "mget",
        full_name: "mget",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ_ALL,
        handler: Handler::Data(string::mget),
        tips: &["request_policy:multi_shard"],
        docs: &Docs {
            summary: "Atomically returns the string values of one or more keys.",
            complexity: "O(N) where N is the number of keys to retrieve.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "mset",
        full_name: "mset",
        since: "1.0.1",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[KeySpec::at(1, K::of(&[K::OW, K::UPDATE])).to_end(2)],
        handler: Handler::Data(string::mset),
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        docs: &Docs {
            summary: "Atomically creates or modifies the string values of one or more keys.",
            complexity: "O(N) where N is the number of keys to set.",
            args: &[KEY_VALUES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "msetex",
        full_name: "msetex",
        since: "8.4.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: &[KeySpec::at(1, K::of(&[K::OW, K::UPDATE])).counted(2)],
        touched: Some(string::msetex_keys),
        traits: T::OWN_RECORD,
        handler: Handler::Data(string::msetex),
        docs: &Docs {
            summary: "Atomically sets multiple string keys with a shared expiration in a single operation.",
            complexity: "O(N) where N is the number of keys to set.",
            args: &[
                Arg::integer("numkeys"),
                KEY_VALUES,
                Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                    .optional(),
                EXPIRATION_OR_KEEPTTL,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "msetnx",
        full_name: "msetnx",
        since: "1.0.1",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[KeySpec::at(1, K::of(&[K::OW, K::INSERT])).to_end(2)],
        handler: Handler::Data(string::msetnx),
        docs: &Docs {
            summary: "Atomically modifies the string values of one or more keys only when all keys don't exist.",
            complexity: "O(N) where N is the number of keys to set.",
            args: &[KEY_VALUES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "psetex",
        full_name: "psetex",
        since: "2.6.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::OVERWRITE,
        traits: T::of(&[T::BOUNDED, T::OWN_RECORD]),
        handler: Handler::Data(string::psetex),
        docs: &Docs {
            summary: "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't exist.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "2.6.12",
                replaced_by: "`SET` with the `PX` argument",
            }),
            args: &[Arg::key("key", 0), Arg::integer("milliseconds"), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "set",
        full_name: "set",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::UPDATE, K::VARIABLE_FLAGS]))
            .note("RW and ACCESS due to the optional `GET` argument")],
        traits: T::of(&[T::BOUNDED, T::OWN_RECORD]),
        key_flags: Some(string::set_key_flags),
        handler: Handler::Data(string::set),
        docs: &Docs {
            summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
            complexity: "O(1)",
            history: &[
                ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
                ("6.0.0", "Added the `KEEPTTL` option."),
                ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
                ("7.0.0", "Allowed the `NX` and `GET` options to be used together."),
                ("8.1.0", "Added the `IFEQ` option."),
                ("8.4.0", "Added the `IFNE`, `IFDEQ` and `IFDNE` options."),
            ],
            args: &[
                Arg::key("key", 0),
                Arg::string("value"),
                Arg::one_of(
                    "condition",
                    &[
                        Arg::token("nx", "NX"),
                        Arg::token("xx", "XX"),
                        Arg::string("ifeq-value").after("IFEQ").since("8.1.0"),
                        Arg::string("ifne-value").after("IFNE").since("8.4.0"),
                        Arg::string("ifdeq-digest").after("IFDEQ").since("8.4.0"),
                        Arg::string("ifdne-digest").after("IFDNE").since("8.4.0"),
                    ],
                )
                .optional()
                .since("2.6.12"),
                Arg::token("get", "GET").optional().since("6.2.0"),
                Arg::one_of(
                    "expiration",
                    &[
                        Arg::integer("seconds").after("EX").since("2.6.12"),
                        Arg::integer("milliseconds").after("PX").since("2.6.12"),
                        Arg::unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                        Arg::unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                        Arg::token("keepttl", "KEEPTTL").since("6.0.0"),
                    ],
                )
                .optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "setex",
        full_name: "setex",
        since: "2.0.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::OVERWRITE,
        traits: T::of(&[T::BOUNDED, T::OWN_RECORD]),
        handler: Handler::Data(string::setex),
        docs: &Docs {
            summary: "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "2.6.12",
                replaced_by: "`SET` with the `EX` argument",
            }),
            args: &[Arg::key("key", 0), Arg::integer("seconds"), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "setnx",
        full_name: "setnx",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: &[KeySpec::at(1, K::of(&[K::OW, K::INSERT]))],
        handler: Handler::Data(string::setnx),
        docs: &Docs {
            summary: "Set the string value of a key only when the key doesn't exist.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "2.6.12",
                replaced_by: "`SET` with the `NX` argument",
            }),
            args: &[Arg::key("key", 0), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "setrange",
        full_name: "setrange",
        since: "2.2.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::UPDATE,
        handler: Handler::Data(string::setrange),
        docs: &Docs {
            summary: "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
            complexity: "O(1), not counting the time taken to copy the new string in place. Usually, this string is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value argument.",
            args: &[Arg::key("key", 0), Arg::integer("offset"), Arg::string("value")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "strlen",
        full_name: "strlen",
        since: "2.2.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(string::strlen),
        docs: &Docs {
            summary: "Returns the length of a string value.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "substr",
        full_name: "substr",
        since: "1.0.0",
        arity: 4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(string::substr),
        docs: &Docs {
            summary: "Returns a substring from a string value.",
            complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
            deprecated: Some(Deprecated { since: "2.0.0", replaced_by: "`GETRANGE`" }),
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("end")],
            ..Docs::NONE
        },
        ..BASE
    },
];
