//! What clients have left at keys: see [`crate::worker::releases`], which takes it out.

use crate::sessions::watches::Watches;
use base::sync::Arc;
use driver::ConnId;
use keyspace::Ticket;
use std::collections::VecDeque;

/// A client that has left more keys than this waits before it may leave more.
pub const LEFT_KEYS_MAX: usize = 1024;
/// So does every client that would leave more than [`SMALL_KEYS_MAX`] while all have left more than
/// this.
pub const LEFT_WORKER_KEYS_MAX: usize = 1 << 20;
/// A request of so few keys waits for nobody else.
pub const SMALL_KEYS_MAX: usize = 256;
/// What is left at keys.
pub enum Left {
    /// Watches of a session.
    Watches(Watches),
    /// A ticket, and how many of its keys it has left already.
    Ticket(Arc<Ticket>, usize),
}

impl Left {
    /// How many keys that is.
    pub fn keys(&self) -> usize {
        match self {
            Left::Watches(watches) => watches.len(),
            Left::Ticket(ticket, done) => ticket.keys.len() - done,
        }
    }
}

/// What the clients of a worker have left at keys.
#[derive(Default)]
pub struct Releases {
    /// Client by client.
    pub queue: VecDeque<(ConnId, Left)>,
    /// How many keys that is.
    pub keys: usize,
    /// Sessions that wait until they may leave so many more.
    pub waiting: Vec<(ConnId, usize)>,
}

impl Releases {
    /// True if nothing is to be released.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether a client that has left so many keys may leave these.
    pub fn admits(&self, left: usize, more: usize) -> bool {
        left <= LEFT_KEYS_MAX && (more <= SMALL_KEYS_MAX || self.keys <= LEFT_WORKER_KEYS_MAX)
    }
}
