//! Commands on hashes.

mod change;
mod expire;
mod form;
mod getex;
mod number;
mod random;
mod read;
mod recording;
mod times;
mod view;

pub use change::{hdel, hmset, hset, hsetnx};
pub use expire::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
pub use getex::{hgetdel, hgetex, hsetex};
pub use number::{hincrby, hincrbyfloat};
pub use random::hrandfield;
pub use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hscan, hstrlen, hvals};
