//! Watches and tickets which clients have left at keys; [`crate::worker::releases`] removes them.

use crate::pubsub::subscriptions::Subscriptions;
use crate::sessions::watches::Watches;
use base::sync::Arc;
use driver::ConnId;
use keyspace::Ticket;
use std::collections::VecDeque;

/// A client with more keys to release than this waits before it may leave more.
pub const LEFT_KEYS_MAX: usize = 1024;
/// While all clients of a worker have more keys to release than this, every client which would
/// leave more than [`SMALL_KEYS_MAX`] waits.
pub const LEFT_WORKER_KEYS_MAX: usize = 1 << 20;
/// A request of so few keys never waits for the keys of other clients.
pub const SMALL_KEYS_MAX: usize = 256;
/// Something left at keys.
pub enum Left {
    /// Watches of a session.
    Watches(Watches),
    /// A ticket, and from how many of its keys it is removed already.
    Ticket(Arc<Ticket>, usize),
    /// Subscriptions of a client that is gone.
    Subscriptions(Box<Subscriptions>),
}

impl Left {
    /// How many keys are to be released.
    pub fn keys(&self) -> usize {
        match self {
            Left::Watches(watches) => watches.len(),
            Left::Ticket(ticket, done) => ticket.keys.len() - done,
            Left::Subscriptions(all) => all.total(),
        }
    }
}

/// What the clients of a worker have left at keys.
#[derive(Default)]
pub struct Releases {
    /// Client by client.
    pub queue: VecDeque<(ConnId, Left)>,
    /// The sum of their keys.
    pub keys: usize,
    /// Sessions which wait until they may leave so many more keys.
    pub waiting: Vec<(ConnId, usize)>,
}

impl Releases {
    /// True if nothing is to be released.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether a client with `left` keys to release may leave `more`.
    pub fn admits(&self, left: usize, more: usize) -> bool {
        left <= LEFT_KEYS_MAX && (more <= SMALL_KEYS_MAX || self.keys <= LEFT_WORKER_KEYS_MAX)
    }
}
