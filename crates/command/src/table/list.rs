//! The table's entries for lists.

use super::fragments::{COUNT, TIMEOUT_IS_DOUBLE};
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec,
    LockClass, Traits as T,
};

const BASE: CommandSpec =
    CommandSpec { group: Group::List, acl: Acl::LIST, lock: LockClass::Keys, ..CommandSpec::BASE };

const ENDS: &[Arg] = &[Arg::token("left", "LEFT"), Arg::token("right", "RIGHT")];

/// How many elements LMOVEM and BLMOVEM move.
const HOW_MANY: Arg = Arg::block(
    "how-many",
    &[
        Arg::one_of(
            "selector",
            &[Arg::integer("count").after("COUNT"), Arg::integer("exactly").after("EXACTLY")],
        ),
        Arg::one_of("ordering", &[Arg::token("obo", "OBO"), Arg::token("bulk", "BULK")]),
    ],
)
.optional();

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "blmove",
        full_name: "blmove",
        since: "6.2.0",
        arity: 6,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::BLOCKING]),
        keys: keys::MOVE,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_move, crate::list::take_move),
        docs: &Docs {
            summary: "Pops an element from a list, pushes it to another list and returns it. Blocks until an element is available otherwise. Deletes the list if the last element was moved.",
            complexity: "O(1)",
            args: &[
                Arg::key("source", 0),
                Arg::key("destination", 1),
                Arg::one_of("wherefrom", ENDS),
                Arg::one_of("whereto", ENDS),
                Arg::double("timeout"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "blmovem",
        full_name: "blmovem",
        since: "8.10.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::BLOCKING]),
        keys: keys::MOVE,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_movem, crate::list::take_movem),
        docs: &Docs {
            summary: "Moves up to (or exactly) a number of elements from one list to another and returns them. Blocks until the elements are available otherwise. Deletes the source list if it becomes empty.",
            complexity: "O(N) where N is the number of elements moved.",
            args: &[
                Arg::key("source", 0),
                Arg::key("destination", 1),
                Arg::one_of("wherefrom", ENDS),
                Arg::one_of("whereto", ENDS),
                Arg::double("timeout"),
                HOW_MANY,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "blmpop",
        full_name: "blmpop",
        since: "7.0.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::BLOCKING, F::MOVABLEKEYS]),
        keys: &[KeySpec::at(2, K::of(&[K::RW, K::ACCESS, K::DELETE])).counted(1)],
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_mpop, crate::list::take_mpop),
        docs: &Docs {
            summary: "Pops the first element from one of multiple lists. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
            complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
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
        name: "blpop",
        full_name: "blpop",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::BLOCKING]),
        keys: keys::READ_DELETE_BEFORE_LAST,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_pop, crate::list::take_first),
        docs: &Docs {
            summary: "Removes and returns the first element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
            complexity: "O(N) where N is the number of provided keys.",
            history: TIMEOUT_IS_DOUBLE,
            args: &[Arg::key("key", 0).multiple(), Arg::double("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "brpop",
        full_name: "brpop",
        since: "2.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::BLOCKING]),
        keys: keys::READ_DELETE_BEFORE_LAST,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_pop, crate::list::take_last),
        docs: &Docs {
            summary: "Removes and returns the last element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
            complexity: "O(N) where N is the number of provided keys.",
            history: TIMEOUT_IS_DOUBLE,
            args: &[Arg::key("key", 0).multiple(), Arg::double("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "brpoplpush",
        full_name: "brpoplpush",
        since: "2.2.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::BLOCKING]),
        keys: keys::MOVE,
        traits: T::OWN_RECORD,
        handler: Handler::Blocking(crate::list::wait_rpoplpush, crate::list::take_rpoplpush),
        docs: &Docs {
            summary: "Pops an element from a list, pushes it to another list and returns it. Block until an element is available otherwise. Deletes the list if the last element was popped.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
            }),
            history: TIMEOUT_IS_DOUBLE,
            args: &[Arg::key("source", 0), Arg::key("destination", 1), Arg::double("timeout")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lindex",
        full_name: "lindex",
        since: "1.0.0",
        arity: 3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::list::lindex),
        docs: &Docs {
            summary: "Returns an element from a list by its index.",
            complexity: "O(N) where N is the number of elements to traverse to get to the element at index. This makes asking for the first or the last element of the list O(1).",
            args: &[Arg::key("key", 0), Arg::integer("index")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "linsert",
        full_name: "linsert",
        since: "2.2.0",
        arity: 5,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::INSERT,
        handler: Handler::Data(crate::list::linsert),
        docs: &Docs {
            summary: "Inserts an element before or after another element in a list.",
            complexity: "O(N) where N is the number of elements to traverse before seeing the value pivot. This means that inserting somewhere on the left end on the list (head) can be considered O(1) and inserting somewhere on the right end (tail) is O(N).",
            args: &[
                Arg::key("key", 0),
                Arg::one_of(
                    "where",
                    &[Arg::token("before", "BEFORE"), Arg::token("after", "AFTER")],
                ),
                Arg::string("pivot"),
                Arg::string("element"),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "llen",
        full_name: "llen",
        since: "1.0.0",
        arity: 2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::LOOK,
        handler: Handler::Data(crate::list::llen),
        docs: &Docs {
            summary: "Returns the length of a list.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lmove",
        full_name: "lmove",
        since: "6.2.0",
        arity: 5,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::MOVE,
        handler: Handler::Data(crate::list::lmove),
        docs: &Docs {
            summary: "Returns an element after popping it from one list and pushing it to another. Deletes the list if the last element was moved.",
            complexity: "O(1)",
            args: &[
                Arg::key("source", 0),
                Arg::key("destination", 1),
                Arg::one_of("wherefrom", ENDS),
                Arg::one_of("whereto", ENDS),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lmovem",
        full_name: "lmovem",
        since: "8.10.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::MOVE,
        handler: Handler::Data(crate::list::lmovem),
        docs: &Docs {
            summary: "Moves up to (or exactly) a number of elements from one list to another and returns them. Deletes the source list if it becomes empty.",
            complexity: "O(N) where N is the number of elements moved.",
            args: &[
                Arg::key("source", 0),
                Arg::key("destination", 1),
                Arg::one_of("wherefrom", ENDS),
                Arg::one_of("whereto", ENDS),
                HOW_MANY,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lmpop",
        full_name: "lmpop",
        since: "7.0.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::MOVABLEKEYS]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::DELETE])).counted(1)],
        touched: Some(crate::list::lmpop_keys),
        handler: Handler::Data(crate::list::lmpop),
        docs: &Docs {
            summary: "Returns multiple elements from a list after removing them. Deletes the list if the last element was popped.",
            complexity: "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
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
        name: "lpop",
        full_name: "lpop",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(crate::list::lpop),
        docs: &Docs {
            summary: "Returns the first elements in a list after removing it. Deletes the list if the last element was popped.",
            complexity: "O(N) where N is the number of elements returned",
            history: &[("6.2.0", "Added the `count` argument.")],
            args: &[Arg::key("key", 0), Arg::integer("count").optional().since("6.2.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lpos",
        full_name: "lpos",
        since: "6.0.6",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::list::lpos),
        docs: &Docs {
            summary: "Returns the index of matching elements in a list.",
            complexity: "O(N) where N is the number of elements in the list, for the average case. When searching for elements near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in constant time.",
            args: &[
                Arg::key("key", 0),
                Arg::string("element"),
                Arg::integer("rank").after("RANK").optional(),
                Arg::integer("num-matches").after("COUNT").optional(),
                Arg::integer("len").after("MAXLEN").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lpush",
        full_name: "lpush",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(crate::list::lpush),
        docs: &Docs {
            summary: "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
            complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            history: &[("2.4.0", "Accepts multiple `element` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("element").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lpushx",
        full_name: "lpushx",
        since: "2.2.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(crate::list::lpushx),
        docs: &Docs {
            summary: "Prepends one or more elements to a list only when the list exists.",
            complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            history: &[("4.0.0", "Accepts multiple `element` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("element").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lrange",
        full_name: "lrange",
        since: "1.0.0",
        arity: 4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::list::lrange),
        docs: &Docs {
            summary: "Returns a range of elements from a list.",
            complexity: "O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or TAIL) for large lists; and N is the number of elements in the specified range.",
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("stop")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lrem",
        full_name: "lrem",
        since: "1.0.0",
        arity: 4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(crate::list::lrem),
        docs: &Docs {
            summary: "Removes elements from a list. Deletes the list if the last element was removed.",
            complexity: "O(N+M) where N is the length of the list and M is the number of elements removed.",
            args: &[Arg::key("key", 0), Arg::integer("count"), Arg::string("element")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "lset",
        full_name: "lset",
        since: "1.0.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::list::lset),
        docs: &Docs {
            summary: "Sets the value of an element in a list by its index.",
            complexity: "O(N) where N is the length of the list. Setting either the first or the last element of the list is O(1).",
            args: &[Arg::key("key", 0), Arg::integer("index"), Arg::string("element")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "ltrim",
        full_name: "ltrim",
        since: "1.0.0",
        arity: 4,
        flags: F::WRITE,
        keys: keys::DELETE,
        handler: Handler::Data(crate::list::ltrim),
        docs: &Docs {
            summary: "Removes elements from both ends a list. Deletes the list if all elements were trimmed.",
            complexity: "O(N) where N is the number of elements to be removed by the operation.",
            args: &[Arg::key("key", 0), Arg::integer("start"), Arg::integer("stop")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "rpop",
        full_name: "rpop",
        since: "1.0.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::FAST]),
        keys: keys::READ_DELETE,
        handler: Handler::Data(crate::list::rpop),
        docs: &Docs {
            summary: "Returns and removes the last elements of a list. Deletes the list if the last element was popped.",
            complexity: "O(N) where N is the number of elements returned",
            history: &[("6.2.0", "Added the `count` argument.")],
            args: &[Arg::key("key", 0), Arg::integer("count").optional().since("6.2.0")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "rpoplpush",
        full_name: "rpoplpush",
        since: "1.2.0",
        arity: 3,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::MOVE,
        handler: Handler::Data(crate::list::rpoplpush),
        docs: &Docs {
            summary: "Returns the last element of a list after removing and pushing it to another list. Deletes the list if the last element was popped.",
            complexity: "O(1)",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`LMOVE` with the `RIGHT` and `LEFT` arguments",
            }),
            args: &[Arg::key("source", 0), Arg::key("destination", 1)],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "rpush",
        full_name: "rpush",
        since: "1.0.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(crate::list::rpush),
        docs: &Docs {
            summary: "Appends one or more elements to a list. Creates the key if it doesn't exist.",
            complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            history: &[("2.4.0", "Accepts multiple `element` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("element").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "rpushx",
        full_name: "rpushx",
        since: "2.2.0",
        arity: -3,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::FAST]),
        keys: keys::INSERT,
        handler: Handler::Data(crate::list::rpushx),
        docs: &Docs {
            summary: "Appends an element to a list only when the list exists.",
            complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            history: &[("4.0.0", "Accepts multiple `element` arguments.")],
            args: &[Arg::key("key", 0), Arg::string("element").multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
];
