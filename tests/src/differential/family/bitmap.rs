//! Bits of strings.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (14, "SETBIT $k $o 0|1|1|1|2|x"),
    (8, "GETBIT $k $o"),
    (4, "SET $k $v"),
    (4, "GET|STRLEN $k"),
    (3, "BITCOUNT $k"),
    (6, "BITCOUNT $k $i $i [BYTE|BIT|BOGUS]"),
    (3, "BITPOS $k 0|1|2|x"),
    (6, "BITPOS $k 0|1 $i"),
    (6, "BITPOS $k 0|1 $i $i [BYTE|BIT|BOGUS]"),
    (6, "BITOP AND|OR|XOR $k {$k}"),
    (3, "BITOP NOT $k $k"),
    (1, "BITOP NOT|NAND $k {$k}"),
    (5, "BITFIELD $k {GET+$T+$o|SET+$T+$o+$n|INCRBY+$T+$o+$n}"),
    (
        6,
        "BITFIELD $k {OVERFLOW+WRAP|OVERFLOW+SAT|OVERFLOW+FAIL|GET+u8+$o} {SET+$T+$o+$n|INCRBY+$T+$o+$n}",
    ),
    (1, "BITFIELD $k OVERFLOW BOGUS|FAIL INCRBY|GET $T $o $n"),
    (3, "BITFIELD_RO $k {GET+$T+$o}"),
    (1, "BITFIELD_RO $k SET $T $o $n"),
];

/// Bitmaps.
pub const FAMILY: Family = Family { name: "bitmap", templates: TEMPLATES, ..Family::BASE };
