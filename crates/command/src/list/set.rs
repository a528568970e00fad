//! LSET.

use super::edit::open;
use super::element::element;
use super::position::position;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;

/// `LSET key index element`. The index is looked at only if the key is there.
pub fn lset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, args) = (ctx.key(1), ctx.args);
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LSET, ctx, &key)? else {
        return Err(Error::NoSuchKey);
    };
    let at = position(integer(args.get(2))?, edit.view().len()).ok_or(Error::IndexRange)?;
    edit.set(at, element(&args, 3));
    reply.ok();
    ctx.guard.count_as(before, 1);
    Ok(Done::Replied)
}
