//! Commands on strings as bits.

mod bit;
mod field;
mod operation;
mod range;

pub use bit::{getbit, setbit};
pub use field::{bitfield, bitfield_key_flags, bitfield_ro};
pub use operation::bitop;
pub use range::{bitcount, bitpos};

use base::num::parse_i64;

use crate::ctx::Settings;
use crate::error::Error;

/// From so many bytes on, a command that reads all of them says that it holds its keys for long.
pub(crate) const LONG_BYTES: usize = 1 << 20;

/// A bit's offset within the longest string there may be.
fn offset(arg: &[u8], settings: &Settings) -> Result<u64, Error> {
    scaled_offset(arg, 1, settings)
}

/// As [`offset`], in steps of `step` bits.
fn scaled_offset(arg: &[u8], step: u64, settings: &Settings) -> Result<u64, Error> {
    let number = parse_i64(arg).and_then(|n| n.checked_mul(step as i64));
    let offset = number.and_then(|n| u64::try_from(n).ok()).ok_or(Error::BitOffset)?;
    if offset >> 3 >= settings.bulk_len_max {
        return Err(Error::BitOffset);
    }
    Ok(offset)
}
