//! The table's entries for the server.

use super::fragments::help;
use crate::connection;
use crate::introspect;
use crate::server::{self, config, debug};
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, LockClass, Secrets, Traits as T,
};

const BASE: CommandSpec = CommandSpec { group: Group::Server, ..CommandSpec::BASE };

const FLUSH_TYPE: Arg = Arg::one_of(
    "flush-type",
    &[Arg::token("async", "ASYNC").since("4.0.0"), Arg::token("sync", "SYNC").since("6.2.0")],
)
.optional();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "bgrewriteaof",
        full_name: "bgrewriteaof",
        since: "1.0.0",
        arity: 1,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::NO_ASYNC_LOADING]),
        handler: Handler::Server(server::bgrewriteaof),
        docs: &Docs {
            summary: "Asynchronously rewrite the append-only file",
            complexity: "O(1)",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bgsave",
        full_name: "bgsave",
        since: "1.0.0",
        arity: -1,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::NO_ASYNC_LOADING]),
        handler: Handler::Server(server::bgsave),
        docs: &Docs {
            summary: "Asynchronously saves the database(s) to disk.",
            complexity: "O(1)",
            history: &[("3.2.2", "Added the `SCHEDULE` option.")],
            args: &[Arg::token("schedule", "SCHEDULE").optional().since("3.2.2")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "command",
        full_name: "command",
        since: "2.8.13",
        arity: -1,
        flags: F::of(&[F::LOADING, F::STALE]),
        acl: Acl::CONNECTION,
        handler: Handler::Data(introspect::command),
        tips: &["nondeterministic_output_order"],
        docs: &Docs {
            summary: "Returns detailed information about all commands.",
            complexity: "O(N) where N is the total number of Redis commands",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "count",
                full_name: "command|count",
                since: "2.8.13",
                arity: 2,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::count),
                docs: &Docs {
                    summary: "Returns a count of commands.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "docs",
                full_name: "command|docs",
                since: "7.0.0",
                arity: -2,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::docs),
                tips: &["nondeterministic_output_order"],
                docs: &Docs {
                    summary: "Returns documentary information about one, multiple or all commands.",
                    complexity: "O(N) where N is the number of commands to look up",
                    args: &[Arg::string("command-name").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "getkeys",
                full_name: "command|getkeys",
                since: "2.8.13",
                arity: -3,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::getkeys),
                docs: &Docs {
                    summary: "Extracts the key names from an arbitrary command.",
                    complexity: "O(N) where N is the number of arguments to the command",
                    args: &[Arg::string("command"), Arg::string("arg").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "getkeysandflags",
                full_name: "command|getkeysandflags",
                since: "7.0.0",
                arity: -3,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::getkeysandflags),
                docs: &Docs {
                    summary: "Extracts the key names and access flags for an arbitrary command.",
                    complexity: "O(N) where N is the number of arguments to the command",
                    args: &[Arg::string("command"), Arg::string("arg").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                full_name: "command|help",
                since: "5.0.0",
                acl: Acl::CONNECTION,
                ..help(&BASE)
            },
            CommandSpec {
                name: "info",
                full_name: "command|info",
                since: "2.8.13",
                arity: -2,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::info),
                tips: &["nondeterministic_output_order"],
                docs: &Docs {
                    summary: "Returns information about one, multiple or all commands.",
                    complexity: "O(N) where N is the number of commands to look up",
                    history: &[(
                        "7.0.0",
                        "Allowed to be called with no argument to get info on all commands.",
                    )],
                    args: &[Arg::string("command-name").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "list",
                full_name: "command|list",
                since: "7.0.0",
                arity: -2,
                flags: F::of(&[F::LOADING, F::STALE]),
                acl: Acl::CONNECTION,
                handler: Handler::Data(introspect::list),
                tips: &["nondeterministic_output_order"],
                docs: &Docs {
                    summary: "Returns a list of command names.",
                    complexity: "O(N) where N is the total number of Redis commands",
                    args: &[Arg::one_of(
                        "filterby",
                        &[
                            Arg::string("module-name").after("MODULE"),
                            Arg::string("category").after("ACLCAT"),
                            Arg::pattern("pattern").after("PATTERN"),
                        ],
                    )
                    .after("FILTERBY")
                    .optional()],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "config",
        full_name: "config",
        since: "2.0.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for server configuration commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "get",
                full_name: "config|get",
                since: "2.0.0",
                arity: -3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(config::get),
                docs: &Docs {
                    summary: "Returns the effective values of configuration parameters.",
                    complexity: "O(N) when N is the number of configuration parameters provided",
                    history: &[(
                        "7.0.0",
                        "Added the ability to pass multiple pattern parameters in one call",
                    )],
                    args: &[Arg::string("parameter").multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "config|help", since: "5.0.0", ..help(&BASE) },
            CommandSpec {
                name: "resetstat",
                full_name: "config|resetstat",
                since: "2.0.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(config::resetstat),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],

                docs: &Docs {
                    summary: "Resets the server's statistics.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "rewrite",
                full_name: "config|rewrite",
                since: "2.8.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(config::rewrite),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],

                docs: &Docs {
                    summary: "Persists the effective configuration to file.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "set",
                full_name: "config|set",
                since: "2.0.0",
                arity: -4,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                secrets: Secrets::Settings,
                handler: Handler::Server(config::set),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Sets configuration parameters in-flight.",
                    complexity: "O(N) when N is the number of configuration parameters provided",
                    history: &[(
                        "7.0.0",
                        "Added the ability to set multiple parameters in one call.",
                    )],
                    args: &[Arg::block("data", &[Arg::string("parameter"), Arg::string("value")])
                        .multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "dbsize",
        full_name: "dbsize",
        since: "1.0.0",
        arity: 1,
        flags: F::of(&[F::READONLY, F::FAST]),
        acl: Acl::KEYSPACE,
        handler: Handler::Data(server::dbsize),
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        docs: &Docs {
            summary: "Returns the number of keys in the database.",
            complexity: "O(1)",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "debug",
        full_name: "debug",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
        lock: LockClass::World,
        traits: T::DEBUG,
        handler: Handler::Server(debug::debug),
        docs: &Docs {
            summary: "A container for debugging commands.",
            complexity: "Depends on subcommand.",
            syscmd: true,
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "flushall",
        full_name: "flushall",
        since: "1.0.0",
        arity: -1,
        flags: F::WRITE,
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        lock: LockClass::World,
        handler: Handler::Server(server::flushall),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        docs: &Docs {
            summary: "Removes all keys from all databases.",
            complexity: "O(N) where N is the total number of keys in all databases",
            history: &[
                ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
                ("6.2.0", "Added the `SYNC` flushing mode modifier."),
            ],
            args: &[FLUSH_TYPE],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "flushdb",
        full_name: "flushdb",
        since: "1.0.0",
        arity: -1,
        flags: F::WRITE,
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        lock: LockClass::World,
        handler: Handler::Server(server::flushdb),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        docs: &Docs {
            summary: "Remove all keys from the current database.",
            complexity: "O(N) where N is the number of keys in the selected database",
            history: &[
                ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
                ("6.2.0", "Added the `SYNC` flushing mode modifier."),
            ],
            args: &[FLUSH_TYPE],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "info",
        full_name: "info",
        since: "1.0.0",
        arity: -1,
        flags: F::of(&[F::LOADING, F::STALE]),
        acl: Acl::DANGEROUS,
        handler: Handler::Server(server::info),
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        docs: &Docs {
            summary: "Returns information and statistics about the server.",
            complexity: "O(1)",
            history: &[("7.0.0", "Added support for taking multiple section arguments.")],
            args: &[Arg::string("section").optional().multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lastsave",
        full_name: "lastsave",
        since: "1.0.0",
        arity: 1,
        flags: F::of(&[F::LOADING, F::STALE, F::FAST]),
        acl: Acl::of(&[Acl::ADMIN, Acl::DANGEROUS]),
        handler: Handler::Server(server::lastsave),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns the Unix timestamp of the last successful save to disk.",
            complexity: "O(1)",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "module",
        full_name: "module",
        since: "4.0.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for module commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec { full_name: "module|help", since: "5.0.0", ..help(&BASE) },
            CommandSpec {
                name: "list",
                full_name: "module|list",
                since: "4.0.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT]),
                handler: Handler::Data(server::modules),
                tips: &["nondeterministic_output_order"],
                docs: &Docs {
                    summary: "Returns all loaded modules.",
                    complexity: "O(N) where N is the number of loaded modules.",
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "monitor",
        full_name: "monitor",
        since: "1.0.0",
        arity: 1,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
        handler: Handler::Session(connection::monitor),
        docs: &Docs {
            summary: "Listens for all requests received by the server in real-time.",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "save",
        full_name: "save",
        since: "1.0.0",
        arity: 1,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::NO_ASYNC_LOADING, F::NO_MULTI]),
        handler: Handler::Server(server::save),
        docs: &Docs {
            summary: "Synchronously saves the database(s) to disk.",
            complexity: "O(N) where N is the total number of keys in all databases",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "shutdown",
        full_name: "shutdown",
        since: "1.0.0",
        arity: -1,
        flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE, F::NO_MULTI, F::ALLOW_BUSY]),
        traits: T::PASSES_CLOSED_GATE,
        handler: Handler::Server(server::shutdown),
        docs: &Docs {
            summary: "Synchronously saves the database(s) to disk and shuts down the Redis server.",
            complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
            history: &[("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers.")],
            args: &[
                Arg::one_of(
                    "save-selector",
                    &[Arg::token("nosave", "NOSAVE"), Arg::token("save", "SAVE")],
                )
                .optional(),
                Arg::token("now", "NOW").optional().since("7.0.0"),
                Arg::token("force", "FORCE").optional().since("7.0.0"),
                Arg::token("abort", "ABORT").optional().since("7.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "swapdb",
        full_name: "swapdb",
        since: "4.0.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::FAST]),
        acl: Acl::of(&[Acl::KEYSPACE, Acl::DANGEROUS]),
        lock: LockClass::World,
        handler: Handler::Server(server::swapdb),
        docs: &Docs {
            summary: "Swaps two Redis databases.",
            complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
            args: &[Arg::integer("index1"), Arg::integer("index2")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "time",
        full_name: "time",
        since: "2.6.0",
        arity: 1,
        flags: F::of(&[F::LOADING, F::STALE, F::FAST]),
        handler: Handler::Data(server::time),
        tips: &["nondeterministic_output"],
        docs: &Docs { summary: "Returns the server time.", complexity: "O(1)", ..Docs::NONE },
        ..BASE
    },
];
