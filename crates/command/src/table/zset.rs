//! The table's entries for sorted sets.

use super::fragments::{AT_MOST, COUNT, LIMIT, MATCH, TIMEOUT_IS_DOUBLE};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec,
    LockClass, Traits as T,
};

const BASE: CommandSpec = CommandSpec {
    group: Group::SortedSet,
    acl: Acl::SORTEDSET,
    lock: LockClass::Keys,
    ..CommandSpec::BASE
};

const ENDS: &[Arg] = &[Arg::token("min", "MIN"), Arg::token("max", "MAX")];

const WEIGHTS: Arg = Arg::integer("weight").after("WEIGHTS").optional().multiple();

const AGGREGATE: Arg = Arg::one_of(
    "aggregate",
    &[Arg::token("sum", "SUM"), Arg::token("min", "MIN"), Arg::token("max", "MAX")],
)
.after("AGGREGATE")
.optional();

const WITHSCORES: Arg = Arg::token("withscores", "WITHSCORES").optional();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "bzmpop",
        full_name: "bzmpop",
        since: "7.0.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::BLOCKING, F::MOVABLEKEYS]),
        keys: &[KeySpec::at(2, K::of(&[K::RW, K::ACCESS, K::DELETE])).counted(1)],
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::zset::wait_mpop, crate::zset::take_mpop),
        docs: &Docs {
            summary: "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
            complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
            args: &[
                Arg::double("timeout"),
                Arg::integer("numkeys"),
                Arg::key("key", 0).multiple(),
                Arg::one_of("where", ENDS),
                COUNT,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bzpopmax",
        full_name: "bzpopmax",
        since: "5.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::BLOCKING, F::FAST]),
        keys: keys::READ_DELETE_BEFORE_LAST,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::zset::wait_pop, crate::zset::take_max),
        docs: &Docs {
            summary: "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise.  Deletes the sorted set if the last element was popped.",
            complexity: "O(log(N)) with N being the number of elements in the sorted set.",
            history: TIMEOUT_IS_DOUBLE,
            args: &[Arg::key("key", 0).multiple(), Arg::double("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bzpopmin",
        full_name: "bzpopmin",
        since: "5.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::BLOCKING, F::FAST]),
        keys: keys::READ_DELETE_BEFORE_LAST,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::zset::wait_pop, crate::zset::take_min),
        docs: &Docs {
            summary: "Removes and returns the member with the lowest score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
            complexity: "O(log(N)) with N being the number of elements in the sorted set.",
            history: TIMEOUT_IS_DOUBLE,
            args: &[Arg::key("key", 0).multiple(), Arg::double("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zadd",
        full_name: "zadd",
        since: "1.2.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::UPDATE,
        member: 3,
        member_step: 2,
        handler: Handler::Data(crate::zset::zadd),
        docs: &Docs {
            summary: "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
            complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
            history: &[
                ("2.4.0", "Accepts multiple elements."),
                ("3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."),
                ("6.2.0", "Added the `GT` and `LT` options."),
            ],
            args: &[
                Arg::key("key", 0),
                Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                    .optional()
                    .since("3.0.2"),
                Arg::one_of("comparison", &[Arg::token("gt", "GT"), Arg::token("lt", "LT")])
                    .optional()
                    .since("6.2.0"),
                Arg::token("change", "CH").optional().since("3.0.2"),
                Arg::token("increment", "INCR").optional().since("3.0.2"),
                Arg::block("data", &[Arg::double("score"), Arg::string("member")]).multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zcard",
        full_name: "zcard",
        since: "1.2.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(crate::zset::zcard),
        docs: &Docs {
            summary: "Returns the number of members in a sorted set.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zcount",
        full_name: "zcount",
        since: "2.0.0",
        arity: 4,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zcount),
        docs: &Docs {
            summary: "Returns the count of members in a sorted set that have scores within a range.",
            complexity: "O(log(N)) with N being the number of elements in the sorted set.",
            args: &[Arg::key("key", 0), Arg::double("min"), Arg::double("max")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zdiff",
        full_name: "zdiff",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::zset::combined_keys),
        handler: Handler::Data(crate::zset::zdiff),
        docs: &Docs {
            summary: "Returns the difference between multiple sorted sets.",
            complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
            args: &[Arg::integer("numkeys"), Arg::key("key", 0).multiple(), WITHSCORES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zdiffstore",
        full_name: "zdiffstore",
        since: "6.2.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: keys::STORE_COUNTED,
        touched: Some(crate::zset::stored_keys),
        handler: Handler::Data(crate::zset::zdiffstore),
        docs: &Docs {
            summary: "Stores the difference of multiple sorted sets in a key.",
            complexity: "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.",
            args: &[
                Arg::key("destination", 0),
                Arg::integer("numkeys"),
                Arg::key("key", 1).multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zincrby",
        full_name: "zincrby",
        since: "1.2.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::READ_UPDATE,
        member: 3,
        handler: Handler::Data(crate::zset::zincrby),
        docs: &Docs {
            summary: "Increments the score of a member in a sorted set.",
            complexity: "O(log(N)) where N is the number of elements in the sorted set.",
            args: &[Arg::key("key", 0), Arg::integer("increment"), Arg::string("member")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zinter",
        full_name: "zinter",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::zset::combined_keys),
        handler: Handler::Data(crate::zset::zinter),
        docs: &Docs {
            summary: "Returns the intersect of multiple sorted sets.",
            complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
            args: &[
                Arg::integer("numkeys"),
                Arg::key("key", 0).multiple(),
                WEIGHTS,
                AGGREGATE,
                WITHSCORES,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zintercard",
        full_name: "zintercard",
        since: "7.0.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::zset::combined_keys),
        handler: Handler::Data(crate::zset::zintercard),
        docs: &Docs {
            summary: "Returns the number of members of the intersect of multiple sorted sets.",
            complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
            args: &[Arg::integer("numkeys"), Arg::key("key", 0).multiple(), AT_MOST],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zinterstore",
        full_name: "zinterstore",
        since: "2.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: keys::STORE_COUNTED,
        touched: Some(crate::zset::stored_keys),
        handler: Handler::Data(crate::zset::zinterstore),
        docs: &Docs {
            summary: "Stores the intersect of multiple sorted sets in a key.",
            complexity: "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.",
            args: &[
                Arg::key("destination", 0),
                Arg::integer("numkeys"),
                Arg::key("key", 1).multiple(),
                WEIGHTS,
                AGGREGATE,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zlexcount",
        full_name: "zlexcount",
        since: "2.8.9",
        arity: 4,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zlexcount),
        docs: &Docs {
            summary: "Returns the number of members in a sorted set within a lexicographical range.",
            complexity: "O(log(N)) with N being the number of elements in the sorted set.",
            args: &[Arg::key("key", 0), Arg::string("min"), Arg::string("max")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zmpop",
        full_name: "zmpop",
        since: "7.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::MOVABLEKEYS]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])).counted(1)],
        touched: Some(crate::zset::zmpop_keys),
        handler: Handler::Data(crate::zset::zmpop),
        docs: &Docs {
            summary: "Returns the highest- or lowest-scoring members from one or more sorted sets after removing them. Deletes the sorted set if the last member was popped.",
            complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
            args: &[
                Arg::integer("numkeys"),
                Arg::key("key", 0).multiple(),
                Arg::one_of("where", ENDS),
                COUNT,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zmscore",
        full_name: "zmscore",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zmscore),
        docs: &Docs {
            summary: "Returns the score of one or more members in a sorted set.",
            complexity: "O(N) where N is the number of members being requested.",
            args: &[Arg::key("key", 0), Arg::string("member").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zpopmax",
        full_name: "zpopmax",
        since: "5.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(crate::zset::zpopmax),
        docs: &Docs {
            summary: "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
            complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
            args: &[Arg::key("key", 0), Arg::integer("count").optional()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zpopmin",
        full_name: "zpopmin",
        since: "5.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(crate::zset::zpopmin),
        docs: &Docs {
            summary: "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
            complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
            args: &[Arg::key("key", 0), Arg::integer("count").optional()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrandmember",
        full_name: "zrandmember",
        since: "6.2.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrandmember),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Returns one or more random members from a sorted set.",
            complexity: "O(N) where N is the number of members returned",
            args: &[
                Arg::key("key", 0),
                Arg::block("options", &[Arg::integer("count"), WITHSCORES]).optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrange",
        full_name: "zrange",
        since: "1.2.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrange),
        docs: &Docs {
            summary: "Returns members in a sorted set within a range of indexes.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
            history: &[("6.2.0", "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options.")],
            args: &[
                Arg::key("key", 0),
                Arg::string("start"),
                Arg::string("stop"),
                Arg::one_of(
                    "sortby",
                    &[Arg::token("byscore", "BYSCORE"), Arg::token("bylex", "BYLEX")],
                )
                .optional()
                .since("6.2.0"),
                Arg::token("rev", "REV").optional().since("6.2.0"),
                LIMIT.since("6.2.0"),
                WITHSCORES,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrangebylex",
        full_name: "zrangebylex",
        since: "2.8.9",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrangebylex),
        docs: &Docs {
            summary: "Returns members in a sorted set within a lexicographical range.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`ZRANGE` with the `BYLEX` argument",
            }),
            args: &[Arg::key("key", 0), Arg::string("min"), Arg::string("max"), LIMIT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrangebyscore",
        full_name: "zrangebyscore",
        since: "1.0.5",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrangebyscore),
        docs: &Docs {
            summary: "Returns members in a sorted set within a range of scores.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`ZRANGE` with the `BYSCORE` argument",
            }),
            history: &[("2.0.0", "Added the `WITHSCORES` modifier.")],
            args: &[
                Arg::key("key", 0),
                Arg::double("min"),
                Arg::double("max"),
                WITHSCORES.since("2.0.0"),
                LIMIT,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrangestore",
        full_name: "zrangestore",
        since: "6.2.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::OW, K::UPDATE])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])),
        ],
        handler: Handler::Data(crate::zset::zrangestore),
        docs: &Docs {
            summary: "Stores a range of members from sorted set in a key.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into the destination key.",
            args: &[
                Arg::key("dst", 0),
                Arg::key("src", 1),
                Arg::string("min"),
                Arg::string("max"),
                Arg::one_of(
                    "sortby",
                    &[Arg::token("byscore", "BYSCORE"), Arg::token("bylex", "BYLEX")],
                )
                .optional(),
                Arg::token("rev", "REV").optional(),
                LIMIT,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrank",
        full_name: "zrank",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        member: 2,
        handler: Handler::Data(crate::zset::zrank),
        docs: &Docs {
            summary: "Returns the index of a member in a sorted set ordered by ascending scores.",
            complexity: "O(log(N))",
            history: &[("7.2.0", "Added the optional `WITHSCORE` argument.")],
            args: &[
                Arg::key("key", 0),
                Arg::string("member"),
                Arg::token("withscore", "WITHSCORE").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrem",
        full_name: "zrem",
        since: "1.2.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::DELETE,
        member: 2,
        member_step: 1,
        handler: Handler::Data(crate::zset::zrem),
        docs: &Docs {
            summary: "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
            complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
            history: &[("2.4.0", "Accepts multiple elements.")],
            args: &[Arg::key("key", 0), Arg::string("member").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zremrangebylex",
        full_name: "zremrangebylex",
        since: "2.8.9",
        arity: 4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(crate::zset::zremrangebylex),
        docs: &Docs {
            summary: "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
            args: &[Arg::key("key", 0), Arg::string("min"), Arg::string("max")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zremrangebyrank",
        full_name: "zremrangebyrank",
        since: "2.0.0",
        arity: 4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(crate::zset::zremrangebyrank),
        docs: &Docs {
            summary: "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("stop")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zremrangebyscore",
        full_name: "zremrangebyscore",
        since: "1.2.0",
        arity: 4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(crate::zset::zremrangebyscore),
        docs: &Docs {
            summary: "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.",
            args: &[Arg::key("key", 0), Arg::double("min"), Arg::double("max")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrevrange",
        full_name: "zrevrange",
        since: "1.2.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrevrange),
        docs: &Docs {
            summary: "Returns members in a sorted set within a range of indexes in reverse order.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`ZRANGE` with the `REV` argument",
            }),
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("stop"), WITHSCORES],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrevrangebylex",
        full_name: "zrevrangebylex",
        since: "2.8.9",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrevrangebylex),
        docs: &Docs {
            summary: "Returns members in a sorted set within a lexicographical range in reverse order.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`ZRANGE` with the `REV` and `BYLEX` arguments",
            }),
            args: &[Arg::key("key", 0), Arg::string("max"), Arg::string("min"), LIMIT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrevrangebyscore",
        full_name: "zrevrangebyscore",
        since: "2.2.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zrevrangebyscore),
        docs: &Docs {
            summary: "Returns members in a sorted set within a range of scores in reverse order.",
            complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`ZRANGE` with the `REV` and `BYSCORE` arguments",
            }),
            history: &[("2.1.6", "`min` and `max` can be exclusive.")],
            args: &[Arg::key("key", 0), Arg::double("max"), Arg::double("min"), WITHSCORES, LIMIT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zrevrank",
        full_name: "zrevrank",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        member: 2,
        handler: Handler::Data(crate::zset::zrevrank),
        docs: &Docs {
            summary: "Returns the index of a member in a sorted set ordered by descending scores.",
            complexity: "O(log(N))",
            history: &[("7.2.0", "Added the optional `WITHSCORE` argument.")],
            args: &[
                Arg::key("key", 0),
                Arg::string("member"),
                Arg::token("withscore", "WITHSCORE").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zscan",
        full_name: "zscan",
        since: "2.8.0",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::zset::zscan),
        tips: &["nondeterministic_output"],
        docs: &Docs {
            summary: "Iterates over members and scores of a sorted set.",
            complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
            args: &[Arg::key("key", 0), Arg::integer("cursor"), MATCH, COUNT],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zscore",
        full_name: "zscore",
        since: "1.2.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        member: 2,
        handler: Handler::Data(crate::zset::zscore),
        docs: &Docs {
            summary: "Returns the score of a member in a sorted set.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::string("member")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zunion",
        full_name: "zunion",
        since: "6.2.0",
        arity: -3,
        flags: F::of(&[F::READONLY, F::MOVABLEKEYS]),
        keys: keys::READ_COUNTED,
        touched: Some(crate::zset::combined_keys),
        handler: Handler::Data(crate::zset::zunion),
        docs: &Docs {
            summary: "Returns the union of multiple sorted sets.",
            complexity: "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
            args: &[
                Arg::integer("numkeys"),
                Arg::key("key", 0).multiple(),
                WEIGHTS,
                AGGREGATE,
                WITHSCORES,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "zunionstore",
        full_name: "zunionstore",
        since: "2.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: keys::STORE_COUNTED,
        touched: Some(crate::zset::stored_keys),
        handler: Handler::Data(crate::zset::zunionstore),
        docs: &Docs {
            summary: "Stores the union of multiple sorted sets in a key.",
            complexity: "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.",
            args: &[
                Arg::key("destination", 0),
                Arg::integer("numkeys"),
                Arg::key("key", 1).multiple(),
                WEIGHTS,
                AGGREGATE,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
];
