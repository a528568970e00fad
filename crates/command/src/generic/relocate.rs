//! Keys that get another name or another database: COPY, MOVE, RENAME, RENAMENX. A key stands in
//! the same slot of every database, so the locks of the keys that are named cover all of it.

use base::DbIndex;
use keyspace::{Event, Key};
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{int, is};

/// Told of the old name and of the new one.
const RENAME: [Event; 2] = [events::RENAME_FROM, events::RENAME_TO];

/// A database that exists.
fn database(ctx: &Ctx<'_, '_>, arg: &[u8]) -> Result<DbIndex, Error> {
    let index = u16::try_from(int(arg)?).ok().filter(|index| *index < ctx.settings.databases);
    index.map(DbIndex::new).ok_or(Error::DbRange)
}

/// A database that a request names; it may not exist.
fn named(arg: &[u8]) -> Option<DbIndex> {
    u16::try_from(int(arg).ok()?).ok().map(DbIndex::new)
}

/// The database into which a COPY puts its key, if it names one.
pub fn copy_into(args: Args<'_>) -> Option<DbIndex> {
    let mut words = (3..args.len()).map(|at| args.get(at));
    let mut into = None;
    while let Some(word) = words.next() {
        if is(word, "DB") {
            into = named(words.next()?);
        }
    }
    into
}

/// The database into which a MOVE puts its key.
pub fn move_into(args: Args<'_>) -> Option<DbIndex> {
    named(args.get(2))
}

/// `COPY source destination [DB index] [REPLACE]`.
pub fn copy(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (mut to_db, mut replace) = (ctx.db, false);
    let mut at = 3;
    while at < ctx.args.len() {
        let word = ctx.arg(at);
        if is(word, "REPLACE") {
            replace = true;
            at += 1;
        } else if is(word, "DB") && at + 1 < ctx.args.len() {
            to_db = database(ctx, ctx.arg(at + 1))?;
            at += 2;
        } else {
            return Err(Error::Syntax);
        }
    }
    let (from, to) = (ctx.key(1), ctx.key(2));
    if to_db == ctx.db && from.bytes == to.bytes {
        return Err(Error::SameObject);
    }
    let exists = ctx.guard.read(ctx.db, &from).is_some();
    ctx.count_lookup(&from, exists);
    let copied = exists
        && (replace || !ctx.guard.contains(to_db, &to))
        && ctx.guard.copy_entry(events::COPY_TO, ctx.db, &from, to_db, &to);
    ctx.reply.integer(copied.into());
    Ok(Done::Replied)
}

/// `MOVE key db`.
pub fn move_key(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let to_db = database(ctx, ctx.arg(2))?;
    if to_db == ctx.db {
        return Err(Error::SameObject);
    }
    let key = ctx.key(1);
    if ctx.must_reach(key.slot) {
        return Ok(Done::Reach);
    }
    let moved = ctx.guard.read(ctx.db, &key).is_some()
        && !ctx.guard.contains(to_db, &key)
        && relocate(ctx, [events::MOVE_FROM, events::MOVE_TO], &key, (to_db, &key));
    ctx.reply.integer(moved.into());
    Ok(Done::Replied)
}

/// `RENAME key newkey`.
pub fn rename(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if ctx.guard.read(ctx.db, &ctx.key(1)).is_none() {
        return Err(Error::NoSuchKey);
    }
    let (from, to) = (ctx.key(1), ctx.key(2));
    relocate(ctx, RENAME, &from, (ctx.db, &to));
    ctx.reply.ok();
    Ok(Done::Replied)
}

/// `RENAMENX key newkey`.
pub fn renamenx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (from, to) = (ctx.key(1), ctx.key(2));
    if ctx.guard.read(ctx.db, &from).is_none() {
        return Err(Error::NoSuchKey);
    }
    // A key of the same name exists, too.
    let renamed = !ctx.guard.contains(ctx.db, &to) && relocate(ctx, RENAME, &from, (ctx.db, &to));
    ctx.reply.integer(renamed.into());
    Ok(Done::Replied)
}

/// Moves an entry, which is one change though two keys are touched.
fn relocate(
    ctx: &mut Ctx<'_, '_>,
    events: [Event; 2],
    from: &Key<'_>,
    (to_db, to): (DbIndex, &Key<'_>),
) -> bool {
    let is_elsewhere = to_db != ctx.db || from.bytes != to.bytes;
    let moved = ctx.guard.move_entry(events, ctx.db, from, to_db, to);
    ctx.guard.adjust_change_count(if moved && is_elsewhere { -1 } else { 0 });
    moved
}
