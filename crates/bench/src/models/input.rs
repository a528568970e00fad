//! Bytes that arrived and were not executed yet.

use rustix::buffer::spare_capacity;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::counters::Counts;

/// Least room for one receive.
pub const READ_BYTES: usize = 16 << 10;

/// The input of one connection. It holds less than an incomplete request may have in place
/// ([`resp::BIG_BULK`]) and one receive.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    at: usize,
}

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes; `emptied`: fewer than there was room for, so there are no more.
    Bytes {
        /// The socket holds nothing else.
        emptied: bool,
    },
    /// Nothing yet.
    Nothing,
    /// The peer sends no more.
    End,
}

impl Input {
    /// What was not executed yet.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// So many bytes are done with.
    pub fn consume(&mut self, count: usize) {
        self.at += count;
        debug_assert!(self.at <= self.bytes.len(), "only what is there can be done with");
    }

    /// Receives once, waiting if `flags` do not forbid it.
    pub fn receive(
        &mut self,
        from: BorrowedFd<'_>,
        flags: RecvFlags,
        counts: &Counts,
    ) -> Result<Received, Errno> {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.reserve(READ_BYTES);
        let room = self.bytes.capacity() - self.bytes.len();
        let result = recv(from, spare_capacity(&mut self.bytes), flags).map(|(count, _)| count);
        counts.read(result.unwrap_or(0));
        match result {
            Ok(0) => Ok(Received::End),
            Ok(count) => Ok(Received::Bytes { emptied: count < room }),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Bytes that arrived without a socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }
}
