//! Replies that a slow reader has not received yet.

use base::out::BlobPart;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Small runs are joined up to this size, so that a slow reader costs few sends.
pub const JOIN: usize = 64 << 10;
/// Maximum number of runs per send call.
pub const PIECES_MAX: usize = 64;

enum Piece {
    Bytes(Vec<u8>),
    Shared(BlobPart),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Shared(part) => part.len(),
        }
    }

    /// The bytes from `skip` on, as runs of contiguous memory.
    fn runs(&self, skip: usize) -> impl Iterator<Item = &[u8]> {
        let (bytes, part) = match self {
            Piece::Bytes(bytes) => (Some(&bytes[skip..]), None),
            Piece::Shared(part) => (None, Some(part)),
        };
        bytes.into_iter().chain(part.into_iter().flat_map(move |part| part.pages_from(skip)))
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
    pub fn push_shared(&mut self, part: &BlobPart, skip: usize) {
        if skip >= part.len() {
            return;
        }
        assert!(skip == 0 || self.pieces.is_empty(), "bytes leave in order");
        self.sent += skip;
        self.bytes += part.len() - skip;
        self.pieces.push_back(Piece::Shared(part.clone()));
    }

    /// Writes the first runs into `into`, as many as one send takes, and none behind `most` bytes;
    /// returns their number.
    pub fn front<'a>(&'a self, into: &mut [IoSlice<'a>; PIECES_MAX], most: usize) -> usize {
        let skips = std::iter::once(self.sent).chain(std::iter::repeat(0));
        let runs = self.pieces.iter().zip(skips).flat_map(|(piece, skip)| piece.runs(skip));
        let (mut count, mut bytes) = (0, 0);
        for (place, run) in into.iter_mut().zip(runs) {
            if bytes >= most {
                break;
            }
            *place = IoSlice::new(run);
            (count, bytes) = (count + 1, bytes + run.len());
        }
        count
    }

    /// Removes `count` sent bytes.
    pub fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "no more leaves than there is");
        self.bytes -= count;
        while let Some(first) = self.pieces.front() {
            let left = first.len() - self.sent;
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
    use base::Blob;
    use base::blob::PAGE_BYTES;

    fn part(bytes: &[u8]) -> BlobPart {
        BlobPart::whole(0, Blob::from(bytes))
    }

    fn all(backlog: &Backlog) -> Vec<u8> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let n = backlog.front(&mut pieces, usize::MAX);
        pieces[..n].iter().flat_map(|p| p.to_vec()).collect()
    }

    #[test]
    fn bytes_leave_in_order_at_any_send_size() {
        for step in 1..12 {
            let mut backlog = Backlog::default();
            backlog.push_shared(&part(b"abcdef"), 2);
            backlog.push(b"gh");
            backlog.push(b"ij");
            backlog.push_shared(&part(b"klm"), 0);
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
        let value = part(b"value");
        let mut backlog = Backlog::default();
        backlog.push(b"head");
        backlog.push_shared(&value, 0);
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        assert_eq!(backlog.front(&mut pieces, usize::MAX), 2);
        let place = value.pages().next().map(<[u8]>::as_ptr);
        assert_eq!(Some(pieces[1].as_ptr()), place);
    }

    #[test]
    fn one_send_takes_a_bounded_number_of_runs() {
        let mut backlog = Backlog::default();
        for _ in 0..=PIECES_MAX {
            backlog.push_shared(&part(b"v"), 0);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        assert_eq!(backlog.front(&mut pieces, usize::MAX), PIECES_MAX);
        backlog.advance(PIECES_MAX);
        assert_eq!(backlog.len(), 1);
    }

    #[test]
    fn a_string_of_pages_leaves_page_by_page() {
        let bytes: Vec<u8> = (0..2_500_000_u32).map(|at| (at / 7) as u8).collect();
        let blob = Blob::from(&bytes[..]);
        let range = 3..bytes.len() - 5;
        let mut expected = &bytes[range.clone()];
        let mut backlog = Backlog::default();
        backlog.push_shared(&BlobPart { position: 0, blob, range }, 10);
        expected = &expected[10..];
        for step in [1, PAGE_BYTES - 13, 1, PAGE_BYTES, 100_000].into_iter().cycle() {
            assert_eq!(backlog.len(), expected.len());
            let front = all(&backlog);
            assert_eq!(front, expected[..front.len()]);
            if front.is_empty() {
                break;
            }
            let step = step.min(front.len());
            backlog.advance(step);
            expected = &expected[step..];
        }
        assert!(expected.is_empty() && backlog.pieces.is_empty());
    }
}
