//! Strings as bits.

use super::{Template, draw};
use crate::differential::generate::{Args, Dice};

const TEMPLATES: &[Template] = &[
    (14, "SETBIT $k $b 0|1"),
    (1, "SETBIT $k $i $n"),
    (8, "GETBIT $k $b"),
    (8, "BITCOUNT $k"),
    (10, "BITCOUNT $k $i $i [BYTE|BIT]"),
    (2, "BITCOUNT $k {$i|BIT|FOO}"),
    (4, "BITPOS $k 0|1"),
    (4, "BITPOS $k 0|1 $i"),
    (8, "BITPOS $k 0|1 $i $i [BYTE|BIT]"),
    (2, "BITPOS $k $n {$i|BIT|FOO}"),
    (12, "BITOP AND|OR|XOR $k {$k}"),
    (4, "BITOP NOT $k $k"),
    (1, "BITOP NOT|NAND|AND $k {$k}"),
    (6, "BITFIELD $k GET $t $b"),
    (12, "BITFIELD $k [OVERFLOW WRAP|SAT|FAIL] SET $t $b $n"),
    (16, "BITFIELD $k [OVERFLOW WRAP|SAT|FAIL] INCRBY $t $b $n [GET $t $b] {INCRBY $t $b $n}"),
    (8, "BITFIELD $k {SET+$t+$b+$n|OVERFLOW+SAT|GET+$t+$b|INCRBY+$t+$b+$n|OVERFLOW+FAIL}"),
    (1, "BITFIELD $k {SET|GET|$t|$b|OVERFLOW|WRAP|FOO}"),
    (3, "BITFIELD_RO $k {GET+$t+$b}"),
    (1, "BITFIELD_RO $k {GET+$t+$b|SET+$t+$b+$n|OVERFLOW+SAT|FOO}"),
];

/// One command.
pub fn command(dice: &mut Dice) -> Args {
    draw(dice, TEMPLATES)
}
