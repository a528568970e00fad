//! The server: TIME and DBSIZE, and the arguments of what the server itself carries out.

pub mod config;
pub mod debug;
mod describe;
pub mod digest;
pub mod hotkeys;
pub mod latency;
pub mod lolwut;
pub mod memory;
pub mod populate;
pub mod slowlog;

use base::num::parse_i64;
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::ops::{FlushMode, SaveMode, ServerOp, ShutdownOp};
use crate::parse::is;

pub use describe::{describe, listpack_text, quicklist_text, text_lengths};
pub use rdb::switches;

/// `DBSIZE`.
pub fn dbsize(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let keys = ctx.guard.db_len(ctx.db);
    ctx.reply.integer(keys as i64);
    Ok(Done::Replied)
}

/// `TIME`: seconds and microseconds, in the milliseconds of the batch.
pub fn time(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    ctx.reply.array(2);
    ctx.reply.bulk_int(ctx.now.0.div_euclid(1000));
    ctx.reply.bulk_int(ctx.now.0.rem_euclid(1000) * 1000);
    Ok(Done::Replied)
}

/// `MODULE LIST`: there are none, which is what clients ask before they use one.
pub fn modules(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    ctx.reply.array(0);
    Ok(Done::Replied)
}

/// `FLUSHALL [ASYNC|SYNC]`.
pub fn flushall(args: Args<'_>) -> Result<ServerOp, Error> {
    flush_mode(args).map(ServerOp::FlushAll)
}

/// `FLUSHDB [ASYNC|SYNC]`.
pub fn flushdb(args: Args<'_>) -> Result<ServerOp, Error> {
    flush_mode(args).map(ServerOp::FlushDb)
}

fn flush_mode(args: Args<'_>) -> Result<FlushMode, Error> {
    match args.len() {
        1 => Ok(FlushMode::Default),
        2 if is(args.get(1), "ASYNC") => Ok(FlushMode::Async),
        2 if is(args.get(1), "SYNC") => Ok(FlushMode::Sync),
        _ => Err(Error::Syntax),
    }
}

/// `SAVE`.
pub fn save(_args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Save(SaveMode::Foreground))
}

/// `BGREWRITEAOF`.
pub fn bgrewriteaof(_args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::RewriteAppendOnly)
}

/// `BGSAVE [SCHEDULE]`. With and without the option it waits while the append-only file is
/// rewritten.
pub fn bgsave(args: Args<'_>) -> Result<ServerOp, Error> {
    match args.len() {
        1 => Ok(ServerOp::Save(SaveMode::Background)),
        2 if is(args.get(1), "SCHEDULE") => Ok(ServerOp::Save(SaveMode::Background)),
        _ => Err(Error::Syntax),
    }
}

/// `LASTSAVE`.
pub fn lastsave(_args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::LastSave)
}

/// `INFO [section ...]`.
pub fn info(args: Args<'_>) -> Result<ServerOp, Error> {
    let sections = args.from(1).iter().map(|name| name.to_ascii_lowercase().into()).collect();
    Ok(ServerOp::Info(sections))
}

/// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`.
pub fn shutdown(args: Args<'_>) -> Result<ServerOp, Error> {
    let (mut save, mut now, mut force, mut abort) = (None, false, false, false);
    for word in args.from(1) {
        if is(word, "SAVE") && save != Some(false) {
            save = Some(true);
        } else if is(word, "NOSAVE") && save != Some(true) {
            save = Some(false);
        } else if is(word, "NOW") {
            now = true;
        } else if is(word, "FORCE") {
            force = true;
        } else if is(word, "ABORT") {
            abort = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    match (abort, save, now || force) {
        (false, ..) => Ok(ServerOp::Shutdown(ShutdownOp::End { save, now, force })),
        (true, None, false) => Ok(ServerOp::Shutdown(ShutdownOp::Abort)),
        (true, ..) => Err(Error::Syntax),
    }
}

/// `SWAPDB index index`.
pub fn swapdb(args: Args<'_>) -> Result<ServerOp, Error> {
    let index = |arg, error| parse_i64(arg).and_then(|n| i32::try_from(n).ok()).ok_or(error);
    let first = index(args.get(1), Error::FirstDbIndex)?;
    let second = index(args.get(2), Error::SecondDbIndex)?;
    Ok(ServerOp::SwapDb(first, second))
}
