//! Reading sets: SISMEMBER, SMISMEMBER, SCARD, SMEMBERS, SSCAN.

use keyspace::{Encoding, Kind};
use resp::Reply;
use value::packed::Packed;

use super::view::View;
use crate::asking::{self, Held};
use crate::collection::{Choice, STEP_ELEMENTS, Show, Stream, Text, walk};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::scan::{ElementScan, parse_cursor_arg};

/// `SISMEMBER key member`.
#[inline]
pub fn sismember(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let member = ctx.arg(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Set)?;
    reply.integer(entry.is_some_and(|entry| View::of(entry).contains(member)).into());
    Ok(Done::Replied)
}

/// `SMISMEMBER key member [member ...]`.
pub fn smismember(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let answer = |held: &Held, member: &[u8], _, reply: &mut Reply<'_>| {
        reply.integer(View::held(held).contains(member).into());
    };
    if let Some(done) = asking::in_steps(ctx, Kind::Set, 2, answer)? {
        return Ok(done);
    }
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Set)?;
    let view = entry.map(View::of);
    reply.array(args.len() - 2);
    for i in 2..args.len() {
        reply.integer(view.is_some_and(|view| view.contains(args.get(i))).into());
    }
    Ok(Done::Replied)
}

/// `SCARD key`.
pub fn scard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (entry, reply) = ctx.read_reply(1, Kind::Set)?;
    reply.integer(entry.map_or(0, |entry| View::of(entry).len() as i64));
    Ok(Done::Replied)
}

/// `SMEMBERS key`.
pub fn smembers(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::Set)?;
    let view = entry.map(View::of);
    let members = view.map_or(0, View::len);
    reply.set(members as usize);
    match view {
        None => {}
        Some(View::Packed(packed, _)) => {
            Packed::new(packed).iter().for_each(|member| Text::Elem(member).write(reply));
        }
        Some(View::Big(big, _)) if members <= STEP_ELEMENTS => walk(big, 0, |member, _| {
            member.write(reply);
            true
        }),
        Some(View::Big(big, _)) => {
            let value = keyspace.capture(big);
            let stream = Stream { value, show: Show::Names, rank: 0, choice: Choice::All };
            return Ok(Done::Steps(Box::new(stream)));
        }
    }
    Ok(Done::Replied)
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`.
pub fn sscan(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let cursor = parse_cursor_arg(ctx)?;
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Set)?;
    let Some(entry) = entry else {
        ElementScan::none(reply);
        return Ok(Done::Replied);
    };
    let mut scan = ElementScan::parse(args, cursor, false)?;
    let show = |scan: &mut ElementScan<'_>, member: Text<'_>| {
        scan.show(member, member, Show::Names);
        true
    };
    match View::of(entry) {
        View::Packed(packed, _) => {
            for member in Packed::new(packed) {
                show(&mut scan, Text::Elem(member));
            }
        }
        View::Big(big, _) if entry.encoding() != Encoding::Hashtable => {
            walk(big, 0, |member, _| show(&mut scan, member));
        }
        View::Big(_, set) => {
            for member in scan.start().into_iter().flat_map(|from| set.iter_from(from)) {
                if scan.ends_before(member) {
                    break;
                }
                show(&mut scan, Text::bytes_of(member));
            }
        }
    }
    scan.reply(reply);
    Ok(Done::Replied)
}
