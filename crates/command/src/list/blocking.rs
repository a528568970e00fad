//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMOVEM, BLMPOP: what they wait for, and how they take.

use base::num::{I64_TEXT_MAX, format_i64};
use resp::Args;
use value::Kind;

use super::edit::open;
use super::element::write;
use super::end::End;
use super::moves::{HowMany, move_element, move_many};
use super::pop::{parse_lmpop, pop_from};
use super::view::View;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::timeout_ms;
use crate::spec::{AtOnce, Wait};

/// `BLPOP key ... timeout` and `BRPOP key ... timeout`.
pub fn wait_pop(args: Args<'_>) -> Result<Wait, Error> {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(args.get(last))?;
    let (kind, at_once) = (Kind::List, AtOnce::NullArray);
    let further = None;
    Ok(Wait {
        keys: 1..last,
        timeout_ms,
        kind,
        least: 1,
        further,
        ends_without_key: false,
        at_once,
    })
}

/// BLPOP: the first element of a key.
pub fn take_first(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    take(ctx, at, End::Front)
}

/// BRPOP: the last element of a key.
pub fn take_last(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    take(ctx, at, End::Back)
}

fn take(ctx: &mut Ctx<'_, '_>, at: usize, end: End) -> Result<Done, Error> {
    let key = ctx.key(at);
    let (Some(edit), reply) = open(end.popped(), ctx, &key)? else { return Ok(Done::Nothing) };
    reply.array(2);
    reply.bulk(key.bytes);
    edit.pop(end, 1, |item| write(reply, item));
    ctx.guard.record(ctx.db, &[end.pop(), key.bytes]);
    Ok(Done::Replied)
}

/// `BLMOVE source destination LEFT | RIGHT LEFT | RIGHT timeout`.
pub fn wait_move(args: Args<'_>) -> Result<Wait, Error> {
    End::parse(args.get(3))?;
    End::parse(args.get(4))?;
    Ok(moving(timeout_ms(args.get(5))?))
}

/// `BRPOPLPUSH source destination timeout`.
pub fn wait_rpoplpush(args: Args<'_>) -> Result<Wait, Error> {
    Ok(moving(timeout_ms(args.get(3))?))
}

fn moving(timeout_ms: Option<u64>) -> Wait {
    let (kind, at_once) = (Kind::List, AtOnce::Null);
    let further = Some(2);
    Wait { keys: 1..2, timeout_ms, kind, least: 1, further, ends_without_key: false, at_once }
}

/// `BLMOVEM source destination LEFT | RIGHT LEFT | RIGHT timeout [COUNT count | EXACTLY count OBO |
/// BULK]`.
pub fn wait_movem(args: Args<'_>) -> Result<Wait, Error> {
    End::parse(args.get(3))?;
    End::parse(args.get(4))?;
    let how_many = HowMany::parse(args.from(6))?;
    let least = if how_many.is_exact { how_many.count } else { 1 };
    Ok(Wait { least, at_once: AtOnce::NullArray, ..moving(timeout_ms(args.get(5))?) })
}

/// BLMOVE: an element from one list to another.
pub fn take_move(ctx: &mut Ctx<'_, '_>, _: &Wait, _: usize) -> Result<Done, Error> {
    let (from, to) = (End::parse(ctx.arg(3))?, End::parse(ctx.arg(4))?);
    let done = move_element(ctx, from, to)?;
    if matches!(done, Done::Replied) {
        let args = ctx.args;
        let words: [&[u8]; 5] = [b"LMOVE", args.get(1), args.get(2), args.get(3), args.get(4)];
        ctx.guard.record(ctx.db, &words);
    }
    Ok(done)
}

/// BLMOVEM: elements from one list to another, as redis.io describes it. It waits for as many as
/// `EXACTLY` says.
pub fn take_movem(ctx: &mut Ctx<'_, '_>, _: &Wait, _: usize) -> Result<Done, Error> {
    let (from, to) = (End::parse(ctx.arg(3))?, End::parse(ctx.arg(4))?);
    move_many(ctx, from, to, HowMany::parse(ctx.args.from(6))?)
}

/// True if the list in argument `at` has so many elements.
pub fn has_elements(ctx: &mut Ctx<'_, '_>, at: usize, count: u64) -> bool {
    let key = ctx.key(at);
    let entry = ctx.guard.peek(ctx.db, &key).filter(|entry| entry.kind() == Kind::List);
    entry.is_some_and(|entry| View::of(entry).len() >= count)
}

/// BRPOPLPUSH: the last element becomes the first of another list.
pub fn take_rpoplpush(ctx: &mut Ctx<'_, '_>, _: &Wait, _: usize) -> Result<Done, Error> {
    let done = move_element(ctx, End::Back, End::Front)?;
    if matches!(done, Done::Replied) {
        ctx.guard.record(ctx.db, &[b"RPOPLPUSH", ctx.args.get(1), ctx.args.get(2)]);
    }
    Ok(done)
}

/// `BLMPOP timeout numkeys key ... LEFT | RIGHT [COUNT count]`.
pub fn wait_mpop(args: Args<'_>) -> Result<Wait, Error> {
    let (keys, ..) = parse_lmpop(args, 2)?;
    let timeout_ms = timeout_ms(args.get(1))?;
    Ok(Wait {
        keys,
        timeout_ms,
        kind: Kind::List,
        least: 1,
        further: None,
        ends_without_key: false,
        at_once: AtOnce::NullArray,
    })
}

/// BLMPOP: several elements of a key.
pub fn take_mpop(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    let (_, end, count) = parse_lmpop(ctx.args, 2)?;
    let done = pop_from(ctx, at, end, count)?;
    if ctx.guard.is_recording() && !matches!(done, Done::Nothing) {
        // A count is signed there; no list has more elements.
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let text = &mut [0; I64_TEXT_MAX];
        ctx.guard.record(ctx.db, &[end.pop(), ctx.arg(at), format_i64(text, count)]);
    }
    Ok(done)
}
