//! Keys, whatever they hold: DEL, UNLINK, EXISTS, TOUCH, TYPE.

use keyspace::Event;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;

/// `DEL key ...`. What is removed is freed when the locks are released.
pub fn del(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let mut removed = 0;
    let are_many = ctx.has_many_keys();
    for arg in 1..ctx.args.len() {
        if are_many {
            ctx.warm_keys(arg - 1);
        }
        let key = ctx.key(arg);
        removed += i64::from(ctx.guard.remove(Event::DEL, ctx.db, &key));
    }
    ctx.reply.integer(removed);
    Ok(Done::Replied)
}

/// `UNLINK key ...`: what DEL does, which never frees under a lock either.
pub fn unlink(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    del(ctx)
}

/// `EXISTS key ...`: a key counts as often as it is named.
pub fn exists(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let mut found = 0;
    let are_many = ctx.has_many_keys();
    for arg in 1..ctx.args.len() {
        if are_many {
            ctx.warm_keys(arg - 1);
        }
        let key = ctx.key(arg);
        let exists = ctx.guard.contains(ctx.db, &key);
        ctx.count_lookup(&key, exists);
        found += i64::from(exists);
    }
    ctx.reply.integer(found);
    Ok(Done::Replied)
}

/// `TOUCH key ...`: as EXISTS, and the keys were used now, even for a client that asked to leave no
/// trace.
pub fn touch(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    ctx.guard.set_no_touch(false);
    let mut found = 0;
    let are_many = ctx.has_many_keys();
    for arg in 1..ctx.args.len() {
        if are_many {
            ctx.warm_keys(arg - 1);
        }
        let key = ctx.key(arg);
        let exists = ctx.guard.read(ctx.db, &key).is_some();
        ctx.count_lookup(&key, exists);
        found += i64::from(exists);
    }
    ctx.reply.integer(found);
    Ok(Done::Replied)
}

/// `TYPE key`.
pub fn type_of(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let kind = ctx.guard.peek(ctx.db, &key).map(|entry| entry.kind());
    ctx.count_lookup(&key, kind.is_some());
    ctx.reply.simple(kind.map_or("none", |kind| kind.name()));
    Ok(Done::Replied)
}
