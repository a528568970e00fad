//! Transactions. What they do is the session's; no argument is read but the keys of WATCH.

use resp::Args;

use crate::error::Error;
use crate::ops::SessionOp;

/// The most keys that WATCH locks together. Those of a longer one are watched one after the other,
/// in steps, as if several WATCH commands had named them, which has the same effect.
pub const WATCHED_TOGETHER: usize = 128;

/// `MULTI`.
pub fn multi(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Multi)
}

/// `EXEC`.
pub fn exec(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Exec)
}

/// `DISCARD`.
pub fn discard(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Discard)
}

/// `WATCH key ...`.
pub fn watch(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Watch)
}

/// `UNWATCH`.
pub fn unwatch(_: Args<'_>) -> Result<SessionOp, Error> {
    Ok(SessionOp::Unwatch)
}
