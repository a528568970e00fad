//! Reading the file ahead: which reads follow each other. No I/O: it returns operations and is
//! handed their outcomes, which may come in any order; the blocks leave it in order.

use crate::persist::load::fault::LoadError;
use driver::{FileError, FileId, FileOp, FileValue, OpenHow};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 1 << 20;
/// Blocks in flight, and read but not scanned, at most.
pub(crate) const BLOCKS_AHEAD: usize = 8;

/// The reads of a file.
pub(crate) struct Reading {
    file: Option<FileId>,
    len: u64,
    /// Where the first block begins.
    from: u64,
    /// Where the next read begins.
    next_at: u64,
    /// The number of the first read whose block has not left.
    first: u64,
    /// The blocks from there on; `None` while they are in flight.
    blocks: VecDeque<Option<Vec<u8>>>,
}

/// What an outcome brings.
#[derive(Debug)]
pub(crate) enum Read {
    /// The file is open; it has so many bytes.
    Opened(u64),
    /// A block; [`Reading::take`] has those which are in order.
    Block,
}

impl Reading {
    /// The first operation; `from` bytes of the file are left out.
    pub(crate) fn begin(path: PathBuf, from: u64) -> (Self, FileOp) {
        let how = OpenHow { read: true, ..OpenHow::default() };
        let blocks = VecDeque::new();
        let reading = Self { file: None, len: 0, from, next_at: from, first: 0, blocks };
        (reading, FileOp::Open { path, how })
    }

    /// The length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The next read and its number, if there is one. `queued` blocks have left and are not scanned
    /// yet.
    pub(crate) fn next(&mut self, queued: usize) -> Option<(u64, FileOp)> {
        let file = self.file?;
        if self.next_at >= self.len || self.blocks.len() + queued >= BLOCKS_AHEAD {
            return None;
        }
        let (number, at) = (self.first + self.blocks.len() as u64, self.next_at);
        let bytes = self.bytes_at(at);
        self.next_at += bytes as u64;
        self.blocks.push_back(None);
        Some((number, FileOp::Read { file, at, bytes }))
    }

    fn bytes_at(&self, at: u64) -> usize {
        self.len.saturating_sub(at).min(BLOCK as u64) as usize
    }

    /// The operation with this number has completed; the number says nothing of the first one.
    pub(crate) fn on_done(
        &mut self,
        number: u64,
        outcome: Result<FileValue, FileError>,
    ) -> Result<Read, LoadError> {
        let at = self.from + number * BLOCK as u64;
        match outcome {
            Ok(FileValue::Opened { file, len, .. }) => {
                (self.file, self.len) = (Some(file), len);
                Ok(Read::Opened(len))
            }
            Ok(FileValue::Bytes(bytes)) if bytes.len() < self.bytes_at(at) => {
                Err(LoadError::shrunk(at + bytes.len() as u64))
            }
            Ok(FileValue::Bytes(bytes)) => {
                self.blocks[(number - self.first) as usize] = Some(bytes);
                Ok(Read::Block)
            }
            Ok(other) => unreachable!("not what an open or a read returns: {other:?}"),
            Err(e) => Err(LoadError::of_disk(at, e.errno)),
        }
    }

    /// The next block, if it was read.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let block = self.blocks.front_mut()?.take()?;
        self.blocks.pop_front();
        self.first += 1;
        Some(block)
    }

    /// True once every block has left.
    pub(crate) fn is_complete(&self) -> bool {
        self.file.is_some() && self.next_at >= self.len && self.blocks.is_empty()
    }

    /// Closes the file, if it is open. Reads in flight complete before.
    pub(crate) fn close(&mut self) -> Option<FileOp> {
        self.file.take().map(|file| FileOp::Close { file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::Inode;

    const FILE: FileId = FileId { index: 1, generation: 2 };

    fn opened(len: u64) -> Reading {
        let (mut reading, _) = Reading::begin("x".into(), 0);
        let open =
            reading.on_done(0, Ok(FileValue::Opened { file: FILE, len, inode: Inode::default() }));
        assert!(matches!(open, Ok(Read::Opened(n)) if n == len));
        reading
    }

    fn bytes(reading: &mut Reading, number: u64, len: usize) -> Result<Read, LoadError> {
        reading.on_done(number, Ok(FileValue::Bytes(vec![number as u8; len])))
    }

    #[test]
    fn blocks_leave_in_order_whatever_completes_first() {
        let mut reading = opened(3 * BLOCK as u64 - 10);
        let mut numbers = Vec::new();
        while let Some((number, FileOp::Read { at, bytes, .. })) = reading.next(0) {
            assert_eq!(at, number * BLOCK as u64);
            numbers.push((number, bytes));
        }
        assert_eq!(numbers, [(0, BLOCK), (1, BLOCK), (2, BLOCK - 10)]);
        bytes(&mut reading, 2, BLOCK - 10).expect("whole");
        assert!(reading.take().is_none());
        bytes(&mut reading, 0, BLOCK).expect("whole");
        assert_eq!(reading.take().map(|b| b[0]), Some(0));
        assert!(reading.take().is_none() && !reading.is_complete());
        bytes(&mut reading, 1, BLOCK).expect("whole");
        assert_eq!(reading.take().map(|b| b[0]), Some(1));
        assert_eq!(reading.take().map(|b| b.len()), Some(BLOCK - 10));
        assert!(reading.is_complete() && reading.next(0).is_none());
    }

    #[test]
    fn no_more_is_read_ahead_than_allowed() {
        let mut reading = opened(100 * BLOCK as u64);
        assert!(reading.next(BLOCKS_AHEAD).is_none(), "the queue is full");
        let mut count = 0;
        while reading.next(3).is_some() {
            count += 1;
        }
        assert_eq!(count, BLOCKS_AHEAD - 3);
        bytes(&mut reading, 0, BLOCK).expect("whole");
        assert!(reading.next(3).is_none(), "a block which has not left counts");
        reading.take().expect("read");
        assert!(reading.next(4).is_none() && reading.next(3).is_some());
    }

    #[test]
    fn a_file_which_becomes_shorter_and_a_disk_which_fails_are_errors() {
        let mut reading = opened(2 * BLOCK as u64);
        while reading.next(0).is_some() {}
        let shrunk = bytes(&mut reading, 1, 7).expect_err("too few");
        assert_eq!(shrunk.offset, BLOCK as u64 + 7);
        let failed = FileError { errno: rustix::io::Errno::IO, written: 0 };
        let failed = reading.on_done(1, Err(failed)).expect_err("an error");
        assert!(failed.text.starts_with("at byte 1048576: Input/output error"), "{}", failed.text);
        assert!(matches!(reading.close(), Some(FileOp::Close { file: FILE })));
        assert!(reading.close().is_none() && reading.next(0).is_none());
    }
}
