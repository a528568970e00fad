//! Streams: entries in the order of their ids, in pages, and groups of consumers.
//!
//! Single changes of the hot path (an entry comes, is delivered, is acknowledged) log what undoes
//! them; before any other change the caller captures the stream in the log.
//! `docs/design/0012-streams.md` draws the bytes.

mod consumer;
mod consumers;
mod counts;
mod elem;
mod group;
mod groups;
mod id;
mod name_key;
mod page;
mod pending;
mod pour;
mod reading;
mod root;
mod rows;
mod weight;

pub use consumer::{Consumer, ConsumerId};
pub use group::Group;
pub use id::StreamId;
pub use page::{Entry, Fields, Limits, NODE_BYTES_MAX, Page};
pub use pending::Pending;
pub use pour::Text;
pub use reading::{Iter, IterBack};
pub use root::{Marks, Stream};
pub use rows::RowsIter;

#[cfg(test)]
mod tests;
