//! LSET, LINSERT.

use super::edit::open;
use super::element::{element, equals, wanted};
use super::position::position;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};

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

/// `LINSERT key BEFORE | AFTER pivot element`: the new length, -1 if there is no such pivot.
pub fn linsert(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let behind = match ctx.arg(2) {
        word if is(word, "BEFORE") => 0,
        word if is(word, "AFTER") => 1,
        _ => return Err(Error::Syntax),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LINSERT, ctx, &key)? else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let pivot = wanted(&args, 3);
    let found = edit.view().iter_from(0).position(|item| equals(item, pivot));
    if let Some(at) = found {
        edit.insert(at as u64 + behind, element(&args, 4));
        reply.integer(edit.view().len() as i64);
        ctx.guard.count_as(before, 1);
    } else {
        reply.integer(-1);
    }
    Ok(Done::Replied)
}
