//! The table's entries for the connection and other connections.

use super::fragments::help;
use crate::connection::{self, client};
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, Secrets, Traits as T,
};

const CONTAINER: CommandSpec = CommandSpec { group: Group::Connection, ..CommandSpec::BASE };

const BASE: CommandSpec = CommandSpec { acl: Acl::CONNECTION, ..CONTAINER };

const ON_OR_OFF: &[Arg] = &[Arg::token("on", "ON"), Arg::token("off", "OFF")];

/// Whether CLIENT LIST and CLIENT KILL leave out the client that asks.
const SKIPME: Arg = Arg::one_of("skipme", &[Arg::token("yes", "YES"), Arg::token("no", "NO")])
    .after("SKIPME")
    .optional();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "auth",
        full_name: "auth",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::NO_AUTH, F::ALLOW_BUSY]),
        traits: T::PASSES_CLOSED_GATE,
        secrets: Secrets::Credentials,
        handler: Handler::Session(connection::auth),
        docs: &Docs {
            summary: "Authenticates the connection.",
            complexity: "O(N) where N is the number of passwords defined for the user",
            history: &[("6.0.0", "Added ACL style (username and password).")],
            args: &[Arg::string("username").optional().since("6.0.0"), Arg::string("password")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "client",
        full_name: "client",
        since: "2.4.0",
        arity: -2,
        traits: T::of(&[T::PASSES_CLOSED_GATE, T::KEEPS_CACHING]),
        docs: &Docs {
            summary: "A container for client connection commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "caching",
                full_name: "client|caching",
                since: "6.0.0",
                arity: 3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::caching),
                docs: &Docs {
                    summary: "Instructs the server whether to track the keys in the next request.",
                    complexity: "O(1)",
                    args: &[Arg::one_of(
                        "mode",
                        &[Arg::token("yes", "YES"), Arg::token("no", "NO")],
                    )],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "capa",
                full_name: "client|capa",
                since: "8.0.0",
                arity: -3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::capa),
                docs: &Docs {
                    summary: "A client claims its capability.",
                    complexity: "O(1)",
                    args: &[Arg::string("capability").multiple()],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "getname",
                full_name: "client|getname",
                since: "2.6.9",
                arity: 2,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::getname),
                docs: &Docs {
                    summary: "Returns the name of the connection.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "getredir",
                full_name: "client|getredir",
                since: "6.0.0",
                arity: 2,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::getredir),
                docs: &Docs {
                    summary: "Returns the client ID to which the connection's tracking notifications are redirected.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "client|help", since: "5.0.0", ..help(&BASE) },
            CommandSpec {
                name: "id",
                full_name: "client|id",
                since: "5.0.0",
                arity: 2,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::id),
                docs: &Docs {
                    summary: "Returns the unique client ID of the connection.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "import-source",
                full_name: "client|import-source",
                since: "8.1.0",
                arity: 3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::import_source),
                docs: &Docs {
                    summary: "Mark this client as an import source when server is in import mode.",
                    complexity: "O(1)",
                    args: &[Arg::one_of("enabled", ON_OR_OFF)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "info",
                full_name: "client|info",
                since: "6.2.0",
                arity: 2,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::info),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns information about the connection.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "kill",
                full_name: "client|kill",
                since: "2.4.0",
                arity: -3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::kill),
                docs: &Docs {
                    summary: "Terminates open connections.",
                    complexity: "O(N) where N is the number of client connections",
                    history: &[
                        ("2.8.12", "Added new filter format."),
                        ("2.8.12", "`ID` option."),
                        ("3.2.0", "Added `master` type in for `TYPE` option."),
                        (
                            "5.0.0",
                            "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward compatibility.",
                        ),
                        ("6.2.0", "`LADDR` option."),
                        ("7.4.0", "`MAXAGE` option."),
                    ],
                    args: &[Arg::one_of(
                        "filter",
                        &[
                            Arg::string("old-format").shown("ip:port").deprecated("2.8.12"),
                            Arg::one_of(
                                "new-format",
                                &[
                                    Arg::integer("client-id")
                                        .after("ID")
                                        .optional()
                                        .since("2.8.12"),
                                    Arg::one_of(
                                        "client-type",
                                        &[
                                            Arg::token("normal", "NORMAL"),
                                            Arg::token("master", "MASTER").since("3.2.0"),
                                            Arg::token("slave", "SLAVE"),
                                            Arg::token("replica", "REPLICA").since("5.0.0"),
                                            Arg::token("pubsub", "PUBSUB"),
                                        ],
                                    )
                                    .after("TYPE")
                                    .optional()
                                    .since("2.8.12"),
                                    Arg::string("username").after("USER").optional(),
                                    Arg::string("addr").shown("ip:port").after("ADDR").optional(),
                                    Arg::string("laddr")
                                        .shown("ip:port")
                                        .after("LADDR")
                                        .optional()
                                        .since("6.2.0"),
                                    SKIPME,
                                    Arg::integer("maxage")
                                        .after("MAXAGE")
                                        .optional()
                                        .since("7.4.0"),
                                    Arg::integer("idle").after("IDLE").optional(),
                                    Arg::string("flags").after("FLAGS").optional(),
                                    Arg::string("name").after("NAME").optional(),
                                    Arg::string("lib-name").after("LIB-NAME").optional(),
                                    Arg::string("lib-ver").after("LIB-VER").optional(),
                                    Arg::integer("db").after("DB").optional(),
                                    Arg::string("ip").after("IP").optional(),
                                    Arg::string("capa").after("CAPA").optional(),
                                    Arg::integer("not-client-id")
                                        .after("NOT-ID")
                                        .multiple()
                                        .optional(),
                                    Arg::string("not-type").after("NOT-TYPE").optional(),
                                    Arg::string("not-username").after("NOT-USER").optional(),
                                    Arg::string("not-addr").after("NOT-ADDR").optional(),
                                    Arg::string("not-laddr").after("NOT-LADDR").optional(),
                                    Arg::string("not-flags").after("NOT-FLAGS").optional(),
                                    Arg::string("not-name").after("NOT-NAME").optional(),
                                    Arg::string("not-lib-name").after("NOT-LIB-NAME").optional(),
                                    Arg::string("not-lib-ver").after("NOT-LIB-VER").optional(),
                                    Arg::integer("not-db").after("NOT-DB").optional(),
                                    Arg::string("not-ip").after("NOT-IP").optional(),
                                    Arg::string("not-capa").after("NOT-CAPA").optional(),
                                ],
                            )
                            .multiple(),
                        ],
                    )],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "list",
                full_name: "client|list",
                since: "2.4.0",
                arity: -2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::list),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Lists open connections.",
                    complexity: "O(N) where N is the number of client connections",
                    history: &[
                        ("2.8.12", "Added unique client `id` field."),
                        ("5.0.0", "Added optional `TYPE` filter."),
                        ("6.0.0", "Added `user` field."),
                        (
                            "6.2.0",
                            "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter.",
                        ),
                        ("7.0.0", "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."),
                        ("7.0.3", "Added `ssub` field."),
                    ],
                    args: &[
                        Arg::one_of(
                            "client-type",
                            &[
                                Arg::token("normal", "NORMAL"),
                                Arg::token("master", "MASTER"),
                                Arg::token("replica", "REPLICA"),
                                Arg::token("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .optional()
                        .since("5.0.0"),
                        Arg::integer("client-id").after("ID").optional().multiple().since("6.2.0"),
                        Arg::string("username").after("USER").optional(),
                        Arg::string("addr").shown("ip:port").after("ADDR").optional(),
                        Arg::string("laddr").shown("ip:port").after("LADDR").optional(),
                        SKIPME,
                        Arg::integer("maxage").after("MAXAGE").optional(),
                        Arg::integer("idle").after("IDLE").optional(),
                        Arg::string("flags").after("FLAGS").optional(),
                        Arg::string("name").after("NAME").optional(),
                        Arg::string("lib-name").after("LIB-NAME").optional(),
                        Arg::string("lib-ver").after("LIB-VER").optional(),
                        Arg::integer("db").after("DB").optional(),
                        Arg::string("ip").after("IP").optional(),
                        Arg::string("capa").after("CAPA").optional(),
                        Arg::integer("not-client-id").after("NOT-ID").multiple().optional(),
                        Arg::string("not-type").after("NOT-TYPE").optional(),
                        Arg::string("not-username").after("NOT-USER").optional(),
                        Arg::string("not-addr").after("NOT-ADDR").optional(),
                        Arg::string("not-laddr").after("NOT-LADDR").optional(),
                        Arg::string("not-flags").after("NOT-FLAGS").optional(),
                        Arg::string("not-name").after("NOT-NAME").optional(),
                        Arg::string("not-lib-name").after("NOT-LIB-NAME").optional(),
                        Arg::string("not-lib-ver").after("NOT-LIB-VER").optional(),
                        Arg::integer("not-db").after("NOT-DB").optional(),
                        Arg::string("not-ip").after("NOT-IP").optional(),
                        Arg::string("not-capa").after("NOT-CAPA").optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "no-evict",
                full_name: "client|no-evict",
                since: "7.0.0",
                arity: 3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::no_evict),
                docs: &Docs {
                    summary: "Sets the client eviction mode of the connection.",
                    complexity: "O(1)",
                    args: &[Arg::one_of("enabled", ON_OR_OFF)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "no-touch",
                full_name: "client|no-touch",
                since: "7.2.0",
                arity: 3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::no_touch),
                docs: &Docs {
                    summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
                    complexity: "O(1)",
                    args: &[Arg::one_of("enabled", ON_OR_OFF)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "pause",
                full_name: "client|pause",
                since: "3.0.0",
                arity: -3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::pause),
                docs: &Docs {
                    summary: "Suspends commands processing.",
                    complexity: "O(1)",
                    history: &[(
                        "6.2.0",
                        "`CLIENT PAUSE WRITE` mode added along with the `mode` option.",
                    )],
                    args: &[
                        Arg::integer("timeout"),
                        Arg::one_of(
                            "mode",
                            &[Arg::token("write", "WRITE"), Arg::token("all", "ALL")],
                        )
                        .optional()
                        .since("6.2.0"),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "reply",
                full_name: "client|reply",
                since: "3.2.0",
                arity: 3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::reply),
                docs: &Docs {
                    summary: "Instructs the server whether to reply to commands.",
                    complexity: "O(1)",
                    args: &[Arg::one_of(
                        "action",
                        &[
                            Arg::token("on", "ON"),
                            Arg::token("off", "OFF"),
                            Arg::token("skip", "SKIP"),
                        ],
                    )],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "setinfo",
                full_name: "client|setinfo",
                since: "7.2.0",
                arity: 4,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::setinfo),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                docs: &Docs {
                    summary: "Sets information specific to the client or connection.",
                    complexity: "O(1)",
                    args: &[Arg::one_of(
                        "attr",
                        &[
                            Arg::string("libname").after("LIB-NAME"),
                            Arg::string("libver").after("LIB-VER"),
                        ],
                    )],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "setname",
                full_name: "client|setname",
                since: "2.6.9",
                arity: 3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::setname),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],

                docs: &Docs {
                    summary: "Sets the connection name.",
                    complexity: "O(1)",
                    args: &[Arg::string("connection-name")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "tracking",
                full_name: "client|tracking",
                since: "6.0.0",
                arity: -3,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::tracking),
                traits: T::TRACKS,
                docs: &Docs {
                    summary: "Controls server-assisted client-side caching for the connection.",
                    complexity: "O(1). Some options may introduce additional complexity.",
                    args: &[
                        Arg::one_of("status", ON_OR_OFF),
                        Arg::integer("client-id").after("REDIRECT").optional(),
                        Arg::string("prefix")
                            .after("PREFIX")
                            .optional()
                            .multiple()
                            .multiple_token(),
                        Arg::token("bcast", "BCAST").optional(),
                        Arg::token("optin", "OPTIN").optional(),
                        Arg::token("optout", "OPTOUT").optional(),
                        Arg::token("noloop", "NOLOOP").optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "trackinginfo",
                full_name: "client|trackinginfo",
                since: "6.2.0",
                arity: 2,
                flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::trackinginfo),
                docs: &Docs {
                    summary: "Returns information about server-assisted client-side caching for the connection.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "unblock",
                full_name: "client|unblock",
                since: "5.0.0",
                arity: -3,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::unblock),
                docs: &Docs {
                    summary: "Unblocks a client blocked by a blocking command from a different connection.",
                    complexity: "O(log N) where N is the number of client connections",
                    args: &[
                        Arg::integer("client-id"),
                        Arg::one_of(
                            "unblock-type",
                            &[Arg::token("timeout", "TIMEOUT"), Arg::token("error", "ERROR")],
                        )
                        .optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "unpause",
                full_name: "client|unpause",
                since: "6.2.0",
                arity: 2,
                flags: F::of(&[F::ADMIN, F::NOSCRIPT, F::LOADING, F::STALE]),
                handler: Handler::Session(client::unpause),
                docs: &Docs {
                    summary: "Resumes processing commands from paused clients.",
                    complexity: "O(N) Where N is the number of paused clients",
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..CONTAINER
    },
    CommandSpec {
        name: "echo",
        full_name: "echo",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::LOADING, F::STALE, F::FAST]),
        handler: Handler::Data(connection::echo),
        docs: &Docs {
            summary: "Returns the given string.",
            complexity: "O(1)",
            args: &[Arg::string("message")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "hello",
        full_name: "hello",
        since: "6.0.0",
        arity: -1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::NO_AUTH, F::ALLOW_BUSY]),
        traits: T::PASSES_CLOSED_GATE,
        secrets: Secrets::BehindAuth,
        handler: Handler::Session(connection::hello),
        docs: &Docs {
            summary: "Handshakes with the Redis server.",
            complexity: "O(1)",
            history: &[(
                "6.2.0",
                "`protover` made optional; when called without arguments the command reports the current connection's context.",
            )],
            args: &[Arg::block(
                "arguments",
                &[
                    Arg::integer("protover"),
                    Arg::block("auth", &[Arg::string("username"), Arg::string("password")])
                        .after("AUTH")
                        .optional(),
                    Arg::string("clientname").after("SETNAME").optional(),
                ],
            )
            .optional()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "ping",
        full_name: "ping",
        since: "1.0.0",
        arity: -1,
        flags: F::FAST,
        traits: T::of(&[T::TELLS_SAVE_ERRORS, T::WHILE_SUBSCRIBED]),
        handler: Handler::Data(connection::ping),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        docs: &Docs {
            summary: "Returns the server's liveliness response.",
            complexity: "O(1)",
            args: &[Arg::string("message").optional()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "quit",
        full_name: "quit",
        since: "1.0.0",
        arity: -1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::NO_AUTH, F::ALLOW_BUSY]),
        traits: T::of(&[T::PASSES_CLOSED_GATE, T::ENDS_MULTI, T::NOT_QUEUED, T::WHILE_SUBSCRIBED]),
        handler: Handler::Session(connection::quit),
        docs: &Docs {
            summary: "Closes the connection.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "7.2.0",
                replaced_by: "just closing the connection",
            }),
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "reset",
        full_name: "reset",
        since: "6.2.0",
        arity: 1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::NO_AUTH, F::ALLOW_BUSY]),
        traits: T::of(&[T::PASSES_CLOSED_GATE, T::ENDS_MULTI, T::NOT_QUEUED, T::WHILE_SUBSCRIBED]),
        handler: Handler::Session(connection::reset),
        docs: &Docs { summary: "Resets the connection.", complexity: "O(1)", ..Docs::NONE },
        ..BASE
    },
    CommandSpec {
        name: "select",
        full_name: "select",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::LOADING, F::STALE, F::FAST]),
        handler: Handler::Session(connection::select),
        docs: &Docs {
            summary: "Changes the selected database.",
            complexity: "O(1)",
            args: &[Arg::integer("index")],
            ..Docs::NONE
        },
        ..BASE
    },
];
