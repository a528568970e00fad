//! The table's entries for keys of any type.

use super::fragments::{CONDITION, COUNT, LIMIT, MATCH, ORDER, help};
use super::keys;
use crate::generic;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec, LockClass,
    Secrets, Traits as T,
};

const BASE: CommandSpec = CommandSpec { group: Group::Generic, ..CommandSpec::BASE };

/// Of EXPIRE and its like.
const EXPIRE_HISTORY: &[(&str, &str)] = &[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")];

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "copy",
        full_name: "copy",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        acl: Acl::KEYSPACE,
        keys: &[
            KeySpec::at(1, K::of(&[K::RO, K::ACCESS])),
            KeySpec::at(2, K::of(&[K::OW, K::UPDATE])),
        ],
        lock: LockClass::Keys,
        into: Some(generic::copy_into),
        handler: Handler::Data(generic::copy),
        docs: &Docs {
            summary: "Copies the value of a key to a new key.",
            complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
            args: &[
                Arg::key("source", 0),
                Arg::key("destination", 1),
                Arg::integer("destination-db").after("DB").optional(),
                Arg::token("replace", "REPLACE").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "del",
        full_name: "del",
        since: "1.0.0",
        arity: -2,
        flags: F::WRITE,
        acl: Acl::KEYSPACE,
        keys: &[KeySpec::at(1, K::of(&[K::RM, K::DELETE])).to_end(1)],
        lock: LockClass::Keys,
        handler: Handler::Data(generic::del),
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        docs: &Docs {
            summary: "Deletes one or more keys.",
            complexity: "O(N) where N is the number of keys that will be removed. When a key to remove holds a value other than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, set, sorted set or hash. Removing a single key that holds a string value is O(1).",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "dump",
        full_name: "dump",
        since: "2.6.0",
        arity: 2,
        flags: F::READONLY,
        acl: Acl::KEYSPACE,
        keys: keys::READ,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::dump),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns a serialized representation of the value stored at a key.",
            complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "exists",
        full_name: "exists",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::LOOK_ALL,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::exists),
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        docs: &Docs {
            summary: "Determines whether one or more keys exist.",
            complexity: "O(N) where N is the number of keys to check.",
            history: &[("3.0.3", "Accepts multiple `key` arguments.")],
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "expire",
        full_name: "expire",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::UPDATE,
        lock: LockClass::Keys,
        traits: T::OWN_RECORD,
        handler: Handler::Data(generic::expire),
        docs: &Docs {
            summary: "Sets the expiration time of a key in seconds.",
            complexity: "O(1)",
            history: EXPIRE_HISTORY,
            args: &[Arg::key("key", 0), Arg::integer("seconds"), CONDITION.since("7.0.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "expireat",
        full_name: "expireat",
        since: "1.2.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::UPDATE,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::expireat),
        docs: &Docs {
            summary: "Sets the expiration time of a key to a Unix timestamp.",
            complexity: "O(1)",
            history: EXPIRE_HISTORY,
            args: &[
                Arg::key("key", 0),
                Arg::unix_time("unix-time-seconds"),
                CONDITION.since("7.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "expiretime",
        full_name: "expiretime",
        since: "7.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::READ,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::expiretime),
        docs: &Docs {
            summary: "Returns the expiration time of a key as a Unix timestamp.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "keys",
        full_name: "keys",
        since: "1.0.0",
        arity: 2,
        flags: F::READONLY,
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        lock: LockClass::Each,
        traits: T::ONE_MOMENT,
        handler: Handler::Data(generic::keys),
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns all key names that match a pattern.",
            complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
            args: &[Arg::pattern("pattern")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "migrate",
        full_name: "migrate",
        since: "2.6.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::MOVABLEKEYS]),
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        keys: &[
            KeySpec::at(3, K::of(&[K::RW, K::ACCESS, K::DELETE])),
            KeySpec::behind("KEYS", -2, K::of(&[K::RW, K::ACCESS, K::DELETE, K::INCOMPLETE]))
                .to_end(1),
        ],
        touched: Some(generic::migrate_keys),
        getkeys: Some(generic::migrate_getkeys),
        lock: LockClass::World,
        traits: T::of(&[T::AWAITS_SERVER, T::FREEZES, T::OWN_RECORD]),
        secrets: Secrets::OfTarget,
        handler: Handler::Server(generic::migrate),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Atomically transfers a key from one Redis instance to another.",
            complexity: "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target instance. See the pages of these commands for time complexity. Also an O(N) data transfer between the two instances is performed.",
            history: &[
                ("3.0.0", "Added the `COPY` and `REPLACE` options."),
                ("3.0.6", "Added the `KEYS` option."),
                ("4.0.7", "Added the `AUTH` option."),
                ("6.0.0", "Added the `AUTH2` option."),
            ],
            args: &[
                Arg::string("host"),
                Arg::integer("port"),
                Arg::one_of("key-selector", &[Arg::key("key", 0), Arg::token("empty-string", "")]),
                Arg::integer("destination-db"),
                Arg::integer("timeout"),
                Arg::token("copy", "COPY").optional().since("3.0.0"),
                Arg::token("replace", "REPLACE").optional().since("3.0.0"),
                Arg::one_of(
                    "authentication",
                    &[
                        Arg::string("auth").shown("password").after("AUTH").since("4.0.7"),
                        Arg::block("auth2", &[Arg::string("username"), Arg::string("password")])
                            .after("AUTH2").since("6.0.0"),
                    ],
                ).optional(),
                Arg::key("keys", 1).shown("key").after("KEYS").optional().multiple().since("3.0.6"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "move",
        full_name: "move",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::READ_UPDATE,
        lock: LockClass::Keys,
        into: Some(generic::move_into),
        handler: Handler::Data(generic::move_key),
        docs: &Docs {
            summary: "Moves a key to another database.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::integer("db")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "object",
        full_name: "object",
        since: "2.2.3",
        arity: -2,
        docs: &Docs {
            summary: "A container for object introspection commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "encoding",
                full_name: "object|encoding",
                since: "2.2.3",
                arity: 3,
                flags: F::READONLY,
                acl: Acl::KEYSPACE,
                keys: keys::SECOND_LOOK,
                lock: LockClass::Keys,
                handler: Handler::Data(generic::object_encoding),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the internal encoding of a Redis object.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "freq",
                full_name: "object|freq",
                since: "4.0.0",
                arity: 3,
                flags: F::READONLY,
                acl: Acl::KEYSPACE,
                keys: keys::SECOND_LOOK,
                lock: LockClass::Keys,
                handler: Handler::Data(generic::object_freq),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the logarithmic access frequency counter of a Redis object.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                full_name: "object|help",
                since: "6.2.0",
                acl: Acl::KEYSPACE,
                ..help(&BASE)
            },
            CommandSpec {
                name: "idletime",
                full_name: "object|idletime",
                since: "2.2.3",
                arity: 3,
                flags: F::READONLY,
                acl: Acl::KEYSPACE,
                keys: keys::SECOND_LOOK,
                lock: LockClass::Keys,
                handler: Handler::Data(generic::object_idletime),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the time since the last access to a Redis object.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "refcount",
                full_name: "object|refcount",
                since: "2.2.3",
                arity: 3,
                flags: F::READONLY,
                acl: Acl::KEYSPACE,
                keys: keys::SECOND_LOOK,
                lock: LockClass::Keys,
                handler: Handler::Data(generic::object_refcount),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the reference count of a value of a key.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0)],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "persist",
        full_name: "persist",
        since: "2.2.0",
        arity: 2,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::UPDATE,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::persist),
        docs: &Docs {
            summary: "Removes the expiration time of a key.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pexpire",
        full_name: "pexpire",
        since: "2.6.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::UPDATE,
        lock: LockClass::Keys,
        traits: T::OWN_RECORD,
        handler: Handler::Data(generic::pexpire),
        docs: &Docs {
            summary: "Sets the expiration time of a key in milliseconds.",
            complexity: "O(1)",
            history: EXPIRE_HISTORY,
            args: &[Arg::key("key", 0), Arg::integer("milliseconds"), CONDITION.since("7.0.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pexpireat",
        full_name: "pexpireat",
        since: "2.6.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::UPDATE,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::pexpireat),
        docs: &Docs {
            summary: "Sets the expiration time of a key to a Unix milliseconds timestamp.",
            complexity: "O(1)",
            history: EXPIRE_HISTORY,
            args: &[
                Arg::key("key", 0),
                Arg::unix_time("unix-time-milliseconds"),
                CONDITION.since("7.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pexpiretime",
        full_name: "pexpiretime",
        since: "7.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::READ,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::pexpiretime),
        docs: &Docs {
            summary: "Returns the expiration time of a key as a Unix milliseconds timestamp.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "pttl",
        full_name: "pttl",
        since: "2.6.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::READ,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::pttl),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns the expiration time in milliseconds of a key.",
            complexity: "O(1)",
            history: &[("2.8.0", "Added the -2 reply.")],
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "randomkey",
        full_name: "randomkey",
        since: "1.0.0",
        arity: 1,
        flags: F::READONLY,
        acl: Acl::KEYSPACE,
        lock: LockClass::Each,
        walk: Some(generic::randomkey_walk),
        handler: Handler::Data(generic::randomkey),
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        docs: &Docs {
            summary: "Returns a random key name from the database.",
            complexity: "O(1)",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "rename",
        full_name: "rename",
        since: "1.0.0",
        arity: 3,
        flags: F::WRITE,
        acl: Acl::KEYSPACE,
        keys: &[
            KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])),
            KeySpec::at(2, K::of(&[K::OW, K::UPDATE])),
        ],
        lock: LockClass::Keys,
        handler: Handler::Data(generic::rename),
        docs: &Docs {
            summary: "Renames a key and overwrites the destination.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::key("newkey", 1)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "renamenx",
        full_name: "renamenx",
        since: "1.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: &[
            KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])),
            KeySpec::at(2, K::of(&[K::OW, K::INSERT])),
        ],
        lock: LockClass::Keys,
        handler: Handler::Data(generic::renamenx),
        docs: &Docs {
            summary: "Renames a key only when the target key name doesn't exist.",
            complexity: "O(1)",
            history: &[(
                "3.2.0",
                "The command no longer returns an error when source and destination names are the same.",
            )],
            args: &[Arg::key("key", 0), Arg::key("newkey", 1)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "restore",
        full_name: "restore",
        since: "2.6.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        keys: keys::OVERWRITE,
        lock: LockClass::Keys,
        traits: T::OWN_RECORD,
        handler: Handler::Data(generic::restore),
        docs: &Docs {
            summary: "Creates a key from the serialized representation of a value.",
            complexity: "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of Redis objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
            history: &[
                ("3.0.0", "Added the `REPLACE` modifier."),
                ("5.0.0", "Added the `ABSTTL` modifier."),
                ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
            ],
            args: &[
                Arg::key("key", 0),
                Arg::integer("ttl"),
                Arg::string("serialized-value"),
                Arg::token("replace", "REPLACE").optional().since("3.0.0"),
                Arg::token("absttl", "ABSTTL").optional().since("5.0.0"),
                Arg::integer("seconds").after("IDLETIME").optional().since("5.0.0"),
                Arg::integer("frequency").after("FREQ").optional().since("5.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "scan",
        full_name: "scan",
        since: "2.8.0",
        arity: -2,
        flags: F::READONLY,
        acl: Acl::KEYSPACE,
        lock: LockClass::Each,
        walk: Some(generic::scan_walk),
        handler: Handler::Data(generic::scan),
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        docs: &Docs {
            summary: "Iterates over the key names in the database.",
            complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
            history: &[("6.0.0", "Added the `TYPE` subcommand.")],
            args: &[
                Arg::integer("cursor"),
                MATCH,
                COUNT,
                Arg::string("type").after("TYPE").optional().since("6.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sort",
        full_name: "sort",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        acl: Acl::of(&[Acl::SET, Acl::SORTEDSET, Acl::LIST, Acl::DANGEROUS]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RO, K::ACCESS])),
            KeySpec::unknown(K::of(&[K::RO, K::ACCESS])).note("For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort"),
            KeySpec::unknown(K::of(&[K::OW, K::UPDATE])).note("For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array"),
        ],
        touched: Some(generic::sort_keys),
        getkeys: Some(generic::sort_getkeys),
        lock: LockClass::Growing,
        handler: Handler::Data(generic::sort),
        docs: &Docs {
            summary: "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
            complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
            args: &[
                Arg::key("key", 0),
                Arg::pattern("by-pattern").spec(1).shown("pattern").after("BY").optional(),
                LIMIT,
                Arg::pattern("get-pattern")
                    .spec(1)
                    .shown("pattern")
                    .after("GET")
                    .optional()
                    .multiple()
                    .multiple_token(),
                ORDER,
                Arg::token("sorting", "ALPHA").optional(),
                Arg::key("destination", 2).after("STORE").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "sort_ro",
        full_name: "sort_ro",
        since: "7.0.0",
        arity: -2,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        acl: Acl::of(&[Acl::SET, Acl::SORTEDSET, Acl::LIST, Acl::DANGEROUS]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RO, K::ACCESS])),
            KeySpec::unknown(K::of(&[K::RO, K::ACCESS])).note("For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort"),
        ],
        touched: Some(generic::sort_ro_keys),
        lock: LockClass::Growing,
        handler: Handler::Data(generic::sort_ro),
        docs: &Docs {
            summary: "Returns the sorted elements of a list, a set, or a sorted set.",
            complexity: "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).",
            args: &[
                Arg::key("key", 0),
                Arg::pattern("by-pattern").spec(1).shown("pattern").after("BY").optional(),
                LIMIT,
                Arg::pattern("get-pattern")
                    .spec(1)
                    .shown("pattern")
                    .after("GET")
                    .optional()
                    .multiple()
                    .multiple_token(),
                ORDER,
                Arg::token("sorting", "ALPHA").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "touch",
        full_name: "touch",
        since: "3.2.1",
        arity: -2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::LOOK_ALL,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::touch),
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        docs: &Docs {
            summary: "Returns the number of existing keys out of those specified after updating the time they were last accessed.",
            complexity: "O(N) where N is the number of keys that will be touched.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "ttl",
        full_name: "ttl",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::READ,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::ttl),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns the expiration time in seconds of a key.",
            complexity: "O(1)",
            history: &[("2.8.0", "Added the -2 reply.")],
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "type",
        full_name: "type",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: keys::LOOK,
        lock: LockClass::Keys,
        handler: Handler::Data(generic::type_of),
        docs: &Docs {
            summary: "Determines the type of value stored at a key.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "unlink",
        full_name: "unlink",
        since: "4.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::KEYSPACE,
        keys: &[KeySpec::at(1, K::of(&[K::RM, K::DELETE])).to_end(1)],
        lock: LockClass::Keys,
        handler: Handler::Data(generic::unlink),
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        docs: &Docs {
            summary: "Asynchronously deletes one or more keys.",
            complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) work in a different thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "wait",
        full_name: "wait",
        since: "3.0.0",
        arity: 3,
        flags: F::NONE,
        acl: Acl::CONNECTION,
        handler: Handler::Blocking(generic::wait, generic::wait_take),
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        docs: &Docs {
            summary: "Blocks until the asynchronous replication of all preceding write commands sent by the connection is completed.",
            complexity: "O(1)",
            args: &[Arg::integer("numreplicas"), Arg::integer("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "waitaof",
        full_name: "waitaof",
        since: "7.2.0",
        arity: 4,
        flags: F::NOSCRIPT,
        acl: Acl::CONNECTION,
        handler: Handler::Blocking(generic::waitaof, generic::wait_take),
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        docs: &Docs {
            summary: "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas.",
            complexity: "O(1)",
            args: &[Arg::integer("numlocal"), Arg::integer("numreplicas"), Arg::integer("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
];
