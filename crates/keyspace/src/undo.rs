//! The undo log: what the running command has changed, so that a panic can take it back.
//!
//! A small entry that is overwritten in place is captured by copy; whatever else is replaced or
//! removed is *moved* here and freed after the guard has dropped. The log is the worker's and is reused, so
//! an overwrite allocates nothing.

use crate::entry::EntryPtr;
use crate::slot::DueSet;
use crate::table::Table;
use crate::watch::WatchCell;
use base::sync::Arc;
use base::{Blob, DbIndex, SlotId};

/// Saved bytes kept for reuse; a bigger buffer is given back after its command.
const BYTES_KEPT_MAX: usize = 1 << 20;
const OPS_KEPT_MAX: usize = 1 << 14;

/// Where an entry belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub hash: u64,
    pub slot: SlotId,
    pub physical: u16,
}

/// One change, and what undoes it.
pub(crate) enum Change {
    /// The entry was changed in place; its image is `bytes[start..start + len]`.
    Image { place: Place, entry: EntryPtr, start: usize, len: usize },
    /// A key that was not there.
    Inserted { place: Place, new: EntryPtr },
    /// Another entry under the same key.
    Replaced { place: Place, old: EntryPtr, new: EntryPtr },
    /// A key that is gone.
    Removed { place: Place, old: EntryPtr },
    /// A part of a big value was overwritten: `bytes[start..start + len]` stood at `at`, and the
    /// value was `old_len` long.
    BlobRange { entry: EntryPtr, old_len: usize, at: usize, start: usize, len: usize },
    /// A whole database was emptied.
    Flushed(Box<Detached>),
    /// Two databases were exchanged.
    Swapped(DbIndex, DbIndex),
    /// No change: keeps the log from being empty while the fuse is set.
    Armed,
}

/// All that was in one physical database.
#[derive(Default)]
pub(crate) struct Detached {
    pub physical: u16,
    pub tables: Vec<(SlotId, Table)>,
    pub due: Vec<(SlotId, DueSet)>,
    pub keys: i64,
    pub expires: i64,
    pub due_sum: i128,
}

/// The log of the running command.
#[derive(Default)]
pub(crate) struct Undo {
    pub changes: Vec<Change>,
    pub bytes: Vec<u8>,
    /// Cells to mark when the command commits.
    pub touched: Vec<Arc<WatchCell>>,
    /// After so many further changes the command panics; 0 = never.
    pub fuse: u32,
}

impl Undo {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Saves bytes and says where they start.
    #[inline]
    pub fn save(&mut self, bytes: &[u8]) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// Forgets everything, keeping modest buffers. The changes were taken out one by one.
    #[inline]
    pub fn clear(&mut self) {
        debug_assert!(self.changes.is_empty());
        self.bytes.clear();
        self.touched.clear();
        self.fuse = 0;
        if self.bytes.capacity() > BYTES_KEPT_MAX || self.changes.capacity() > OPS_KEPT_MAX {
            self.bytes = Vec::new();
            self.changes = Vec::new();
        }
    }
}

/// A blob of its own, with room for `len` bytes in all and a quarter more.
pub(crate) fn own_copy(blob: &Blob, len: usize) -> Blob {
    let mut bytes = Vec::with_capacity(len + len / 4);
    bytes.extend_from_slice(blob.as_slice());
    Blob::new(bytes)
}
