//! Commands on strings as bits.

mod bit;
mod field;
mod offset;
mod operation;
mod range;

pub use bit::{getbit, setbit};
pub use field::{bitfield, bitfield_key_flags, bitfield_ro};
pub use operation::bitop;
pub use range::{bitcount, bitpos};
