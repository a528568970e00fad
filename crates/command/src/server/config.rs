//! The arguments of `CONFIG`.

use resp::Args;

use crate::error::Error;
use crate::ops::{ConfigOp, ServerOp};

/// `CONFIG GET pattern ...`.
pub fn get(args: Args<'_>) -> Result<ServerOp, Error> {
    let patterns = args.from(2).iter().map(Into::into).collect();
    Ok(ServerOp::Config(ConfigOp::Get(patterns)))
}

/// `CONFIG SET name value ...`.
pub fn set(args: Args<'_>) -> Result<ServerOp, Error> {
    if !args.len().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let pair = |at| (args.get(at).into(), args.get(at + 1).into());
    let pairs = (2..args.len()).step_by(2).map(pair).collect();
    Ok(ServerOp::Config(ConfigOp::Set(pairs)))
}

/// `CONFIG REWRITE`.
pub fn rewrite(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Config(ConfigOp::Rewrite))
}

/// `CONFIG RESETSTAT`.
pub fn resetstat(_: Args<'_>) -> Result<ServerOp, Error> {
    Ok(ServerOp::Config(ConfigOp::ResetStat))
}
