//! LLEN, LINDEX, LRANGE.

use super::element::write;
use super::end::End;
use super::position::{bounds, position};
use super::stream::{AT_ONCE_BYTES_MAX, AT_ONCE_MAX, Stream, some};
use super::view::{View, read};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::integer;
use value::Kind;

/// `LLEN key`.
pub fn llen(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (view, reply) = read(ctx, 1)?;
    reply.integer(view.map_or(0, View::len) as i64);
    Ok(Done::Replied)
}

/// `LINDEX key index`. The index is looked at only if the key is there.
pub fn lindex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let index = ctx.arg(2);
    let (Some(view), reply) = read(ctx, 1)? else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    let index = integer(index)?;
    let at = if index < 0 { position(index, view.len()) } else { Some(index as u64) };
    match at.and_then(|at| view.get(at)) {
        Some(item) => write(reply, item),
        None => reply.null(),
    }
    Ok(Done::Replied)
}

/// `LRANGE key start stop`: both included, negative ones count from the end. A large range is
/// replied in steps, as it was when it was asked for.
pub fn lrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (start, stop) = (integer(ctx.arg(2))?, integer(ctx.arg(3))?);
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::List)?;
    let Some(entry) = entry else {
        reply.array(0);
        return Ok(Done::Replied);
    };
    let view = View::of(entry);
    let (at, count) = bounds(start, stop, view.len());
    reply.array(usize::try_from(count).expect("a length"));
    if count == 0 {
        return Ok(Done::Replied);
    }
    let Some(big) = entry.big() else {
        some(reply, view.iter_from(at), count, usize::MAX);
        return Ok(Done::Replied);
    };
    let at_once = count.min(AT_ONCE_MAX);
    let written = some(reply, view.iter_from(at), at_once, AT_ONCE_BYTES_MAX as usize);
    if written < count {
        let (at, left) = (at + written, count - written);
        let rest = Stream::new(keyspace, big, End::Back, at, left);
        return Ok(Done::Steps(Box::new(rest)));
    }
    Ok(Done::Replied)
}
