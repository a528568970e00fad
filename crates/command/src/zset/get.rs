//! Questions about members and counts: ZSCORE, ZMSCORE, ZCARD, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use keyspace::Kind;
use resp::Reply;
use value::zset::View;

use super::bounds;
use super::reply::write_score;
use super::view::{view_of, view_of_held};
use crate::asking::{self, Held};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::parse::is;

/// What `f` says of the sorted set in the first argument's key, if there is one.
fn ask<T>(ctx: &mut Ctx<'_, '_>, f: impl FnOnce(View<'_>) -> T) -> Result<Option<T>, Error> {
    Ok(ctx.read_kind(1, Kind::Zset)?.map(|entry| f(view_of(entry))))
}

/// `ZCARD key`.
pub fn zcard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let zset = ctx.read_kind(1, Kind::Zset)?;
    let len = zset.map_or(0, |entry| view_of(entry).len());
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}

/// `ZSCORE key member`.
pub fn zscore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let member = ctx.arg(2);
    let score = ask(ctx, |zset| zset.score(member))?.flatten();
    write_score(&mut ctx.reply, score);
    Ok(Done::Replied)
}

/// `ZMSCORE key member [member ...]`.
pub fn zmscore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let answer = |held: &Held, member: &[u8], _, reply: &mut Reply<'_>| {
        write_score(reply, view_of_held(held).score(member));
    };
    if let Some(done) = asking::in_steps(ctx, Kind::Zset, 2, answer)? {
        return Ok(done);
    }
    let members = ctx.args.from(2);
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    let zset = entry.map(|entry| view_of(entry));
    reply.array(members.len());
    for member in members {
        write_score(reply, zset.and_then(|zset| zset.score(member)));
    }
    Ok(Done::Replied)
}

/// `ZRANK key member [WITHSCORE]`.
pub fn zrank(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    rank(ctx, "zrank", false)
}

/// `ZREVRANK key member [WITHSCORE]`.
pub fn zrevrank(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    rank(ctx, "zrevrank", true)
}

fn rank(ctx: &mut Ctx<'_, '_>, command: &'static str, rev: bool) -> Result<Done, Error> {
    let with_score = match ctx.args.len() {
        3 => false,
        4 if is(ctx.arg(3), "WITHSCORE") => true,
        4 => return Err(Error::Syntax),
        _ => return Err(Arity { command }.into()),
    };
    let member = ctx.arg(2);
    let found = ask(ctx, |zset| {
        let (rank, score) = zset.rank(member)?;
        Some((if rev { zset.len() - 1 - rank } else { rank }, score))
    })?;
    match found.flatten() {
        Some((rank, score)) if with_score => {
            ctx.reply.array(2);
            ctx.reply.integer(rank as i64);
            ctx.reply.double(score);
        }
        Some((rank, _)) => ctx.reply.integer(rank as i64),
        None if with_score => ctx.reply.null_array(),
        None => ctx.reply.null(),
    }
    Ok(Done::Replied)
}

/// `ZCOUNT key min max`.
pub fn zcount(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let range = bounds::scores(ctx.arg(2), ctx.arg(3))?;
    count(ctx, |zset| zset.score_ranks(&range))
}

/// `ZLEXCOUNT key min max`.
pub fn zlexcount(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let range = bounds::members(ctx.arg(2), ctx.arg(3))?;
    count(ctx, |zset| zset.lex_ranks(&range, false, 0))
}

fn count(
    ctx: &mut Ctx<'_, '_>,
    ranks: impl FnOnce(View<'_>) -> std::ops::Range<u64>,
) -> Result<Done, Error> {
    let ranks = ask(ctx, ranks)?.unwrap_or(0..0);
    ctx.reply.integer((ranks.end - ranks.start) as i64);
    Ok(Done::Replied)
}
