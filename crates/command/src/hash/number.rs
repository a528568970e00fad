//! Fields that are numbers: HINCRBY, HINCRBYFLOAT.

use base::UnixMs;
use base::longdouble::LongDouble;
use base::num::parse_i64;
use keyspace::{Event, Kind};
use value::IntText;
use value::packed::Elem;

use super::change::{New, set_pairs};
use super::recording;
use super::times::code;
use super::view::View;
use crate::collection::Text;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;

/// `HINCRBY key field increment`.
pub fn hincrby(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let increment = integer(ctx.arg(3))?;
    let (key, field) = (ctx.key(1), ctx.arg(2));
    let entry = ctx.peek_kind(&key, Kind::Hash)?;
    let old = match entry.and_then(|entry| View::of(entry).get(field)) {
        None => 0,
        Some(Text::Elem(Elem::Int(number))) => number,
        Some(Text::Elem(Elem::Bytes(_))) => return Err(Error::HashNotInteger),
        Some(Text::Val(text)) => text.block().and_then(parse_i64).ok_or(Error::HashNotInteger)?,
    };
    let sum = old.checked_add(increment).ok_or(Error::IncrOverflow)?;
    set_text(events::HINCRBY, ctx, IntText::new(sum).as_bytes())?;
    ctx.reply.integer(sum);
    Ok(Done::Replied)
}

/// `HINCRBYFLOAT key field increment`.
pub fn hincrbyfloat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let increment = LongDouble::parse(ctx.arg(3)).ok_or(Error::NotFloat)?;
    if !increment.is_finite() {
        return Err(Error::NotFinite);
    }
    let (key, field, is_recording) = (ctx.key(1), ctx.arg(2), ctx.guard.is_recording());
    let view = ctx.peek_kind(&key, Kind::Hash)?.map(View::of);
    let time = view.filter(|_| is_recording).map_or(-1, |view| code(view, field, |at| at));
    let old = match view.and_then(|view| view.get(field)) {
        None => LongDouble::ZERO,
        Some(text) => float_of(text).ok_or(Error::HashNotFloat)?,
    };
    let mut text = Vec::new();
    old.checked_add(increment).ok_or(Error::IncrNotFinite)?.write(&mut text);
    set_text(events::HINCRBYFLOAT, ctx, &text)?;
    recording::set_text(ctx, field, &text, Some(UnixMs(time)).filter(|time| time.0 >= 0));
    ctx.reply.bulk(&text);
    Ok(Done::Replied)
}

/// The number that a value spells.
fn float_of(text: Text<'_>) -> Option<LongDouble> {
    match text {
        Text::Elem(elem) => LongDouble::parse(elem.bytes(&mut IntText::default())),
        Text::Val(text) => LongDouble::parse(text.block()?),
    }
}

/// Sets the field in the second argument.
fn set_text(event: Event, ctx: &mut Ctx<'_, '_>, text: &[u8]) -> Result<(), Error> {
    let field = ctx.arg(2);
    set_pairs(event, ctx, std::iter::once((field, New::Text(text))), true).map(|_| ())
}
