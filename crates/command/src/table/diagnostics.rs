//! The table's entries for looking into the server: logs, latencies, memory.

use super::fragments::help;
use super::keys;
use crate::server::{hotkeys, latency, lolwut, memory, slowlog};
use crate::spec::{Arg, CommandSpec, Docs, Flags as F, Group, Handler, LockClass};

const BASE: CommandSpec = CommandSpec { group: Group::Server, ..CommandSpec::BASE };

/// Which of the three command logs.
const LOG_TYPE: Arg = Arg::one_of(
    "type",
    &[
        Arg::token("slow", "SLOW"),
        Arg::token("large-request", "LARGE-REQUEST"),
        Arg::token("large-reply", "LARGE-REPLY"),
    ],
);

/// HELP of the logs of commands, in their own words.
const LOG_HELP: Docs = Docs {
    summary: "Show helpful text about the different subcommands",
    complexity: "O(1)",
    ..Docs::NONE
};

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "commandlog",
        full_name: "commandlog",
        since: "8.1.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for command log commands",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "get",
                full_name: "commandlog|get",
                since: "8.1.0",
                arity: 4,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::commandlog_get),
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                docs: &Docs {
                    summary: "Get the entries of a command log",
                    complexity: "O(N) where N is the number of entries returned",
                    args: &[Arg::integer("count"), LOG_TYPE],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                full_name: "commandlog|help",
                since: "8.1.0",
                docs: &LOG_HELP,
                ..help(&BASE)
            },
            CommandSpec {
                name: "len",
                full_name: "commandlog|len",
                since: "8.1.0",
                arity: 3,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::commandlog_len),
                tips: &[
                    "request_policy:all_nodes",
                    "response_policy:agg_sum",
                    "nondeterministic_output",
                ],
                docs: &Docs {
                    summary: "Get the length of a command log",
                    complexity: "O(1)",
                    args: &[LOG_TYPE],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "reset",
                full_name: "commandlog|reset",
                since: "8.1.0",
                arity: 3,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::commandlog_reset),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Clear all entries from a command log",
                    complexity: "O(N) where N is the number of entries in the commandlog",
                    args: &[LOG_TYPE],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "hotkeys",
        full_name: "hotkeys",
        since: "8.6.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for commands about the keys that are used most.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "get",
                full_name: "hotkeys|get",
                since: "8.6.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT]),
                handler: Handler::Server(hotkeys::get),
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the keys and slots that are used most, and the largest values.",
                    complexity: "O(K) where K is the number of keys that are returned.",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "hotkeys|help", since: "8.6.1", ..help(&BASE) },
            CommandSpec {
                name: "reset",
                full_name: "hotkeys|reset",
                since: "8.6.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT]),
                handler: Handler::Server(hotkeys::reset),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Forgets a session, and what it has counted.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "start",
                full_name: "hotkeys|start",
                since: "8.6.0",
                arity: -2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT]),
                handler: Handler::Server(hotkeys::start),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Begins a session which counts the uses of keys.",
                    complexity: "O(1)",
                    args: &[
                        Arg::block(
                            "metrics",
                            &[
                                Arg::integer("count").after("METRICS"),
                                Arg::token("cpu", "CPU").optional(),
                                Arg::token("net", "NET").optional(),
                            ],
                        ),
                        Arg::integer("k").after("COUNT").optional(),
                        Arg::integer("seconds").after("DURATION").optional(),
                        Arg::integer("ratio").after("SAMPLE").optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "stop",
                full_name: "hotkeys|stop",
                since: "8.6.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT]),
                handler: Handler::Server(hotkeys::stop),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Ends a session. What it has counted can still be read.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "latency",
        full_name: "latency",
        since: "2.8.13",
        arity: -2,
        docs: &Docs {
            summary: "A container for latency diagnostics commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "doctor",
                full_name: "latency|doctor",
                since: "2.8.13",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::doctor),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_nodes",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns a human-readable latency analysis report.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "graph",
                full_name: "latency|graph",
                since: "2.8.13",
                arity: 3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::graph),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_nodes",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns a latency graph for an event.",
                    complexity: "O(1)",
                    args: &[Arg::string("event")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "latency|help", since: "2.8.13", ..help(&BASE) },
            CommandSpec {
                name: "histogram",
                full_name: "latency|histogram",
                since: "7.0.0",
                arity: -2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::histogram),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_nodes",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns the cumulative distribution of latencies of a subset or all commands.",
                    complexity: "O(N) where N is the number of commands with latency information being retrieved.",
                    args: &[Arg::string("command").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "history",
                full_name: "latency|history",
                since: "2.8.13",
                arity: 3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::history),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_nodes",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns timestamp-latency samples for an event.",
                    complexity: "O(1)",
                    args: &[Arg::string("event")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "latest",
                full_name: "latency|latest",
                since: "2.8.13",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::latest),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_nodes",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns the latest latency samples for all events.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "reset",
                full_name: "latency|reset",
                since: "2.8.13",
                arity: -2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Server(latency::reset),
                tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
                docs: &Docs {
                    summary: "Resets the latency data for one or more events.",
                    complexity: "O(1)",
                    args: &[Arg::string("event").optional().multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "lolwut",
        full_name: "lolwut",
        since: "5.0.0",
        arity: -1,
        flags: F::of(&[F::READONLY, F::FAST]),
        handler: Handler::Data(lolwut::lolwut),
        docs: &Docs {
            summary: "Displays computer art and the Redis version",
            args: &[Arg::integer("version").after("VERSION").optional()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "memory",
        full_name: "memory",
        since: "4.0.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for memory diagnostics commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "doctor",
                full_name: "memory|doctor",
                since: "4.0.0",
                arity: 2,
                handler: Handler::Server(memory::doctor),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_shards",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Outputs a memory problems report.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "memory|help", since: "4.0.0", ..help(&BASE) },
            CommandSpec {
                name: "malloc-stats",
                full_name: "memory|malloc-stats",
                since: "4.0.0",
                arity: 2,
                handler: Handler::Server(memory::malloc_stats),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_shards",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns the allocator statistics.",
                    complexity: "Depends on how much memory is allocated, could be slow",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "purge",
                full_name: "memory|purge",
                since: "4.0.0",
                arity: 2,
                handler: Handler::Server(memory::purge),
                tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Asks the allocator to release memory.",
                    complexity: "Depends on how much memory is allocated, could be slow",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "stats",
                full_name: "memory|stats",
                since: "4.0.0",
                arity: 2,
                handler: Handler::Server(memory::stats),
                tips: &[
                    "nondeterministic_output",
                    "request_policy:all_shards",
                    "response_policy:special",
                ],
                docs: &Docs {
                    summary: "Returns details about memory usage.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "usage",
                full_name: "memory|usage",
                since: "4.0.0",
                arity: -3,
                flags: F::READONLY,
                keys: keys::SECOND_LOOK,
                lock: LockClass::Keys,
                handler: Handler::Data(memory::usage),
                docs: &Docs {
                    summary: "Estimates the memory usage of a key.",
                    complexity: "O(N) where N is the number of samples.",
                    args: &[Arg::key("key", 0), Arg::integer("count").after("SAMPLES").optional()],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
    CommandSpec {
        name: "slowlog",
        full_name: "slowlog",
        since: "2.2.12",
        arity: -2,
        docs: &Docs {
            summary: "A container for slow log commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "get",
                full_name: "slowlog|get",
                since: "2.2.12",
                arity: -2,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::get),
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns the slow log's entries.",
                    complexity: "O(N) where N is the number of entries returned",
                    history: &[("4.0.0", "Added client IP address, port and name to the reply.")],
                    args: &[Arg::integer("count").optional()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                full_name: "slowlog|help",
                since: "6.2.0",
                docs: &LOG_HELP,
                ..help(&BASE)
            },
            CommandSpec {
                name: "len",
                full_name: "slowlog|len",
                since: "2.2.12",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::len),
                tips: &[
                    "request_policy:all_nodes",
                    "response_policy:agg_sum",
                    "nondeterministic_output",
                ],
                docs: &Docs {
                    summary: "Returns the number of entries in the slow log.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "reset",
                full_name: "slowlog|reset",
                since: "2.2.12",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::LOADING, F::STALE]),
                handler: Handler::Server(slowlog::reset),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Clears all entries from the slow log.",
                    complexity: "O(N) where N is the number of entries in the slowlog",
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..BASE
    },
];
