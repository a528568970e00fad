//! The undo log of one command on big collections: inverse operations, taken back in reverse.
//!
//! ```text
//! record: op u8 | for each part: length u32, bytes | number of parts u8, +128 with a blob | length of all that u32
//! ```
//! A type writes what undoes an operation before it changes anything, and reads it back in its
//! `undo`. What a bulk operation is about to do is not written down piece by piece: a clone of the
//! tree, O(1), is kept instead.

use crate::Big;
use base::Blob;

/// The log.
#[derive(Default)]
pub struct Log {
    bytes: Vec<u8>,
    roots: Vec<Big>,
    blobs: Vec<Blob>,
}

/// How long a log was at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark(usize);

/// The operation of a record that stands for a kept clone.
const ROOT: u8 = 0xFF;
/// The bit of the number of parts that says: a blob belongs to it.
const WITH_BLOB: u8 = 0x80;
/// Bytes kept for reuse.
const KEPT_MAX: usize = 1 << 20;

/// A record that was taken back.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// The type's own number for the operation.
    pub op: u8,
    /// Its arguments.
    pub parts: Vec<Vec<u8>>,
    /// A long text that was not copied.
    pub blob: Option<Blob>,
}

/// What was taken back.
pub enum Undone {
    /// An inverse operation, to be applied.
    Record(Record),
    /// The collection as it was.
    Root(Big),
}

impl Log {
    /// True if nothing is to be undone.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that it keeps; of a kept clone only its place, for the nodes are shared.
    pub fn memory(&self) -> usize {
        let blobs: usize = self.blobs.iter().map(Blob::len).sum();
        self.bytes.len() + blobs + self.roots.len() * size_of::<Big>()
    }

    /// How long it is now.
    #[inline]
    pub fn mark(&self) -> LogMark {
        LogMark(self.bytes.len())
    }

    /// Appends an operation; `op` is below 255.
    #[inline]
    pub fn push(&mut self, op: u8, parts: &[&[u8]]) {
        debug_assert_ne!(op, ROOT);
        self.record(op, parts, 0);
    }

    /// As [`Log::push`], with a long text that is kept by reference.
    pub fn push_blob(&mut self, op: u8, parts: &[&[u8]], blob: Blob) {
        debug_assert_ne!(op, ROOT);
        self.blobs.push(blob);
        self.record(op, parts, WITH_BLOB);
    }

    /// Keeps a clone of a collection that is about to change in many places.
    pub fn capture(&mut self, big: &Big) {
        self.roots.push(big.clone());
        self.record(ROOT, &[], 0);
    }

    #[inline]
    fn record(&mut self, op: u8, parts: &[&[u8]], with: u8) {
        let size = 1 + parts.iter().map(|part| 4 + part.len()).sum::<usize>() + 1;
        let len = u32::try_from(size).expect("an operation is below 4 GiB");
        self.bytes.reserve(size + 4);
        self.bytes.push(op);
        for part in parts {
            self.bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
        self.bytes.push(parts.len() as u8 | with);
        self.bytes.extend_from_slice(&len.to_le_bytes());
    }

    /// Takes the last operation off.
    pub fn pop(&mut self) -> Option<Undone> {
        let end = self.bytes.len().checked_sub(4)?;
        let len = u32::from_le_bytes(self.bytes[end..].try_into().expect("4 bytes"));
        let start = end - len as usize;
        let record = &self.bytes[start..end];
        let (op, count) = (record[0], record[record.len() - 1]);
        let mut rest = &record[1..];
        let blob = (count & WITH_BLOB != 0).then(|| self.blobs.pop().expect("a blob was kept"));
        let count = count & !WITH_BLOB;
        let mut parts = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let (len, behind) = rest.split_first_chunk().expect("a length");
            let (part, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
            parts.push(part.to_vec());
            rest = behind;
        }
        self.bytes.truncate(start);
        if op == ROOT {
            return Some(Undone::Root(self.roots.pop().expect("a clone was kept")));
        }
        Some(Undone::Record(Record { op, parts, blob }))
    }

    /// Hands back the clones that were kept: freeing them may take long.
    pub fn take_roots(&mut self) -> impl Iterator<Item = Big> + '_ {
        self.roots.drain(..)
    }

    /// Hands back the long texts that were kept, for the same reason.
    pub fn take_blobs(&mut self) -> impl Iterator<Item = Blob> + '_ {
        self.blobs.drain(..)
    }

    /// True if it holds nothing that takes long to free, and no more room than is kept.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.roots.is_empty() && self.blobs.is_empty() && self.bytes.capacity() <= KEPT_MAX
    }

    /// As [`Log::clear`], of a log that is plain.
    #[inline]
    pub fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.bytes.clear();
    }

    /// Forgets everything: the command stands.
    #[inline]
    pub fn clear(&mut self) {
        self.roots.clear();
        self.blobs.clear();
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            self.bytes = Vec::new();
        }
    }
}
