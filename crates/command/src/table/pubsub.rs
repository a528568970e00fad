//! The table's entries for publishing and subscribing.

use super::fragments::help;
use crate::pubsub;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags, KeySpec, Traits as T,
};

const CONTAINER: CommandSpec = CommandSpec { group: Group::PubSub, ..CommandSpec::BASE };

const BASE: CommandSpec = CommandSpec { acl: Acl::PUBSUB, ..CONTAINER };

/// A question about who subscribes.
const ASKS: CommandSpec = CommandSpec { flags: F::of(&[F::PUBSUB, F::LOADING, F::STALE]), ..BASE };

/// SUBSCRIBE and UNSUBSCRIBE in their forms. What a client may still send has all of them.
const SUBSCRIBES: CommandSpec = CommandSpec {
    flags: F::of(&[F::PUBSUB, F::NOSCRIPT, F::LOADING, F::STALE]),
    traits: T::of(&[T::WHILE_SUBSCRIBED, T::CONFIRMS]),
    ..BASE
};

/// PUBLISH and SPUBLISH.
const PUBLISHES: CommandSpec = CommandSpec {
    arity: 3,
    flags: F::of(&[F::PUBSUB, F::LOADING, F::STALE, F::FAST]),
    traits: T::of(&[T::MAY_REPLICATE, T::PUBLISHES]),
    ..BASE
};

const CHANNEL: Arg = Arg::string("channel");
const SHARD_CHANNEL: Arg = Arg::string("shardchannel");
const PATTERN: Arg = Arg::pattern("pattern");

/// A shard channel belongs to the slot that a key of its name has.
const SHARD: &[KeySpec] = &[KeySpec::at(1, KeyFlags::NOT_KEY)];
const SHARDS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::NOT_KEY).to_end(1)];

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "psubscribe",
        full_name: "psubscribe",
        since: "2.0.0",
        arity: -2,
        handler: Handler::Session(pubsub::psubscribe),
        docs: &Docs {
            summary: "Listens for messages published to channels that match one or more patterns.",
            complexity: "O(N) where N is the number of patterns to subscribe to.",
            args: &[PATTERN.multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
    CommandSpec {
        name: "publish",
        full_name: "publish",
        since: "2.0.0",
        handler: Handler::Session(pubsub::publish),
        docs: &Docs {
            summary: "Posts a message to a channel.",
            complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of subscribed patterns (by any client).",
            args: &[CHANNEL, Arg::string("message")],
            ..Docs::NONE
        },
        ..PUBLISHES
    },
    CommandSpec {
        name: "pubsub",
        full_name: "pubsub",
        since: "2.8.0",
        arity: -2,
        docs: &Docs {
            summary: "A container for Pub/Sub commands.",
            complexity: "Depends on subcommand.",
            ..Docs::NONE
        },
        subcommands: &[
            CommandSpec {
                name: "channels",
                full_name: "pubsub|channels",
                since: "2.8.0",
                arity: -2,
                handler: Handler::Server(pubsub::channels),
                docs: &Docs {
                    summary: "Returns the active channels.",
                    complexity: "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short channels and patterns)",
                    args: &[PATTERN.optional()],
                    ..Docs::NONE
                },
                ..ASKS
            },
            CommandSpec { full_name: "pubsub|help", since: "6.2.0", ..help(&CONTAINER) },
            CommandSpec {
                name: "numpat",
                full_name: "pubsub|numpat",
                since: "2.8.0",
                arity: 2,
                handler: Handler::Server(pubsub::numpat),
                docs: &Docs {
                    summary: "Returns a count of unique pattern subscriptions.",
                    complexity: "O(1)",
                    ..Docs::NONE
                },
                ..ASKS
            },
            CommandSpec {
                name: "numsub",
                full_name: "pubsub|numsub",
                since: "2.8.0",
                arity: -2,
                handler: Handler::Server(pubsub::numsub),
                docs: &Docs {
                    summary: "Returns a count of subscribers to channels.",
                    complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
                    args: &[CHANNEL.optional().multiple()],
                    ..Docs::NONE
                },
                ..ASKS
            },
            CommandSpec {
                name: "shardchannels",
                full_name: "pubsub|shardchannels",
                since: "7.0.0",
                arity: -2,
                handler: Handler::Server(pubsub::shard_channels),
                docs: &Docs {
                    summary: "Returns the active shard channels.",
                    complexity: "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively short shard channels).",
                    args: &[PATTERN.optional()],
                    ..Docs::NONE
                },
                ..ASKS
            },
            CommandSpec {
                name: "shardnumsub",
                full_name: "pubsub|shardnumsub",
                since: "7.0.0",
                arity: -2,
                handler: Handler::Server(pubsub::shard_numsub),
                docs: &Docs {
                    summary: "Returns the count of subscribers of shard channels.",
                    complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
                    args: &[SHARD_CHANNEL.optional().multiple()],
                    ..Docs::NONE
                },
                ..ASKS
            },
        ],
        ..CONTAINER
    },
    CommandSpec {
        name: "punsubscribe",
        full_name: "punsubscribe",
        since: "2.0.0",
        arity: -1,
        handler: Handler::Session(pubsub::punsubscribe),
        docs: &Docs {
            summary: "Stops listening to messages published to channels that match one or more patterns.",
            complexity: "O(N) where N is the number of patterns to unsubscribe.",
            args: &[PATTERN.optional().multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
    CommandSpec {
        name: "spublish",
        full_name: "spublish",
        since: "7.0.0",
        keys: SHARD,
        touched: Some(pubsub::no_keys),
        handler: Handler::Session(pubsub::spublish),
        docs: &Docs {
            summary: "Post a message to a shard channel",
            complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
            args: &[SHARD_CHANNEL, Arg::string("message")],
            ..Docs::NONE
        },
        ..PUBLISHES
    },
    CommandSpec {
        name: "ssubscribe",
        full_name: "ssubscribe",
        since: "7.0.0",
        arity: -2,
        keys: SHARDS,
        touched: Some(pubsub::no_keys),
        handler: Handler::Session(pubsub::ssubscribe),
        docs: &Docs {
            summary: "Listens for messages published to shard channels.",
            complexity: "O(N) where N is the number of shard channels to subscribe to.",
            args: &[SHARD_CHANNEL.multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
    CommandSpec {
        name: "subscribe",
        full_name: "subscribe",
        since: "2.0.0",
        arity: -2,
        handler: Handler::Session(pubsub::subscribe),
        docs: &Docs {
            summary: "Listens for messages published to channels.",
            complexity: "O(N) where N is the number of channels to subscribe to.",
            args: &[CHANNEL.multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
    CommandSpec {
        name: "sunsubscribe",
        full_name: "sunsubscribe",
        since: "7.0.0",
        arity: -1,
        keys: SHARDS,
        touched: Some(pubsub::no_keys),
        handler: Handler::Session(pubsub::sunsubscribe),
        docs: &Docs {
            summary: "Stops listening to messages posted to shard channels.",
            complexity: "O(N) where N is the number of shard channels to unsubscribe.",
            args: &[SHARD_CHANNEL.optional().multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
    CommandSpec {
        name: "unsubscribe",
        full_name: "unsubscribe",
        since: "2.0.0",
        arity: -1,
        handler: Handler::Session(pubsub::unsubscribe),
        docs: &Docs {
            summary: "Stops listening to messages posted to channels.",
            complexity: "O(N) where N is the number of channels to unsubscribe.",
            args: &[CHANNEL.optional().multiple()],
            ..Docs::NONE
        },
        ..SUBSCRIBES
    },
];
