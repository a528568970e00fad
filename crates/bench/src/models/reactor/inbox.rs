//! What other threads hand to an event loop.

use std::io;
use std::sync::{Mutex, PoisonError};

use resp::OutBuf;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connection of an event loop: its place, and which of those that had this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u64);

impl Token {
    /// The connection of this generation at this place.
    pub fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    /// Its place.
    pub fn index(self) -> usize {
        self.0 as u32 as usize
    }

    /// Which of those that had this place.
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Something for an event loop.
#[derive(Debug)]
pub enum Mail {
    /// A new connection.
    Connection(OwnedFd),
    /// A reply that was deferred.
    Reply {
        /// Whose.
        to: Token,
        /// The reply.
        bytes: OutBuf,
    },
}

/// Where mail waits. Bounded by its senders: as many connections as there are descriptors, and each
/// has at most [`DEFERRED_MAX`](super::connection::DEFERRED_MAX) replies under way.
#[derive(Debug)]
pub struct Inbox {
    mail: Mutex<Vec<Mail>>,
    wake: OwnedFd,
}

impl Inbox {
    /// An empty one.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { mail: Mutex::default(), wake })
    }

    /// Readable, by edges, when mail came into an empty inbox.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Posts something, and wakes the loop if it is the first.
    pub fn post(&self, mail: Mail) {
        let mut waiting = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(mail);
        let first = waiting.len() == 1;
        drop(waiting);
        if first {
            // Only a full counter fails; it would take centuries to fill.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }

    /// Takes everything.
    pub fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
