//! Entries which stand in allocations of their own: tail and value have 255 bytes or more together.

use base::Blob;
use base::sync::Arc;

/// The far entries of a page, by their places.
#[derive(Clone, Default)]
pub struct FarEntries {
    /// A removed entry leaves its place free for the next one.
    pub entries: Vec<Option<Arc<FarEntry>>>,
    /// Heap bytes of all of them.
    pub bytes: usize,
}

/// A far entry; pages of clones share it.
pub struct FarEntry {
    pub tail: Box<[u8]>,
    pub value: Blob,
}

impl FarEntry {
    /// Heap bytes, with the counts of both references and the header of the blob.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + 16 + self.tail.len() + self.value.capacity() + 40
    }
}
