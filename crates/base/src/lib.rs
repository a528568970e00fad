//! Basics for all other crates, without dependencies on them: typed numbers, shared byte buffers,
//! hashing, number and text formats, and the one module through which the data path synchronises.

mod bignat;
pub mod blob;
pub mod calendar;
pub mod crc16;
pub mod crc64;
pub mod double;
pub mod glob;
#[cfg(test)]
mod golden;
pub mod hash;
pub mod longdouble;
pub mod num;
mod numeral;
pub mod out;
pub mod prefetch;
pub mod prng;
pub mod shared;
pub mod sync;
pub mod types;
pub mod words;

pub use blob::Blob;
pub use crc16::key_slot;
pub use types::{DbIndex, FenceNo, MonoNs, SLOTS, SeqNo, SlotId, UnixMs};
