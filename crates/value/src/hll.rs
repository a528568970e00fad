//! HyperLogLog: how many different elements were added, in at most 12304 bytes, 0.81 % off.
//!
//! The layout is Redis's, because the text can be read, copied and sent elsewhere as a string:
//!
//! ```text
//! 0     4 5      8           16
//! | HYLL |E| 0 0 0| count     | registers ...
//! E      0 = dense, 1 = sparse
//! count  the last estimate, 8 bytes, least significant first; the highest bit says that it is out of date
//! dense  16384 registers of 6 bits, the first in the low bits of the first byte: 12288 bytes
//! sparse runs of equal registers, first to last:
//!        00nnnnnn           1 to 64 registers are 0
//!        01nnnnnn nnnnnnnn  1 to 16384 registers are 0
//!        1vvvvvnn           1 to 4 registers are v + 1 (1 to 32)
//! ```
//!
//! An element's hash chooses the register by its low 14 bits; the register keeps the largest number
//! of zeros, plus one, that the other 50 bits began with. The sketch turns dense when a register
//! passes 32 or the runs would pass `hll-sparse-max-bytes`, and never back.

mod dense;
mod estimate;
mod hash;
mod sparse;
mod view;

pub use dense::{Dense, patch_of};
pub use hash::{Place, place};
pub use sparse::{Sparse, words};
pub use view::{Hll, mark_stale, merge_into, new_sparse, raise_one, self_test, to_dense};

/// Registers.
pub const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bits of a hash that choose the register.
const REGISTER_BITS: u32 = 14;
/// Bits of a hash that are counted.
const RANK_BITS: u32 = 64 - REGISTER_BITS;
/// Bytes before the registers.
pub const HEADER: usize = 16;
/// Where the estimate stands.
pub const COUNT_AT: usize = 8;
/// The byte with the bit that says the estimate is out of date.
pub const STALE_AT: usize = 15;
/// That bit.
pub const STALE: u8 = 0x80;
/// Length of a dense sketch.
pub const DENSE_LEN: usize = HEADER + REGISTERS * 6 / 8;
/// Default of `hll-sparse-max-bytes`.
pub const SPARSE_MAX_DEFAULT: usize = 3000;

/// All registers, a byte each.
pub type Registers = [u8; REGISTERS];

/// What is wrong with a text that should be a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It does not begin like one.
    NotOne,
    /// Its runs do not cover the registers.
    Corrupt,
}
