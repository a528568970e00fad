//! The table's entries for streams.

use super::fragments::{COUNT, help};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec, LockClass,
    Traits as T,
};
use crate::stream;

const CONTAINER: CommandSpec = CommandSpec { group: Group::Stream, ..CommandSpec::BASE };

const BASE: CommandSpec = CommandSpec { acl: Acl::STREAM, lock: LockClass::Keys, ..CONTAINER };

/// The keys to read, and from which entry of each.
const STREAMS: Arg =
    Arg::block("streams", &[Arg::key("key", 0).multiple(), Arg::string("id").multiple()])
        .after("STREAMS");

/// An id, or that of the last entry.
const ID_OR_LAST: Arg = Arg::one_of("id-selector", &[Arg::string("id"), Arg::token("new-id", "$")]);

/// What becomes of the references that groups hold to the entries.
const REFERENCES: Arg = Arg::one_of(
    "condition",
    &[
        Arg::token("keepref", "KEEPREF"),
        Arg::token("delref", "DELREF"),
        Arg::token("acked", "ACKED"),
    ],
)
.optional();

const IDS: Arg =
    Arg::block("ids", &[Arg::integer("numids"), Arg::string("id").multiple()]).after("IDS");

/// How a stream is trimmed, by XADD and by XTRIM.
const TRIM: Arg = Arg::block(
    "trim",
    &[
        Arg::one_of(
            "strategy",
            &[Arg::token("maxlen", "MAXLEN"), Arg::token("minid", "MINID").since("6.2.0")],
        ),
        Arg::one_of("operator", &[Arg::token("equal", "="), Arg::token("approximately", "~")])
            .optional(),
        Arg::string("threshold"),
        Arg::integer("count").after("LIMIT").optional().since("6.2.0"),
    ],
);

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "xack",
        full_name: "xack",
        since: "5.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(stream::xack),
        docs: &Docs {
            summary: "Returns the number of messages that were successfully acknowledged by the consumer group member of a stream.",
            complexity: "O(1) for each message ID processed.",
            args: &[Arg::key("key", 0), Arg::string("group"), Arg::string("id").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xackdel",
        full_name: "xackdel",
        since: "8.2.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::DELETE, K::UPDATE]))],
        handler: Handler::Data(stream::xackdel),
        docs: &Docs {
            summary: "Acknowledge entries for a consumer group, and delete them",
            complexity: "O(1) for each entry ID processed.",
            args: &[Arg::key("key", 0), Arg::string("group"), REFERENCES, IDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xadd",
        full_name: "xadd",
        since: "5.0.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::UPDATE]))
            .note("UPDATE instead of INSERT because of the optional trimming feature")],
        traits: T::OWN_RECORD,
        handler: Handler::Data(stream::xadd),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Appends a new message to a stream. Creates the key if it doesn't exist.",
            complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
            history: &[
                (
                    "6.2.0",
                    "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option.",
                ),
                ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
            ],
            args: &[
                Arg::key("key", 0),
                Arg::token("nomkstream", "NOMKSTREAM").optional().since("6.2.0"),
                TRIM.optional(),
                Arg::one_of("id-selector", &[Arg::token("auto-id", "*"), Arg::string("id")]),
                Arg::block("data", &[Arg::string("field"), Arg::string("value")]).multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xautoclaim",
        full_name: "xautoclaim",
        since: "6.2.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(stream::xautoclaim),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Changes, or acquires, ownership of messages in a consumer group, as if the messages were delivered to as consumer group member.",
            complexity: "O(1) if COUNT is small.",
            history: &[(
                "7.0.0",
                "Added an element to the reply array, containing deleted entries the command cleared from the PEL",
            )],
            args: &[
                Arg::key("key", 0),
                Arg::string("group"),
                Arg::string("consumer"),
                Arg::string("min-idle-time"),
                Arg::string("start"),
                COUNT,
                Arg::token("justid", "JUSTID").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xclaim",
        full_name: "xclaim",
        since: "5.0.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        traits: T::OWN_RECORD,
        handler: Handler::Data(stream::xclaim),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Changes, or acquires, ownership of a message in a consumer group, as if the message was delivered a consumer group member.",
            complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
            args: &[
                Arg::key("key", 0),
                Arg::string("group"),
                Arg::string("consumer"),
                Arg::string("min-idle-time"),
                Arg::string("id").multiple(),
                Arg::integer("ms").after("IDLE").optional(),
                Arg::unix_time("unix-time-milliseconds").after("TIME").optional(),
                Arg::integer("count").after("RETRYCOUNT").optional(),
                Arg::token("force", "FORCE").optional(),
                Arg::token("justid", "JUSTID").optional(),
                Arg::string("lastid").after("LASTID").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xdel",
        full_name: "xdel",
        since: "5.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        handler: Handler::Data(stream::xdel),
        docs: &Docs {
            summary: "Returns the number of messages after removing them from a stream.",
            complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
            args: &[Arg::key("key", 0), Arg::string("id").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xdelex",
        full_name: "xdelex",
        since: "8.2.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        handler: Handler::Data(stream::xdelex),
        docs: &Docs {
            summary: "Delete entries, and say what becomes of references to them",
            complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
            args: &[Arg::key("key", 0), REFERENCES, IDS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xgroup",
        full_name: "xgroup",
        since: "5.0.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for consumer groups commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "create",
                full_name: "xgroup|create",
                since: "5.0.0",
                arity: -5,
                flags: F::of(&[F::WRITE, F::DENYOOM]),
                keys: &[KeySpec::at(2, K::of(&[K::RW, K::INSERT]))],
                handler: Handler::Data(stream::xgroup_create),
                docs: &Docs {
                    summary: "Creates a consumer group.",
                    complexity: "O(1)",
                    history: &[("7.0.0", "Added the `entries_read` named argument.")],
                    args: &[
                        Arg::key("key", 0),
                        Arg::string("group"),
                        ID_OR_LAST,
                        Arg::token("mkstream", "MKSTREAM").optional(),
                        Arg::integer("entries-read").after("ENTRIESREAD").optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "createconsumer",
                full_name: "xgroup|createconsumer",
                since: "6.2.0",
                arity: 5,
                flags: F::of(&[F::WRITE, F::DENYOOM]),
                keys: &[KeySpec::at(2, K::of(&[K::RW, K::INSERT]))],
                traits: T::OWN_RECORD,
                handler: Handler::Data(stream::xgroup_createconsumer),
                docs: &Docs {
                    summary: "Creates a consumer in a consumer group.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0), Arg::string("group"), Arg::string("consumer")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "delconsumer",
                full_name: "xgroup|delconsumer",
                since: "5.0.0",
                arity: 5,
                flags: F::WRITE,
                keys: &[KeySpec::at(2, K::of(&[K::RW, K::DELETE]))],
                handler: Handler::Data(stream::xgroup_delconsumer),
                docs: &Docs {
                    summary: "Deletes a consumer from a consumer group.",
                    complexity: "O(1)",
                    args: &[Arg::key("key", 0), Arg::string("group"), Arg::string("consumer")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "destroy",
                full_name: "xgroup|destroy",
                since: "5.0.0",
                arity: 4,
                flags: F::WRITE,
                keys: &[KeySpec::at(2, K::of(&[K::RW, K::DELETE]))],
                handler: Handler::Data(stream::xgroup_destroy),
                docs: &Docs {
                    summary: "Destroys a consumer group.",
                    complexity: "O(N) where N is the number of entries in the group's pending entries list (PEL).",
                    args: &[Arg::key("key", 0), Arg::string("group")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "xgroup|help", since: "5.0.0", ..help(&BASE) },
            CommandSpec {
                name: "setid",
                full_name: "xgroup|setid",
                since: "5.0.0",
                arity: -5,
                flags: F::WRITE,
                keys: &[KeySpec::at(2, K::of(&[K::RW, K::UPDATE]))],
                handler: Handler::Data(stream::xgroup_setid),
                docs: &Docs {
                    summary: "Sets the last-delivered ID of a consumer group.",
                    complexity: "O(1)",
                    history: &[("7.0.0", "Added the optional `entries_read` argument.")],
                    args: &[
                        Arg::key("key", 0),
                        Arg::string("group"),
                        ID_OR_LAST,
                        Arg::integer("entriesread")
                            .shown("entries-read")
                            .after("ENTRIESREAD")
                            .optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..CONTAINER
    },
    CommandSpec {
        name: "xinfo",
        full_name: "xinfo",
        since: "5.0.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for stream introspection commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "consumers",
                full_name: "xinfo|consumers",
                since: "5.0.0",
                arity: 4,
                flags: F::READONLY,
                keys: keys::SECOND_READ,
                handler: Handler::Data(stream::xinfo_consumers),
                tips: &["nondeterministic_output"],
                docs: &Docs {
                    summary: "Returns a list of the consumers in a consumer group.",
                    complexity: "O(1)",
                    history: &[("7.2.0", "Added the `inactive` field.")],
                    args: &[Arg::key("key", 0), Arg::string("group")],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec {
                name: "groups",
                full_name: "xinfo|groups",
                since: "5.0.0",
                arity: 3,
                flags: F::READONLY,
                keys: keys::SECOND_READ,
                handler: Handler::Data(stream::xinfo_groups),
                docs: &Docs {
                    summary: "Returns a list of the consumer groups of a stream.",
                    complexity: "O(1)",
                    history: &[("7.0.0", "Added the `entries-read` and `lag` fields")],
                    args: &[Arg::key("key", 0)],
                    ..Docs::NONE
                },
                ..BASE
            },
            CommandSpec { full_name: "xinfo|help", since: "5.0.0", ..help(&BASE) },
            CommandSpec {
                name: "stream",
                full_name: "xinfo|stream",
                since: "5.0.0",
                arity: -3,
                flags: F::READONLY,
                keys: keys::SECOND_READ,
                handler: Handler::Data(stream::xinfo_stream),
                docs: &Docs {
                    summary: "Returns information about a stream.",
                    complexity: "O(1)",
                    history: &[
                        ("6.0.0", "Added the `FULL` modifier."),
                        (
                            "7.0.0",
                            "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields",
                        ),
                        (
                            "7.2.0",
                            "Added the `active-time` field, and changed the meaning of `seen-time`.",
                        ),
                    ],
                    args: &[
                        Arg::key("key", 0),
                        Arg::block("full-block", &[Arg::token("full", "FULL"), COUNT]).optional(),
                    ],
                    ..Docs::NONE
                },
                ..BASE
            },
        ],
        ..CONTAINER
    },
    CommandSpec {
        name: "xlen",
        full_name: "xlen",
        since: "5.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(stream::xlen),
        docs: &Docs {
            summary: "Return the number of messages in a stream.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xnack",
        full_name: "xnack",
        since: "8.8.0",
        arity: -7,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::stream::xnack),
        docs: &Docs {
            summary: "Releases pending messages back to the group's PEL without acknowledging them, making them available for re-delivery.",
            complexity: "O(1) for each message ID processed.",
            args: &[
                Arg::key("key", 0),
                Arg::string("group"),
                Arg::one_of(
                    "mode",
                    &[
                        Arg::token("silent", "SILENT"),
                        Arg::token("fail", "FAIL"),
                        Arg::token("fatal", "FATAL"),
                    ],
                ),
                Arg::block("ids", &[Arg::integer("numids"), Arg::string("id").multiple()])
                    .after("IDS"),
                Arg::integer("count").after("RETRYCOUNT").optional(),
                Arg::token("force", "FORCE").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xpending",
        full_name: "xpending",
        since: "5.0.0",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(stream::xpending),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns the information and entries from a stream consumer group's pending entries list.",
            complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every consumer.",
            history: &[("6.2.0", "Added the `IDLE` option and exclusive range intervals.")],
            args: &[
                Arg::key("key", 0),
                Arg::string("group"),
                Arg::block(
                    "filters",
                    &[
                        Arg::integer("min-idle-time").after("IDLE").optional().since("6.2.0"),
                        Arg::string("start"),
                        Arg::string("end"),
                        Arg::integer("count"),
                        Arg::string("consumer").optional(),
                    ],
                )
                .optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xrange",
        full_name: "xrange",
        since: "5.0.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(stream::xrange),
        docs: &Docs {
            summary: "Returns the messages from a stream within a range of IDs.",
            complexity: "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
            history: &[("6.2.0", "Added exclusive ranges.")],
            args: &[Arg::key("key", 0), Arg::string("start"), Arg::string("end"), COUNT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xread",
        full_name: "xread",
        since: "5.0.0",
        arity: -4,
        flags: F::of(&[F::READONLY, F::BLOCKING, F::MOVABLEKEYS]),
        keys: &[KeySpec::behind("STREAMS", 1, K::of(&[K::RO, K::ACCESS])).halved()],
        handler: Handler::Blocking(stream::wait_xread, stream::take),
        docs: &Docs {
            summary: "Returns messages from multiple streams with IDs greater than the ones requested. Blocks until a message is available otherwise.",
            args: &[COUNT, Arg::integer("milliseconds").after("BLOCK").optional(), STREAMS],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xreadgroup",
        full_name: "xreadgroup",
        since: "5.0.0",
        arity: -7,
        flags: F::of(&[F::WRITE, F::BLOCKING, F::MOVABLEKEYS]),
        keys: &[KeySpec::behind("STREAMS", 4, K::of(&[K::RO, K::ACCESS])).halved()],
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(stream::wait_xreadgroup, stream::take_group),
        docs: &Docs {
            summary: "Returns new or historical messages from a stream for a consumer in a group. Blocks until a message is available otherwise.",
            complexity: "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
            args: &[
                Arg::block("group-block", &[Arg::string("group"), Arg::string("consumer")])
                    .after("GROUP"),
                COUNT,
                Arg::integer("milliseconds").after("BLOCK").optional(),
                Arg::token("noack", "NOACK").optional(),
                STREAMS,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xrevrange",
        full_name: "xrevrange",
        since: "5.0.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(stream::xrevrange),
        docs: &Docs {
            summary: "Returns the messages from a stream within a range of IDs in reverse order.",
            complexity: "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
            history: &[("6.2.0", "Added exclusive ranges.")],
            args: &[Arg::key("key", 0), Arg::string("end"), Arg::string("start"), COUNT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xsetid",
        full_name: "xsetid",
        since: "5.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::UPDATE,
        handler: Handler::Data(stream::xsetid),
        docs: &Docs {
            summary: "An internal command for replicating stream values.",
            complexity: "O(1)",
            history: &[(
                "7.0.0",
                "Added the `entries_added` and `max_deleted_entry_id` arguments.",
            )],
            args: &[
                Arg::key("key", 0),
                Arg::string("last-id"),
                Arg::integer("entries-added").after("ENTRIESADDED").optional().since("7.0.0"),
                Arg::string("max-deleted-id").after("MAXDELETEDID").optional().since("7.0.0"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "xtrim",
        full_name: "xtrim",
        since: "5.0.0",
        arity: -4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(stream::xtrim),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Deletes messages from the beginning of a stream.",
            complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
            history: &[("6.2.0", "Added the `MINID` trimming strategy and the `LIMIT` option.")],
            args: &[Arg::key("key", 0), TRIM],
            ..Docs::NONE
        },
        ..BASE
    },
];
