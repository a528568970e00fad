//! Whole databases.

use super::{Family, Template, is};

const TEMPLATES: &[Template] = &[
    (10, "SELECT $d"),
    (5, "SWAPDB $d $d"),
    (2, "FLUSHDB|FLUSHALL [ASYNC|SYNC|BOGUS]"),
    (6, "DBSIZE"),
    (4, "PING [$v]"),
    (3, "ECHO $v"),
];

/// DBSIZE counts keys that are due but not yet freed.
pub const FAMILY: Family = Family {
    name: "database",
    leads: false,
    templates: TEMPLATES,
    open: |args, expiring| expiring && is(args, "DBSIZE"),
    ..Family::BASE
};
