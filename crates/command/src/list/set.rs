//! LSET, LINSERT.

use super::edit::open;
use super::element::{element, equals, wanted};
use super::pivot::Seeking;
use super::position::position;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Sources};
use keyspace::Kind;

/// `LSET key index element`. The index is looked at only if the key is there.
pub fn lset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, args) = (ctx.key(1), ctx.args);
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LSET, ctx, &key)? else {
        return Err(Error::NoSuchKey);
    };
    let at = position(integer(args.get(2))?, edit.view().len()).ok_or(Error::IndexRange)?;
    edit.set(at, element(&args, 3));
    reply.ok();
    ctx.guard.count_as(before, 1);
    Ok(Done::Replied)
}

/// `LINSERT key BEFORE | AFTER pivot element`: the new length, -1 if there is no such pivot.
pub fn linsert(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let behind = match ctx.arg(2) {
        word if is(word, "BEFORE") => 0,
        word if is(word, "AFTER") => 1,
        _ => return Err(Error::Syntax),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let sought = match prepare::found::<Seeking>(ctx) {
        Found::Ready(sought) => Some(sought.found()),
        Found::Begin(tries) => {
            let (keyspace, at_once) = (ctx.guard.keyspace(), ctx.settings.at_once_elements);
            let big = ctx.peek_kind(&key, Kind::List)?.and_then(|entry| entry.big());
            if let Some(list) = big.filter(|big| big.len() > at_once) {
                let list = keyspace.capture(list);
                let sources = Sources::of(ctx, 1..2, tries);
                return prepare::begin(ctx, Seeking::new(sources, list, wanted(&args, 3)));
            }
            None
        }
    };
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LINSERT, ctx, &key)? else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let pivot = wanted(&args, 3);
    let look = || edit.view().iter_from(0).zip(0..).find(|(item, _)| equals(*item, pivot));
    let found = sought.unwrap_or_else(|| look().map(|(_, at)| at));
    if let Some(at) = found {
        edit.insert(at + behind, element(&args, 4));
        reply.integer(edit.view().len() as i64);
        ctx.guard.count_as(before, 1);
    } else {
        reply.integer(-1);
    }
    Ok(Done::Replied)
}
