//! Replies which may not leave yet: one outbox per session. Bytes leave in order, up to the first
//! chunk whose hold is not met.
//!
//! ```text
//!   arena of this turn                        outbox of session 7 (front first)
//!   segment  session  hold                    chunk  hold
//!   +------+--------+---------+               +----+----------+
//!   | a    | 7      | seq 44  |               | x  | seq 41   |
//!   | b    | 3      | none    |               | y  | fence 6  |
//!   | c    | 7      | none    |               +----+----------+
//!   +------+--------+---------+
//!
//!   At the end of the turn, with everything up to seq 42 safe and fence 5 passed:
//!
//!   x  is released: its hold is met. It is appended to the arena and sent first.
//!   y  waits for fence 6.
//!   b  is sent at once: its hold is met, and session 3 has no outbox.
//!   a  is held: its hold is not met. It is copied behind y.
//!   c  is held: its hold is met, but its session has an outbox. It is copied behind a.
//! ```
//!
//! A [`Hold`] is the number up to which changes must be safe, and a fence which every worker must
//! have passed. [`Holding`] lists the sessions with an outbox. They are looked at again when
//! `Shared::safe_seq` rises (`Message::Released`) and when a fence is passed. `release.rs` does all
//! this.

use crate::sessions::output::Hold;
use crate::sessions::unanswered::Answers;
use base::{FenceNo, MonoNs, SeqNo};
use driver::ConnId;
use keyspace::Numbers;
use resp::{OutBuf, OutPos};
use std::collections::VecDeque;

/// While a client has more held bytes than this (those of the queue included), nothing more is read
/// from it and no further step of a long reply is made. Below it, a pipeline goes on while its
/// replies wait for the disk.
pub const HELD_BYTES_MAX: usize = 1 << 20;
/// The same bound for all clients of a worker together: above it nothing more is read from those
/// which have held replies.
pub const HELD_WORKER_BYTES_MAX: usize = 64 << 20;
/// Memory of a queued chunk beside its bytes.
const CHUNK_BYTES: usize = size_of::<(OutBuf, Hold, Answers)>() + 16;

/// The replies which a session may not be sent yet.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Bytes, their hold, and the requests that are answered when they have left.
    pub(crate) chunks: VecDeque<(OutBuf, Hold, Answers)>,
    bytes: usize,
    /// Chunks that wait for a fence.
    fenced: usize,
    /// Since when its client has left, and waits for nothing else.
    pub(crate) leaves_since: Option<MonoNs>,
}

/// Up to where holds are met.
#[derive(Clone, Copy, Debug)]
pub struct Safe {
    /// Holds up to this are met.
    pub(crate) up_to: Hold,
    /// The last number that had been drawn then.
    pub(crate) last: SeqNo,
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
        self.chunks.push_back((chunk, hold, Answers::default()));
    }

    /// These requests are answered when the last chunk has left.
    pub fn answer_with_last(&mut self, answers: Answers) {
        if let Some((.., last)) = self.chunks.back_mut() {
            let before = last.count;
            *last = if before == 0 {
                answers
            } else {
                Answers { count: before + answers.count, ..*last }
            };
        }
    }

    /// The next chunk and the requests that it answers, if its hold is met.
    pub fn pop(&mut self, safe: Safe) -> Option<(OutBuf, Answers)> {
        if !safe.meets(&mut self.chunks.front_mut()?.1) {
            return None;
        }
        let (chunk, hold, answers) = self.chunks.pop_front()?;
        self.bytes -= chunk.len_between(OutPos::default(), chunk.position());
        self.fenced -= usize::from(hold.fence > FenceNo(0));
        Some((chunk, answers))
    }

    /// The number which the first chunk waits for.
    pub fn awaits(&self) -> Option<SeqNo> {
        self.chunks.front().map(|(_, hold, _)| hold.seq)
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

/// The replies between two positions: small values are copied, big ones shared.
pub(crate) fn copy(from: OutPos, to: OutPos, out: &OutBuf) -> OutBuf {
    let blobs = out.blobs[from.blobs..to.blobs].iter();
    OutBuf {
        bytes: out.bytes[from.bytes..to.bytes].to_vec(),
        blobs: blobs.map(|part| part.moved_to(part.position - from.bytes)).collect(),
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
        std::iter::from_fn(|| outbox.pop(safe)).flat_map(|(chunk, _)| chunk.bytes).collect()
    }

    /// A chunk without a hold of its own stays behind an earlier chunk which is held.
    #[test]
    fn bytes_are_sent_in_order_up_to_the_first_unmet_hold() {
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

    /// A read without locks has no sequence number until its fence has completed.
    #[test]
    fn a_fenced_chunk_takes_the_number_after_the_fence() {
        let mut outbox = Outbox::default();
        outbox.push(chunk("a"), Hold { seq: Numbers::LATEST, fence: FenceNo(2) });
        assert_eq!(popped(&mut outbox, hold(9, 1)), b"");
        assert_eq!(popped(&mut outbox, hold(6, 2)), b"");
        assert_eq!(popped(&mut outbox, hold(7, 2)), b"a");
    }

    #[test]
    fn receiving_stops_beyond_the_limit_and_behind_a_fence() {
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
