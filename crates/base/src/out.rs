//! The output buffer of replies: bytes, and between them references to big values.

use crate::blob::{Blob, Pages};
use std::ops::Range;

/// Bytes to be sent, with big buffers in between that are not copied.
#[derive(Clone, Debug, Default)]
pub struct OutBuf {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Big buffers, in the order of their positions.
    pub blobs: Vec<BlobPart>,
}

/// A big buffer, or a part of one, between the bytes of a reply.
#[derive(Clone, Debug)]
pub struct BlobPart {
    /// It is sent *before* the byte at this position.
    pub position: usize,
    /// The buffer.
    pub blob: Blob,
    /// The part of it that is sent; it lies within the length.
    pub range: Range<usize>,
}

impl BlobPart {
    /// The whole of a buffer.
    pub fn whole(position: usize, blob: Blob) -> Self {
        let range = 0..blob.len();
        Self { position, blob, range }
    }

    /// Bytes to be sent.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The bytes to be sent, as runs of contiguous memory.
    pub fn pages(&self) -> Pages<'_> {
        self.pages_from(0)
    }

    /// As [`BlobPart::pages`], without the first `skip` bytes.
    pub fn pages_from(&self, skip: usize) -> Pages<'_> {
        self.blob.pages_in(self.range.start + skip..self.range.end)
    }

    /// The same part at another position.
    #[must_use]
    pub fn moved_to(&self, position: usize) -> Self {
        Self { position, ..self.clone() }
    }
}

/// A place in an [`OutBuf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutPos {
    /// Bytes before it.
    pub bytes: usize,
    /// Big buffers before it.
    pub blobs: usize,
}

impl OutBuf {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The end of what is written.
    #[inline]
    pub fn position(&self) -> OutPos {
        OutPos { bytes: self.bytes.len(), blobs: self.blobs.len() }
    }

    /// Drops what was written since `to`.
    #[inline]
    pub fn truncate(&mut self, to: OutPos) {
        self.bytes.truncate(to.bytes);
        self.blobs.truncate(to.blobs);
    }

    /// Drops everything and keeps the capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(OutPos::default());
    }

    /// Appends all of another buffer.
    pub fn append(&mut self, other: Self) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |part: BlobPart| BlobPart { position: from + part.position, ..part };
        self.blobs.extend(other.blobs.into_iter().map(moved));
    }

    /// True if there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.blobs.is_empty()
    }

    /// Bytes to be sent between two places, those of big buffers included.
    pub fn len_between(&self, from: OutPos, to: OutPos) -> usize {
        let blobs = &self.blobs[from.blobs..to.blobs];
        to.bytes - from.bytes + blobs.iter().map(BlobPart::len).sum::<usize>()
    }

    /// All bytes in one vector, for tests and for callers that must copy anyway.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len_between(OutPos::default(), self.position()));
        let mut from = 0;
        for part in &self.blobs {
            all.extend_from_slice(&self.bytes[from..part.position]);
            part.pages().for_each(|page| all.extend_from_slice(page));
            from = part.position;
        }
        all.extend_from_slice(&self.bytes[from..]);
        all
    }
}
