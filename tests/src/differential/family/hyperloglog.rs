//! HyperLogLogs: their counts and their bytes.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (14, "PFADD $k {$m}"),
    (4, "PFADD $k"),
    (4, "PFADD $k <$w>"),
    (4, "PFADD $k <$w> <$u> <$w> <$u> <$w> <$u>"),
    (10, "PFCOUNT $k"),
    (6, "PFCOUNT {$k}"),
    (6, "PFMERGE $k {$k}"),
    (2, "PFMERGE $k"),
    (3, "GET|STRLEN $k"),
    // Only into the header: the effect of damage after it is undefined.
    (2, "SETRANGE $k 0|3|4|5|8|12 a|abc|HYLL"),
    (1, "SET $k HYLL"),
    (2, "APPEND $k $v"),
];

/// HyperLogLogs.
pub const FAMILY: Family = Family { name: "hyperloglog", templates: TEMPLATES, ..Family::BASE };
