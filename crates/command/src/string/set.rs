//! Setting one string: SET, SETNX, SETEX, PSETEX.

use base::DbIndex;
use keyspace::{Entry, Guard, Key, RecordWriter};
use resp::Args;
use value::NewStr;

use super::digest::has_digest;
use super::judging::{Ahead, judge};
use super::options::{Condition, NewExpiry, SetOptions, When};
use super::text::{ArgText, equals, new_text, text_of, write_or_null};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use crate::record;
use crate::spec::KeyFlags;

/// What SET does to its key: with some options it looks at what was there.
pub fn set_key_flags(args: Args<'_>) -> KeyFlags {
    let words = || ArgText::all(args.from(3)).map(ArgText::start);
    if words().any(|word| is(word, "GET")) {
        return KeyFlags::of(&[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
    }
    let none = ArgText::Short(b"");
    let compares = words().any(|word| Condition::comparison(word, none).is_some());
    let how = if compares { KeyFlags::RW } else { KeyFlags::OW };
    KeyFlags::of(&[how, KeyFlags::UPDATE])
}

/// `SET key value [NX | XX | IFEQ text | IFNE text | IFDEQ digest | IFDNE digest] [GET]
/// [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`.
#[inline]
pub fn set(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if ctx.args.len() != 3 {
        return set_with_options(ctx);
    }
    let key = ctx.key(1);
    ctx.guard.insert(events::SET, ctx.db, &key, new_text(&ctx.args, 2), None);
    ctx.reply.ok();
    Ok(Done::Replied)
}

#[inline(never)]
fn set_with_options(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = SetOptions::of_set(ctx.args.from(3))?;
    let expiry = options.expiry.resolve(ctx.now, "set")?;
    let (db, key) = (ctx.db, ctx.key(1));
    let value = new_text(&ctx.args, 2);
    if !options.get && matches!(options.condition, Condition::Always) {
        put(ctx.guard, db, &key, value, expiry);
        record_set(ctx, 1, 2, expiry);
        ctx.reply.ok();
        return Ok(Done::Replied);
    }
    let judged = match judge(ctx, options.condition, set)? {
        Ahead::Done(done) => return Ok(done),
        Ahead::Holds(holds) => Some(holds),
        Ahead::Unknown => None,
    };
    let old = if options.get { ctx.guard.look_up(db, &key) } else { ctx.guard.read(db, &key) };
    if options.get {
        ctx.tally.count(old.is_some());
    }
    let text = match &old {
        Some(entry) if options.get => Some(text_of(entry)?),
        _ => None,
    };
    let holds = judged.map_or_else(|| holds(options.condition, old), Ok)?;
    if options.get {
        write_or_null(&mut ctx.reply, text);
    } else if holds {
        ctx.reply.ok();
    } else {
        ctx.reply.null();
    }
    if holds {
        put(ctx.guard, db, &key, value, expiry);
        record_set(ctx, 1, 2, expiry);
    }
    Ok(Done::Replied)
}

/// Whether a key may be set that holds `old` now.
pub(super) fn holds(condition: Condition<'_>, old: Option<Entry<'_>>) -> Result<bool, Error> {
    Ok(match (condition, old) {
        (Condition::Always, _)
        | (Condition::Absent | Condition::NotEqual(_) | Condition::DigestNotEqual(_), None)
        | (Condition::Present, Some(_)) => true,
        (Condition::Absent, Some(_))
        | (Condition::Present | Condition::Equal(_) | Condition::DigestEqual(_), None) => false,
        (Condition::Equal(text), Some(old)) => equals(text_of(&old)?, text),
        (Condition::NotEqual(text), Some(old)) => !equals(text_of(&old)?, text),
        (Condition::DigestEqual(digest), Some(old)) => has_digest(text_of(&old)?, digest)?,
        (Condition::DigestNotEqual(digest), Some(old)) => !has_digest(text_of(&old)?, digest)?,
    })
}

/// Creates the key or replaces what it holds.
pub(super) fn put(
    guard: &mut Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    value: NewStr<'_>,
    expiry: NewExpiry,
) {
    match expiry {
        NewExpiry::Is(expiry) => {
            guard.insert(events::SET, db, key, value, expiry);
            if expiry.is_some() {
                guard.notify(events::EXPIRE, db, key);
            }
        }
        NewExpiry::Keep => match guard.entry_mut(events::SET, db, key) {
            Some(mut entry) => entry.set_str(value, true),
            None => guard.insert(events::SET, db, key, value, None),
        },
    }
}

/// Leaves that the key in an argument was set to the value in another one.
pub(super) fn record_set(ctx: &mut Ctx<'_, '_>, key: usize, value: usize, expiry: NewExpiry) {
    if ctx.guard.is_recording() {
        let args = ctx.args;
        let write = |record: &mut RecordWriter<'_>| record::argument(record, &args, value);
        record::set(ctx, args.get(key), expiry.of_record(), write);
    }
}

/// `SETNX key value`.
pub fn setnx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let absent = ctx.guard.read(ctx.db, &key).is_none();
    if absent {
        ctx.guard.insert(events::SET, ctx.db, &key, new_text(&ctx.args, 2), None);
    }
    ctx.reply.integer(i64::from(absent));
    Ok(Done::Replied)
}

/// `SETEX key seconds value`.
pub fn setex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    set_expiring(ctx, When::seconds(ctx.arg(2)), "setex")
}

/// `PSETEX key milliseconds value`.
pub fn psetex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    set_expiring(ctx, When::milliseconds(ctx.arg(2)), "psetex")
}

fn set_expiring(
    ctx: &mut Ctx<'_, '_>,
    when: When<'_>,
    command: &'static str,
) -> Result<Done, Error> {
    let at = when.resolve(ctx.now, command)?;
    let key = ctx.key(1);
    ctx.guard.insert(events::SET, ctx.db, &key, new_text(&ctx.args, 3), Some(at));
    ctx.guard.notify(events::EXPIRE, ctx.db, &key);
    record_set(ctx, 1, 3, NewExpiry::Is(Some(at)));
    ctx.reply.ok();
    Ok(Done::Replied)
}
