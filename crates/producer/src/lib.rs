//! A producer for ingest protocol 2 (`docs/formats/ingest.md`).
//!
//! Each message is stored once and in order, whatever happens to connections: it gets a number and
//! is kept until the server acknowledges it. After a lost connection the producer reconnects and
//! sends again what the server does not hold.
//!
//! ```no_run
//! use sheafdb_producer::{Options, Producer, SinkKind};
//!
//! let mut options = Options::new("127.0.0.1:9100", "sensor-7");
//! options.sink = SinkKind::Stream;
//! options.key = b"events".to_vec();
//! let producer = Producer::connect(options)?;
//! producer.send(b"one")?; // gets a number; kept until it is acknowledged
//! producer.flush()?; // waits until everything so far is in the key
//! producer.close()?;
//! # Ok::<(), sheafdb_producer::Error>(())
//! ```
//!
//! One thread connects and writes, another one reads. The methods may be called from any thread.

mod error;
mod ledger;
mod link;
mod options;
mod producer;
mod state;
#[cfg(test)]
mod tests;

pub use error::{Error, ServerError};
pub use ingest::v2::{Acking, Fault, Level, SinkKind};
pub use options::Options;
pub use producer::Producer;
