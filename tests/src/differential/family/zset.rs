//! Sorted sets.

use super::{Family, Template};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (14, "ZADD $k {$z+$m}"),
    (6, "ZADD $k [NX|XX] [GT|LT] [CH] [INCR] $z $m"),
    (3, "ZADD $k {NX|XX|GT|LT|CH|INCR} {$z+$m}"),
    (2, "ZADD $k <$u+$w>"),
    (1, "ZADD $k <0+$w>"),
    (4, "ZINCRBY $k $z $m"),
    (6, "ZREM $k {$m}"),
    (3, "ZCARD $k"),
    (4, "ZSCORE $k $m"),
    (3, "ZMSCORE $k {$m}"),
    (5, "ZRANK|ZREVRANK $k $m"),
    (4, "ZCOUNT $k $b $b"),
    (3, "ZLEXCOUNT $k $l $l"),
    (4, "ZRANGE $k $i $i [REV] [WITHSCORES]"),
    (4, "ZRANGE $k $b $b BYSCORE [REV] [LIMIT+$i+$c] [WITHSCORES]"),
    (3, "ZRANGE $k $l $l BYLEX [REV] [LIMIT+$i+$c]"),
    (1, "ZRANGE $k $i $i {BYLEX|BYSCORE|REV|WITHSCORES|LIMIT+$i+$c|BOGUS}"),
    (3, "ZREVRANGE $k $i $i [WITHSCORES]"),
    (4, "ZRANGEBYSCORE|ZREVRANGEBYSCORE $k $b $b [WITHSCORES] [LIMIT+$i+$c]"),
    (3, "ZRANGEBYLEX|ZREVRANGEBYLEX $k $l $l [LIMIT+$i+$c]"),
    (2, "ZRANGESTORE $k $k $i $i [REV]"),
    (2, "ZRANGESTORE $k $k $b $b BYSCORE [REV] [LIMIT+$i+$c]"),
    (2, "ZRANGESTORE $k $k $l $l BYLEX [REV] [LIMIT+$i+$c]"),
    (2, "ZREMRANGEBYRANK $k $i $i"),
    (2, "ZREMRANGEBYSCORE $k $b $b"),
    (2, "ZREMRANGEBYLEX $k $l $l"),
    (4, "ZPOPMIN|ZPOPMAX $k [$c]"),
    (3, "ZMPOP 1 $k MIN|MAX [COUNT+$c]"),
    (2, "ZMPOP 2 $k $k MIN|MAX [COUNT+$c]"),
    (1, "ZMPOP $c {$k} MIN|MAX|MID [COUNT|BOGUS+$c]"),
    (
        4,
        "ZUNION|ZINTER 2 $k $k [WEIGHTS+$z+$z] [AGGREGATE+SUM|AGGREGATE+MIN|AGGREGATE+MAX] [WITHSCORES]",
    ),
    (1, "ZUNION|ZINTER $c {$k} {WEIGHTS+$z|AGGREGATE|SUM|WITHSCORES}"),
    (
        3,
        "ZUNIONSTORE|ZINTERSTORE $k 2 $k $k [WEIGHTS+$z+$z] [AGGREGATE+SUM|AGGREGATE+MIN|AGGREGATE+MAX]",
    ),
    (1, "ZUNIONSTORE|ZINTERSTORE $k $c {$k} [WEIGHTS+$z|AGGREGATE+BOGUS]"),
    (3, "ZDIFF 2 $k $k [WITHSCORES]"),
    (2, "ZDIFFSTORE $k 2 $k $k"),
    (3, "ZINTERCARD 2 $k $k [LIMIT+$c]"),
    (1, "ZINTERCARD|ZDIFF $c {$k} [LIMIT|BOGUS+$c]"),
    (2, "ZDIFFSTORE $k $c {$k}"),
    (3, "ZSCAN $k 0 COUNT 100000 [MATCH+*|MATCH+[a-c]*|MATCH+1*]"),
    (1, "ZSCAN $k x|0|-1 COUNT|MATCH|TYPE|BOGUS $n"),
    (1, "ZRANDMEMBER $k"),
    (2, "ZRANGE $1 0 -1 WITHSCORES ; ZRANDMEMBER $1 $c"),
    (2, "ZRANGE $1 0 -1 WITHSCORES ; ZRANDMEMBER $1 $c WITHSCORES"),
    (2, "ZRANDMEMBER $k 100000|-1|0|x|-9223372036854775808 [WITHSCORES|BOGUS]"),
    (2, "SADD $k {$m}"),
    (3, "OBJECT ENCODING $k"),
];

/// Sorted sets.
pub const FAMILY: Family = Family {
    name: "zset",
    templates: TEMPLATES,
    replies: &[("ZSCAN", Mode::ScanPairs), ("ZRANDMEMBER", Mode::Pick { pairs: "WITHSCORES" })],
    // A further argument of ZRANK, which 7.2 takes, is refused by 7.0 before it is queued.
    brittle: &["ZRANDMEMBER", "ZRANK", "ZREVRANK"],
    ..Family::BASE
};
