//! Commands on sorted sets. A small one is packed in its entry ([`value::zset::small`]), a bigger
//! one is a [`value::Zset`]; [`View`] reads both.

mod add;
mod aside;
mod blocking;
mod bounds;
mod combine;
mod combining;
mod cutting;
mod get;
mod inputs;
mod kept;
mod pop;
mod random;
mod range;
mod remove;
mod scan;

pub(crate) use add::{AddOptions, add_members};
pub use add::{zadd, zincrby};
pub(crate) use aside::store;
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

use keyspace::Entry;
use resp::{Proto, Reply};
use value::packed::Elem;
use value::zset::View;
use value::{Big, Zset};

/// The sorted set that an entry holds.
#[inline]
pub(crate) fn view_of(entry: Entry<'_>) -> View<'_> {
    match entry.packed() {
        Some(bytes) => View::Small(bytes),
        None => View::Big(big_of(entry.big().expect("a collection is packed or big"))),
    }
}

fn big_of(big: &Big) -> &Zset {
    match big {
        Big::Zset(zset) => zset,
        _ => unreachable!("the kind was checked"),
    }
}

fn big_mut(big: &mut Big) -> &mut Zset {
    match big {
        Big::Zset(zset) => zset,
        _ => unreachable!("the kind was checked"),
    }
}

/// Replies a member.
#[inline]
pub(crate) fn write_member(reply: &mut Reply<'_>, member: Elem<'_>) {
    match member {
        Elem::Int(number) => reply.bulk_int(number),
        Elem::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// Replies the header of `len` members, with or without their scores.
fn write_header(reply: &mut Reply<'_>, len: u64, scores: bool) {
    let flat = scores && reply.proto() == Proto::Resp2;
    reply.array(len as usize * if flat { 2 } else { 1 });
}

/// Replies a member, with or without its score: a pair in RESP3, one after the other in RESP2.
#[inline]
fn write_scored(reply: &mut Reply<'_>, member: Elem<'_>, score: f64, scores: bool) {
    if scores && reply.proto() == Proto::Resp3 {
        reply.array(2);
    }
    write_member(reply, member);
    if scores {
        reply.double(score);
    }
}

/// Replies a score, or that there is none.
fn write_score(reply: &mut Reply<'_>, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}
