//! Commands of transactions outside their order; whole transactions come from the generator.

use super::{Template, draw};
use crate::differential::generate::{Args, Dice};

const TEMPLATES: &[Template] =
    &[(4, "MULTI"), (4, "EXEC"), (2, "DISCARD"), (4, "WATCH {$k}"), (2, "UNWATCH"), (1, "RESET")];

/// One command. RESET goes back to RESP2, which is fine: both servers do.
pub fn command(dice: &mut Dice) -> Args {
    draw(dice, TEMPLATES)
}
