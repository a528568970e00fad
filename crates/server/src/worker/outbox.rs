//! Replies that may not leave yet: a queue per session, of what was taken out of the worker's arena at
//! the end of a turn. Bytes leave in order, up to the first whose hold is not met.

use super::output::{ARENA_FLUSH_BYTES, Hold, Segment};
use super::{Core, Worker};
use crate::message::Message;
use base::SeqNo;
use base::sync::atomic::Ordering::Acquire;
use driver::{ConnId, Driver};
use resp::{OutBuf, OutPos};
use std::collections::VecDeque;

/// What a session may not be sent yet.
#[derive(Debug, Default)]
pub struct Outbox {
    chunks: VecDeque<(OutBuf, Hold)>,
    bytes: usize,
}

impl Outbox {
    /// Appends what leaves when `hold` is met and all before it has left.
    pub fn push(&mut self, chunk: OutBuf, hold: Hold) {
        self.bytes += chunk.len_between(OutPos::default(), chunk.position());
        self.chunks.push_back((chunk, hold));
    }

    /// The next chunk, if everything up to `safe` may leave.
    pub fn pop(&mut self, safe: Hold) -> Option<OutBuf> {
        self.chunks.front().filter(|(_, hold)| hold.is_met(safe))?;
        let (chunk, _) = self.chunks.pop_front()?;
        self.bytes -= chunk.len_between(OutPos::default(), chunk.position());
        Some(chunk)
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// The sessions of a worker that have held replies.
#[derive(Debug, Default)]
pub struct Holding {
    /// Each has an outbox that is not empty.
    pub conns: Vec<ConnId>,
    /// Connections whose clients have closed their side, with what they are yet to be sent.
    pub parting: Vec<(ConnId, Outbox)>,
}

impl Holding {
    /// True if nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty() && self.parting.is_empty()
    }
}

impl Core {
    /// What may leave.
    fn safe(&self) -> Hold {
        let seq = SeqNo(self.shared.safe_seq.load(Acquire));
        Hold { seq, fence: self.shared.keyspace.fences().passed() }
    }

    /// Moves segments that must wait into their sessions' outboxes, and what may leave out of those into
    /// the arena, in front of the segments that remain. True if the arena is full and more may leave.
    fn sort_segments(&mut self, out: &mut OutBuf) -> bool {
        let safe = self.safe();
        let room = out.bytes.len() + ARENA_FLUSH_BYTES;
        let (mut sorted, mut more) = (Vec::new(), false);
        for conn in std::mem::take(&mut self.holding.conns) {
            let Some(session) = self.sessions[conn.index as usize].as_deref_mut() else { continue };
            let Some(outbox) = &mut session.outbox else { continue };
            while out.bytes.len() < room
                && let Some(chunk) = outbox.pop(safe)
            {
                sorted.push(append(conn.index, chunk, out));
            }
            more |= out.bytes.len() >= room;
            if outbox.is_empty() {
                session.outbox = None;
            } else {
                self.holding.conns.push(conn);
            }
        }
        for s in std::mem::take(&mut self.output.segments) {
            let Some(session) = self.sessions[s.session as usize].as_deref_mut() else { continue };
            if session.outbox.is_none() && s.hold.is_met(safe) {
                sorted.push(s);
                continue;
            }
            if session.outbox.is_none() {
                self.holding.conns.push(session.conn);
            }
            let outbox = session.outbox.get_or_insert_default();
            outbox.push(copy(&s, out), s.hold);
        }
        self.output.segments = sorted;
        more
    }
}

/// Chunk to segment.
fn append(session: u32, chunk: OutBuf, out: &mut OutBuf) -> Segment {
    let from = out.position();
    out.append(chunk);
    let to = out.position();
    Segment {
        session,
        start: from.bytes,
        end: to.bytes,
        blob_start: from.blobs,
        blob_end: to.blobs,
        hold: Hold::NONE,
    }
}

/// Segment to chunk: bytes are copied, big values are not.
fn copy(s: &Segment, out: &OutBuf) -> OutBuf {
    let blobs = out.blobs[s.blob_start..s.blob_end].iter();
    OutBuf {
        bytes: out.bytes[s.start..s.end].to_vec(),
        blobs: blobs.map(|(at, blob)| (at - s.start, blob.clone())).collect(),
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Sends what may leave, while something is held.
    #[cold]
    pub(super) fn flush_held(&mut self) {
        self.core.follow(); // no command is under way: this worker itself holds nothing up
        let held = self.core.holding.conns.clone();
        loop {
            let (_, out) = self.driver.io();
            let more = self.core.sort_segments(out);
            self.send_segments();
            if !more {
                break;
            }
        }
        self.send_parting();
        let since = self.core.holding.conns.iter().filter(|conn| !held.contains(conn)).copied();
        for conn in held.iter().copied().chain(since.collect::<Vec<_>>()) {
            self.on_unsent(conn);
        }
        if self.core.holding.is_empty() {
            self.core.shared.keyspace.fences().rest(self.core.id);
        }
    }

    /// The last replies of connections that are closed once they have left.
    fn send_parting(&mut self) {
        let safe = self.core.safe();
        for (conn, mut outbox) in std::mem::take(&mut self.core.holding.parting) {
            while let Some(chunk) = outbox.pop(safe) {
                let (_, out) = self.driver.io();
                let segment = append(conn.index, chunk, out).to_driver();
                self.driver.send_parting(conn, segment);
                self.driver.out_done();
            }
            if outbox.is_empty() {
                self.driver.release(conn);
            } else {
                self.core.holding.parting.push((conn, outbox));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FenceNo;

    fn chunk(text: &str) -> OutBuf {
        OutBuf { bytes: text.into(), blobs: Vec::new() }
    }

    fn hold(seq: u64, fence: u64) -> Hold {
        Hold { seq: SeqNo(seq), fence: FenceNo(fence) }
    }

    fn popped(outbox: &mut Outbox, safe: Hold) -> Vec<u8> {
        std::iter::from_fn(|| outbox.pop(safe)).flat_map(|chunk| chunk.bytes).collect()
    }

    /// What is free itself stays behind what is not.
    #[test]
    fn bytes_leave_in_order_up_to_the_first_hold_that_is_not_met() {
        let mut outbox = Outbox::default();
        for (text, hold) in
            [("a", hold(1, 0)), ("bc", hold(0, 2)), ("d", hold(0, 0)), ("e", hold(3, 0))]
        {
            outbox.push(chunk(text), hold);
        }
        assert_eq!(popped(&mut outbox, hold(0, 9)), b"");
        assert_eq!(popped(&mut outbox, hold(1, 1)), b"a");
        assert_eq!(popped(&mut outbox, hold(2, 2)), b"bcd");
        assert_eq!(outbox.len(), 1);
        assert_eq!(popped(&mut outbox, hold(3, 0)), b"e");
        assert!(outbox.is_empty());
    }
}
