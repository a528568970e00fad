//! Classic ingest: five published ways to acknowledge small messages over a stream of bytes.
//!
//! A message is an id of 8 bytes that is echoed as it came, a size of 4 bytes, and so many bytes of
//! payload. `docs/formats/ingest.md` draws the bytes. Nothing here does I/O or reads a clock:
//! [`Policy`] takes what a read brought and the time, and writes the acknowledgements that are due.

mod deadlines;
mod frames;
mod messages;
mod pieces;
mod policy;
mod sink;
mod strategy;
pub mod v2;

pub use deadlines::Deadlines;
pub use frames::{Frames, HEADER_BYTES, Id, Scan};
pub use messages::{Layout, Messages};
pub use pieces::{Piece, Pieces};
pub use policy::{ACK_BYTES, BLOCKS_MAX, COVERED_MAX, Policy, Report, TICK_NS};
pub use sink::{KEY_BYTES_MAX, MaxLen, Sink, Target};
pub use strategy::{Order, PORTS, Strategy};
