//! One connection: what it still has to write, and whether its acknowledgements are right.

use super::Spec;
use hdrhistogram::Histogram;
use ingest::{ACK_BYTES, HEADER_BYTES, Order, Strategy};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::TcpStream;
use std::time::Instant;

/// Writes in a row before acknowledgements are looked at.
const WRITES_MAX: usize = 16;

/// A connection and its messages.
pub struct Connection {
    pub stream: TcpStream,
    /// The current write: messages whose ids are set anew for each.
    chunk: Vec<u8>,
    /// Bytes of it that have left, and that are to leave.
    sent: usize,
    end: usize,
    message_size: usize,
    batch: usize,
    /// Write with `writev`, a slice per message.
    slices: bool,
    lock_step: bool,
    ack_bytes: usize,
    /// The id of the next message to be put into a chunk; messages in all.
    next: u64,
    total: u64,
    /// Messages acknowledged: the next id that an acknowledgement may name first.
    pub acknowledged: u64,
    /// An acknowledgement that has not come whole.
    partial: Vec<u8>,
    /// Writes on their way: one past their last id, and when they began.
    under_way: VecDeque<(u64, Instant)>,
    /// Interest in room for writes, as epoll was told.
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

impl Connection {
    pub fn new(spec: &Spec, stream: TcpStream) -> Self {
        let batch = spec.batch_len();
        let payload = (spec.message_size - HEADER_BYTES) as u32;
        let size = match spec.strategy.order() {
            Order::Big => payload.to_be_bytes(),
            Order::Little => payload.to_le_bytes(),
        };
        let mut chunk = vec![b'x'; batch * spec.message_size];
        for message in chunk.chunks_exact_mut(spec.message_size) {
            message[8..HEADER_BYTES].copy_from_slice(&size);
        }
        let lock_step = spec.strategy == Strategy::RequestReply && spec.acknowledged;
        Self {
            stream,
            chunk,
            sent: 0,
            end: 0,
            message_size: spec.message_size,
            batch,
            slices: spec.block.is_none() && batch > 1,
            lock_step,
            ack_bytes: if spec.strategy == Strategy::RequestReply { 8 } else { ACK_BYTES },
            next: 0,
            total: spec.messages,
            acknowledged: 0,
            partial: Vec::with_capacity(ACK_BYTES),
            under_way: VecDeque::new(),
            wants_room: true,
            over: false,
        }
    }

    /// True while there is something that may be written now.
    pub fn may_write(&self) -> bool {
        let waits = self.lock_step && self.acknowledged < self.next;
        self.sent < self.end || (self.next < self.total && !waits)
    }

    /// True when everything was written.
    pub fn has_written(&self) -> bool {
        self.sent == self.end && self.next == self.total
    }

    /// True when everything was acknowledged.
    pub fn is_done(&self) -> bool {
        self.acknowledged == self.total
    }

    /// Writes until there is no room, nothing to write, or it was much. False if there was no room.
    pub fn write(&mut self) -> Result<bool, Broken> {
        for _ in 0..WRITES_MAX {
            if !self.may_write() {
                break;
            }
            if self.sent == self.end {
                self.fill();
            }
            match self.write_once() {
                Ok(n) => self.sent += n,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(e) => return Err(Broken::Closed(format!("writing failed: {e}"))),
            }
        }
        Ok(true)
    }

    /// The next messages with their ids.
    fn fill(&mut self) {
        let count = (self.total - self.next).min(self.batch as u64) as usize;
        for message in self.chunk.chunks_exact_mut(self.message_size).take(count) {
            message[..8].copy_from_slice(&self.next.to_le_bytes());
            self.next += 1;
        }
        (self.sent, self.end) = (0, count * self.message_size);
        self.under_way.push_back((self.next, Instant::now()));
    }

    fn write_once(&self) -> Result<usize, Errno> {
        let bytes = &self.chunk[self.sent..self.end];
        if !self.slices {
            return send(&self.stream, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
        // The rest of a message that left in part, then whole ones.
        let first = bytes.len() % self.message_size;
        let (part, whole) = bytes.split_at(first);
        let mut slices = [IoSlice::new(&[]); super::BATCH_MAX];
        let mut count = 0;
        let pieces = std::iter::once(part).chain(whole.chunks_exact(self.message_size));
        for (place, piece) in slices.iter_mut().zip(pieces.filter(|p| !p.is_empty())) {
            *place = IoSlice::new(piece);
            count += 1;
        }
        rustix::io::writev(&self.stream, &slices[..count])
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
        let before = self.acknowledged;
        self.take(&room[..n])?;
        if self.acknowledged > before {
            self.note_latency(before, latency_ns, latency_sum_s);
        }
        Ok(false)
    }

    /// Checks what came.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        if !self.partial.is_empty() {
            let n = bytes.len().min(self.ack_bytes - self.partial.len());
            self.partial.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.partial.len() < self.ack_bytes {
                return Ok(());
            }
            let ack = std::mem::take(&mut self.partial);
            self.check(&ack)?;
        }
        let acks = bytes.chunks_exact(self.ack_bytes);
        self.partial.extend_from_slice(acks.remainder());
        for ack in acks {
            self.check(ack)?;
        }
        Ok(())
    }

    fn check(&mut self, ack: &[u8]) -> Result<(), Broken> {
        let id = u64::from_le_bytes(*ack.first_chunk().expect("8 bytes of id"));
        let skipped = ack[8..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
        // `previous + skipped + 1 == id`, where `previous` is one less than what was acknowledged.
        if id != self.acknowledged.wrapping_add(u64::from(skipped)) {
            let previous = i128::from(self.acknowledged) - 1;
            return Err(Broken::Wrong(format!(
                "acknowledgement of {id} with {skipped} skipped follows that of {previous}"
            )));
        }
        let written = self.next - (self.end - self.sent).div_ceil(self.message_size) as u64;
        if id >= written {
            return Err(Broken::Wrong(format!(
                "acknowledgement of {id}, which was not sent whole: {written} were"
            )));
        }
        self.acknowledged = id + 1;
        Ok(())
    }

    /// Every message acknowledged since `before` has taken from its write until now.
    fn note_latency(&mut self, mut before: u64, latency_ns: &mut Histogram<u64>, sum_s: &mut f64) {
        let now = Instant::now();
        while let Some((end, began)) = self.under_way.front().copied() {
            let upto = end.min(self.acknowledged);
            let ns = now.duration_since(began).as_nanos() as u64;
            latency_ns.saturating_record_n(ns.max(1), upto - before);
            *sum_s += (upto - before) as f64 * ns as f64 / 1e9;
            before = upto;
            if end > self.acknowledged {
                return;
            }
            self.under_way.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connection(strategy: Strategy, written: u64) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let spec = Spec { messages: 100, ..Spec::new(addr, strategy) };
        let mut c = Connection::new(&spec, TcpStream::connect(addr).expect("it listens"));
        (0..written).for_each(|_| c.fill());
        c.sent = c.end;
        c
    }

    fn ack(id: u64, skipped: u32) -> Vec<u8> {
        [&id.to_le_bytes()[..], &skipped.to_le_bytes()].concat()
    }

    #[test]
    fn right_acknowledgements_are_taken_in_any_pieces() {
        let acks = [ack(0, 0), ack(4, 3), ack(5, 0), ack(9, 3)].concat();
        for piece in 1..acks.len() {
            let mut c = connection(Strategy::Sync, 10);
            for part in acks.chunks(piece) {
                c.take(part).expect("they are right");
            }
            assert_eq!(c.acknowledged, 10);
        }
        let mut c = connection(Strategy::RequestReply, 3);
        let ids: Vec<u8> = (0..3u64).flat_map(u64::to_le_bytes).collect();
        ids.chunks(5).for_each(|part| c.take(part).expect("they are right"));
        assert_eq!(c.acknowledged, 3);
    }

    #[test]
    fn wrong_ones_are_not() {
        for wrong in [ack(1, 0), ack(0, 1), ack(10, 10), ack(u64::MAX, 0), ack(3, 2)] {
            let mut c = connection(Strategy::Async, 10);
            assert!(matches!(c.take(&wrong), Err(Broken::Wrong(_))), "{wrong:?}");
        }
        let mut c = connection(Strategy::Async, 10);
        c.take(&ack(2, 2)).expect("right");
        assert!(matches!(c.take(&ack(2, 0)), Err(Broken::Wrong(_))), "twice");
    }

    #[test]
    fn a_message_that_left_in_part_must_not_be_acknowledged() {
        let mut c = connection(Strategy::Sync, 10);
        c.sent = c.end - 1;
        c.take(&ack(8, 8)).expect("right");
        assert!(matches!(c.take(&ack(9, 0)), Err(Broken::Wrong(_))));
    }
}
