//! Replies that may not leave yet: a queue per session, of what was taken out of the worker's arena
//! at the end of a turn. Bytes leave in order, up to the first whose hold is not met.

use crate::sessions::output::{ARENA_FLUSH_BYTES, Hold, Segment};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Release};
use base::{FenceNo, SeqNo};
use driver::{ConnId, Driver};
use keyspace::Numbers;
use resp::{OutBuf, OutPos};
use std::collections::VecDeque;

/// Nothing more is read from a client, and no further step of a long reply is made, while it has
/// more than this to be sent that is held: bytes, those of the queue among them. With a journal, a
/// pipeline goes on while its replies wait for the disk.
pub const HELD_BYTES_MAX: usize = 1 << 20;
/// The same of all clients of a worker together: beyond it nothing more is read from those that
/// have held replies.
pub const HELD_WORKER_BYTES_MAX: usize = 64 << 20;
/// What a queued chunk costs beside its bytes.
const CHUNK_BYTES: usize = size_of::<(OutBuf, Hold)>() + 16;

/// What a session may not be sent yet.
#[derive(Debug, Default)]
pub struct Outbox {
    chunks: VecDeque<(OutBuf, Hold)>,
    bytes: usize,
    /// Chunks that wait for a fence.
    fenced: usize,
}

/// What has happened by now.
#[derive(Clone, Copy, Debug)]
pub struct Safe {
    /// Holds up to this are met.
    up_to: Hold,
    /// The last number that was drawn when that was so.
    last: SeqNo,
}

impl Safe {
    /// True if the hold is met; [`Numbers::LATEST`] becomes a number once its fence has passed.
    pub fn meets(self, hold: &mut Hold) -> bool {
        if hold.seq == Numbers::LATEST && hold.fence <= self.up_to.fence {
            hold.seq = self.last;
        }
        hold.is_met(self.up_to)
    }
}

impl Outbox {
    /// Appends what leaves when `hold` is met and all before it has left.
    pub fn push(&mut self, chunk: OutBuf, hold: Hold) {
        self.bytes += chunk.len_between(OutPos::default(), chunk.position());
        self.fenced += usize::from(hold.fence > FenceNo(0));
        self.chunks.push_back((chunk, hold));
    }

    /// The next chunk, if its hold is met.
    pub fn pop(&mut self, safe: Safe) -> Option<OutBuf> {
        if !safe.meets(&mut self.chunks.front_mut()?.1) {
            return None;
        }
        let (chunk, hold) = self.chunks.pop_front()?;
        self.bytes -= chunk.len_between(OutPos::default(), chunk.position());
        self.fenced -= usize::from(hold.fence > FenceNo(0));
        Some(chunk)
    }

    /// True if nothing more is to be read from the client: too much waits, or something waits for a
    /// fence, which takes no longer than the other workers' batches.
    pub fn is_over_bound(&self) -> bool {
        self.fenced > 0 || self.memory() > HELD_BYTES_MAX
    }

    /// Bytes that wait, and those of the queue.
    pub fn memory(&self) -> usize {
        self.bytes + self.chunks.len() * CHUNK_BYTES
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
    /// Together they hold more than their bound.
    pub is_over_bound: bool,
}

impl Holding {
    /// True if nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }
}

impl Core {
    /// DEBUG SAFE-UP-TO: as if a journal had come so far; `None` is no journal.
    pub(crate) fn publish_safe(&mut self, safe: Option<u64>) {
        let shared = Arc::clone(&self.shared);
        shared.keyspace.numbers().set_drawing(safe.is_some());
        shared.safe_seq.store(safe.unwrap_or(u64::MAX), Release);
        self.publish_fence();
        shared.post_others(self.id, || Message::Released);
    }

    /// What may leave. (The last number is read last: who has passed a fence has drawn its numbers
    /// before.)
    pub(crate) fn safe(&self) -> Safe {
        let seq = SeqNo(self.shared.safe_seq.load(Acquire));
        let up_to = Hold { seq, fence: self.shared.keyspace.fences().passed() };
        Safe { up_to, last: self.shared.keyspace.numbers().last() }
    }

    /// Moves segments that must wait into their sessions' outboxes, and what may leave out of those
    /// into the arena, in front of the segments that remain. True if the arena is full and more may
    /// leave.
    fn sort_segments(&mut self, out: &mut OutBuf) -> bool {
        let safe = self.safe();
        let room = out.bytes.len() + ARENA_FLUSH_BYTES;
        let (mut sorted, mut more, mut awaits_fence) = (Vec::new(), false, false);
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
        for mut s in std::mem::take(&mut self.turn.output.segments) {
            let Some(session) = self.sessions[s.session as usize].as_deref_mut() else { continue };
            if safe.meets(&mut s.hold) && session.outbox.is_none() {
                sorted.push(s);
                continue;
            }
            awaits_fence |= s.hold.fence > safe.up_to.fence;
            if session.outbox.is_none() {
                self.holding.conns.push(session.conn);
            }
            let outbox = session.outbox.get_or_insert_default();
            outbox.push(copy(s.from(), s.to(), out), s.hold);
        }
        self.turn.output.segments = sorted;
        more || (awaits_fence && self.await_fence(safe))
    }

    /// Whether all sessions together hold more than their bound.
    fn sum_held(&mut self) {
        let outbox =
            |conn: &ConnId| self.sessions[conn.index as usize].as_deref()?.outbox.as_deref();
        let held = self.holding.conns.iter().filter_map(outbox).map(Outbox::memory);
        let held: usize = held.sum();
        self.holding.is_over_bound = held > HELD_WORKER_BYTES_MAX;
    }

    /// Has this worker woken when a fence is passed. True if one was passed meanwhile.
    fn await_fence(&self, safe: Safe) -> bool {
        let fences = self.shared.keyspace.fences();
        fences.start_waiting(self.id);
        fences.passed() > safe.up_to.fence
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

/// What stands between two places: bytes are copied, big values are not.
pub(crate) fn copy(from: OutPos, to: OutPos, out: &OutBuf) -> OutBuf {
    let blobs = out.blobs[from.blobs..to.blobs].iter();
    OutBuf {
        bytes: out.bytes[from.bytes..to.bytes].to_vec(),
        blobs: blobs.map(|(at, blob)| (at - from.bytes, blob.clone())).collect(),
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Sends a session what is no reply to it. Behind a reply that is being written in steps it
    /// waits for the last one.
    pub(crate) fn push(&mut self, conn: ConnId, bytes: &[u8], hold: Hold) {
        let Some(session) = self.core.session_mut(conn) else { return };
        if session.is_streaming() {
            let chunk = OutBuf { bytes: bytes.to_vec(), blobs: Vec::new() };
            session.pushes.get_or_insert_default().push(chunk, hold);
            return self.on_unsent(conn); // they count against its limit
        }
        let (_, out) = self.driver.io();
        self.core.turn.output.open(conn.index, out);
        out.bytes.extend_from_slice(bytes);
        self.core.turn.output.hold_at(hold);
    }

    /// The last step of a reply was written: what waited behind it follows.
    pub(crate) fn release_pushes(&mut self, conn: ConnId) {
        let Some(session) = self.core.session_mut(conn) else { return };
        let Some(pushes) = session.pushes.take() else { return };
        let (_, out) = self.driver.io();
        self.core.turn.output.open(conn.index, out);
        for (chunk, hold) in pushes.chunks {
            out.append(chunk);
            self.core.turn.output.hold_at(hold);
        }
        self.on_unsent(conn);
    }

    /// Sends what may leave, while something is held.
    #[cold]
    pub(crate) fn flush_held(&mut self) {
        self.core.follow(); // no command is under way: this worker itself holds nothing up
        let mut held = self.core.holding.conns.clone();
        loop {
            let (_, out) = self.driver.io();
            let more = self.core.sort_segments(out);
            self.send_segments();
            if !more {
                break;
            }
        }
        self.core.sum_held();
        held.extend_from_slice(&self.core.holding.conns);
        held.sort_unstable_by_key(|conn| conn.index);
        held.dedup();
        for conn in held {
            self.on_unsent(conn);
        }
        if self.core.holding.is_empty() {
            self.core.shared.keyspace.fences().stop_waiting(self.core.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn chunk(text: &str) -> OutBuf {
        OutBuf { bytes: text.into(), blobs: Vec::new() }
    }

    fn hold(seq: u64, fence: u64) -> Hold {
        Hold { seq: SeqNo(seq), fence: FenceNo(fence) }
    }

    fn popped(outbox: &mut Outbox, up_to: Hold) -> Vec<u8> {
        let safe = Safe { up_to, last: SeqNo(7) };
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

    /// What was read without locks has no number before the fence has passed.
    #[test]
    fn the_latest_number_is_that_behind_the_fence() {
        let mut outbox = Outbox::default();
        outbox.push(chunk("a"), Hold { seq: Numbers::LATEST, fence: FenceNo(2) });
        assert_eq!(popped(&mut outbox, hold(9, 1)), b"");
        assert_eq!(popped(&mut outbox, hold(6, 2)), b"");
        assert_eq!(popped(&mut outbox, hold(7, 2)), b"a");
    }

    #[test]
    fn reading_stops_beyond_the_bound_and_behind_a_fence() {
        let mut outbox = Outbox::default();
        outbox.push(chunk("a"), hold(1, 0));
        assert!(!outbox.is_over_bound());
        outbox.push(chunk("b"), hold(0, 1));
        assert!(outbox.is_over_bound());
        assert_eq!(popped(&mut outbox, hold(1, 1)), b"ab");
        assert!(!outbox.is_over_bound());
        for _ in 0..HELD_BYTES_MAX / CHUNK_BYTES {
            outbox.push(chunk("c"), hold(1, 0));
        }
        assert!(outbox.is_over_bound(), "small chunks cost more than their bytes");
    }
}
