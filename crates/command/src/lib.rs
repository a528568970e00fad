//! What every command means, without sockets or files: one table of facts, argument parsing,
//! handlers and error texts.

mod collection;
pub mod connection;
pub mod ctx;
pub mod documentation;
pub mod error;
pub mod generic;
pub mod hash;
pub mod help;
pub mod keys;
pub mod ops;
mod parse;
pub mod registry;
pub mod server;
pub mod set;

pub mod spec;
pub mod string;
pub mod table;
pub mod transactions;

pub use ctx::{Ctx, First, Settings, Tally};
pub use error::Error;
pub use ops::{ServerOp, SessionOp};
pub use registry::{CommandId, all, by_full_name, lookup, resolve};
pub use spec::{CommandSpec, Handler, LockClass, Resumable};
