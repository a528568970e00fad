//! Typed values without keys: strings, and the pages and buffers that collections are made of.
//!
//! A small collection is one packed buffer in its entry ([`packed`]); a big one is a tree of
//! reference-counted pages ([`tree`]): ordered maps ([`keyed`]) for sets, hashes and sorted sets,
//! sequences ([`seq`]) for lists. `docs/design/0004-collections.md` draws both.

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

/// Set once, before the first member is hashed, or never: the order of members must not change
/// while there are some.
static HASHER: OnceLock<KeyHasher> = OnceLock::new();

/// Says by which secret members are hashed in this process; false if some have been, or it was said
/// before. A server says it as it starts. Tests and the simulation do not, so that each of their
/// runs has the same order.
pub fn set_secret(secret: u128) -> bool {
    HASHER.set(KeyHasher::new(secret)).is_ok()
}

/// The hash by which members and fields are ordered in big collections: one function for the whole
/// process. The order is that of a tree, which equal hashes do not make slow; but SCAN shows
/// members of one hash at once, so nobody may be able to choose them.
#[inline]
pub fn hash32(member: &[u8]) -> u32 {
    (HASHER.get_or_init(|| KeyHasher::new(0)).hash(member) >> 32) as u32
}
