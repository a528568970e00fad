//! Commands on sorted sets. A small one is packed in its entry ([`value::zset::small`]), a bigger
//! one is a [`value::Zset`]; [`value::zset::View`] reads both.

pub(crate) mod add;
pub(crate) mod aside;
mod blocking;
mod bounds;
mod combine;
pub(crate) mod combining;
mod cutting;
mod get;
mod inputs;
mod operation;
mod pop;
mod random;
mod range;
mod remove;
mod reply;
mod scan;
mod snapshot;
pub(crate) mod view;

pub use add::{zadd, zincrby};
pub use blocking::{take_max, take_min, take_mpop, wait_mpop, wait_pop};
pub use combine::{
    combined_keys, stored_keys, zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion,
    zunionstore,
};
pub use get::{zcard, zcount, zlexcount, zmscore, zrank, zrevrank, zscore};
pub use pop::{zmpop, zmpop_keys, zpopmax, zpopmin};
pub use random::zrandmember;
pub use range::{
    zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub use scan::zscan;
