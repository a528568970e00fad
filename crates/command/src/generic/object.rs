//! OBJECT: what is known about a value besides its contents.

use keyspace::{Entry, Uses};

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;

/// What `f` says of the key, if it exists; asking is no use of it.
fn ask<T>(ctx: &mut Ctx<'_, '_>, f: impl FnOnce(Entry<'_>) -> T) -> Option<T> {
    let key = ctx.key(2);
    let found = ctx.guard.peek(ctx.db, &key).map(f);
    ctx.tally.count(found.is_some());
    found
}

fn integer_or_null(ctx: &mut Ctx<'_, '_>, value: Option<i64>) {
    match value {
        Some(value) => ctx.reply.integer(value),
        None => ctx.reply.null(),
    }
}

/// `OBJECT ENCODING key`.
pub fn object_encoding(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    match ask(ctx, |entry| entry.encoding()) {
        Some(encoding) => ctx.reply.bulk(encoding.name().as_bytes()),
        None => ctx.reply.null(),
    }
    Ok(Done::Replied)
}

/// `OBJECT FREQ key`: an error unless an LFU policy counts uses.
pub fn object_freq(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (uses, now) = (ctx.guard.uses(), ctx.now);
    let found = ask(ctx, |entry| entry.frequency(uses, now));
    let count = found.map(|count| count.ok_or(Error::NotLfu)).transpose()?;
    integer_or_null(ctx, count.map(i64::from));
    Ok(Done::Replied)
}

/// `OBJECT IDLETIME key`: an error where an LFU policy counts uses instead.
pub fn object_idletime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let now = ctx.now;
    let idle = ask(ctx, |entry| entry.idle_seconds(now) as i64);
    if idle.is_some() && ctx.guard.uses() != Uses::Times {
        return Err(Error::IsLfu);
    }
    integer_or_null(ctx, idle);
    Ok(Done::Replied)
}

/// `OBJECT REFCOUNT key`: a value belongs to its key.
pub fn object_refcount(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let references = ask(ctx, |_| 1);
    integer_or_null(ctx, references);
    Ok(Done::Replied)
}
