//! Operations on sessions and on the server: the plain data that `command` parses is carried out
//! here.

mod client;
mod client_filter;
mod client_list;
mod config_op;
mod debug;
mod debug_text;
pub mod figures;
mod info;
mod info_clients;
pub mod info_ingest;
pub mod info_io;
mod info_memory;
mod latency;
mod latency_text;
mod memory;
mod session_op;
mod shutdown;
mod slowlog;
mod world;

pub use info::{IoTotals, os_name, totals};
pub(crate) use session_op::same_bytes;
