//! Strings and counters.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (14, "SET $k $v"),
    (10, "SET $k $v [NX|XX|GET|KEEPTTL] [EX+$s|PX+$ms|EXAT+$S|PXAT+$MS|GET|KEEPTTL]"),
    (3, "SET $k $v {NX|XX|GET|KEEPTTL|EX+$s|PX+$ms|EXAT+$S|BOGUS}"),
    (14, "GET $k"),
    (3, "GETSET $k $v"),
    (3, "GETDEL $k"),
    (6, "GETEX $k [EX+$s|PX+$ms|EXAT+$S|PXAT+$MS|PERSIST]"),
    (1, "GETEX $k {EX+$s|PERSIST|PX+$ms|NX}"),
    (3, "SETNX $k $v"),
    (3, "SETEX $k $s $v"),
    (3, "PSETEX $k $ms $v"),
    (6, "APPEND $k $v"),
    (4, "STRLEN $k"),
    (6, "SETRANGE $k $i $v"),
    (6, "GETRANGE $k $i $i"),
    (2, "SUBSTR $k $i $i"),
    (8, "INCR|DECR $k"),
    (8, "INCRBY|DECRBY $k $n"),
    (10, "INCRBYFLOAT $k $f"),
    (4, "MSET {$k+$v}"),
    (3, "MSETNX {$k+$v}"),
    (5, "MGET {$k}"),
    (5, "LCS $k $k [LEN|IDX]"),
    (3, "LCS $k $k IDX [MINMATCHLEN+$n] [WITHMATCHLEN]"),
    (1, "LCS $k $k {LEN|IDX|MINMATCHLEN+$n|WITHMATCHLEN}"),
];

/// Strings.
pub const FAMILY: Family = Family { name: "string", templates: TEMPLATES, ..Family::BASE };
