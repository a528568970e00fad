//! Shared code of the tests of the whole server: server processes, byte-exact connections, golden
//! files, the differential engine, and a proxy which damages replies to prove that the tests detect
//! it.

pub mod big;
pub mod differential;
pub mod folder;
pub mod golden;
pub mod http;
pub mod in_time;
pub mod known;
pub mod limits;
pub mod linear;
pub mod no_io_uring;
pub mod permitted;
pub mod ports;
pub mod producer;
pub mod program;
pub mod proxy;
pub mod quote;
pub mod rdb_state;
pub mod render;
pub mod rewrite;
pub mod rng;
pub mod serializable;
pub mod server_process;
pub mod stress;
pub mod wire;
pub mod workers;
