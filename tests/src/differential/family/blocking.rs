//! Commands which wait for an element, and the writes which wake them.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (8, "BLPOP|BRPOP {$k} $t"),
    (4, "BLMOVE $k $k LEFT|RIGHT LEFT|RIGHT $t"),
    (3, "BRPOPLPUSH $k $k $t"),
    (4, "BLMPOP $t 2 $k $k LEFT|RIGHT [COUNT+$c]"),
    (4, "BZPOPMIN|BZPOPMAX {$k} $t"),
    (3, "BZMPOP $t 2 $k $k MIN|MAX [COUNT+$c]"),
    (1, "BLMPOP|BZMPOP $t $c {$k} LEFT|MIN [COUNT|BOGUS+$c]"),
    (1, "BLPOP|BZPOPMIN 0"),
    (1, "BLMOVE $k $k LEFT UP 0"),
    (10, "LPUSH|RPUSH $k {$m}"),
    (6, "ZADD $k {$z+$m}"),
    (3, "LMOVE $k $k LEFT|RIGHT LEFT|RIGHT"),
    (2, "LPOP|RPOP|ZPOPMIN $k"),
    (2, "SET|SADD $k $m"),
    (4, "DEL $k"),
    (2, "LRANGE $k 0 -1"),
    (2, "SORT $k ALPHA STORE $k"),
    (2, "ZUNIONSTORE $k 1 $k"),
];

/// Blocking commands. A mistake in a pipeline could make one block for ever.
pub const FAMILY: Family = Family {
    name: "blocking",
    templates: TEMPLATES,
    brittle: &[
        "BLPOP",
        "BRPOP",
        "BLMOVE",
        "BRPOPLPUSH",
        "BLMPOP",
        "BZPOPMIN",
        "BZPOPMAX",
        "BZMPOP",
    ],
    ..Family::BASE
};
