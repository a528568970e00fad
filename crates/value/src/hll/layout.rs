//! The parts of a sketch: where they stand and how large they are. [`super`] draws them.

/// Registers.
pub const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bits of a hash that choose the register.
pub const REGISTER_BITS: u32 = 14;
/// Bits of a hash that are counted.
pub const RANK_BITS: u32 = 64 - REGISTER_BITS;
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
