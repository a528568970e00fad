//! Commands on sets.

mod algebra;
mod change;
mod few;
mod form;
mod gather;
mod merge;
mod operation;
mod pop;
mod random;
mod read;
mod store;
mod view;

pub use algebra::{card_keys, sdiff, sdiffcard, sinter, sintercard, sunion, sunioncard};
pub use change::{sadd, smove, srem};
pub use random::{spop, srandmember};
pub use read::{scard, sismember, smembers, smismember, sscan};
pub use store::{sdiffstore, sinterstore, sunionstore};
