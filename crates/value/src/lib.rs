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
mod log;
mod member_hash;
pub mod packed;
mod records;
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
pub use log::Log;
pub use member_hash::{hash32, set_secret};
pub use records::{LogMark, Records};
pub use set::Set;
pub use stream::{Stream, StreamId};
pub use string::{EMBSTR_MAX, IntText, NewStr, Str, encode};
pub use zset::Zset;
