//! `MEMORY`: its USAGE, and the operations on the server.

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::ops::{MemoryOp, ServerOp};
use crate::parse::{self, is};
use keyspace::BYTES_PER_EXPIRY;
use resp::Args;

/// `MEMORY DOCTOR`.
pub fn doctor(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Memory(MemoryOp::Doctor))
}

/// `MEMORY STATS`.
pub fn stats(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Memory(MemoryOp::Stats))
}

/// `MEMORY PURGE`.
pub fn purge(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Memory(MemoryOp::Purge))
}

/// `MEMORY MALLOC-STATS`.
pub fn malloc_stats(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Memory(MemoryOp::MallocStats))
}

/// `MEMORY USAGE key [SAMPLES count]`. Samples are for values of many parts; a string is one.
pub fn usage(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
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
        Some(entry) => {
            let expiry = entry.expiry().map_or(0, |_| BYTES_PER_EXPIRY);
            ctx.reply.integer((entry.memory() as u64 + expiry) as i64);
        }
        None => ctx.reply.null(),
    }
    Ok(Done::Replied)
}
