//! Fields that expire: HEXPIRE and its kin, HTTL and its kin, HPERSIST.

use base::UnixMs;
use keyspace::Kind;

use super::recording;
use super::times::{EPOCH, absolute, change, code, fields};
use super::view::View;
use crate::asking::{self, Answer};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;

/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hexpire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, ctx.now, 1000, "hexpire")
}

/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hpexpire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, ctx.now, 1, "hpexpire")
}

/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hexpireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, EPOCH, 1000, "hexpireat")
}

/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hpexpireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, EPOCH, 1, "hpexpireat")
}

/// Which fields get a new time.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    None,
    Some,
    Later,
    Earlier,
}

impl Condition {
    fn of(word: &[u8]) -> Option<Self> {
        let words = [("NX", Self::None), ("XX", Self::Some), ("GT", Self::Later)];
        let words = words.into_iter().chain([("LT", Self::Earlier)]);
        words.into_iter().find(|(name, _)| is(word, name)).map(|(_, condition)| condition)
    }

    /// A field without a time expires later than any other.
    fn allows(self, present: Option<i64>, new: UnixMs) -> bool {
        match self {
            Self::Always => true,
            Self::None => present.is_none(),
            Self::Some => present.is_some(),
            Self::Later => present.is_some_and(|at| new.0 > at),
            Self::Earlier => present.is_none_or(|at| new.0 < at),
        }
    }
}

fn expire(
    ctx: &mut Ctx<'_, '_>,
    from: UnixMs,
    unit: i64,
    command: &'static str,
) -> Result<Done, Error> {
    let at = absolute(ctx.arg(2), from, unit, command)?;
    let condition = Condition::of(ctx.arg(3));
    let fields = fields(ctx, 3 + usize::from(condition.is_some()), 1)?;
    let condition = condition.unwrap_or(Condition::Always);
    let (args, gone) = (ctx.args, ctx.is_past(at));
    let count = fields.len();
    let event = if gone { events::HDEL } else { events::HEXPIRE };
    // No field of a packed hash has a time. It becomes a tree only if one gets one, or goes.
    let key = ctx.key(1);
    if let Some(view @ View::Packed(_)) = ctx.peek_kind(&key, Kind::Hash)?.map(View::of)
        && (!condition.allows(None, at) || fields.clone().all(|i| view.get(args.get(i)).is_none()))
    {
        let code = |i: usize| if view.get(args.get(i)).is_some() { 0 } else { -2 };
        let codes: Vec<i64> = fields.map(code).collect();
        reply_codes(ctx, Some(codes), count);
        return Ok(Done::Replied);
    }
    let results = change(event, ctx, |hash, log| {
        fields
            .clone()
            .map(|i| {
                let field = args.get(i);
                if hash.get(field).is_none() {
                    return -2;
                }
                if !condition.allows(hash.expiry(field), at) {
                    return 0;
                }
                if gone {
                    hash.remove(field, log);
                    return 2;
                }
                hash.set_expiry(field, Some(at.0), log);
                1
            })
            .collect::<Vec<i64>>()
    })?;
    if ctx.guard.is_recording() {
        let codes = results.as_deref().unwrap_or_default();
        let fields = fields.zip(codes).filter(|(_, code)| **code > 0).map(|(i, _)| args.get(i));
        if gone {
            recording::removed(ctx, fields);
        } else {
            recording::timed(ctx, Some(at), fields);
        }
        ctx.guard.record_nothing(); // if no field has changed
    }
    reply_codes(ctx, results, count);
    Ok(Done::Replied)
}

/// `HPERSIST key FIELDS n field ...`.
pub fn hpersist(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let fields = fields(ctx, 2, 1)?;
    let (args, count) = (ctx.args, fields.len());
    let key = ctx.key(1);
    let entry = ctx.peek_kind(&key, Kind::Hash)?;
    let codes: Option<Vec<i64>> = entry.map(|entry| {
        let view = View::of(entry);
        fields.clone().map(|i| code(view, args.get(i), |_| 1)).collect()
    });
    if codes.as_ref().is_some_and(|codes| codes.contains(&1)) {
        change(events::HPERSIST, ctx, |hash, log| {
            for i in fields {
                hash.set_expiry(args.get(i), None, log);
            }
        })?;
    }
    reply_codes(ctx, codes, count);
    Ok(Done::Replied)
}

fn reply_codes(ctx: &mut Ctx<'_, '_>, codes: Option<Vec<i64>>, count: usize) {
    ctx.reply.array(count);
    for code in codes.unwrap_or_else(|| vec![-2; count]) {
        ctx.reply.integer(code);
    }
}

/// `HTTL key FIELDS n field ...`.
pub fn httl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, seconds_left, |held, field, now, reply| {
        reply.integer(seconds_left(View::held(held), field, now));
    })
}

fn seconds_left(view: View<'_>, field: &[u8], now: UnixMs) -> i64 {
    code(view, field, |at| ((at - now.0).max(0) + 999) / 1000)
}

/// `HPTTL key FIELDS n field ...`.
pub fn hpttl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, ms_left, |held, field, now, reply| {
        reply.integer(ms_left(View::held(held), field, now));
    })
}

fn ms_left(view: View<'_>, field: &[u8], now: UnixMs) -> i64 {
    code(view, field, |at| (at - now.0).max(0))
}

/// `HEXPIRETIME key FIELDS n field ...`.
pub fn hexpiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, second, |held, field, now, reply| {
        reply.integer(second(View::held(held), field, now));
    })
}

fn second(view: View<'_>, field: &[u8], _: UnixMs) -> i64 {
    code(view, field, |at| at / 1000 + i64::from(at % 1000 > 0))
}

/// `HPEXPIRETIME key FIELDS n field ...`.
pub fn hpexpiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, ms, |held, field, now, reply| {
        reply.integer(ms(View::held(held), field, now));
    })
}

fn ms(view: View<'_>, field: &[u8], _: UnixMs) -> i64 {
    code(view, field, |at| at)
}

/// Replies an array of what `time` says of each field; `answer` is the same in steps.
fn times(
    ctx: &mut Ctx<'_, '_>,
    time: fn(View<'_>, &[u8], UnixMs) -> i64,
    answer: Answer,
) -> Result<Done, Error> {
    let fields = fields(ctx, 2, 1)?;
    if let Some(done) = asking::in_steps(ctx, Kind::Hash, fields.start, answer)? {
        return Ok(done);
    }
    let (args, now) = (ctx.args, ctx.now);
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    reply.array(fields.len());
    for i in fields {
        reply.integer(entry.map_or(-2, |entry| time(View::of(entry), args.get(i), now)));
    }
    Ok(Done::Replied)
}
