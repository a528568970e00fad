//! Sets.

use super::{Family, Template};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (16, "SADD $k {$m}"),
    (3, "SADD $k {$c}"),
    (2, "SADD $k <$u>"),
    (1, "SADD $k <$w>"),
    (8, "SREM $k {$m}"),
    (4, "SCARD $k"),
    (6, "SISMEMBER $k $m"),
    (4, "SMISMEMBER $k {$m}"),
    (6, "SMEMBERS $k"),
    (6, "SMOVE $k $k $m"),
    (2, "SMOVE $1 $1 $m"),
    (6, "SINTER|SUNION|SDIFF {$k}"),
    (6, "SINTERSTORE|SUNIONSTORE|SDIFFSTORE $k {$k}"),
    (3, "SINTERCARD 1 $k [LIMIT+$c]"),
    (3, "SINTERCARD 2 $k $k [LIMIT+$c]"),
    (1, "SINTERCARD $c {$k} [LIMIT|BOGUS+$c]"),
    (3, "SSCAN $k 0 COUNT 100000 [MATCH+*|MATCH+[a-c]*|MATCH+1*]"),
    (1, "SSCAN $k x|0|-1 COUNT|MATCH|TYPE|BOGUS $n"),
    (2, "SPOP $k 100000|0|-1|x"),
    (1, "SPOP $k 100000 BOGUS"),
    (2, "DEL $1 ; SADD $1 $m ; SPOP $1"),
    (1, "SRANDMEMBER $k"),
    (4, "SMEMBERS $1 ; SRANDMEMBER $1 [$c]"),
    (2, "SRANDMEMBER $k 100000|-1|0|x|-9223372036854775808 [BOGUS]"),
    (3, "OBJECT ENCODING $k"),
];

/// Sets.
pub const FAMILY: Family = Family {
    name: "set",
    templates: TEMPLATES,
    replies: &[
        ("SMEMBERS", Mode::Unordered),
        ("SINTER", Mode::Unordered),
        ("SUNION", Mode::Unordered),
        ("SDIFF", Mode::Unordered),
        ("SPOP", Mode::Unordered),
        ("SSCAN", Mode::Scan),
        ("SRANDMEMBER", Mode::Pick { pairs: "" }),
    ],
    brittle: &["SRANDMEMBER", "SPOP"],
    ..Family::BASE
};
