//! Parts of a string: GETRANGE, SUBSTR, SETRANGE, APPEND.

use base::Blob;
use keyspace::{EntryMut, Parked};
use resp::Args;
use value::{IntText, Str};

use super::text::{insert_blob, lookup, new_text, text_of};
use crate::ctx::{Ctx, Settings};
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

/// `SETRANGE key offset value`.
pub fn setrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let offset = integer(ctx.arg(2))?;
    let offset = u64::try_from(offset).map_err(|_| Error::OffsetRange)?;
    let (key, bytes) = (ctx.key(1), Bytes::of(&ctx.args, 3));
    if let Err(parked) = bytes.mark_if_long(ctx) {
        return Ok(Done::Park(parked));
    }
    let len = match ctx.guard.entry_mut(events::SETRANGE, ctx.db, &key) {
        Some(mut entry) => {
            let old = text_of(&entry.entry())?;
            if bytes.len() == 0 {
                old.len()
            } else {
                let at = allowed(ctx.settings, offset, bytes)?;
                bytes.write(&mut entry, at)
            }
        }
        None if bytes.len() == 0 => 0,
        None => {
            let at = allowed(ctx.settings, offset, bytes)?;
            let mut text = Blob::default();
            text.append_zeros(at);
            bytes.append_to(&mut text);
            insert_blob(events::SETRANGE, ctx.guard, ctx.db, &key, text);
            at + bytes.len()
        }
    };
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}

/// `APPEND key value`.
pub fn append(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (key, bytes) = (ctx.key(1), Bytes::of(&ctx.args, 2));
    if let Err(parked) = bytes.mark_if_long(ctx) {
        return Ok(Done::Park(parked));
    }
    let len = if let Some(mut entry) = ctx.guard.entry_mut(events::APPEND, ctx.db, &key) {
        let len = text_of(&entry.entry())?.len();
        allowed(ctx.settings, len as u64, bytes)?;
        bytes.write(&mut entry, len)
    } else {
        ctx.guard.insert(events::APPEND, ctx.db, &key, new_text(&ctx.args, 2), None);
        bytes.len()
    };
    ctx.reply.integer(len as i64);
    Ok(Done::Replied)
}

/// Bytes to write: an argument.
#[derive(Clone, Copy)]
enum Bytes<'a> {
    Short(&'a [u8]),
    /// In pages.
    Long(&'a Blob),
}

impl<'a> Bytes<'a> {
    fn of(args: &Args<'a>, i: usize) -> Self {
        match args.blob(i) {
            Some(blob) if blob.is_paged() => Self::Long(blob),
            _ => Self::Short(args.get(i)),
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Short(bytes) => bytes.len(),
            Self::Long(blob) => blob.len(),
        }
    }

    /// To copy long ones takes as long as their arrival: others park meanwhile.
    fn mark_if_long(self, ctx: &mut Ctx<'_, '_>) -> Result<(), Parked> {
        if matches!(self, Self::Long(_)) { ctx.guard.try_mark_long() } else { Ok(()) }
    }

    /// Writes them into a stored text; its new length.
    fn write(self, entry: &mut EntryMut<'_, '_>, at: usize) -> usize {
        match self {
            Self::Short(bytes) => entry.write_at(at, bytes),
            Self::Long(blob) => entry.write_pages_at(at, blob),
        }
    }

    fn append_to(self, text: &mut Blob) {
        match self {
            Self::Short(bytes) => text.append(bytes),
            Self::Long(blob) => blob.pages().for_each(|run| text.append(run)),
        }
    }
}

/// The offset, if a text with `bytes` at it is not too long.
fn allowed(settings: &Settings, offset: u64, bytes: Bytes<'_>) -> Result<usize, Error> {
    let end = offset.saturating_add(bytes.len() as u64);
    if end > settings.bulk_len_max {
        return Err(Error::StringTooLong);
    }
    usize::try_from(offset).map_err(|_| Error::StringTooLong)
}
