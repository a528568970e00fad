//! Strings that are numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use base::longdouble::LongDouble;
use value::{EMBSTR_MAX, IntText, NewStr, Str};

use super::text::text_of;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;
use crate::record::{self, SetExpiry};

/// `INCR key`.
pub fn incr(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    add(ctx, 1)
}

/// `DECR key`.
pub fn decr(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    add(ctx, -1)
}

/// `INCRBY key increment`.
pub fn incrby(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    add(ctx, integer(ctx.arg(2))?)
}

/// `DECRBY key decrement`.
pub fn decrby(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let decrement = integer(ctx.arg(2))?;
    add(ctx, decrement.checked_neg().ok_or(Error::DecrOverflow)?)
}

/// Adds to the number in the first argument's key; the expiry stays.
fn add(ctx: &mut Ctx<'_, '_>, delta: i64) -> Result<Done, Error> {
    let key = ctx.key(1);
    let sum = if let Some(mut entry) = ctx.guard.entry_mut(events::INCRBY, ctx.db, &key) {
        let old = text_of(&entry.entry())?.as_int().ok_or(Error::NotInteger)?;
        let sum = old.checked_add(delta).ok_or(Error::IncrOverflow)?;
        entry.set_int(sum);
        sum
    } else {
        ctx.guard.insert(events::INCRBY, ctx.db, &key, NewStr::Int(delta), None);
        delta
    };
    ctx.reply.integer(sum);
    Ok(Done::Replied)
}

/// `INCRBYFLOAT key increment`. The sum is stored as text, never as a number.
pub fn incrbyfloat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let increment = LongDouble::parse(ctx.arg(2));
    let key = ctx.key(1);
    let mut text = Vec::new();
    if let Some(mut entry) = ctx.guard.entry_mut(events::INCRBYFLOAT, ctx.db, &key) {
        let old = float_of(text_of(&entry.entry())?);
        write_sum(&mut text, old, increment)?;
        entry.set_str(plain(&text), true);
    } else {
        write_sum(&mut text, Some(LongDouble::ZERO), increment)?;
        ctx.guard.insert(events::INCRBYFLOAT, ctx.db, &key, plain(&text), None);
    }
    record::set(ctx, key.bytes, SetExpiry::Keep, |record| record.word(&text));
    ctx.reply.bulk(&text);
    Ok(Done::Replied)
}

/// The number that a string spells.
pub(super) fn float_of(text: Str<'_>) -> Option<LongDouble> {
    LongDouble::parse(&text.block(&mut IntText::default())?)
}

fn write_sum(
    text: &mut Vec<u8>,
    a: Option<LongDouble>,
    b: Option<LongDouble>,
) -> Result<(), Error> {
    let (a, b) = a.zip(b).ok_or(Error::NotFloat)?;
    a.checked_add(b).ok_or(Error::IncrNotFinite)?.write(text);
    Ok(())
}

/// A string that is stored as text even if it spells an integer.
pub(super) fn plain(text: &[u8]) -> NewStr<'_> {
    if text.len() <= EMBSTR_MAX { NewStr::Embstr(text) } else { NewStr::Raw(text) }
}
