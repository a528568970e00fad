//! Typed values without keys: strings, and the pages and buffers that collections are made of.
//!
//! A small collection is one packed buffer in its entry ([`packed`]); a big one is a tree of reference-counted pages
//! ([`tree`]): ordered maps ([`keyed`]) for sets, hashes and sorted sets, sequences ([`seq`]) for lists. `docs/design/0004-collections.md` draws both.

mod big;
pub mod bitmap;
pub mod geo;
pub mod hash;
pub mod hll;
pub mod keyed;
mod kind;
pub mod list;
pub mod log;
pub mod packed;
pub mod seq;
pub mod set;
pub mod stream;
pub mod string;
pub mod tree;
pub mod zset;

pub use big::Big;
pub use hash::Hash;
pub use kind::{Encoding, Kind};
pub use list::List;
pub use log::{Log, LogMark};
pub use set::Set;
pub use stream::{Stream, StreamId};
pub use string::{EMBSTR_MAX, IntText, NewStr, Str, encode};
pub use zset::Zset;

use base::hash::KeyHasher;
use base::sync::OnceLock;

/// The hash by which members and fields are ordered in big collections. One function for all: the order is that of a
/// tree, so nobody can make it slow by choosing members, and a SCAN cursor means the same after a restart.
#[inline]
pub fn hash32(member: &[u8]) -> u32 {
    static HASHER: OnceLock<KeyHasher> = OnceLock::new();
    (HASHER.get_or_init(|| KeyHasher::new(0)).hash(member) >> 32) as u32
}
