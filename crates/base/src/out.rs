//! The output buffer of replies: bytes, and between them references to big values.

use crate::blob::Blob;

/// Bytes to be sent, with big buffers in between that are not copied.
#[derive(Clone, Debug, Default)]
pub struct OutBuf {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Big buffers with their positions: each is sent *before* `bytes[position]`. Ascending.
    pub blobs: Vec<(usize, Blob)>,
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
        self.blobs.extend(other.blobs.into_iter().map(|(at, blob)| (from + at, blob)));
    }

    /// True if there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.blobs.is_empty()
    }

    /// Bytes to be sent between two places, those of big buffers included.
    pub fn len_between(&self, from: OutPos, to: OutPos) -> usize {
        let blobs = &self.blobs[from.blobs..to.blobs];
        to.bytes - from.bytes + blobs.iter().map(|(_, blob)| blob.len()).sum::<usize>()
    }

    /// All bytes in one vector, for tests and for callers that must copy anyway.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len_between(OutPos::default(), self.position()));
        let mut from = 0;
        for (at, blob) in &self.blobs {
            all.extend_from_slice(&self.bytes[from..*at]);
            all.extend_from_slice(blob.as_slice());
            from = *at;
        }
        all.extend_from_slice(&self.bytes[from..]);
        all
    }
}
