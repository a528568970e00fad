//! Ingest protocol 2: producers number their messages and learn which of them are safe.
//!
//! `docs/formats/ingest.md` draws the bytes, `docs/formats/ingest2-vectors.txt` has examples.
//! Nothing here does I/O or reads a clock: [`Intake`] takes what a producer sent apart, [`Held`]
//! says what of it is new, [`Acks`] when which acknowledgement is due, [`Reader`] takes apart what
//! the server sent.

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
