//! BZPOPMIN, BZPOPMAX, BZMPOP: what they wait for, and how they take.

use base::num::{I64_TEXT_MAX, format_i64};
use resp::Args;
use value::Kind;

use super::pop::{End, ManyKeys, pop, pop_many};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::timeout_ms;
use crate::spec::{AtOnce, Wait};

/// `BZPOPMIN key ... timeout` and `BZPOPMAX key ... timeout`.
pub fn wait_pop(args: Args<'_>) -> Result<Wait, Error> {
    let last = args.len() - 1;
    Ok(wait(1..last, timeout_ms(args.get(last))?))
}

fn wait(keys: std::ops::Range<usize>, timeout_ms: Option<u64>) -> Wait {
    Wait {
        keys,
        timeout_ms,
        kind: Kind::Zset,
        least: 1,
        further: None,
        ends_without_key: false,
        at_once: AtOnce::NullArray,
    }
}

/// BZPOPMIN: the member with the lowest score of a key.
pub fn take_min(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    take(ctx, at, End::Min)
}

/// BZPOPMAX: the member with the highest score of a key.
pub fn take_max(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    take(ctx, at, End::Max)
}

fn take(ctx: &mut Ctx<'_, '_>, at: usize, end: End) -> Result<Done, Error> {
    let key = ctx.key(at);
    let popped = pop(ctx.guard, ctx.settings, ctx.db, &key, end, 1)?;
    if popped.is_some() {
        ctx.guard.record(ctx.db, &[end.pop(), key.bytes]);
    }
    let Some((member, score)) = popped.as_ref().and_then(|popped| popped.first()) else {
        return Ok(Done::Nothing);
    };
    ctx.reply.array(3);
    ctx.reply.bulk(key.bytes);
    ctx.reply.bulk(member);
    ctx.reply.double(score);
    Ok(Done::Replied)
}

/// `BZMPOP timeout numkeys key ... MIN | MAX [COUNT count]`.
pub fn wait_mpop(args: Args<'_>) -> Result<Wait, Error> {
    let many = ManyKeys::parse(args, 2)?;
    Ok(wait(many.first..many.behind, timeout_ms(args.get(1))?))
}

/// BZMPOP: several members of a key.
pub fn take_mpop(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    let many = ManyKeys::parse(ctx.args, 2)?;
    let done = pop_many(ctx, at, &many)?;
    if ctx.guard.is_recording() && !matches!(done, Done::Nothing) {
        // A count is signed there; no sorted set has more members.
        let count = i64::try_from(many.count).unwrap_or(i64::MAX);
        let text = &mut [0; I64_TEXT_MAX];
        ctx.guard.record(ctx.db, &[many.end.pop(), ctx.arg(at), format_i64(text, count)]);
    }
    Ok(done)
}
