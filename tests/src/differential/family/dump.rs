//! DUMP and RESTORE: a payload is restored on the server which made it.

use super::{Family, Template};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (4, "RPUSH|LPUSH $k {$m}"),
    (3, "SADD|PFADD $k {$m}"),
    (3, "HSET $k {$m+$m}"),
    (4, "ZADD $k {$z+$m}"),
    (3, "SET $k $v"),
    (2, "SETBIT $k $o 1"),
    (1, "RPUSH|SADD $k <$w>"),
    (1, "SADD $k <$u>"),
    (1, "HSET|ZADD $k <$u+$w>"),
    (4, "DUMP $k"),
    (12, "DUMP $k ; RESTORE $k 0|$ms|0 $D [REPLACE]"),
    (4, "DUMP $k ; RESTORE $k $MS $D ABSTTL [REPLACE]"),
    (2, "DUMP $k ; RESTORE $k 0 $D REPLACE [IDLETIME+$c|FREQ+$c|IDLETIME|FREQ+256]"),
    (
        1,
        "DUMP $k ; RESTORE $k x|-1|9223372036854775807 $D {REPLACE|ABSTTL|IDLETIME+1|FREQ+1|BOGUS}",
    ),
    (1, "RESTORE $k 0 $v [REPLACE]"),
    (3, "OBJECT ENCODING $k"),
];

/// DUMP and RESTORE. Payloads are not compared: version and encoding differ.
pub const FAMILY: Family =
    Family { name: "dump", templates: TEMPLATES, replies: &[("DUMP", Mode::Kind)], ..Family::BASE };
