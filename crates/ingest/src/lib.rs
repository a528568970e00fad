//! Ingest: two protocols for producers that send many small messages and receive acknowledgements.
//!
//! ```text
//!               bytes from a producer              what to append        acknowledgements
//! classic       Frames counts messages,            Messages              Policy, by Strategy
//!               Pieces yields them
//! protocol 2    v2::Intake yields events           Messages, after       v2::Acks, by Acking
//!               (Hello, Messages, Flush, Bye)      v2::Held
//! ```
//!
//! *Classic* is five published ways to acknowledge messages. A message is an id of 8 bytes, which
//! the acknowledgement echoes, a size of 4 bytes, and the payload. In *protocol 2* producers number
//! their messages, so that none is lost or stored twice. `docs/formats/ingest.md` is the
//! specification.
//!
//! Nothing here does I/O or reads a clock: the state machines take the bytes of a read and the
//! time, and return events, or write acknowledgements to a buffer.

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
