//! Commands on lists.
//!
//! A list of at most [`packed::PACKED_MAX`] bytes stands packed in its entry, a longer one is a
//! tree of pages. [`view::View`] reads both, [`edit::Edit`] changes both; what OBJECT ENCODING says
//! of them follows [`limit::Limit`] alone.

mod blocking;
mod create;
mod edit;
mod element;
mod end;
mod insert;
pub(crate) mod limit;
mod moves;
mod packed;
mod pop;
mod position;
mod pour;
mod push;
mod range;
mod remove;
mod removing;
mod search;
mod set;
mod stream;
mod view;

pub use blocking::{
    has_elements, take_first, take_last, take_move, take_movem, take_mpop, take_rpoplpush,
    wait_move, wait_movem, wait_mpop, wait_pop, wait_rpoplpush,
};
pub use insert::linsert;
pub use moves::{lmove, lmovem, rpoplpush};
pub use pop::{lmpop, lmpop_keys, lpop, rpop};
pub use pour::pour;
pub use push::{lpush, lpushx, rpush, rpushx};
pub use range::{lindex, llen, lrange};
pub use remove::{lrem, ltrim};
pub use search::lpos;
pub use set::lset;
