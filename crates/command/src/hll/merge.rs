//! PFMERGE.

use value::NewStr;
use value::hll::{REGISTERS, merge_into, new_sparse};

use super::sketch::{raise_all, refused};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::string::text::{insert_raw, text_of};

/// `PFMERGE destkey [sourcekey ...]`: the destination, which may exist, has then seen what all
/// have.
pub fn pfmerge(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let mut registers = [0; REGISTERS];
    let dense = raise_all(ctx, 1, &mut registers)?;
    let key = ctx.key(1);
    let max = usize::try_from(ctx.settings.hll_sparse_max_bytes).unwrap_or(usize::MAX);
    if let Some(mut entry) = ctx.guard.entry_mut(events::PFADD, ctx.db, &key) {
        let mut text = text_of(&entry.entry())?.to_vec();
        merge_into(&mut text, &registers, dense, max).map_err(refused)?;
        entry.set_str(NewStr::Raw(&text), true);
    } else {
        let mut text = new_sparse();
        merge_into(&mut text, &registers, dense, max).map_err(refused)?;
        insert_raw(events::PFADD, ctx.guard, ctx.db, &key, text);
    }
    ctx.reply.ok();
    Ok(Done::Replied)
}
