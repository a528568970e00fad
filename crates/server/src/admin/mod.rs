//! Operations on sessions and on the server: the plain data that `command` parses is carried out
//! here.

mod client;
mod config_op;
mod debug;
mod hotkeys;
pub mod info;
mod latency;
mod memory;
pub(crate) mod session_op;
mod shutdown;
mod slowlog;
mod world;
