//! One bit: SETBIT, GETBIT.

use value::bitmap;

use super::offset::offset;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::string::captured::byte;
use crate::string::text::{insert_at, lookup, text_of};

/// `SETBIT key offset value`: replies what was there. A bit that is as wanted changes nothing.
pub fn setbit(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let offset = offset(ctx.arg(2), ctx.settings)?;
    let on = match ctx.arg(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(Error::BitValue),
    };
    let key = ctx.key(1);
    let (at, mask) = ((offset >> 3) as usize, bitmap::mask(offset));
    let with = |byte: u8| if on { byte | mask } else { byte & !mask };
    let was_on = if let Some(mut entry) = ctx.guard.entry_mut(events::SETBIT, ctx.db, &key) {
        let old = byte(text_of(&entry.entry())?, at);
        let byte = old.unwrap_or(0);
        if old == Some(with(byte)) {
            entry.make_raw();
        } else {
            entry.write_at(at, &[with(byte)]);
        }
        byte & mask != 0
    } else {
        insert_at(events::SETBIT, ctx.guard, ctx.db, &key, at, &[with(0)]);
        false
    };
    ctx.reply.integer(i64::from(was_on));
    Ok(Done::Replied)
}

/// `GETBIT key offset`.
pub fn getbit(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let offset = offset(ctx.arg(2), ctx.settings)?;
    let key = ctx.key(1);
    let text = lookup(ctx.guard, ctx.tally, ctx.db, &key)?;
    let byte = text.and_then(|text| byte(text, (offset >> 3) as usize)).unwrap_or(0);
    let on = byte & bitmap::mask(offset) != 0;
    ctx.reply.integer(i64::from(on));
    Ok(Done::Replied)
}
