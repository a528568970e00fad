//! Commands on streams.
//!
//! A stream is always a tree of pages outside its entry, and stays there when its last entry goes.

mod add;
mod ahead;
mod claim;
mod consumers;
mod delete;
mod deliver;
mod delivery;
mod describe;
mod group;
mod ids;
mod info;
mod nack;
mod pending;
mod pour;
mod radix;
mod range;
mod read;
mod reading;
mod recording;
mod references;
mod reply;
mod trim;
mod view;

pub use add::{xadd, xsetid};
pub use claim::{xautoclaim, xclaim};
pub use delete::{xack, xackdel, xdel, xdelex};
pub use deliver::take_group;
pub use group::{
    xgroup_create, xgroup_createconsumer, xgroup_delconsumer, xgroup_destroy, xgroup_setid,
};
pub use info::{xinfo_consumers, xinfo_groups, xinfo_stream};
pub use nack::xnack;
pub use pending::xpending;
pub use pour::{Bound, Message, pour};
pub use range::{xlen, xrange, xrevrange};
pub use read::{is_ready, take, wait_xread, wait_xreadgroup};
pub use trim::xtrim;
