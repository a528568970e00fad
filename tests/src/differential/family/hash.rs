//! Hashes.

use super::{Family, Template};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (14, "HSET $k {$m+$m}"),
    (3, "HMSET $k {$m+$v}"),
    (2, "HSET|HMSET $k <$u+$m>"),
    (1, "HSET $k {$m} {$v}"),
    (4, "HSETNX $k $m $v"),
    (7, "HGET $k $m"),
    (6, "HMGET $k {$m}"),
    (7, "HDEL $k {$m}"),
    (3, "HLEN $k"),
    (4, "HSTRLEN|HEXISTS $k $m"),
    (5, "HKEYS|HVALS|HGETALL $k"),
    (6, "HINCRBY $k $m $n"),
    (6, "HINCRBYFLOAT $k $m $f"),
    (3, "HSCAN $k 0 COUNT 100000 [MATCH+*|MATCH+[a-c]*|MATCH+1*]"),
    (1, "HSCAN $k x|0|-1 COUNT|MATCH|TYPE|BOGUS $n"),
    (1, "HRANDFIELD $k"),
    (3, "HGETALL $1 ; HRANDFIELD $1 $c"),
    (3, "HGETALL $1 ; HRANDFIELD $1 $c WITHVALUES"),
    (2, "HRANDFIELD $k 100000|-1|0|x|-9223372036854775808 [WITHVALUES|BOGUS]"),
    (3, "OBJECT ENCODING $k"),
];

/// Hashes.
pub const FAMILY: Family = Family {
    name: "hash",
    templates: TEMPLATES,
    replies: &[
        ("HKEYS", Mode::Unordered),
        ("HVALS", Mode::Unordered),
        ("HGETALL", Mode::Pairs),
        ("HSCAN", Mode::ScanPairs),
        ("HRANDFIELD", Mode::Pick { pairs: "WITHVALUES" }),
    ],
    brittle: &["HRANDFIELD"],
    ..Family::BASE
};
