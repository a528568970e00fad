//! The Redis protocol without I/O.
//!
//! Requests: [`frame`] finds one request in a buffer of received bytes and says where its arguments
//! stand; nothing is copied and nothing is allocated per argument. A request that is big and not
//! complete yet goes to an [`Assembler`], which owns what has arrived and never looks at a byte
//! twice. Both yield the same [`Args`].
//!
//! Replies: [`Reply`] writes one value after the other, in the protocol version that the client
//! asked for, into an [`OutBuf`].

mod args;
mod assemble;
mod beginning;
mod error;
mod frame;
mod inline;
mod limits;
mod number;

mod owned;
mod reply;

pub use args::{Args, ArgsIter, BigArg, Span};
pub use assemble::Assembler;
pub use base::out::{OutBuf, OutPos};
pub use beginning::Beginning;
pub use error::ProtocolError;
pub use frame::{Framed, frame};
pub use limits::{
    BIG_BULK, BULK_MAX_DEFAULT, BULK_MAX_LEAST, LINE_MAX, Limits, MULTIBULK_MAX, SMALL_BYTES_MAX,
    UNAUTHENTICATED_BULK_MAX, UNAUTHENTICATED_MULTIBULK_MAX,
};
pub use owned::OwnedRequest;
pub use reply::{Mark, Proto, Reply};
