//! XLEN, XRANGE, XREVRANGE.

use keyspace::Kind;
use value::StreamId;

use super::ids::{range_end, range_start};
use super::reply::{LongReply, Part, Run, Shown};
use super::view::of_entry;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};

/// `XLEN key`.
pub fn xlen(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (entry, reply) = ctx.read_reply(1, Kind::Stream)?;
    reply.integer(entry.map_or(0, |entry| of_entry(entry).len() as i64));
    Ok(Done::Replied)
}

/// `XRANGE key start end [COUNT count]`.
pub fn xrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (start, end) = (range_start(ctx.arg(2))?, range_end(ctx.arg(3))?);
    range(ctx, start, end, false)
}

/// `XREVRANGE key end start [COUNT count]`.
pub fn xrevrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let start = range_start(ctx.arg(3))?;
    let end = range_end(ctx.arg(2))?;
    range(ctx, start, end, true)
}

fn range(ctx: &mut Ctx<'_, '_>, start: StreamId, end: StreamId, down: bool) -> Result<Done, Error> {
    let mut count = None;
    let mut at = 4;
    while at < ctx.args.len() {
        let value = ctx.args.try_get(at + 1).filter(|_| is(ctx.arg(at), "COUNT"));
        count = Some(integer(value.ok_or(Error::Syntax)?)?.max(0) as u64);
        at += 2;
    }
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::Stream)?;
    let Some(entry) = entry else {
        reply.array(0);
        return Ok(Done::Replied);
    };
    if count == Some(0) {
        reply.null_array();
        return Ok(Done::Replied);
    }
    let stream = of_entry(entry);
    let from = stream.rank(start);
    let to = end.next().map_or(stream.len(), |behind| stream.rank(behind)).max(from);
    let left = (to - from).min(count.unwrap_or(u64::MAX));
    let mut shown = Shown::Run(Run { rank: if down { to } else { from }, left, down });
    if !shown.is_long() {
        shown.write_all(reply, stream);
        return Ok(Done::Replied);
    }
    let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
    let mut long = LongReply::default();
    long.add(Part { key: None, value, shown });
    Ok(long.into_done())
}
