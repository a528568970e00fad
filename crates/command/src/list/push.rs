//! LPUSH, RPUSH, LPUSHX, RPUSHX.

use super::create::create;
use super::edit::open;
use super::element::element;
use super::end::End;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;

/// `LPUSH key element ...`.
pub fn lpush(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    push(ctx, End::Front, false)
}

/// `RPUSH key element ...`.
pub fn rpush(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    push(ctx, End::Back, false)
}

/// `LPUSHX key element ...`: nothing happens if the key does not exist.
pub fn lpushx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    push(ctx, End::Front, true)
}

/// `RPUSHX key element ...`.
pub fn rpushx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    push(ctx, End::Back, true)
}

#[inline]
fn push(ctx: &mut Ctx<'_, '_>, end: End, must_exist: bool) -> Result<Done, Error> {
    let (key, args) = (ctx.key(1), ctx.args);
    if ctx.must_reach(key.slot) {
        return Ok(Done::Reach);
    }
    let texts = (2..args.len()).map(|i| element(&args, i));
    let before = ctx.guard.counted();
    let len = if let (Some(mut edit), _) = open(end.pushed(), ctx, &key)? {
        edit.push(end, texts)
    } else if must_exist {
        0
    } else {
        let event = end.pushed();
        create(event, ctx.guard, ctx.db, &key, ctx.settings, &mut ctx.tally.scratch, end, texts)
    };
    if len > 0 {
        ctx.guard.count_as(before, args.len() as u64 - 2);
    }
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}
