//! What every command means, without sockets or files: one table of facts, argument parsing,
//! handlers and error texts.

pub mod error;
pub mod ops;

pub use error::Error;
