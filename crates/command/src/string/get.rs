//! Reading a whole string, alone or together with a change: GET, GETDEL, GETEX, GETSET, STRLEN.

use base::UnixMs;
use keyspace::Event;

use super::options::GetExOption;
use super::text::{lookup, new_text, write, write_or_null};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::record;

/// `GET key`.
#[inline]
pub fn get(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    write_or_null(&mut ctx.reply, text);
    Ok(Done::Replied)
}

/// `STRLEN key`.
pub fn strlen(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    ctx.reply.integer(text.map_or(0, |text| text.len() as i64));
    Ok(Done::Replied)
}

/// `GETDEL key`.
pub fn getdel(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    write_or_null(&mut ctx.reply, text);
    ctx.guard.remove(Event::DEL, ctx.db, &key);
    Ok(Done::Replied)
}

/// `GETSET key value`.
pub fn getset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let value = new_text(&ctx.args, 2);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    write_or_null(&mut ctx.reply, text);
    ctx.guard.insert(events::SET, ctx.db, &key, value, None);
    Ok(Done::Replied)
}

/// `GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]`. As Valkey 9, a time that is none is an
/// error whether or not the key exists.
pub fn getex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let option = GetExOption::parse(ctx.args.from(2))?;
    let expiry = match option {
        GetExOption::None => return get(ctx),
        GetExOption::Persist => None,
        GetExOption::At(when) => Some(when.resolve(ctx.now, "getex")?),
    };
    let key = ctx.key(1);
    let Some(text) = lookup(ctx.guard, ctx.tally, ctx.db, &key)? else {
        ctx.reply.null();
        return Ok(Done::Replied);
    };
    write(&mut ctx.reply, text);
    expire(ctx, expiry);
    Ok(Done::Replied)
}

/// Sets when the key in the first argument, which exists, expires: at once if that is past.
fn expire(ctx: &mut Ctx<'_, '_>, expiry: Option<UnixMs>) {
    let key = ctx.key(1);
    let is_past = expiry.is_some_and(|at| ctx.is_past(at));
    let event = match expiry {
        _ if is_past => Event::DEL,
        Some(_) => events::EXPIRE,
        None => events::PERSIST,
    };
    let Some(mut entry) = ctx.guard.entry_mut(event, ctx.db, &key) else { return };
    if is_past {
        entry.remove();
        record::removal(ctx, key.bytes);
    } else {
        entry.set_expiry(expiry);
        record::expiry(ctx, key.bytes, expiry);
    }
}
