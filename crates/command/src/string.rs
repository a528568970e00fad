//! Commands on strings.

pub(crate) mod captured;
mod counter;
mod digest;
mod get;
mod increx;
mod judging;
mod lcs;
mod long_write;
mod multi;
mod options;
mod range;
mod remove;
mod set;
pub(crate) mod text;

pub use counter::{decr, decrby, incr, incrby, incrbyfloat};
pub use digest::digest;
pub use get::{get, getdel, getex, getset, strlen};
pub use increx::increx;
pub use lcs::lcs;
pub use multi::{mget, mset, msetex, msetex_keys, msetnx};
pub use range::{append, getrange, setrange, substr};
pub use remove::{delex, delex_key_flags, delifeq};
pub use set::{psetex, set, set_key_flags, setex, setnx};
