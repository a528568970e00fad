//! HyperLogLog: how many different elements were added, in at most 12304 bytes, 0.81 % off.
//!
//! The layout is Redis's, because the text can be read, copied and sent elsewhere as a string:
//!
//! ```text
//! 0      4   5       8         16
//! +------+---+-------+---------+-----------+-- ... --+
//! | HYLL | E | 0 0 0 |  count  | registers |         |
//! +------+---+-------+---------+-----------+-- ... --+
//!
//! E        0 = dense, 1 = sparse
//! count    the last estimate, u64 little-endian; its highest bit says that it is out of date
//!
//! dense    16384 registers of 6 bits, 12288 bytes; four registers a, b, c, d in three bytes, each
//!          drawn from its highest bit to its lowest:
//!
//!              byte 0           byte 1           byte 2
//!          b b a a a a a a  c c c c b b b b  d d d d d d c c
//!
//! sparse   runs of equal registers, first to last:
//!          00nnnnnn           n + 1 registers are 0: 1 to 64
//!          01nnnnnn nnnnnnnn  n + 1 registers are 0: 1 to 16384
//!          1vvvvvnn           n + 1 registers are v + 1: 1 to 4 registers of 1 to 32
//! ```
//!
//! An element's hash chooses the register by its low 14 bits. The register keeps the largest number
//! of zeros, plus one, which the other 50 bits began with. The sketch turns dense when a register
//! passes 32 or the runs would pass `hll-sparse-max-bytes`, and never back.

mod dense;
mod estimate;
mod hash;
mod layout;
mod sparse;
mod view;

pub use dense::{Dense, patch_of};
pub use hash::{Place, place};
pub use layout::{
    COUNT_AT, DENSE_LEN, HEADER, Invalid, REGISTERS, Registers, SPARSE_MAX_DEFAULT, STALE, STALE_AT,
};
pub use sparse::{Sparse, words};
pub use view::{Hll, mark_stale, merge_into, new_sparse, raise_one, self_test, to_dense};
