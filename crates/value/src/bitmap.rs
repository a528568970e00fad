//! Strings as bits: counting, searching, combining, and integers of any width inside.
//!
//! Bit 0 is the most significant bit of byte 0. Everything here works on byte slices and computes;
//! the caller owns the bytes and changes them.

mod bit;
mod combine;
mod count;
mod field;
mod search;

pub use bit::{bit, mask};
pub use combine::{BLOCK, Operation, combine, combine_next};
pub use count::{count, count_range};
pub use field::{Field, Overflow, WINDOW_MAX};
pub use search::first;
