//! What every command means, without sockets or files: one table of facts, argument parsing,
//! handlers and error texts.
//!
//! The modules stand in layers: each imports from its own layer and from those declared before it.
//! One loop is inherent: COMMAND's handlers ([`introspect`]) read the table in which their rows
//! stand.

// Words: errors, events, operations as plain data, arguments.
pub mod error;
pub mod events;
pub mod ops;
mod parse;
mod version;

// What a handler gets and what it returns; a row of the table.
pub mod ctx;
pub mod done;
pub mod prepare;
pub mod record;
pub mod spec;
pub mod tally;
pub mod unshare;

// What several families share.
mod asking;
mod collection;
pub mod help;
mod scan;
mod sorting;

// The families of one kind of value. Bitmaps and HyperLogLogs are strings, places are members of
// sorted sets.
pub mod bitmap;
pub mod geo;
pub mod hash;
pub mod hll;
pub mod list;
pub mod set;
pub mod stream;
pub mod string;
pub mod zset;

// Values of any kind, and the other families.
pub mod connection;
pub mod generic;
pub mod load;
mod parts;
pub mod pubsub;
pub mod save;
pub mod server;
pub mod transactions;

// The table, and what is derived from it.
pub mod documentation;
pub mod introspect;
pub mod keys;
pub mod registry;
pub mod table;

pub use ctx::{Ctx, First, Full, Prepared, Progress, Resumable, Settings};
pub use done::Done;
pub use error::Error;
pub use ops::{ServerOp, SessionOp};
pub use registry::{CommandId, all, by_full_name, lookup, resolve};
pub use spec::{CommandSpec, Handler, LockClass};
pub use tally::Tally;
pub use version::REDIS_VERSION;
