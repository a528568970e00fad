//! What was gathered for the segment and is not durable: in memory, in order, for the case that it
//! must be written again.

use base::SeqNo;
use std::collections::VecDeque;

/// Buffers of this capacity at most are used again.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// So many buffers are kept although the load is over: new memory from the system costs more time
/// than the records which are put there.
const SPARE_MIN: usize = 32;

/// Bytes with a place in the segment.
#[derive(Debug)]
pub(super) struct Piece {
    /// Empty while they are being written.
    pub bytes: Vec<u8>,
    pub len: usize,
    pub at: u64,
    /// The last number that is whole with them.
    pub last: SeqNo,
}

impl Piece {
    /// Where it ends in the segment.
    pub fn end(&self) -> u64 {
        self.at + self.len as u64
    }
}

/// The pieces, those which are written first. Every call takes the same time whatever their count,
/// because a server under load has hundreds of them.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    queue: VecDeque<Piece>,
    /// So many of them are written.
    written: usize,
    /// Bytes of all, and of those which are written.
    bytes: usize,
    written_bytes: usize,
    /// Empty buffers, to be used again: at most as many as were in use since the last sync, or
    /// `SPARE_MIN`.
    spare: Vec<Vec<u8>>,
    peak: usize,
    /// Capacity of all buffers, those which are being written included.
    held: usize,
}

impl Pieces {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of all pieces.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory that the pieces and the spare buffers take.
    pub fn memory(&self) -> usize {
        self.held
    }

    /// Bytes of those which are written.
    pub fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    /// An empty buffer.
    pub fn buffer(&mut self) -> Vec<u8> {
        let spare = self.spare.pop().unwrap_or_default();
        self.held -= spare.capacity();
        spare
    }

    /// Appends a piece.
    pub fn push(&mut self, bytes: Vec<u8>, at: u64, last: SeqNo) {
        let len = bytes.len();
        self.bytes += len;
        self.held += bytes.capacity();
        self.queue.push_back(Piece { bytes, len, at, last });
        self.peak = self.peak.max(self.queue.len());
    }

    /// The last piece.
    pub fn back_mut(&mut self) -> Option<&mut Piece> {
        self.queue.back_mut()
    }

    /// The piece which is to be written next, or is being written.
    pub fn next_mut(&mut self) -> Option<&mut Piece> {
        self.queue.get_mut(self.written)
    }

    /// That piece is written; `bytes` is its buffer.
    pub fn end_write(&mut self, bytes: Vec<u8>) {
        let piece = self.next_mut().expect("it was being written");
        piece.bytes = bytes;
        let len = piece.len;
        self.written += 1;
        self.written_bytes += len;
    }

    /// The last piece which is written.
    pub fn last_written(&self) -> Option<&Piece> {
        self.written.checked_sub(1).map(|last| &self.queue[last])
    }

    /// None of them counts as written any more.
    pub fn forget_writes(&mut self) {
        (self.written, self.written_bytes) = (0, 0);
    }

    /// The segment is durable up to this length: frees what ends there or before.
    pub fn drop_durable(&mut self, end: u64) {
        while self.queue.front().is_some_and(|piece| piece.end() <= end)
            && let Some(Piece { mut bytes, len, .. }) = self.queue.pop_front()
        {
            self.bytes -= len;
            self.written -= 1;
            self.written_bytes -= len;
            if bytes.capacity() <= KEPT_BYTES_MAX {
                bytes.clear();
                self.spare.push(bytes);
            } else {
                self.held -= bytes.capacity();
            }
        }
        let kept = self.peak.max(SPARE_MIN).min(self.spare.len());
        self.held -= self.spare.drain(kept..).map(|bytes| bytes.capacity()).sum::<usize>();
        self.peak = self.queue.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_all(pieces: &mut Pieces) {
        while let Some(piece) = pieces.next_mut() {
            let bytes = std::mem::take(&mut piece.bytes);
            pieces.end_write(bytes);
        }
    }

    #[test]
    fn sums_follow_every_step() {
        let mut pieces = Pieces::default();
        assert!(pieces.is_empty() && pieces.last_written().is_none());
        pieces.push(vec![1; 10], 0, SeqNo(1));
        pieces.push(vec![2; 20], 10, SeqNo(2));
        assert_eq!((pieces.bytes(), pieces.written_bytes()), (30, 0));
        let bytes = std::mem::take(&mut pieces.next_mut().expect("the first").bytes);
        pieces.end_write(bytes);
        assert_eq!((pieces.bytes(), pieces.written_bytes()), (30, 10));
        assert_eq!(pieces.last_written().map(Piece::end), Some(10));
        assert_eq!(pieces.next_mut().map(|piece| piece.at), Some(10));
        pieces.forget_writes();
        assert_eq!((pieces.bytes(), pieces.written_bytes()), (30, 0));
        write_all(&mut pieces);
        pieces.drop_durable(29);
        assert_eq!((pieces.bytes(), pieces.written_bytes()), (20, 20));
        pieces.drop_durable(30);
        assert!(pieces.is_empty() && pieces.bytes() == 0 && pieces.written_bytes() == 0);
        assert_eq!((pieces.memory(), pieces.spare.len()), (30, 2), "the spare buffers");
        assert_eq!((pieces.buffer().len(), pieces.memory()), (0, 10));
    }

    #[test]
    fn buffers_are_used_again_and_go_when_the_load_is_over() {
        let mut pieces = Pieces::default();
        let mut end = 0;
        let mut round = |pieces: &mut Pieces, count: usize| {
            for _ in 0..count {
                let mut bytes = pieces.buffer();
                bytes.extend_from_slice(&[0; 100]);
                pieces.push(bytes, end, SeqNo(1));
                end += 100;
            }
            write_all(pieces);
            pieces.drop_durable(end);
            pieces.spare.len()
        };
        assert_eq!(round(&mut pieces, 1000), 1000);
        assert_eq!(round(&mut pieces, 1000), 1000, "the same ones");
        assert_eq!(round(&mut pieces, 3), SPARE_MIN);
        let spare: usize = pieces.spare.iter().map(Vec::capacity).sum();
        assert_eq!(pieces.memory(), spare);
    }
}
