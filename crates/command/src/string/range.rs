//! Parts of a string: GETRANGE, SUBSTR, SETRANGE, APPEND.

use value::{IntText, Str};

use super::long_write::write_long;
use super::text::{ArgText, allowed, insert_at, lookup, new_text, text_of};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;

/// A part of so many bytes is replied by reference.
const REFERENCE_MIN: usize = 16 << 10;

/// `GETRANGE key start end`: both ends included, negative ones count from the string's end.
pub fn getrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (start, end) = (integer(ctx.arg(2))?, integer(ctx.arg(3))?);
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?.unwrap_or(Str::Bytes(b""));
    let (from, to) = bounds(start, end, text.len());
    match text {
        Str::Blob(blob) if to - from >= REFERENCE_MIN => ctx.reply.bulk_part(blob, from..to),
        Str::Blob(blob) => {
            ctx.reply.bulk_header(to - from);
            blob.pages_in(from..to).for_each(|run| ctx.reply.raw(run));
            ctx.reply.raw(b"\r\n");
        }
        short => ctx.reply.bulk(&short.bytes(&mut IntText::default())[from..to]),
    }
    Ok(Done::Replied)
}

/// `SUBSTR key start end`: the old name of GETRANGE.
pub fn substr(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    getrange(ctx)
}

/// The range of a text of `len` bytes that a client means. An end before the text's first byte
/// means the first byte, unless start and end are both negative and in the wrong order.
fn bounds(start: i64, end: i64, len: usize) -> (usize, usize) {
    if len == 0 || start < 0 && end < 0 && start > end {
        return (0, 0);
    }
    let len = len as i64;
    let from_front = |at: i64| if at < 0 { (at.saturating_add(len)).max(0) } else { at };
    let (from, last) = (from_front(start), from_front(end).min(len - 1));
    if from > last { (0, 0) } else { (from as usize, last as usize + 1) }
}

/// `SETRANGE key offset value`. A long value is written ahead of the command.
pub fn setrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let offset = integer(ctx.args.start(2))?;
    let offset = u64::try_from(offset).map_err(|_| Error::OffsetRange)?;
    let bytes = match ArgText::of(&ctx.args, 3) {
        ArgText::Short(bytes) => bytes,
        ArgText::Long(text) => return write_long(ctx, events::SETRANGE, Some(offset), text),
    };
    let key = ctx.key(1);
    let len = match ctx.guard.entry_mut(events::SETRANGE, ctx.db, &key) {
        Some(mut entry) => {
            let old = text_of(&entry.entry())?;
            if bytes.is_empty() {
                old.len()
            } else {
                let at = allowed(ctx.settings, offset, bytes.len())?;
                entry.write_at(at, bytes)
            }
        }
        None if bytes.is_empty() => 0,
        None => {
            let at = allowed(ctx.settings, offset, bytes.len())?;
            insert_at(events::SETRANGE, ctx.guard, ctx.db, &key, at, bytes);
            at + bytes.len()
        }
    };
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}

/// `APPEND key value`. A long value is appended ahead of the command.
pub fn append(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let bytes = match ArgText::of(&ctx.args, 2) {
        ArgText::Short(bytes) => bytes,
        ArgText::Long(text) => return write_long(ctx, events::APPEND, None, text),
    };
    let key = ctx.key(1);
    let len = if let Some(mut entry) = ctx.guard.entry_mut(events::APPEND, ctx.db, &key) {
        let len = text_of(&entry.entry())?.len();
        allowed(ctx.settings, len as u64, bytes.len())?;
        entry.write_at(len, bytes)
    } else {
        ctx.guard.insert(events::APPEND, ctx.db, &key, new_text(&ctx.args, 2), None);
        bytes.len()
    };
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}
