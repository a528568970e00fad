//! The table's entries for transactions.

use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, LockClass, Traits as T,
};
use crate::transactions;

const BASE: CommandSpec =
    CommandSpec { group: Group::Transactions, acl: Acl::TRANSACTION, ..CommandSpec::BASE };

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "discard",
        full_name: "discard",
        since: "2.0.0",
        arity: 1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::ALLOW_BUSY]),
        traits: T::of(&[T::ENDS_MULTI, T::NOT_QUEUED]),
        handler: Handler::Session(transactions::discard),
        docs: &Docs {
            summary: "Discards a transaction.",
            complexity: "O(N), when N is the number of queued commands",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "exec",
        full_name: "exec",
        since: "1.2.0",
        arity: 1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::SKIP_SLOWLOG]),
        traits: T::of(&[T::RUNS_QUEUE, T::COMMITS_IN_PARTS, T::ENDS_MULTI, T::NOT_QUEUED]),
        handler: Handler::Session(transactions::exec),
        docs: &Docs {
            summary: "Executes all commands in a transaction.",
            complexity: "Depends on commands in the transaction",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "multi",
        full_name: "multi",
        since: "1.2.0",
        arity: 1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::ALLOW_BUSY]),
        traits: T::NOT_QUEUED,
        handler: Handler::Session(transactions::multi),
        docs: &Docs { summary: "Starts a transaction.", complexity: "O(1)", ..Docs::NONE },
        ..BASE
    },
    CommandSpec {
        name: "unwatch",
        full_name: "unwatch",
        since: "2.2.0",
        arity: 1,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::ALLOW_BUSY]),
        handler: Handler::Session(transactions::unwatch),
        docs: &Docs {
            summary: "Forgets about watched keys of a transaction.",
            complexity: "O(1)",
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "watch",
        full_name: "watch",
        since: "2.2.0",
        arity: -2,
        flags: F::of(&[F::NOSCRIPT, F::LOADING, F::STALE, F::FAST, F::ALLOW_BUSY]),
        keys: keys::LOOK_ALL,
        lock: LockClass::Keys,
        traits: T::of(&[T::NOT_QUEUED, T::WATCHES]),
        handler: Handler::Session(transactions::watch),
        docs: &Docs {
            summary: "Monitors changes to keys to determine the execution of a transaction.",
            complexity: "O(1) for every key.",
            args: &[Arg::key("key", 0).multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
];
