//! `MEMORY USAGE`.

use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{self, is};

/// `MEMORY USAGE key [SAMPLES count]`. Samples are for values of many parts; a string is one.
pub fn usage(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let mut at = 3;
    while at < ctx.args.len() {
        let count = ctx.args.try_get(at + 1).filter(|_| is(ctx.args.get(at), "SAMPLES"));
        if parse::integer(count.ok_or(Error::Syntax)?)? < 0 {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    let key = ctx.key(2);
    match ctx.guard.peek(ctx.db, &key) {
        Some(entry) => ctx.reply.integer(entry.memory() as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}
