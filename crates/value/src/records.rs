//! Inverse operations of one command on big collections.
//!
//! A type appends what undoes a change before it makes the change, and reads it back in its `undo`.
//! Records are read from the last to the first, so a record ends with its length:
//!
//! ```text
//! +----+--------+------+--------+------+-- ... --+-------+--------+
//! | op | length | part | length | part |         | parts | length |
//! +----+--------+------+--------+------+-- ... --+-------+--------+
//!   u8    u32             u32                       u8      u32     (little-endian)
//!
//! parts   how many parts there are; plus 128 if the record owns the last blob of `blobs`
//! length  at the end: of everything before it
//! ```

use base::Blob;

/// The records of a command, in the order in which they were appended.
#[derive(Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Long texts, which are not copied into `bytes`.
    blobs: Vec<Blob>,
}

/// How long the records were at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark(usize);

/// The operation that no type may use: it stands for a captured collection.
pub(crate) const CAPTURED: u8 = 0xFF;
/// The bit of the number of parts which says that the record owns a blob.
const WITH_BLOB: u8 = 0x80;
/// The capacity that is kept for the next command.
const CAPACITY_MAX: usize = 1 << 20;

/// A record that was taken off the end.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// The type's own number for the operation.
    pub op: u8,
    /// Its arguments.
    pub parts: Vec<Vec<u8>>,
    /// A long text that was not copied.
    pub blob: Option<Blob>,
}

impl Records {
    /// True if nothing is to be undone.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that the records keep alive.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.blobs.iter().map(Blob::len).sum::<usize>()
    }

    /// How long the records are now.
    #[inline]
    pub fn mark(&self) -> LogMark {
        LogMark(self.bytes.len())
    }

    /// Appends an operation; `op` is below 255.
    #[inline]
    pub fn push(&mut self, op: u8, parts: &[&[u8]]) {
        debug_assert_ne!(op, CAPTURED);
        self.append(op, parts, 0);
    }

    /// As [`Records::push`], with a long text that is kept by reference.
    pub fn push_blob(&mut self, op: u8, parts: &[&[u8]], blob: Blob) {
        debug_assert_ne!(op, CAPTURED);
        self.blobs.push(blob);
        self.append(op, parts, WITH_BLOB);
    }

    /// Appends the record of a captured collection.
    pub(crate) fn push_captured(&mut self) {
        self.append(CAPTURED, &[], 0);
    }

    #[inline]
    fn append(&mut self, op: u8, parts: &[&[u8]], with: u8) {
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

    /// Takes the last record off.
    pub(crate) fn pop(&mut self) -> Option<Record> {
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
        Some(Record { op, parts, blob })
    }

    /// Takes the long texts out: freeing them may take long.
    pub fn take_blobs(&mut self) -> impl Iterator<Item = Blob> + '_ {
        self.blobs.drain(..)
    }

    /// True if clearing takes no time: no blobs are held, and no more capacity than is kept.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.blobs.is_empty() && self.bytes.capacity() <= CAPACITY_MAX
    }

    /// As [`Records::clear`], of records that are plain.
    #[inline]
    pub(crate) fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.bytes.clear();
    }

    /// Drops all records: the command is committed.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.blobs.clear();
        self.bytes.clear();
        if self.bytes.capacity() > CAPACITY_MAX {
            self.bytes = Vec::new();
        }
    }
}
