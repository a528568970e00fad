//! When replies leave: at the end of a turn, segments whose hold is not met move into the outboxes
//! of their sessions, and chunks whose hold is met leave these. The drawing is in `outbox.rs`.

use crate::sessions::outbox::{HELD_WORKER_BYTES_MAX, Outbox, Safe, copy};
use crate::sessions::output::{ARENA_FLUSH_BYTES, Hold, Segment};
use crate::sessions::unanswered::Answers;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::SeqNo;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Release};
use driver::{ConnId, Driver};
use resp::OutBuf;

impl Core {
    /// DEBUG SAFE-UP-TO: as if a journal had written so far; `None` stands for no journal.
    pub(crate) fn publish_safe(&mut self, safe: Option<u64>) {
        let shared = Arc::clone(&self.shared);
        shared.keyspace.numbers().set_drawing(safe.is_some());
        shared.safe_seq.store(safe.unwrap_or(u64::MAX), Release);
        self.publish_fence();
        shared.post_others(self.id, || Message::Released);
    }

    /// Up to where holds are met. (The last number is read last: a worker which has passed a fence
    /// has drawn its numbers before.)
    pub(crate) fn safe(&self) -> Safe {
        let seq = SeqNo(self.shared.safe_seq.load(Acquire));
        let up_to = Hold { seq, fence: self.shared.keyspace.fences().passed() };
        Safe { up_to, last: self.shared.keyspace.numbers().last() }
    }

    /// Moves segments which must wait into the outboxes of their sessions, and chunks which may
    /// leave from the outboxes into the arena, in front of the remaining segments. True if the
    /// arena is full and more may leave.
    fn sort_segments(&mut self, out: &mut OutBuf) -> bool {
        let safe = self.safe();
        let room = out.bytes.len() + ARENA_FLUSH_BYTES;
        let (mut sorted, mut more, mut awaits_fence) = (Vec::new(), false, false);
        for conn in std::mem::take(&mut self.holding.conns) {
            let Some(session) = self.sessions[conn.index as usize].as_deref_mut() else { continue };
            let Some(outbox) = &mut session.outbox else { continue };
            while out.bytes.len() < room
                && let Some((chunk, answers)) = outbox.pop(safe)
            {
                session.unanswered.leave(answers);
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
        self.hold_answers();
        more || (awaits_fence && self.await_fence(safe))
    }

    /// Requests whose replies were held in this turn are answered when the last of them has left.
    fn hold_answers(&mut self) {
        for conn in &self.holding.conns {
            if let Some(session) = self.sessions[conn.index as usize].as_deref_mut()
                && let Some(outbox) = &mut session.outbox
                && let answers @ Answers { count: 1.., .. } = session.unanswered.take_done()
            {
                outbox.answer_with_last(answers);
            }
        }
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

/// Appends a released chunk to the arena as a segment.
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

impl<D: Driver<Message = Message>> Worker<D> {
    /// Sends a session a push: bytes which are no reply. A reply which is being written in steps
    /// ends first.
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

    /// The last step of a reply was written: the pushes which waited behind it follow.
    pub(crate) fn release_pushes(&mut self, conn: ConnId) {
        if self.core.session_mut(conn).is_some_and(|s| s.pushes.is_some()) {
            let (_, out) = self.driver.io();
            self.core.write_pushes(out, conn);
            self.on_unsent(conn);
        }
    }

    /// Sends what may leave, while something is held.
    #[cold]
    pub(crate) fn flush_held(&mut self) {
        self.core.follow(); // no command is under way, so this worker delays no fence
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
