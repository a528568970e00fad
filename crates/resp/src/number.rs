//! The integers inside headers: how a count or a length is read. A line is given with its two last
//! bytes, the first of which is its only CR.

use base::num::parse_i64;

use crate::error::ProtocolError;
use crate::limits::{
    Limits, MULTIBULK_MAX, UNAUTHENTICATED_BULK_MAX, UNAUTHENTICATED_MULTIBULK_MAX,
};

/// The number of arguments announced by `line`, which starts behind the `*`. 0: nothing to do.
pub(crate) fn count(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let digits = line.strip_suffix(b"\r\n").ok_or(ProtocolError::InvalidLineEnd)?;
    let count = parse_i64(digits).ok_or(ProtocolError::InvalidMultibulkLength)?;
    let count = u64::try_from(count).unwrap_or(0); // a negative count is an empty request
    if count > MULTIBULK_MAX {
        return Err(ProtocolError::InvalidMultibulkLength);
    }
    if count > UNAUTHENTICATED_MULTIBULK_MAX && !limits.authenticated() {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    Ok(count as usize)
}

/// The length of an argument announced by `line`, which starts with what should be a `$`.
pub(crate) fn bulk_length(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let digits = match line {
        [b'$', digits @ ..] => digits.strip_suffix(b"\r\n").ok_or(ProtocolError::InvalidLineEnd)?,
        _ => return Err(ProtocolError::ExpectedDollar(line[0])),
    };
    let len = parse_i64(digits).and_then(|len| u64::try_from(len).ok());
    let len =
        len.filter(|len| *len <= limits.bulk_max()).ok_or(ProtocolError::InvalidBulkLength)?;
    if len > UNAUTHENTICATED_BULK_MAX && !limits.authenticated() {
        return Err(ProtocolError::UnauthenticatedBulkLength);
    }
    usize::try_from(len).map_err(|_| ProtocolError::InvalidBulkLength)
}
