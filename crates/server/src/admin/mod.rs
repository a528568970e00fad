//! Operations on sessions and on the server: the plain data that `command` parses is carried out here.

mod client;
mod client_list;
mod config_op;
mod debug;
mod info;
mod info_ingest;
mod info_io;
mod info_memory;
mod session_op;
mod shutdown;
mod slowlog;
mod world;

pub use info::{IoTotals, totals};
