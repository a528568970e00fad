//! Publish and subscribe, across workers.
//!
//! ```text
//!   worker of the publisher                         worker of subscribers
//!
//!   PUBLISH c m                                     SUBSCRIBE c
//!     | lock the shard of c                           | lock the shard of c: count, take an epoch
//!     | who subscribes, patterns that match           | unlock
//!     | append to the inbox of each worker  ------->  | table of this worker: c -> connections
//!     | unlock                              inbox     v
//!     | reply: number of receivers            |     confirmed
//!     v                                       |
//!   end of the window:                        v
//!     announce(worker), once for all  ---->  take all, write each message once, and let the output
//!     that was appended                      of each subscriber refer to it
//! ```
//!
//! | part | file |
//! |---|---|
//! | names of channels and patterns, kept once | `names` |
//! | who subscribes, counted under shards | `registry`, `patterns`, `subscribers` |
//! | messages on their way to a worker | `inbox` |
//! | which connections subscribe, at one worker | `local` |
//! | what a session subscribes to | `subscriptions` |
//! | SUBSCRIBE, UNSUBSCRIBE and their kin | `subscribe` |
//! | PUBLISH, SPUBLISH | `publish` |
//! | messages that a worker has taken, and how far they are delivered | `queue` |
//! | messages become output, in bounded steps | `deliver` |
//! | one client receives what waits for it, before its next reply | `ahead` |
//! | the bytes of a message, what EXEC keeps of it | `wire` |
//! | PUBSUB | `listing` |
//! | keyspace notifications | `events` |
//!
//! Why nothing is lost, doubled or late: a message is in the inboxes before the shard is unlocked.
//! So who unsubscribes under the same lock finds everything that counted it in its own inbox, and
//! delivers it before it confirms. A message carries the epoch at which it was published, and a
//! subscription that at which it began; a message reaches only older subscriptions. What a client
//! reads after a change that followed a PUBLISH, it reads after the message: the inbox of its
//! worker is emptied before its reply is written.

pub(crate) mod ahead;
pub(crate) mod deliver;
pub(crate) mod events;
pub(crate) mod inbox;
pub(crate) mod listing;
pub(crate) mod local;
pub(crate) mod names;
pub(crate) mod patterns;
pub(crate) mod publish;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod subscribe;
pub(crate) mod subscribers;
pub mod subscriptions;
pub(crate) mod wire;

pub use inbox::UNDERWAY_MAX;
pub use registry::PubSub;

#[cfg(test)]
mod tests;
