//! PFADD.

use keyspace::EntryMut;
use resp::Args;
use value::hll::{Hll, STALE, STALE_AT, mark_stale, new_sparse, patch_of, place, raise_one};
use value::{Encoding, IntText, NewStr};

use super::sketch::{block, refused};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::string::text::{insert_raw, text_of};

/// `PFADD key [element ...]`: replies whether that changed anything.
pub fn pfadd(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let max = usize::try_from(ctx.settings.hll_sparse_max_bytes).unwrap_or(usize::MAX);
    let before = ctx.guard.counted();
    let changed = if let Some(mut entry) = ctx.guard.entry_mut(events::PFADD, ctx.db, &key) {
        add(&mut entry, &ctx.args, max)?
    } else {
        let mut text = new_sparse();
        let raised = raise(&mut text, &ctx.args, 2, max)?;
        mark_stale(&mut text);
        insert_raw(events::PFADD, ctx.guard, ctx.db, &key, text);
        1 + raised
    };
    ctx.guard.count_as(before, changed);
    ctx.reply.integer(i64::from(changed > 0));
    Ok(Done::Replied)
}

/// Adds the elements from argument `first` on to a sketch that is being made; how many changed it.
fn raise(text: &mut Vec<u8>, args: &Args<'_>, first: usize, max: usize) -> Result<u64, Error> {
    let mut raised = 0;
    for i in first..args.len() {
        raised += u64::from(raise_one(text, place(args.get(i)), max).map_err(refused)?);
    }
    Ok(raised)
}

/// Adds all elements to a stored sketch; how many changed it. Most additions change nothing, and
/// then nothing is written; a dense sketch is changed register by register, the runs of a sparse
/// one are rewritten.
fn add(entry: &mut EntryMut<'_, '_>, args: &Args<'_>, max: usize) -> Result<u64, Error> {
    let mut scratch = IntText::default();
    let stored = text_of(&entry.entry())?;
    let text = &*block(&stored, &mut scratch)?;
    let sketch = Hll::new(text).map_err(refused)?;
    let mut first = 2;
    while first < args.len() && !sketch.is_news(place(args.get(first))).map_err(refused)? {
        first += 1;
    }
    if first == args.len() {
        make_raw(entry);
        return Ok(0);
    }
    Ok(match sketch {
        Hll::Dense(_) => add_dense(entry, args, first),
        Hll::Sparse(_) => {
            let mut new = Vec::with_capacity(text.len() + 8 * (args.len() - first));
            new.extend_from_slice(text);
            let raised = raise(&mut new, args, first, max)?;
            mark_stale(&mut new);
            entry.set_str(NewStr::Raw(&new), true);
            raised
        }
    })
}

fn add_dense(entry: &mut EntryMut<'_, '_>, args: &Args<'_>, first: usize) -> u64 {
    let mut raised = 0;
    let mut scratch = IntText::default();
    for i in first..args.len() {
        let place = place(args.get(i));
        let stored = entry.str();
        let text = &*stored.bytes(&mut scratch);
        if matches!(Hll::new(text).map(|sketch| sketch.is_news(place)), Ok(Ok(true))) {
            let (at, bytes, len) = patch_of(text, place.index, place.rank);
            entry.write_at(at, &bytes[..len]);
            raised += 1;
        }
    }
    let flags = entry.str().bytes(&mut scratch)[STALE_AT];
    if flags & STALE == 0 {
        entry.write_at(STALE_AT, &[flags | STALE]);
    }
    raised
}

/// A sketch that a command has looked at to change it is `raw`, changed or not.
pub(super) fn make_raw(entry: &mut EntryMut<'_, '_>) {
    if entry.entry().encoding() != Encoding::Raw {
        let len = entry.entry().str_len();
        entry.write_at(len, &[]);
    }
}
