//! Streams: entries in the order of their ids, in pages, and groups of consumers.
//!
//! ```text
//! Stream
//! +-- entries              a tree of pages, by id
//! +-- groups               by name: up to 64 in a page, more in a tree of such pages
//!     +-- Group
//!         +-- pending      rows of 40 bytes, by id: id, time, count, consumer
//!         +-- consumers    by place and by name: up to 64 in lists, more in two trees
//!             +-- Consumer
//!                 +-- pending    rows of 16 bytes: ids of what is pending for it
//! ```
//!
//! All of it hangs on counted references: a clone of a stream takes two, and a change copies what
//! it touches and a clone shares.
//!
//! Frequent changes (an entry is appended, delivered or acknowledged) log their inverse. Before any
//! other change the caller captures the stream in the log.

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
