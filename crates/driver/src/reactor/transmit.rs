//! Output: sent at once or together; what the peer does not take waits in a backlog.

use super::Reactor;
use super::backlog::{Backlog, PIECES_MAX};
use crate::poller::Poller;
use crate::trouble::Stream;
use crate::{CloseReason, ConnId, Event, OutBuf, Segment};
use rustix::io::Errno;
use std::io::IoSlice;

/// Arena memory kept between turns.
pub const ARENA_KEPT: usize = 1 << 20;
/// Bytes of a backlog sent per turn before the next connection has its turn (overshot by one send).
pub const FLUSH_MAX: usize = 1 << 20;
/// Input discarded when a connection is closed in good order, so that the close is no reset.
pub const DISCARD_MAX: usize = 1 << 20;

impl<P: Poller, M: Send> Reactor<P, M> {
    /// Sends a segment, with others where the world defers.
    #[inline]
    pub(super) fn send_segment(&mut self, id: ConnId, s: Segment) -> usize {
        if P::DEFERS && s.blob_start == s.blob_end {
            self.queue(id, s)
        } else {
            self.send_at_once(id, s)
        }
    }

    /// Puts a segment behind those that leave together. The order of two sends under way on one
    /// stream is not kept if the first is cut short: the second one waits for the first one's
    /// result.
    fn queue(&mut self, id: ConnId, s: Segment) -> usize {
        let Some(conn) = self.conns.find_mut(id) else { return 0 };
        if conn.dead || s.start == s.end {
            return 0;
        }
        if conn.backlog.is_some() {
            return self.push_unsent(id, s, 0);
        }
        if conn.queued {
            if let Some((last, before)) = self.queued.last_mut()
                && *last == id
                && before.end == s.start
            {
                before.end = s.end;
                return 0;
            }
            self.send_queued();
            return self.queue(id, s);
        }
        conn.queued = true;
        self.queued.push((id, s));
        0
    }

    /// Sends what waits in the queue; the rest of what did not leave whole goes to backlogs.
    pub(super) fn send_queued(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let Self { poller, conns, out, queued, short, .. } = self;
        let batch = queued.iter().enumerate().filter_map(|(number, (id, s))| {
            let conn = conns.find(*id).filter(|c| !c.dead)?;
            Some((number as u32, &conn.stream, &out.bytes[s.start..s.end]))
        });
        poller.send_batch(batch, short);
        let queued = std::mem::take(&mut self.queued);
        let mut short = std::mem::take(&mut self.short);
        let mut results = short.iter().peekable();
        for (number, (id, s)) in queued.iter().enumerate() {
            let Some(conn) = self.conns.find_mut(*id) else { continue };
            conn.queued = false;
            if conn.dead {
                continue; // nothing of it was sent
            }
            match results.next_if(|(n, _)| *n == number as u32) {
                None => self.count_send(s.end - s.start),
                Some((_, Ok(sent))) => self.cut_short(*id, *s, *sent),
                Some((_, Err(error))) => match Stream::of(*error) {
                    Stream::Later => self.cut_short(*id, *s, 0),
                    Stream::Over => self.end(*id, CloseReason::Error),
                },
            }
        }
        assert!(results.next().is_none(), "results come in the order of the queue");
        short.clear();
        self.short = short;
        self.queued = queued;
        self.queued.clear();
    }

    fn cut_short(&mut self, id: ConnId, s: Segment, sent: usize) {
        self.count_send(sent);
        self.push_unsent(id, s, sent);
        self.backlogged.push(id);
    }

    /// Sends a segment before it returns.
    #[inline]
    pub(super) fn send_at_once(&mut self, id: ConnId, s: Segment) -> usize {
        if P::DEFERS && self.conns.find(id).is_some_and(|c| c.queued) {
            self.send_queued();
        }
        let Some(conn) = self.conns.find_mut(id) else { return 0 };
        if conn.dead {
            return 0;
        }
        let mut sent = 0;
        if conn.backlog.is_none() && s.blob_start == s.blob_end {
            let bytes = &self.out.bytes[s.start..s.end];
            if bytes.is_empty() {
                return 0;
            }
            match self.poller.send(&conn.stream, bytes) {
                Ok(n) => sent = n,
                Err(error) if Stream::of(error) == Stream::Later => {}
                Err(_) => {
                    self.end(id, CloseReason::Error);
                    return 0;
                }
            }
            self.count_send(sent);
            if sent == s.end - s.start {
                return 0;
            }
        } else if conn.backlog.is_none() {
            match self.send_with_blobs(id, s) {
                Ok((_, true)) => return 0,
                Ok((n, false)) => sent = n,
                Err(_) => {
                    self.end(id, CloseReason::Error);
                    return 0;
                }
            }
        }
        self.push_unsent(id, s, sent)
    }

    fn count_send(&mut self, bytes: usize) {
        self.stats.sends += 1;
        self.stats.bytes_sent += bytes as u64;
        self.stats.bytes_per_send.record(bytes as u64);
    }

    /// Sends runs of bytes and big values in between, many with one call. Returns the bytes that
    /// left and whether those are all.
    fn send_with_blobs(&mut self, id: ConnId, s: Segment) -> Result<(usize, bool), Errno> {
        let Some(conn) = self.conns.find(id) else { return Ok((0, true)) };
        let mut runs = runs(&self.out, s).peekable();
        let (mut total, mut calls) = (0, 0);
        while runs.peek().is_some() {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (mut count, mut full) = (0, 0);
            for (place, run) in pieces.iter_mut().zip(runs.by_ref()) {
                *place = IoSlice::new(run.bytes(&self.out));
                count += 1;
                full += place.len();
            }
            calls += 1;
            let sent = match self.poller.send_pieces(&conn.stream, &pieces[..count]) {
                Ok(n) => n,
                Err(error) if Stream::of(error) == Stream::Later => 0,
                Err(e) => return Err(e),
            };
            total += sent;
            if sent < full {
                break;
            }
        }
        let all = total == segment_len(&self.out, s);
        self.stats.sends += calls;
        self.stats.bytes_sent += total as u64;
        self.stats.bytes_per_send.record(total as u64);
        Ok((total, all))
    }

    /// What was not sent goes to the backlog: bytes by copy, big values by reference.
    fn push_unsent(&mut self, id: ConnId, s: Segment, sent: usize) -> usize {
        let Some(conn) = self.conns.find_mut(id) else { return 0 };
        if segment_len(&self.out, s) == sent {
            return conn.backlog.as_ref().map_or(0, |b| b.len());
        }
        let backlog = conn.backlog.get_or_insert_default();
        let mut skip = sent;
        for run in runs(&self.out, s) {
            let n = skip.min(run.bytes(&self.out).len());
            skip -= n;
            match run {
                Run::Bytes { from, to } => backlog.push(&self.out.bytes[from + n..to]),
                Run::Blob(i) => backlog.push_shared(&self.out.blobs[i].1, n),
            }
        }
        let left = backlog.len();
        self.mark_stale(id);
        left
    }

    /// The socket of a connection with a backlog takes bytes again.
    pub(super) fn flush_backlog(&mut self, id: ConnId) -> Option<Event<M>> {
        let conn = self.conns.find_mut(id)?;
        let backlog = conn.backlog.as_mut()?;
        let mut total = 0;
        while backlog.len() > 0 && total < FLUSH_MAX {
            let taken = send_front(&mut self.poller, &conn.stream, backlog);
            match taken {
                Ok((sent, full)) => {
                    total += sent;
                    self.stats.sends += 1;
                    self.stats.bytes_sent += sent as u64;
                    self.stats.bytes_per_send.record(sent as u64);
                    if !full {
                        break;
                    }
                }
                Err(error) if Stream::of(error) == Stream::Later => break,
                Err(_) => {
                    self.end(id, CloseReason::Error);
                    return None;
                }
            }
        }
        if backlog.len() > 0 {
            return None;
        }
        conn.backlog = None;
        conn.hangup_seen = false; // it was told while replies waited: perhaps it means something else now
        let closing = conn.closing;
        self.mark_stale(id);
        if closing {
            self.finish(id);
            return None;
        }
        Some(Event::Drained { conn: id })
    }

    /// Nothing more will be sent; input still comes.
    pub(super) fn shutdown_output(&mut self, id: ConnId) {
        if P::DEFERS && self.conns.find(id).is_some_and(|c| c.queued) {
            self.send_queued();
        }
        let Some(conn) = self.conns.find(id).filter(|c| !c.dead) else { return };
        assert!(conn.backlog.is_none(), "what waits would be lost");
        self.poller.shutdown_write(&conn.stream);
    }

    /// Everything has left: says so to the peer, discards what it sent meanwhile.
    pub(super) fn finish(&mut self, id: ConnId) {
        let Some(conn) = self.conns.find_mut(id) else { return };
        if conn.dead {
            return;
        }
        self.poller.shutdown_write(&conn.stream);
        self.poller.discard(&conn.stream, DISCARD_MAX);
        self.end(id, CloseReason::Peer);
    }
}

/// One send of a backlog's first runs: the bytes that left, and whether those were all that it was
/// given.
fn send_front<P: Poller>(
    poller: &mut P,
    stream: &P::Stream,
    backlog: &mut Backlog,
) -> Result<(usize, bool), Errno> {
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let count = backlog.front(&mut pieces);
    let full = pieces[..count].iter().map(|p| p.len()).sum::<usize>();
    let sent = poller.send_pieces(stream, &pieces[..count])?;
    backlog.advance(sent);
    Ok((sent, sent == full))
}

/// A piece of a segment.
#[derive(Clone, Copy)]
enum Run {
    Bytes { from: usize, to: usize },
    Blob(usize),
}

impl Run {
    fn bytes(self, out: &OutBuf) -> &[u8] {
        match self {
            Run::Bytes { from, to } => &out.bytes[from..to],
            Run::Blob(i) => out.blobs[i].1.as_slice(),
        }
    }
}

/// The pieces of a segment in order, empty ones left out.
fn runs(out: &OutBuf, s: Segment) -> impl Iterator<Item = Run> {
    let starts =
        std::iter::once(s.start).chain(out.blobs[s.blob_start..s.blob_end].iter().map(|b| b.0));
    let ends = out.blobs[s.blob_start..s.blob_end].iter().map(|b| b.0).chain([s.end]);
    let blobs = (s.blob_start..s.blob_end).map(Some).chain([None]);
    starts
        .zip(ends)
        .zip(blobs)
        .flat_map(|((from, to), blob)| [Some(Run::Bytes { from, to }), blob.map(Run::Blob)])
        .flatten()
        .filter(|run| !run.bytes(out).is_empty())
}

fn segment_len(out: &OutBuf, s: Segment) -> usize {
    let blobs = out.blobs[s.blob_start..s.blob_end].iter().map(|(_, b)| b.len()).sum::<usize>();
    s.end - s.start + blobs
}
