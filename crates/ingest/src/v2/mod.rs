//! Ingest protocol 2: producers number their messages and learn which of them are safe.
//!
//! ```text
//! producer                          server
//!   Hello        -------------->    Intake parses it
//!                <--------------    Welcome: last number held, limits, credit
//!   Data         -------------->    Intake -> Messages -> Held: which are new -> the sink
//!                <--------------    Ack (Acks decides when), Credit
//!   Flush        -------------->
//!                <--------------    Ack at once
//!   Bye          -------------->
//!                <--------------    Ack, then close
//!                <--------------    Error (Fault), then close: at any time
//! ```
//!
//! `frame.rs` and `hello.rs` draw the frames. `docs/formats/ingest.md` is the specification, and
//! `docs/formats/ingest2-vectors.txt` has examples. [`Reader`] parses the server's frames for a
//! producer. Nothing here does I/O or reads a clock.

mod acks;
mod fault;
mod frame;
mod held;
mod hello;
mod intake;
mod reader;
mod whole;

pub use acks::{Acks, BATCH_NS, HOLD_NS, QUICK_FIRST, QUICK_MAX, READS_MAX};
pub use fault::Fault;
pub use frame::{
    ACK_BYTES, Ack, DATA_HEADER_BYTES, HEADER_BYTES, HELLO_MAX, Level, VERSION, Welcome,
    data_header, write_ack, write_bye, write_credit, write_data_header, write_error, write_flush,
    write_message, write_welcome,
};
pub use held::{Admit, Held};
pub use hello::{Acking, Hello, KEY_MAX, PRODUCER_MAX, SinkKind, write_hello};
pub use intake::{Event, Intake, Limits};
pub use reader::{Reader, ServerFrame};
