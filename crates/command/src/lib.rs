//! What every command means, without sockets or files: one table of facts, argument parsing,
//! handlers and error texts.

pub mod bitmap;
mod collection;
pub mod connection;
pub mod ctx;
pub mod documentation;
pub mod done;
pub mod error;
pub mod events;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod help;
pub mod hll;
pub mod keys;
pub mod list;
pub mod ops;
mod parse;
pub mod prepare;
pub mod registry;
pub mod server;
pub mod set;
pub mod spec;
pub mod stream;
pub mod string;
pub mod table;
pub mod tally;
pub mod transactions;
pub mod zset;

/// The version of Redis whose commands these are, which clients gate on.
pub const REDIS_VERSION: &str = "7.2.4";

pub use ctx::{Ctx, First, Full, Prepared, Progress, Resumable, Settings};
pub use done::Done;
pub use error::Error;
pub use ops::{ServerOp, SessionOp};
pub use registry::{CommandId, all, by_full_name, lookup, resolve};
pub use spec::{CommandSpec, Handler, LockClass};
pub use tally::Tally;
