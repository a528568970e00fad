//! The undo log: what the running command has changed, so that a panic can take it back.
//!
//! A small entry that is overwritten in place is captured by copy; whatever else is replaced or
//! removed is *moved* here and freed after the guard has dropped. The log is the worker's and is reused, so
//! an overwrite allocates nothing.

use crate::entry::{EntryPtr, Header};
use crate::slot::DueSet;
use crate::table::Table;
use crate::wait::Ready;
use crate::watch::WatchCell;
use base::sync::Arc;
use base::{Blob, DbIndex, SlotId, UnixMs};
use value::{Log, LogMark};

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

/// One change, and what undoes it. Plain data, so that forgetting it costs nothing.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// The value was overwritten in place: its header, and its bytes from `bytes[start]` on.
    Value { entry: EntryPtr, header: Header, start: usize },
    /// A part of a `raw` inline value was overwritten: `bytes[start..start + len]` stood at `at`.
    Range { entry: EntryPtr, at: usize, start: usize, len: usize },
    /// The expiry was changed in place.
    Expiry { place: Place, entry: EntryPtr, from: UnixMs },
    /// A key that was not there.
    Inserted { place: Place, new: EntryPtr },
    /// Another entry under the same key.
    Replaced { place: Place, old: EntryPtr, new: EntryPtr },
    /// A key that is gone.
    Removed { place: Place, old: EntryPtr },
    /// A key whose time had come, or that of all its `fields`, was taken away: a change of its own, which is taken back
    /// only if the command had made or changed the key before.
    Expired { place: Place, old: EntryPtr, fields: u64 },
    /// A part of a big value was overwritten: `bytes[start..start + len]` stood at `at`, and the
    /// value was `old_len` long.
    BlobRange { entry: EntryPtr, old_len: usize, at: usize, start: usize, len: usize },
    /// A collection outside its entry was changed in place; the log was as long as `mark` before.
    Edited { place: Place, entry: EntryPtr, mark: LogMark },
    /// Another encoding was said of the same value.
    Header { entry: EntryPtr, header: Header },
    /// A collection outside moved from one entry to another, which is undone before this is.
    Moved { place: Place, from: EntryPtr, to: EntryPtr },
    /// A whole database was emptied: the last one in `flushed`.
    Flushed,
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
    pub fields: Vec<(SlotId, DueSet)>,
    pub keys: i64,
    pub expires: i64,
    pub due_sum: i128,
}

/// The log of the running command.
#[derive(Default)]
pub(crate) struct Undo {
    pub changes: Vec<Change>,
    pub bytes: Vec<u8>,
    pub flushed: Vec<Detached>,
    /// What [`Change::Edited`] takes back.
    pub log: Log,
    /// Bytes for which the collection that is being edited was accounted before; a panic in the edit
    /// leaves it here.
    pub editing: Option<usize>,
    /// When the next field of the hash that is being edited was due before.
    pub due: Option<i64>,
    /// How many changes the command has made, to be counted when it commits.
    pub made: i64,
    /// Not 0 if a commit has more to do than to forget: something was moved here, somebody must
    /// be told, or a buffer has grown.
    pub moved: usize,
    /// Cells to mark when the command commits.
    pub touched: Vec<Arc<WatchCell>>,
    /// Changed keys that somebody waits for.
    pub ready: Vec<Ready>,
    /// After so many further changes the command panics; 0 = never.
    pub fuse: u32,
}

impl Undo {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Saves bytes and says where they start.
    #[inline(always)]
    pub fn save(&mut self, bytes: &[u8]) -> usize {
        let start = self.bytes.len();
        if start + bytes.len() > BYTES_KEPT_MAX {
            self.moved += 1; // so that the buffer is given back
        }
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// True if a commit has only to forget.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.moved == 0
    }

    /// Forgets changes that are plain.
    #[inline(always)]
    pub fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.log.clear_plain();
        self.made = 0;
        self.changes.clear();
        self.bytes.clear();
    }

    /// Forgets everything, keeping modest buffers. What was moved here has been passed on.
    pub fn clear(&mut self) {
        debug_assert!(self.flushed.is_empty());
        self.changes.clear();
        self.bytes.clear();
        self.log.clear();
        self.editing = None;
        self.moved = 0;
        self.made = 0;
        self.touched.clear();
        self.ready.clear();
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
