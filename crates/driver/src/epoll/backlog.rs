//! Replies that a slow reader has not taken yet.

use base::Blob;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;

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

/// Small runs are joined up to this size, so that a slow reader costs few sends.
const JOIN: usize = 64 << 10;

/// Unsent bytes in order; big values are held by reference.
#[derive(Default)]
pub struct Backlog {
    pieces: VecDeque<Piece>,
    /// Sent bytes of the first piece.
    sent: usize,
    bytes: usize,
}

impl Backlog {
    /// Bytes not sent.
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

    /// Appends a reference to the part of a big value from `skip` on.
    pub fn push_shared(&mut self, blob: &Blob, skip: usize) {
        if skip >= blob.len() {
            return;
        }
        if self.pieces.is_empty() {
            self.sent = skip;
            self.bytes += blob.len() - skip;
            self.pieces.push_back(Piece::Shared(blob.clone()));
        } else if skip == 0 {
            self.bytes += blob.len();
            self.pieces.push_back(Piece::Shared(blob.clone()));
        } else {
            self.push(&blob.as_slice()[skip..]);
        }
    }

    /// Sends what the socket takes; returns the bytes that left.
    pub fn flush(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        let mut total = 0;
        while let Some(first) = self.pieces.front() {
            let rest = &first.as_slice()[self.sent..];
            let full = rest.len();
            match send(fd, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => {
                    total += n;
                    self.bytes -= n;
                    if n < full {
                        self.sent += n;
                        break;
                    }
                    self.sent = 0;
                    self.pieces.pop_front();
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(total)
    }
}
