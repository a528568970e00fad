//! The replies of a turn: segments of the worker's arena, in order per session, each with its
//! *hold*: what must have happened before its bytes may leave.

use base::{FenceNo, SeqNo};
use resp::{OutBuf, OutPos};

/// When the arena grows past this, its segments are sent before more is parsed.
pub const ARENA_FLUSH_BYTES: usize = 256 << 10;

/// What must have happened before a reply may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Hold {
    /// Everything up to this number is safe.
    pub seq: SeqNo,
    /// Every worker has passed this fence.
    pub fence: FenceNo,
}

impl Hold {
    /// No condition: the reply may leave.
    pub const NONE: Self = Self { seq: SeqNo(0), fence: FenceNo(0) };

    /// True if everything up to `safe` has happened and that is enough.
    #[inline]
    pub fn is_met(self, safe: Hold) -> bool {
        self.seq <= safe.seq && self.fence <= safe.fence
    }
}

/// A run of reply bytes of one session, with one hold. A session has several in a turn if others
/// were written between.
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
    /// When the bytes may leave.
    pub hold: Hold,
}

impl Segment {
    /// Bytes of it.
    pub fn len(&self, out: &OutBuf) -> usize {
        out.len_between(self.from(), self.to())
    }

    /// Where it begins.
    pub fn from(&self) -> OutPos {
        OutPos { bytes: self.start, blobs: self.blob_start }
    }

    /// Where it ends.
    pub fn to(&self) -> OutPos {
        OutPos { bytes: self.end, blobs: self.blob_end }
    }

    /// The part which the driver sends.
    #[inline]
    pub fn to_driver(self) -> driver::Segment {
        let Self { start, end, blob_start, blob_end, .. } = self;
        driver::Segment { start, end, blob_start, blob_end }
    }
}

/// The segments of this turn, in the order in which they were written.
#[derive(Debug, Default)]
pub struct Output {
    /// Finished ones.
    pub segments: Vec<Segment>,
    /// One of them has a hold.
    held: bool,
    open: Option<Segment>,
}

impl Output {
    /// Begins a segment: replies from here on belong to `session`.
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
            hold: Hold::NONE,
        });
    }

    /// The open segment's bytes wait for `seq`.
    #[inline]
    pub fn hold(&mut self, seq: SeqNo) {
        if let Some(s) = &mut self.open {
            s.hold.seq = s.hold.seq.max(seq);
        }
    }

    /// The open segment's bytes wait for all of this.
    pub fn hold_at(&mut self, hold: Hold) {
        self.hold(hold.seq);
        self.fence(hold.fence);
    }

    /// The open segment's bytes wait until every worker has passed a fence.
    pub fn fence(&mut self, no: FenceNo) {
        if let Some(s) = &mut self.open {
            s.hold.fence = s.hold.fence.max(no);
        }
    }

    /// The latest fence that the open segment's bytes wait for.
    pub fn fence_so_far(&self) -> FenceNo {
        self.open.as_ref().map_or(FenceNo(0), |s| s.hold.fence)
    }

    /// What the open segment's bytes wait for.
    pub fn hold_so_far(&self) -> Hold {
        self.open.as_ref().map_or(Hold::NONE, |s| s.hold)
    }

    /// Gives each of these sessions the same bytes of the arena: a message, which is written once.
    /// No segment is open. If the last bytes were given to the same sessions and these follow them,
    /// their segments go on, so that many messages leave with one send.
    pub fn share(&mut self, sessions: &[u32], (from, to): (OutPos, OutPos), hold: Hold) {
        debug_assert!(self.open.is_none(), "bytes of others would be between");
        self.held |= hold != Hold::NONE;
        let before = self.segments.len().saturating_sub(sessions.len());
        let last = &mut self.segments[before..];
        let goes_on = |(s, session): (&Segment, &u32)| {
            s.session == *session && s.to() == from && s.hold == hold
        };
        if last.len() == sessions.len() && last.iter().zip(sessions).all(goes_on) {
            for segment in last {
                (segment.end, segment.blob_end) = (to.bytes, to.blobs);
            }
            return;
        }
        self.segments.extend(sessions.iter().map(|session| Segment {
            session: *session,
            start: from.bytes,
            end: to.bytes,
            blob_start: from.blobs,
            blob_end: to.blobs,
            hold,
        }));
    }

    /// True if a segment that ended since the last call has a hold.
    #[inline]
    pub fn take_held(&mut self) -> bool {
        std::mem::take(&mut self.held)
    }

    /// Drops the unfinished reply of a command of this session which failed.
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
                self.held |= s.hold != Hold::NONE;
                self.segments.push(s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(output: &mut Output, out: &mut OutBuf, session: u32, text: &[u8], hold: u64) {
        output.open(session, out);
        out.bytes.extend_from_slice(text);
        output.hold(SeqNo(hold));
    }

    /// The bytes for each session, segment by segment.
    fn sent<'a>(output: &Output, out: &'a OutBuf) -> Vec<(u32, &'a [u8], u64)> {
        let sent = output.segments.iter();
        sent.map(|s| (s.session, &out.bytes[s.start..s.end], s.hold.seq.0)).collect()
    }

    /// A session which is written to again after another one has a second segment, behind the
    /// other's.
    #[test]
    fn segments_are_sent_in_write_order() {
        let (mut output, mut out) = (Output::default(), OutBuf::new());
        let writes = [(1, "a", 4), (1, "b", 2), (2, "c", 9), (1, "d", 5), (3, "", 0), (2, "e", 6)];
        for (session, text, hold) in writes {
            write(&mut output, &mut out, session, text.as_bytes(), hold);
        }
        output.close(&out);
        let expected: [(u32, &[u8], u64); 4] =
            [(1, b"ab", 4), (2, b"c", 9), (1, b"d", 5), (2, b"e", 6)];
        assert_eq!(sent(&output, &out), expected);
    }

    /// Only the session's own last write is removed.
    #[test]
    fn truncation_removes_only_the_end_of_the_open_segment() {
        let (mut output, mut out) = (Output::default(), OutBuf::new());
        write(&mut output, &mut out, 1, b"kept", 0);
        let from = out.position();
        write(&mut output, &mut out, 1, b"gone", 0);
        output.take_back(2, from, &mut out);
        assert_eq!(out.bytes, b"keptgone");
        output.take_back(1, from, &mut out);
        write(&mut output, &mut out, 2, b"other", 0);
        output.take_back(2, from, &mut out);
        output.close(&out);
        assert_eq!(sent(&output, &out), [(1, b"kept".as_slice(), 0)]);
    }
}
