//! Classic ingest: five published ways to acknowledge small messages over a stream of bytes.
//!
//! A message is an id of 8 bytes that is echoed as it came, a size of 4 bytes, and so many bytes of payload.
//! `docs/formats/ingest.md` draws the bytes. Nothing here does I/O or reads a clock: [`Policy`] takes what a read
//! brought and the time, and writes the acknowledgements that are due.

mod deadlines;
mod frames;
mod policy;
mod strategy;

pub use deadlines::Deadlines;
pub use frames::{Frames, HEADER_BYTES, Id, Scan};
pub use policy::{ACK_BYTES, BLOCKS_MAX, COVERED_MAX, Policy, Report, TICK_NS};
pub use strategy::{Order, PORTS, Sink, Strategy};
