//! The arguments of `SLOWLOG`.

use base::num::parse_i64;
use resp::Args;

use crate::error::Error;
use crate::ops::{SLOWLOG_GET_DEFAULT, ServerOp, SlowlogOp};

/// `SLOWLOG GET [count]`.
pub fn get(args: Args<'_>) -> Result<ServerOp, Error> {
    let count = match args.len() {
        2 => Some(SLOWLOG_GET_DEFAULT),
        3 => match parse_i64(args.get(2)) {
            Some(-1) => None,
            Some(count @ 0..) => Some(count.unsigned_abs()),
            _ => return Err(Error::SlowlogCount),
        },
        _ => return Err(Error::subcommand_syntax("SLOWLOG", args.get(1))),
    };
    Ok(ServerOp::Slowlog(SlowlogOp::Get { count }))
}

/// `SLOWLOG LEN`.
pub fn len(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Slowlog(SlowlogOp::Len))
}

/// `SLOWLOG RESET`.
pub fn reset(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Slowlog(SlowlogOp::Reset))
}
