//! Lists.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (12, "LPUSH|RPUSH $k {$m}"),
    (3, "LPUSHX|RPUSHX $k {$m}"),
    (2, "LPUSH|RPUSH $k <$w>"),
    (1, "LPUSH|RPUSH $k <$v>"),
    (5, "LPOP|RPOP $k"),
    (4, "LPOP|RPOP $k $c"),
    (4, "LLEN $k"),
    (6, "LRANGE $k $i $i"),
    (3, "LRANGE $k 0 -1"),
    (5, "LINDEX $k $i"),
    (6, "LSET $k $i $m"),
    (6, "LINSERT $k BEFORE|AFTER|BEFORE|AFTER|BOGUS $m $m"),
    (5, "LREM $k $i $m"),
    (2, "LTRIM $k $i $i"),
    (2, "LTRIM $k 0|1|2 -1|-2|-3|100"),
    (5, "LPOS $k $m [RANK+$i] [COUNT+$c] [MAXLEN+$c]"),
    (1, "LPOS $k $m {RANK|COUNT|MAXLEN} {$i}"),
    (4, "RPOPLPUSH $k $k"),
    (2, "RPOPLPUSH $1 $1"),
    (5, "LMOVE $k $k LEFT|RIGHT LEFT|RIGHT|LEFT|RIGHT|UP"),
    (3, "LMOVE $1 $1 LEFT|RIGHT LEFT|RIGHT"),
    (3, "LMPOP 1 $k LEFT|RIGHT [COUNT+$c]"),
    (3, "LMPOP 2 $k $k LEFT|RIGHT [COUNT+$c]"),
    (1, "LMPOP $c {$k} LEFT|RIGHT|UP [COUNT|BOGUS+$c]"),
    (3, "OBJECT ENCODING $k"),
];

/// Lists.
pub const FAMILY: Family = Family { name: "list", templates: TEMPLATES, ..Family::BASE };
