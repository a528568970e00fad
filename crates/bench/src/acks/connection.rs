//! One connection: what it still has to write, and how much of it is acknowledged.

use super::spec::Spec;
use hdrhistogram::Histogram;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Instant;

/// What differs between the protocols: how messages become bytes, and what acknowledgements look
/// like.
pub trait Wire {
    /// May a write of so many messages leave now?
    fn admits(&self, count: u64) -> bool;
    /// Makes the write of `count` messages, of which so many were made before; its length.
    fn fill(&mut self, before: u64, count: u64) -> usize;
    /// Sends a part of it, or less.
    fn send(&self, stream: &TcpStream, part: Range<usize>) -> Result<usize, Errno>;
    /// Checks acknowledgements that were received.
    fn receive(&mut self, bytes: &[u8], account: &mut Account) -> Result<(), Broken>;
    /// Announces the end of the messages, where the protocol has a frame for it.
    fn say_bye(&self, stream: &TcpStream);
}

/// What was acknowledged, and what may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Messages acknowledged, from the first one on.
    pub acknowledged: u64,
    /// Acknowledgements that said so.
    pub acks: u64,
    /// Messages that were sent whole.
    pub written: u64,
}

/// A connection and its messages.
pub struct Connection<W> {
    pub stream: TcpStream,
    pub wire: W,
    /// Bytes of the current write that have left, and that are to leave; messages in it.
    sent: usize,
    end: usize,
    in_write: u64,
    message_size: usize,
    batch: u64,
    waits: bool,
    writes: usize,
    /// Messages made so far; messages in all.
    pub next: u64,
    total: u64,
    pub account: Account,
    /// Writes on their way: the number of messages up to their end, and when they began.
    under_way: VecDeque<(u64, Instant)>,
    /// Whether epoll watches for room for writes.
    pub wants_room: bool,
    pub over: bool,
}

/// Why a connection ended early.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// An acknowledgement that cannot be.
    Wrong(String),
    /// It was closed or reset.
    Closed(String),
}

impl<W: Wire> Connection<W> {
    pub fn new(spec: &Spec, stream: TcpStream, wire: W, waits: bool) -> Self {
        Self {
            stream,
            wire,
            sent: 0,
            end: 0,
            in_write: 0,
            message_size: spec.message_size,
            batch: spec.batch_len() as u64,
            waits,
            writes: spec.writes,
            next: 0,
            total: if spec.time.is_some() { u64::MAX } else { spec.messages },
            account: Account::default(),
            under_way: VecDeque::new(),
            wants_room: true,
            over: false,
        }
    }

    /// True while there is something that may be written now.
    pub fn may_write(&self) -> bool {
        self.sent < self.end || self.may_fill()
    }

    fn may_fill(&self) -> bool {
        let waits = self.waits && self.account.acknowledged < self.next;
        self.next < self.total && !waits && self.wire.admits(self.coming())
    }

    /// Messages of the next write.
    fn coming(&self) -> u64 {
        (self.total - self.next).min(self.batch)
    }

    /// True when everything was written.
    pub fn has_written(&self) -> bool {
        self.sent == self.end && self.next == self.total
    }

    /// True when everything was acknowledged.
    pub fn is_done(&self) -> bool {
        self.account.acknowledged == self.total
    }

    /// Makes no further messages.
    pub fn stop(&mut self) {
        self.total = self.next;
    }

    /// Counts all that was written as acknowledged: the peer acknowledges nothing.
    pub fn assume_acknowledged(&mut self) {
        self.account.acknowledged = self.next;
    }

    /// Writes until there is no room, nothing is left, or `writes` are made. False if there is no
    /// room.
    pub fn write(&mut self) -> Result<bool, Broken> {
        for _ in 0..self.writes {
            if self.sent == self.end {
                if !self.may_fill() {
                    break;
                }
                self.fill();
            }
            match self.wire.send(&self.stream, self.sent..self.end) {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(e) => return Err(Broken::Closed(format!("writing failed: {e}"))),
            }
        }
        Ok(true)
    }

    /// The next messages.
    fn fill(&mut self) {
        self.in_write = self.coming();
        (self.sent, self.end) = (0, self.wire.fill(self.next, self.in_write));
        self.next += self.in_write;
        self.under_way.push_back((self.next, Instant::now()));
    }

    /// Reads acknowledgements until there are no more; `Ok(true)` if the peer closed.
    pub fn read(
        &mut self,
        room: &mut [u8],
        latency_ns: &mut Histogram<u64>,
        latency_sum_s: &mut f64,
    ) -> Result<bool, Broken> {
        let n = match recv(&self.stream, &mut *room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(true),
            Ok((n, _)) => n,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(e) => return Err(Broken::Closed(format!("reading failed: {e}"))),
        };
        let before = self.account.acknowledged;
        self.receive(&room[..n])?;
        if self.account.acknowledged > before {
            self.note_latency(before, latency_ns, latency_sum_s);
        }
        Ok(false)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        // What stands in front of the first message belongs to it: it is not whole before its own
        // bytes are.
        let missing = (self.end - self.sent).div_ceil(self.message_size) as u64;
        self.account.written = self.next - missing.min(self.in_write);
        self.wire.receive(bytes, &mut self.account)
    }

    /// Every message acknowledged since `before` has taken from its write until now.
    fn note_latency(&mut self, mut before: u64, latency_ns: &mut Histogram<u64>, sum_s: &mut f64) {
        let (now, acknowledged) = (Instant::now(), self.account.acknowledged);
        while let Some((end, began)) = self.under_way.front().copied() {
            let upto = end.min(acknowledged);
            let ns = now.duration_since(began).as_nanos() as u64;
            latency_ns.saturating_record_n(ns.max(1), upto - before);
            *sum_s += (upto - before) as f64 * ns as f64 / 1e9;
            before = upto;
            if end > acknowledged {
                return;
            }
            self.under_way.pop_front();
        }
    }
}

#[cfg(test)]
pub mod trial {
    //! Connections for tests, to a listener which nothing serves.

    use super::*;
    use std::net::TcpListener;

    /// A connection which has sent this many complete writes.
    pub fn connection<W: Wire>(spec: &Spec, wire: W, writes: u64) -> Connection<W> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(addr).expect("it listens");
        let mut c = Connection::new(spec, stream, wire, false);
        (0..writes).for_each(|_| c.fill());
        c.sent = c.end;
        c
    }

    impl<W: Wire> Connection<W> {
        /// Handles bytes as if they had been received.
        pub fn inject(&mut self, bytes: &[u8]) -> Result<(), Broken> {
            self.receive(bytes)
        }

        /// Puts back the last bytes of the current write.
        pub fn unsend(&mut self, bytes: usize) {
            self.sent = self.end - bytes;
        }
    }
}
