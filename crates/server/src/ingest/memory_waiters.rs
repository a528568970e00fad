//! Ingest connections whose sink waits for memory. Nobody signals that there is memory again, so it
//! is polled.

use base::MonoNs;
use driver::ConnId;
use std::collections::HashSet;

/// How often a worker checks whether there is memory again.
pub(crate) const POLL_NS: u64 = 5_000_000;
/// Places of closed connections in the queue, beyond as many as wait.
const CLOSED_MAX: usize = 64;

/// Connections which wait for memory, and when to check for it.
#[derive(Default)]
pub(crate) struct MemoryWaiters {
    /// In order of their arrival, closed connections among them.
    queue: Vec<ConnId>,
    waiting: HashSet<ConnId>,
    /// When to check next, if any connection waits.
    pub(crate) at: Option<MonoNs>,
}

impl MemoryWaiters {
    /// When to check, if any connection waits.
    #[inline]
    pub fn next(&self) -> Option<MonoNs> {
        self.at
    }

    /// Adds a connection, unless it waits already.
    pub fn add(&mut self, conn: ConnId, now: MonoNs) {
        if self.waiting.insert(conn) {
            self.queue.push(conn);
        }
        self.at.get_or_insert(now.plus(POLL_NS));
    }

    /// Removes a connection which was closed.
    pub fn remove(&mut self, conn: ConnId) {
        if self.waiting.remove(&conn) && self.queue.len() > 2 * self.waiting.len() + CLOSED_MAX {
            self.queue.retain(|conn| self.waiting.contains(conn));
        }
    }

    /// Removes and returns all, in order of their arrival.
    pub fn drain(&mut self) -> Vec<ConnId> {
        self.at = None;
        let waiting = std::mem::take(&mut self.waiting);
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|conn| waiting.contains(conn));
        queue
    }
}
