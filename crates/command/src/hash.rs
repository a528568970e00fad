//! Commands on hashes.

mod change;
mod expire;
mod form;
mod number;
mod random;
mod read;
mod view;

pub use change::{hdel, hmset, hset, hsetnx};
pub use expire::{
    hexpire, hexpireat, hexpiretime, hgetdel, hgetex, hpersist, hpexpire, hpexpireat, hpexpiretime,
    hpttl, hsetex, httl,
};
pub use number::{hincrby, hincrbyfloat};
pub use random::hrandfield;
pub use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hscan, hstrlen, hvals};
