//! Strings as bits: counting, searching, combining, and integers of any width inside.
//!
//! Bit 0 is the most significant bit of byte 0. Everything here works on byte slices and computes;
//! who owns the bytes, and how they change, is the caller's.

mod combine;
mod count;
mod field;
mod search;

pub use combine::{Operation, combine};
pub use count::{count, count_range};
pub use field::{Field, Overflow, WINDOW_MAX};
pub use search::first;

/// The bit at an offset; 0 beyond the end.
#[inline]
pub fn bit(bytes: &[u8], offset: u64) -> bool {
    bytes.get((offset >> 3) as usize).is_some_and(|byte| byte & mask(offset) != 0)
}

/// The bit of an offset within its byte.
#[inline]
pub const fn mask(offset: u64) -> u8 {
    0x80 >> (offset & 7)
}

/// A naive view of some bits, for comparing.
#[cfg(test)]
fn bits(bytes: &[u8]) -> Vec<bool> {
    (0..bytes.len() as u64 * 8).map(|at| bit(bytes, at)).collect()
}
