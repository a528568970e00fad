//! Client-side caching (CLIENT TRACKING): clients are told when keys change that they have read.
//!
//! ```text
//!   worker of a client that tracks                  worker of a change
//!
//!   GET k, under the lock of k's slot
//!     remember: k -> this connection  ------+
//!     reply                                 |       SET k, under the lock of k's slot
//!                                           v         committed: the sink is told (pubsub/events)
//!                                   table of keys <----  take k's connections out
//!   told before its next reply   <------- inbox <----   one message for each of their workers
//! ```
//!
//! | part | file |
//! |---|---|
//! | which connections have read which keys | `table` |
//! | which connections want all keys with a prefix | `prefixes` |
//! | lists of connections, by worker | `listed` |
//! | all of it, as workers share it | `registry` |
//! | what a session has asked for | `state` |
//! | CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO | `command` |
//! | reads are remembered | `reads` |
//! | a key has changed | `changes`, `touched` |
//! | the bytes that a client is sent, and who is sent them | `deliver` |
//!
//! Why a client never holds a stale value for good: reading and remembering are one step under the
//! lock of the slot, and so are a change and its message. So a change that follows a read finds the
//! connection, and its message is in the inbox of the connection's worker before anybody can see
//! the change. A client that tracks is told of what waits there before each of its replies, but not
//! of what has come since the request gave up its locks (`Core::note_cut` in `pubsub/ahead`): that
//! follows the reply with the old value.
//!
//! Names of keys stand for themselves in all databases, as in Redis.

pub(crate) mod changes;
mod command;
pub(crate) mod deliver;
pub(crate) mod listed;
mod prefixes;
mod reads;
mod registry;
pub mod state;
mod table;
pub(crate) mod touched;

pub use registry::ClientTracking;
