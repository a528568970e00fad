//! Replies on their way out: segments of the worker's arena, in order per session, each with the
//! sequence number that must be safe before its bytes may leave (its hold).

use base::SeqNo;
use resp::{OutBuf, OutPos};

/// When the arena grows past this, its segments are sent before more is parsed.
pub const ARENA_FLUSH_BYTES: usize = 256 << 10;

/// A run of reply bytes of one session.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Index of the session.
    pub session: u32,
    /// First byte in the arena.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// First big value in the arena's list.
    pub blob_start: usize,
    /// One past the last.
    pub blob_end: usize,
    /// The bytes may leave once everything up to here is durable.
    pub hold: SeqNo,
}

/// The segments of this turn, in the order in which they were written.
#[derive(Debug, Default)]
pub struct Output {
    /// Finished ones.
    pub segments: Vec<Segment>,
    open: Option<Segment>,
}

impl Output {
    /// Replies from here on belong to `session`.
    #[inline]
    pub fn open(&mut self, session: u32, out: &OutBuf) {
        if let Some(s) = &self.open {
            if s.session == session {
                return;
            }
            self.close(out);
        }
        self.open = Some(Segment {
            session,
            start: out.bytes.len(),
            end: 0,
            blob_start: out.blobs.len(),
            blob_end: 0,
            hold: SeqNo(0),
        });
    }

    /// The open segment's bytes wait for `seq`.
    #[inline]
    pub fn hold(&mut self, seq: SeqNo) {
        if let Some(s) = &mut self.open {
            s.hold = s.hold.max(seq);
        }
    }

    /// Drops what a command of this session has replied that did not come to its end.
    pub fn take_back(&mut self, session: u32, from: OutPos, out: &mut OutBuf) {
        let is_its = |s: &Segment| {
            s.session == session && from.bytes >= s.start && from.blobs >= s.blob_start
        };
        if self.open.as_ref().is_some_and(is_its) {
            out.truncate(from);
        }
    }

    /// Ends the open segment.
    pub fn close(&mut self, out: &OutBuf) {
        if let Some(mut s) = self.open.take() {
            s.end = out.bytes.len();
            s.blob_end = out.blobs.len();
            if s.end > s.start || s.blob_end > s.blob_start {
                self.segments.push(s);
            }
        }
    }
}
