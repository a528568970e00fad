//! Whole databases.

use super::{Template, draw};
use crate::differential::generate::{Args, Dice};

const TEMPLATES: &[Template] = &[
    (10, "SELECT $d"),
    (5, "SWAPDB $d $d"),
    (2, "FLUSHDB|FLUSHALL [ASYNC|SYNC|BOGUS]"),
    (6, "DBSIZE"),
    (4, "PING [$v]"),
    (3, "ECHO $v"),
];

/// One command. DBSIZE counts keys that are due but not yet freed, so it is left out where some are.
pub fn command(dice: &mut Dice) -> Args {
    loop {
        let args = draw(dice, TEMPLATES);
        if !(dice.expiring && args[0].eq_ignore_ascii_case(b"DBSIZE")) {
            return args;
        }
    }
}
