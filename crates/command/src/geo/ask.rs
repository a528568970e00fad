//! Questions about single places: GEODIST, GEOHASH, GEOPOS.

use keyspace::Kind;
use resp::Reply;
use value::geo::Place;

use super::text::{unit, write_distance, write_place};
use crate::asking::{self, Answer, Held};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::zset::view::{view_of, view_of_held};

/// `GEODIST key member member [M | KM | FT | MI]`.
pub fn geodist(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let metres = match ctx.args.len() {
        4 => 1.0,
        5 => unit(ctx.arg(4))?,
        _ => return Err(Error::Syntax),
    };
    let (first, second) = (ctx.arg(2), ctx.arg(3));
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    let zset = entry.map(|entry| view_of(entry));
    let place = |member| zset.and_then(|zset| zset.score(member)).map(Place::of_score);
    match (place(first), place(second)) {
        (Some(first), Some(second)) => write_distance(reply, first.distance(second) / metres),
        _ => reply.null(),
    }
    Ok(Done::Replied)
}

/// `GEOHASH key [member ...]`.
pub fn geohash(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let answer = |held: &Held, member: &[u8], _, reply: &mut Reply<'_>| {
        write_hash(reply, view_of_held(held).score(member));
    };
    each(ctx, answer, write_hash)
}

fn write_hash(reply: &mut Reply<'_>, score: Option<f64>) {
    match score.map(Place::of_score) {
        Some(place) => reply.bulk(&place.text()),
        None => reply.null(),
    }
}

/// `GEOPOS key [member ...]`.
pub fn geopos(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let answer = |held: &Held, member: &[u8], _, reply: &mut Reply<'_>| {
        write_pos(reply, view_of_held(held).score(member));
    };
    each(ctx, answer, write_pos)
}

fn write_pos(reply: &mut Reply<'_>, score: Option<f64>) {
    match score.map(Place::of_score) {
        Some(place) => write_place(reply, place),
        None => reply.null_array(),
    }
}

/// Replies an array of what `f` says of each member's score; `answer` is the same in steps.
fn each(
    ctx: &mut Ctx<'_, '_>,
    answer: Answer,
    f: fn(&mut Reply<'_>, Option<f64>),
) -> Result<Done, Error> {
    if let Some(done) = asking::in_steps(ctx, Kind::Zset, 2, answer)? {
        return Ok(done);
    }
    let members = ctx.args.from(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    let zset = entry.map(|entry| view_of(entry));
    reply.array(members.len());
    for member in members {
        f(reply, zset.and_then(|zset| zset.score(member)));
    }
    Ok(Done::Replied)
}
