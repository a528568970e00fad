//! `sheafdb-bench ingest bars`: what protocol 2 must hold, beside redis-server with the same
//! messages.
//!
//! A message has 17 bytes of payload, 21 on the wire, and each Data frame 16 bytes more. Server and
//! client have a core each. Every figure comes from producers whose acknowledgements were checked,
//! one by one; what went into a stream is counted there once more.

mod bar;
mod measure;
mod options;
mod servers;

pub use bar::{Bar, Bound, Measured, table};
pub use measure::run;
pub use options::{MESSAGE, Options, PAYLOAD, Which};
