//! Replies on their way out, and the decision when they leave.

use resp::OutBuf;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::counters::Counts;
use super::options::{Flush, Options};

/// Most bytes of replies that wait, whatever the decision is; one reply may overshoot it.
pub const PENDING_MAX: usize = 256 << 10;
/// A buffer that grew beyond this is given back once it is empty.
const KEPT_MAX: usize = PENDING_MAX;

/// Replies of one connection that have not left.
#[derive(Debug)]
pub struct Output {
    /// Where replies are written.
    pub buf: OutBuf,
    sent: usize,
    blocked: bool,
    flush: Flush,
    bytes: usize,
}

impl Output {
    /// Nothing, and the decision.
    pub fn new(options: &Options) -> Self {
        let (flush, bytes) = (options.flush, options.flush_bytes.min(PENDING_MAX));
        Self { buf: OutBuf::new(), sent: 0, blocked: false, flush, bytes }
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// True if the peer took less than was sent and has not made room yet.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Is it time to send, after a reply?
    pub fn is_due(&self) -> bool {
        match self.flush {
            Flush::Reply => true,
            Flush::Idle => self.pending() >= PENDING_MAX,
            Flush::Size | Flush::Strand => self.pending() >= self.bytes,
        }
    }

    /// Is it time to send, before a read that would find nothing?
    pub fn is_due_when_idle(&self) -> bool {
        self.flush != Flush::Strand && !self.is_empty()
    }

    /// Sends everything and waits for the peer to take it.
    pub fn send_all(&mut self, to: BorrowedFd<'_>, counts: &Counts) -> Result<(), Errno> {
        while !self.is_empty() {
            self.send_once(to, SendFlags::NOSIGNAL, counts)?;
        }
        Ok(())
    }

    /// Sends what the peer takes now.
    pub fn send_some(&mut self, to: BorrowedFd<'_>, counts: &Counts) -> Result<(), Errno> {
        self.blocked = false;
        while !self.is_empty() && !self.blocked {
            match self.send_once(to, SendFlags::NOSIGNAL | SendFlags::DONTWAIT, counts) {
                Err(Errno::AGAIN) => self.blocked = true,
                other => other?,
            }
        }
        Ok(())
    }

    fn pending(&self) -> usize {
        self.buf.bytes.len() - self.sent
    }

    fn send_once(
        &mut self,
        to: BorrowedFd<'_>,
        flags: SendFlags,
        counts: &Counts,
    ) -> Result<(), Errno> {
        let taken = match send(to, &self.buf.bytes[self.sent..], flags) {
            Err(Errno::INTR) => Ok(0),
            other => other,
        };
        counts.write(taken.unwrap_or(0));
        self.sent += taken?;
        if self.is_empty() {
            self.sent = 0;
            self.buf.clear();
            if self.buf.bytes.capacity() > KEPT_MAX {
                self.buf = OutBuf::new();
            }
        }
        Ok(())
    }
}
