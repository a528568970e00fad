//! Strings of many pages: changes around the ends of pages, and small probes of what they made.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (8, "SETRANGE $1 $O $v ; GETRANGE $1 $O $O ; STRLEN $1"),
    (8, "SETBIT $k $B 0|1 ; BITCOUNT $k"),
    (4, "APPEND $k $v ; GETRANGE $k -9 -1"),
    (6, "BITFIELD $1 SET u63 $B $n GET i64 $B ; BITFIELD_RO $1 GET u63 $B GET $T $B"),
    (3, "BITFIELD $k OVERFLOW WRAP|SAT|FAIL INCRBY $T $B $n"),
    (4, "GETBIT $k $B"),
    (4, "BITCOUNT $k $O|$i $O|$i [BYTE|BIT]"),
    (4, "BITPOS $k 0|1 $O [$O|$i] [BYTE|BIT]"),
    (4, "BITOP AND|OR|XOR $k {$k} ; BITOP NOT $k $k"),
    (4, "COPY $1 $2 REPLACE ; SETRANGE $1 $O $v ; SETBIT $2 $B 1 ; BITCOUNT $1 ; BITCOUNT $2"),
    (2, "MULTI ; SETRANGE $1 $O $v ; BITOP NOT $2 $1 ; BITCOUNT $2 ; EXEC"),
    (2, "WATCH $1 ; SETBIT $1 $B 1 ; MULTI ; STRLEN $1 ; EXEC"),
    (1, "LCS $k $k LEN"),
    (2, "DEL $k $k"),
];

/// Big strings.
pub const FAMILY: Family = Family { name: "bigstring", templates: TEMPLATES, ..Family::BASE };
