//! Pieces that rows of several families share. What only one family repeats stands in its file.

use crate::spec::{Arg, CommandSpec, Docs, Flags, Handler, LockClass};

/// When a key or a field takes a new time to live.
pub const CONDITION: Arg = Arg::one_of(
    "condition",
    &[
        Arg::token("nx", "NX"),
        Arg::token("xx", "XX"),
        Arg::token("gt", "GT"),
        Arg::token("lt", "LT"),
    ],
)
.optional();

const EX: Arg = Arg::integer("seconds").after("EX");
const PX: Arg = Arg::integer("milliseconds").after("PX");
const EXAT: Arg = Arg::unix_time("unix-time-seconds").after("EXAT");
const PXAT: Arg = Arg::unix_time("unix-time-milliseconds").after("PXAT");

/// A time to live, or none, for what is read.
pub const EXPIRATION_OR_PERSIST: Arg =
    Arg::one_of("expiration", &[EX, PX, EXAT, PXAT, Arg::token("persist", "PERSIST")]).optional();

/// A time to live, or that of before, for what is written.
pub const EXPIRATION_OR_KEEPTTL: Arg =
    Arg::one_of("expiration", &[EX, PX, EXAT, PXAT, Arg::token("keepttl", "KEEPTTL")]).optional();

/// Ascending or descending.
pub const ORDER: Arg =
    Arg::one_of("order", &[Arg::token("asc", "ASC"), Arg::token("desc", "DESC")]).optional();

/// A part of a result.
pub const LIMIT: Arg =
    Arg::block("limit", &[Arg::integer("offset"), Arg::integer("count")]).after("LIMIT").optional();

/// How many.
pub const COUNT: Arg = Arg::integer("count").after("COUNT").optional();

/// At most how many of a count.
pub const AT_MOST: Arg = Arg::integer("limit").after("LIMIT").optional();

/// The pattern of a SCAN.
pub const MATCH: Arg = Arg::pattern("pattern").after("MATCH").optional();

/// The history of blocking commands that are older than timeouts below a second.
pub const TIMEOUT_IS_DOUBLE: &[(&str, &str)] =
    &[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")];

/// The HELP of a container. The row adds `full_name` and `since`.
pub const fn help(base: &CommandSpec) -> CommandSpec {
    CommandSpec {
        name: "help",
        arity: 2,
        flags: Flags::of(&[Flags::LOADING, Flags::STALE]),
        lock: LockClass::None,
        handler: Handler::Data(crate::help::help),
        docs: &HELP,
        ..*base
    }
}

const HELP: Docs = Docs {
    summary: "Returns helpful text about the different subcommands.",
    complexity: "O(1)",
    ..Docs::NONE
};
