//! Offsets of bits, as arguments.

use base::num::parse_i64;

use crate::ctx::Settings;
use crate::error::Error;

/// A bit's offset within the longest string there may be.
pub(super) fn offset(arg: &[u8], settings: &Settings) -> Result<u64, Error> {
    scaled_offset(arg, 1, settings)
}

/// As [`offset`], in steps of `step` bits.
pub(super) fn scaled_offset(arg: &[u8], step: u64, settings: &Settings) -> Result<u64, Error> {
    let number = parse_i64(arg).and_then(|n| n.checked_mul(step as i64));
    let offset = number.and_then(|n| u64::try_from(n).ok()).ok_or(Error::BitOffset)?;
    if offset >> 3 >= settings.bulk_len_max {
        return Err(Error::BitOffset);
    }
    Ok(offset)
}
