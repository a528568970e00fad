//! Output: sent at once or in batches; bytes that the socket does not accept wait in a backlog.

use super::Reactor;
use super::backlog::{Backlog, PIECES_MAX};
use super::conns::apart;
use crate::poller::Poller;
use crate::trouble::Stream;
use crate::{CloseReason, ConnId, Event, OutBuf, Segment};
use base::out::BlobPart;
use rustix::io::Errno;
use std::io::IoSlice;

/// Bytes of arena memory kept between turns.
pub const ARENA_KEPT: usize = 1 << 20;
/// Bytes of one connection that a turn sends from its backlog, and of a reply with references: a
/// reader as fast as the worker would keep it for itself. Overshot by at most one run.
pub const FLUSH_MAX: usize = 1 << 20;
/// Maximum bytes of input discarded at a graceful close: unread input would turn the close into a
/// reset.
pub const DISCARD_MAX: usize = 1 << 20;

impl<P: Poller, M: Send> Reactor<P, M> {
    /// Sends a segment: in a batch where the poller defers, else at once.
    #[inline]
    pub(super) fn send_segment(&mut self, id: ConnId, s: Segment) -> usize {
        if P::DEFERS && s.blob_start == s.blob_end {
            self.queue(id, s)
        } else {
            self.send_at_once(id, s)
        }
    }

    /// Adds a segment to the next batch. If the connection already has a segment there that this
    /// one does not extend, the batch is sent first: of two sends on one stream the first may be
    /// cut short, and the second must not overtake its remainder.
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

    /// Sends the batch; unsent bytes go to backlogs.
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
                continue; // no byte of the segment was sent
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

    /// Sends a segment immediately.
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

    /// Sends runs of bytes and the big values between them, many with one call. Returns the number
    /// of bytes sent and whether those are all.
    fn send_with_blobs(&mut self, id: ConnId, s: Segment) -> Result<(usize, bool), Errno> {
        let Some(conn) = self.conns.find(id) else { return Ok((0, true)) };
        let mut runs = runs(&self.out, s).peekable();
        let (mut total, mut calls) = (0, 0);
        while runs.peek().is_some() && total < FLUSH_MAX {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (mut count, mut full) = (0, 0);
            while count < PIECES_MAX
                && total + full < FLUSH_MAX
                && let Some(run) = runs.next()
            {
                pieces[count] = IoSlice::new(run);
                count += 1;
                full += run.len();
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

    /// Moves the unsent part to the backlog: bytes by copy, big values by reference.
    fn push_unsent(&mut self, id: ConnId, s: Segment, sent: usize) -> usize {
        let Some(conn) = self.conns.find_mut(id) else { return 0 };
        if segment_len(&self.out, s) == sent {
            return conn.backlog.as_ref().map_or(0, |b| b.len());
        }
        let backlog = conn.backlog.get_or_insert_default();
        let mut skip = sent;
        for piece in pieces(&self.out, s) {
            let n = skip.min(piece.len());
            skip -= n;
            match piece {
                Piece::Bytes(bytes) => backlog.push(&bytes[n..]),
                Piece::Blob(part) => backlog.push_shared(part, n),
            }
        }
        let left = backlog.len();
        self.mark_stale(id);
        left
    }

    /// Sends from the backlog of a connection whose socket is writable again.
    pub(super) fn flush_backlog(&mut self, id: ConnId) -> Option<Event<M>> {
        let conn = self.conns.find_mut(id)?;
        let backlog = conn.backlog.as_mut()?;
        let mut total = 0;
        while backlog.len() > 0 && total < FLUSH_MAX {
            let most = FLUSH_MAX - total;
            let taken = send_front(&mut self.poller, &conn.stream, backlog, most);
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
        conn.hangup_seen = false; // it may matter after the last reply: report it again
        let closing = conn.is(apart::CLOSING);
        self.mark_stale(id);
        if closing {
            self.close_gracefully(id);
            return None;
        }
        Some(Event::Drained { conn: id })
    }

    /// Shuts down output; input is still received.
    pub(super) fn shutdown_output(&mut self, id: ConnId) {
        if P::DEFERS && self.conns.find(id).is_some_and(|c| c.queued) {
            self.send_queued();
        }
        let Some(conn) = self.conns.find(id).filter(|c| !c.dead) else { return };
        assert!(conn.backlog.is_none(), "what waits would be lost");
        self.poller.shutdown_write(&conn.stream);
    }

    /// Closes gracefully after the last byte is sent: shuts down output and discards unread input.
    pub(super) fn close_gracefully(&mut self, id: ConnId) {
        let Some(conn) = self.conns.find_mut(id) else { return };
        if conn.dead {
            return;
        }
        self.poller.shutdown_write(&conn.stream);
        self.poller.discard(&conn.stream, DISCARD_MAX);
        self.end(id, CloseReason::Peer);
    }
}

/// Sends the first runs of a backlog with one call. Returns the number of bytes sent and whether
/// those are all bytes of the call.
fn send_front<P: Poller>(
    poller: &mut P,
    stream: &P::Stream,
    backlog: &mut Backlog,
    most: usize,
) -> Result<(usize, bool), Errno> {
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let count = backlog.front(&mut pieces, most);
    let full = pieces[..count].iter().map(|p| p.len()).sum::<usize>();
    let sent = poller.send_pieces(stream, &pieces[..count])?;
    backlog.advance(sent);
    Ok((sent, sent == full))
}

/// A piece of a segment.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Bytes(&'a [u8]),
    Blob(&'a BlobPart),
}

impl<'a> Piece<'a> {
    fn len(self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Blob(part) => part.len(),
        }
    }

    /// Its bytes, as runs of contiguous memory.
    fn runs(self) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, part) = match self {
            Piece::Bytes(bytes) => (Some(bytes), None),
            Piece::Blob(part) => (None, Some(part)),
        };
        bytes.into_iter().chain(part.into_iter().flat_map(BlobPart::pages))
    }
}

/// The pieces of a segment in order.
fn pieces(out: &OutBuf, s: Segment) -> impl Iterator<Item = Piece<'_>> {
    let parts = &out.blobs[s.blob_start..s.blob_end];
    let starts = std::iter::once(s.start).chain(parts.iter().map(|part| part.position));
    let ends = parts.iter().map(|part| part.position).chain([s.end]);
    let parts = parts.iter().map(Some).chain([None]);
    starts.zip(ends).zip(parts).flat_map(|((from, to), part)| {
        [Some(Piece::Bytes(&out.bytes[from..to])), part.map(Piece::Blob)].into_iter().flatten()
    })
}

/// The bytes of a segment in order, as runs of contiguous memory; none is empty.
fn runs(out: &OutBuf, s: Segment) -> impl Iterator<Item = &[u8]> {
    pieces(out, s).flat_map(Piece::runs).filter(|run| !run.is_empty())
}

fn segment_len(out: &OutBuf, s: Segment) -> usize {
    let blobs = out.blobs[s.blob_start..s.blob_end].iter().map(BlobPart::len).sum::<usize>();
    s.end - s.start + blobs
}
