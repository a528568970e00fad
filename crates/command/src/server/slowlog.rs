//! The arguments of `SLOWLOG` and `COMMANDLOG`.

use base::num::parse_i64;
use resp::Args;

use crate::error::Error;
use crate::ops::{LogKind, LogOp, SLOWLOG_GET_DEFAULT, ServerOp};
use crate::parse::is;

/// A number of entries; -1 is all.
fn count(text: &[u8]) -> Result<Option<u64>, Error> {
    match parse_i64(text) {
        Some(-1) => Ok(None),
        Some(count @ 0..) => Ok(Some(count.unsigned_abs())),
        _ => Err(Error::SlowlogCount),
    }
}

fn kind(word: &[u8]) -> Result<LogKind, Error> {
    const WORDS: [(&str, LogKind); 3] = [
        ("slow", LogKind::Slow),
        ("large-request", LogKind::LargeRequest),
        ("large-reply", LogKind::LargeReply),
    ];
    let found = WORDS.into_iter().find(|(name, _)| is(word, name));
    found.map(|(_, kind)| kind).ok_or(Error::CommandLogType)
}

/// `SLOWLOG GET [count [WAITED]]`. Redis has no WAITED. It is asked for because some clients
/// (go-redis) read six elements of each entry and lose their place in the reply if there are more.
pub fn get(args: Args<'_>) -> Result<ServerOp, Error> {
    let waited = args.len() == 4 && is(args.get(3), "waited");
    let count = match args.len() {
        2 => Some(SLOWLOG_GET_DEFAULT),
        3 => count(args.get(2))?,
        4 if waited => count(args.get(2))?,
        _ => return Err(Error::subcommand_syntax("SLOWLOG", args.get(1))),
    };
    Ok(ServerOp::CommandLog(LogKind::Slow, LogOp::Get { count, waited }))
}

/// `SLOWLOG LEN`.
pub fn len(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::CommandLog(LogKind::Slow, LogOp::Len))
}

/// `SLOWLOG RESET`.
pub fn reset(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::CommandLog(LogKind::Slow, LogOp::Reset))
}

/// `COMMANDLOG GET count type`.
pub fn commandlog_get(args: Args<'_>) -> Result<ServerOp, Error> {
    let (count, kind) = (count(args.get(2))?, kind(args.get(3))?);
    Ok(ServerOp::CommandLog(kind, LogOp::Get { count, waited: false }))
}

/// `COMMANDLOG LEN type`.
pub fn commandlog_len(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::CommandLog(kind(args.get(2))?, LogOp::Len))
}

/// `COMMANDLOG RESET type`.
pub fn commandlog_reset(args: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::CommandLog(kind(args.get(2))?, LogOp::Reset))
}
