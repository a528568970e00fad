//! LMOVE, RPOPLPUSH.

use super::edit::{Kept, create};
use super::{End, open, write};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::spec::Done;

/// `LMOVE source destination LEFT | RIGHT LEFT | RIGHT`.
pub fn lmove(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (from, to) = (End::parse(ctx.arg(3))?, End::parse(ctx.arg(4))?);
    reply_moved(ctx, from, to)
}

/// `RPOPLPUSH source destination`.
pub fn rpoplpush(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_moved(ctx, End::Back, End::Front)
}

fn reply_moved(ctx: &mut Ctx<'_, '_>, from: End, to: End) -> Result<Done, Error> {
    let done = move_element(ctx, from, to)?;
    if matches!(done, Done::Nothing) {
        ctx.reply.null();
        return Ok(Done::Replied);
    }
    Ok(done)
}

/// Moves an element between the keys in the first two arguments, and replies it; nothing if there is none.
pub(super) fn move_element(ctx: &mut Ctx<'_, '_>, from: End, to: End) -> Result<Done, Error> {
    let (source, destination) = (ctx.key(1), ctx.key(2));
    let (Some(mut edit), reply) = open(to.pushed(), ctx, &source)? else {
        return Ok(Done::Nothing);
    };
    if source.bytes == destination.bytes {
        edit.rotate(from, to, |item| write(reply, item));
        ctx.guard.tell(from.popped(), ctx.db, &source);
        return Ok(Done::Replied);
    }
    let view = edit.view();
    let at = if from == End::Front { 0 } else { view.len() - 1 };
    let moved = Kept::of(view.get(at).expect("no list is empty"));
    let texts = std::iter::once(moved.as_new());
    if let (Some(mut edit), _) = open(to.pushed(), ctx, &destination)? {
        edit.push(to, texts);
    } else {
        let (event, db, scratch) = (to.pushed(), ctx.db, &mut ctx.tally.scratch);
        create(event, ctx.guard, db, &destination, ctx.settings, scratch, to, texts);
    }
    let (edit, reply) = open(from.popped(), ctx, &source)?;
    edit.expect("it was there").pop(from, 1, |item| write(reply, item));
    ctx.guard.count_further(-1); // one element has moved
    Ok(Done::Replied)
}
