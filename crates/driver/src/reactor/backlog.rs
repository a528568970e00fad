//! Replies that a slow reader has not received yet.

use base::Blob;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Small runs are joined up to this size, so that a slow reader costs few sends.
pub const JOIN: usize = 64 << 10;
/// Maximum number of runs per send call.
pub const PIECES_MAX: usize = 64;

enum Piece {
    Bytes(Vec<u8>),
    Shared(Blob),
}

impl Piece {
    fn as_slice(&self) -> &[u8] {
        match self {
            Piece::Bytes(b) => b,
            Piece::Shared(b) => b.as_slice(),
        }
    }
}

/// Unsent bytes in order; big values are held by reference.
#[derive(Default)]
pub struct Backlog {
    pieces: VecDeque<Piece>,
    /// How many bytes of the first piece are sent.
    sent: usize,
    bytes: usize,
}

impl Backlog {
    /// The number of unsent bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Appends a copy.
    pub fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece::Bytes(last)) if last.len() + bytes.len() <= JOIN => {
                last.extend_from_slice(bytes);
            }
            _ => self.pieces.push_back(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a reference to a big value, of which the first `skip` bytes are sent already. `skip`
    /// must be 0 unless the backlog is empty.
    pub fn push_shared(&mut self, blob: &Blob, skip: usize) {
        if skip >= blob.len() {
            return;
        }
        assert!(skip == 0 || self.pieces.is_empty(), "bytes leave in order");
        self.sent += skip;
        self.bytes += blob.len() - skip;
        self.pieces.push_back(Piece::Shared(blob.clone()));
    }

    /// Writes the first runs into `into`, as many as one send takes; returns their number.
    pub fn front<'a>(&'a self, into: &mut [IoSlice<'a>; PIECES_MAX]) -> usize {
        let mut count = 0;
        for (place, piece) in into.iter_mut().zip(&self.pieces) {
            let skip = if count == 0 { self.sent } else { 0 };
            *place = IoSlice::new(&piece.as_slice()[skip..]);
            count += 1;
        }
        count
    }

    /// Removes `count` sent bytes.
    pub fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "no more leaves than there is");
        self.bytes -= count;
        while let Some(first) = self.pieces.front() {
            let left = first.as_slice().len() - self.sent;
            if count < left {
                self.sent += count;
                return;
            }
            count -= left;
            self.sent = 0;
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(backlog: &Backlog) -> Vec<u8> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let n = backlog.front(&mut pieces);
        pieces[..n].iter().flat_map(|p| p.to_vec()).collect()
    }

    #[test]
    fn bytes_leave_in_order_at_any_send_size() {
        for step in 1..12 {
            let mut backlog = Backlog::default();
            backlog.push_shared(&Blob::from(&b"abcdef"[..]), 2);
            backlog.push(b"gh");
            backlog.push(b"ij");
            backlog.push_shared(&Blob::from(&b"klm"[..]), 0);
            backlog.push(b"n");
            let mut expected: &[u8] = b"cdefghijklmn";
            while backlog.len() > 0 {
                assert_eq!(all(&backlog), expected);
                assert_eq!(backlog.len(), expected.len());
                let n = step.min(expected.len());
                backlog.advance(n);
                expected = &expected[n..];
            }
            assert!(backlog.pieces.is_empty());
        }
    }

    #[test]
    fn small_runs_are_joined_up_to_the_limit() {
        let mut backlog = Backlog::default();
        backlog.push(&vec![b'x'; JOIN - 1]);
        backlog.push(b"y");
        assert_eq!(backlog.pieces.len(), 1);
        backlog.push(b"z");
        assert_eq!(backlog.pieces.len(), 2);
    }

    #[test]
    fn a_shared_value_is_not_copied() {
        let blob = Blob::from(&b"value"[..]);
        let mut backlog = Backlog::default();
        backlog.push(b"head");
        backlog.push_shared(&blob, 0);
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        assert_eq!(backlog.front(&mut pieces), 2);
        assert_eq!(pieces[1].as_ptr(), blob.as_slice().as_ptr());
    }

    #[test]
    fn one_send_takes_a_bounded_number_of_runs() {
        let mut backlog = Backlog::default();
        for _ in 0..=PIECES_MAX {
            backlog.push_shared(&Blob::from(&b"v"[..]), 0);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        assert_eq!(backlog.front(&mut pieces), PIECES_MAX);
        backlog.advance(PIECES_MAX);
        assert_eq!(backlog.len(), 1);
    }
}
