//! HyperLogLogs, under keys of their own and under those of strings.

use super::{Template, draw};
use crate::differential::generate::{Args, Dice};

const TEMPLATES: &[Template] = &[
    (20, "PFADD $h $n"),
    (10, "PFADD $h {$n $v}"),
    (6, "PFADD $h $many"),
    (2, "PFADD $h"),
    (2, "PFADD $k {$v}"),
    (14, "PFCOUNT $h"),
    (4, "PFCOUNT {$h}"),
    (2, "PFCOUNT {$h $k}"),
    (10, "PFMERGE $h {$h}"),
    (1, "PFMERGE $h|$k [$k]"),
    (2, "PFDEBUG TODENSE $h"),
    (3, "PFDEBUG ENCODING|DECODE|FOO $h"),
    (1, "PFDEBUG GETREG $h"),
    (1, "PFDEBUG ENCODING|DECODE|GETREG|TODENSE $k"),
    (6, "GET $h"),
    (2, "SETRANGE $h $i $v"),
    (1, "SETBIT $h $b 1"),
];

/// One command.
pub fn command(dice: &mut Dice) -> Args {
    draw(dice, TEMPLATES)
}
