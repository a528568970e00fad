//! LPOP, RPOP, LMPOP.

use base::num::parse_i64;
use keyspace::Keyspace;
use resp::{Args, Reply};
use std::ops::Range;

use super::edit::{Edit, open};
use super::element::write;
use super::end::End;
use super::stream::{AT_ONCE_BYTES_MAX, AT_ONCE_MAX, Stream};
use super::view::{View, of_big_mut};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::parse::is;
use crate::spec::KeyRuns;

/// `LPOP key [count]`.
pub fn lpop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    pop(ctx, End::Front, "lpop")
}

/// `RPOP key [count]`.
pub fn rpop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    pop(ctx, End::Back, "rpop")
}

#[inline]
fn pop(ctx: &mut Ctx<'_, '_>, end: End, command: &'static str) -> Result<Done, Error> {
    match ctx.args.len() {
        2 => {}
        3 => return pop_counted(ctx, end),
        _ => return Err(Arity { command }.into()),
    }
    let (key, before) = (ctx.key(1), ctx.guard.counted());
    match open(end.popped(), ctx, &key)? {
        (Some(edit), reply) => {
            edit.pop(end, 1, |item| write(reply, item));
            ctx.guard.count_as(before, 1);
        }
        (None, reply) => reply.null(),
    }
    Ok(Done::Replied)
}

fn pop_counted(ctx: &mut Ctx<'_, '_>, end: End) -> Result<Done, Error> {
    let count = parse_i64(ctx.arg(2)).and_then(|count| u64::try_from(count).ok());
    let count = count.ok_or(Error::NotPositive)?;
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let before = ctx.guard.counted();
    let (popped, rest) = match open(end.popped(), ctx, &key)? {
        (None, reply) => {
            reply.null_array();
            (0, None)
        }
        (Some(edit), reply) => pop_many(edit, keyspace, end, count, reply),
    };
    ctx.guard.count_as(before, popped);
    Ok(done_or_steps(rest))
}

/// `LMPOP numkeys key ... LEFT | RIGHT [COUNT count]`.
pub fn lmpop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (keys, end, count) = parse_lmpop(ctx.args, 1)?;
    for i in keys {
        match pop_from(ctx, i, end, count)? {
            Done::Nothing => {}
            done => return Ok(done),
        }
    }
    ctx.reply.null_array();
    Ok(Done::Replied)
}

/// The keys of LMPOP.
pub fn lmpop_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(parse_lmpop(args, 1)?.0))
}

/// Pops from the key in argument `i` and replies the key and the elements; nothing if it does not
/// exist.
pub(super) fn pop_from(
    ctx: &mut Ctx<'_, '_>,
    i: usize,
    end: End,
    count: u64,
) -> Result<Done, Error> {
    let (key, keyspace) = (ctx.key(i), ctx.guard.keyspace());
    let before = ctx.guard.counted();
    let (Some(edit), reply) = open(end.popped(), ctx, &key)? else { return Ok(Done::Nothing) };
    reply.array(2);
    reply.bulk(key.bytes);
    let (popped, rest) = pop_many(edit, keyspace, end, count, reply);
    ctx.guard.count_as(before, popped);
    Ok(done_or_steps(rest))
}

/// The arguments of LMPOP and of its like that wait, from the number of keys in argument `at` on:
/// where the keys are, which end, and how many elements.
pub(super) fn parse_lmpop(args: Args<'_>, at: usize) -> Result<(Range<usize>, End, u64), Error> {
    let positive = |arg| parse_i64(arg).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let count = positive(args.get(at)).ok_or(Error::NumKeysPositive)?;
    let end = usize::try_from(count).ok().and_then(|count| count.checked_add(at + 1));
    let word = end.ok_or(Error::Syntax)?;
    let from = End::parse(args.try_get(word).ok_or(Error::Syntax)?)?;
    let (mut count, mut at_option) = (None, word + 1);
    while at_option < args.len() {
        let value = args.try_get(at_option + 1).ok_or(Error::Syntax)?;
        if count.is_some() || !is(args.get(at_option), "COUNT") {
            return Err(Error::Syntax);
        }
        count = Some(positive(value).ok_or(Error::CountPositive)?);
        at_option += 2;
    }
    Ok((at + 1..word, from, count.unwrap_or(1)))
}

/// Removes up to `count` elements and replies them as an array: how many, and those of many that
/// are left to be written in steps.
pub(super) fn pop_many(
    mut edit: Edit<'_, '_>,
    keyspace: &Keyspace,
    end: End,
    count: u64,
    reply: &mut Reply<'_>,
) -> (u64, Option<Stream>) {
    let len = edit.view().len();
    let count = count.min(len);
    reply.array(usize::try_from(count).expect("a length"));
    if count == 0 {
        return (0, None);
    }
    if !is_long(edit.view(), count) {
        edit.pop(end, count, |item| write(reply, item));
        return (count, None);
    }
    let big = edit.big().expect("a packed list is not much");
    let stream = match end {
        End::Front => Stream::new(keyspace, big, End::Back, 0, count),
        End::Back => Stream::new(keyspace, big, End::Front, len, count),
    };
    if count == len {
        edit.remove_key();
    } else {
        edit.shrink(|big, log| {
            log.capture(big);
            of_big_mut(big).remove_range(if end == End::Front { 0 } else { len - count }, count);
        });
    }
    (count, Some(stream))
}

/// Whether this many elements take too long to be written, or moved, in one step.
pub(super) fn is_long(view: View<'_>, count: u64) -> bool {
    match view {
        View::Small(_) => false,
        View::Big(list) => {
            let each = list.memory() as u64 / list.len();
            count > AT_ONCE_MAX || count > 1 && each.saturating_mul(count) > AT_ONCE_BYTES_MAX
        }
    }
}

fn done_or_steps(rest: Option<Stream>) -> Done {
    rest.map_or(Done::Replied, |rest| Done::Steps(Box::new(rest)))
}
