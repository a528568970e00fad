//! Reading hashes: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS, HSCAN.

use keyspace::{Encoding, Kind};
use resp::Reply;
use value::hash::pairs;

use super::view::View;
use crate::asking::{self, Held};
use crate::collection::{Choice, STEP_ELEMENTS, Show, Stream, Text, walk};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::scan::{ElementScan, parse_cursor_arg};

/// `HGET key field`.
#[inline]
pub fn hget(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let field = ctx.arg(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    match entry.and_then(|entry| View::of(entry).get(field)) {
        Some(text) => text.write(reply),
        None => reply.null(),
    }
    Ok(Done::Replied)
}

/// `HMGET key field [field ...]`.
pub fn hmget(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let answer =
        |held: &Held, field: &[u8], _, reply: &mut Reply<'_>| match View::held(held).get(field) {
            Some(text) => text.write(reply),
            None => reply.null(),
        };
    if let Some(done) = asking::in_steps(ctx, Kind::Hash, 2, answer)? {
        return Ok(done);
    }
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    let view = entry.map(View::of);
    reply.array(args.len() - 2);
    for i in 2..args.len() {
        match view.and_then(|view| view.get(args.get(i))) {
            Some(text) => text.write(reply),
            None => reply.null(),
        }
    }
    Ok(Done::Replied)
}

/// `HLEN key`.
pub fn hlen(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    reply.integer(entry.map_or(0, |entry| View::of(entry).len() as i64));
    Ok(Done::Replied)
}

/// `HSTRLEN key field`.
pub fn hstrlen(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let field = ctx.arg(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    let text = entry.and_then(|entry| View::of(entry).get(field));
    reply.integer(text.map_or(0, |text| text.len() as i64));
    Ok(Done::Replied)
}

/// `HEXISTS key field`.
pub fn hexists(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let field = ctx.arg(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    reply.integer(entry.is_some_and(|entry| View::of(entry).get(field).is_some()).into());
    Ok(Done::Replied)
}

/// `HGETALL key`.
pub fn hgetall(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    all(ctx, Show::Pairs)
}

/// `HKEYS key`.
pub fn hkeys(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    all(ctx, Show::Names)
}

/// `HVALS key`.
pub fn hvals(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    all(ctx, Show::Values)
}

fn all(ctx: &mut Ctx<'_, '_>, show: Show) -> Result<Done, Error> {
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    let view = entry.map(View::of);
    let fields = view.map_or(0, View::len);
    match show {
        Show::Pairs => reply.map(fields as usize),
        _ => reply.array(fields as usize),
    }
    match view {
        None => {}
        Some(View::Packed(packed)) => {
            for (field, value) in pairs(packed) {
                show.write(reply, Text::Elem(field), Text::Elem(value));
            }
        }
        Some(View::Big(big, _)) if fields <= STEP_ELEMENTS => {
            walk(big, 0, |field, value| {
                show.write(reply, field, value);
                true
            });
        }
        Some(View::Big(big, _)) => {
            let value = keyspace.capture(big);
            return Ok(Done::Steps(Box::new(Stream { value, show, rank: 0, choice: Choice::All })));
        }
    }
    Ok(Done::Replied)
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`.
pub fn hscan(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let cursor = parse_cursor_arg(ctx)?;
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    let Some(entry) = entry else {
        ElementScan::none(reply);
        return Ok(Done::Replied);
    };
    let mut scan = ElementScan::parse(args, cursor, true)?;
    let show = if scan.names_only { Show::Names } else { Show::Pairs };
    match View::of(entry) {
        View::Packed(packed) => {
            for (field, value) in pairs(packed) {
                scan.show(Text::Elem(field), Text::Elem(value), show);
            }
        }
        View::Big(big, _) if entry.encoding() != Encoding::Hashtable => {
            walk(big, 0, |field, value| {
                scan.show(field, value, show);
                true
            });
        }
        View::Big(_, hash) => {
            let fields = scan.start().into_iter().flat_map(|from| hash.iter_from(from));
            for (field, value) in fields {
                if scan.ends_before(field) {
                    break;
                }
                if let Some(value) = value {
                    scan.show(Text::bytes_of(field), Text::Val(value), show);
                }
            }
        }
    }
    scan.reply(reply);
    Ok(Done::Replied)
}
