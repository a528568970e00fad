//! GEOADD.

use super::text::place;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::is;
use crate::zset::add::{AddOptions, add_members};

/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`.
pub fn geoadd(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (args, mut options, mut at) = (ctx.args, AddOptions::default(), 2);
    while let Some(word) = args.try_get(at) {
        if is(word, "NX") {
            options.new_only = true;
        } else if is(word, "XX") {
            options.old_only = true;
        } else if is(word, "CH") {
            options.changed = true;
        } else {
            break;
        }
        at += 1;
    }
    let left = args.len() - at;
    if !left.is_multiple_of(3) || left == 0 || options.new_only && options.old_only {
        return Err(Error::Syntax);
    }
    let score = |at: usize| Ok(place(args.get(at), args.get(at + 1))?.score());
    let scores: Result<Vec<f64>, Error> = (at..args.len()).step_by(3).map(score).collect();
    add_members(ctx, options, &scores?, at + 2, 3)
}
