//! What every command means, without sockets or files: one table of facts, argument parsing,
//! handlers and error texts.

pub mod bitmap;
mod collection;
pub mod connection;
pub mod ctx;
pub mod documentation;
pub mod error;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod help;
pub mod hll;
pub mod keys;
pub mod list;
pub mod ops;
mod parse;
pub mod registry;
pub mod server;
pub mod set;

pub mod spec;
pub mod string;
pub mod table;
pub mod transactions;
pub mod zset;

pub use ctx::{Ctx, First, Settings, Tally};
pub use error::Error;
pub use ops::{ServerOp, SessionOp};
pub use registry::{CommandId, all, by_full_name, lookup, resolve};
pub use spec::{CommandSpec, Handler, LockClass, Resumable};
