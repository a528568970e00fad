//! PFCOUNT.

use keyspace::Event;
use value::IntText;
use value::hll::{COUNT_AT, Hll, REGISTERS};

use super::add::make_raw;
use super::sketch::{block, raise_all, refused};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::string::text::text_of;

/// `PFCOUNT key ...`: of several keys, what they have seen together. The estimate of one is kept in
/// it.
pub fn pfcount(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let count = if ctx.args.len() == 2 { count_one(ctx)? } else { count_all(ctx)? };
    ctx.reply.integer(count as i64);
    Ok(Done::Replied)
}

fn count_one(ctx: &mut Ctx<'_, '_>) -> Result<u64, Error> {
    let key = ctx.key(1);
    let entry = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(mut entry) = entry else {
        ctx.guard.notify(Event::MISS, ctx.db, &key);
        return Ok(0);
    };
    let mut scratch = IntText::default();
    let stored = text_of(&entry.entry())?;
    let text = &*block(&stored, &mut scratch)?;
    let sketch = Hll::new(text).map_err(refused)?;
    if let Some(count) = Hll::cached(text) {
        make_raw(&mut entry);
        return Ok(count);
    }
    let count = sketch.count().map_err(refused)?;
    entry.write_at(COUNT_AT, &count.to_le_bytes());
    Ok(count)
}

fn count_all(ctx: &mut Ctx<'_, '_>) -> Result<u64, Error> {
    let mut registers = [0; REGISTERS];
    raise_all(ctx, 1, &mut registers)?;
    Ok(Hll::count_registers(&registers))
}
