//! The undo log: the changes since the last commit, so that an error or a panic can take back those
//! of the failed command ([`Mark`]), and the notices that follow from them when they are committed.
//!
//! A small value that is overwritten in place is copied into `bytes`. Other entries that are
//! replaced or removed stay allocated until the commit, and the log has their addresses; they are
//! freed after the guard has dropped. The worker reuses the log, so an overwrite allocates nothing.

use crate::capture::Capture;
use crate::due_set::DueSet;
use crate::entry::{EntryPtr, Header};
use crate::event::{Events, KeyEvent, listeners};
use crate::records::RecordMark;
use crate::table::Table;
use crate::wait::Ready;
use crate::watch::WatchCell;
use base::sync::Arc;
use base::{DbIndex, SlotId, UnixMs};
use value::{Log, LogMark};

/// The log keeps a buffer of so many bytes for reuse; a larger one is freed after its command.
const BYTES_KEPT_MAX: usize = 1 << 20;
/// The same for the number of changes.
const OPS_KEPT_MAX: usize = 1 << 14;

/// The place of a key: its hash, slot and physical database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub hash: u64,
    pub slot: SlotId,
    pub physical: u16,
}

/// One change, with what undoes it. Plain data, so that clearing the log costs nothing.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// The value was overwritten in place: its header, and its bytes from `bytes[start]` on.
    Value { entry: EntryPtr, header: Header, start: usize },
    /// A part of a `raw` inline value was overwritten: `bytes[start..start + len]` stood at `at`.
    Range { entry: EntryPtr, at: usize, start: usize, len: usize },
    /// The expiry was changed in place.
    Expiry { place: Place, entry: EntryPtr, from: UnixMs },
    /// A key was created.
    Inserted { place: Place, new: EntryPtr },
    /// The entry of a key was replaced.
    Replaced { place: Place, old: EntryPtr, new: EntryPtr },
    /// A key was removed.
    Removed { place: Place, old: EntryPtr },
    /// A key was removed because it, or all its `fields`, were due. A change of its own, which is
    /// undone only if the same command had made or changed the key before.
    Expired { place: Place, old: EntryPtr, fields: u64 },
    /// A part of a [`base::Blob`] was overwritten: `bytes[start..start + len]` stood at `at`, and
    /// the blob was `old_len` bytes long.
    BlobRange {
        physical: u16,
        entry: EntryPtr,
        old_len: usize,
        at: usize,
        start: usize,
        len: usize,
    },
    /// A collection outside its entry was changed in place; the log was as long as `mark` before.
    Edited { place: Place, entry: EntryPtr, mark: LogMark },
    /// The encoding in the header was changed; the value stayed.
    Header { entry: EntryPtr, header: Header },
    /// A collection outside moved from one entry to another. Changes of the latter are undone
    /// first.
    Moved { place: Place, from: EntryPtr, to: EntryPtr },
    /// A database was emptied: the last one in `flushed`.
    Flushed,
    /// Two databases were exchanged.
    Swapped(DbIndex, DbIndex),
    /// No change: keeps the log from being empty while the fuse is set, or while notices wait.
    Nothing,
}

/// What follows from changes when they are committed.
pub(crate) enum Notice {
    /// The cell of a session that watches a changed key is marked.
    Watcher(Arc<WatchCell>),
    /// Tickets wait for a changed key: it becomes ready.
    Waiters(Ready),
    /// A note of the caller ([`crate::Guard::note`]).
    Note(Note),
    /// A keyspace event ([`crate::Guard::next_event`]).
    Event(KeyEvent),
}

/// What a caller attaches to the changes of a command and receives when they are committed.
pub type Note = Box<dyn std::any::Any + Send>;

/// The position in the undo log at which a command begins: later changes can be rolled back alone
/// ([`crate::Guard::rollback_to`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub(crate) changes: usize,
    bytes: usize,
    notices: usize,
    change_count: i64,
    pub(crate) records: RecordMark,
}

/// The contents of a physical database that was flushed.
#[derive(Default)]
pub(crate) struct Detached {
    pub physical: u16,
    pub tables: Vec<(SlotId, Table)>,
    pub due: Vec<(SlotId, DueSet)>,
    pub fields: Vec<(SlotId, DueSet)>,
    pub keys: i64,
    /// What it takes, without what was freed of it since.
    pub bytes: i64,
    pub expires: i64,
    pub with_fields: i64,
    pub due_sum: i128,
}

impl Detached {
    /// Lowers its bytes by what was freed of it. Returns by how much: they are not negative then.
    pub fn note_freed(&mut self, freed: i64) -> i64 {
        let freed = freed.clamp(0, self.bytes.max(0));
        self.bytes -= freed;
        freed
    }
}

/// The undo log of a worker.
#[derive(Default)]
pub(crate) struct Undo {
    pub changes: Vec<Change>,
    pub bytes: Vec<u8>,
    pub flushed: Vec<Detached>,
    /// Undo records of collections, for [`Change::Edited`].
    pub log: Log,
    /// The accounted bytes of a collection while it is edited; still set after a panic in the edit.
    pub editing: Option<usize>,
    /// When the next field of that hash was due before the edit.
    pub due: Option<i64>,
    /// Changes since the last commit, as counted for INFO and SAVE points.
    pub change_count: i64,
    /// Not 0 if a commit must do more than clear the log: free entries, deliver notices, or free a
    /// buffer.
    pub commit_work: usize,
    /// What follows from the changes when they are committed, in their order.
    pub notices: Vec<Notice>,
    /// The command panics after so many further changes; 0: never.
    pub fuse: u32,
    /// Who listens to changes ([`listeners`]): the one word that each change tests.
    pub listeners: u32,
    /// Events of committed changes.
    pub events: Events,
    /// The changes above that were announced (`capture.rs`).
    pub capture: Capture,
}

impl Undo {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Saves bytes and returns where they start.
    #[inline(always)]
    pub fn save(&mut self, bytes: &[u8]) -> usize {
        let start = self.bytes.len();
        if start + bytes.len() > BYTES_KEPT_MAX {
            self.commit_work += 1; // so that the buffer is freed
        }
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// True if a commit only has to clear the log.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.commit_work == 0
    }

    /// Clears the log of a plain commit.
    #[inline(always)]
    pub fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.log.clear_plain();
        self.change_count = 0;
        self.changes.clear();
        self.bytes.clear();
    }

    /// The position at which the next command begins.
    pub fn mark(&self, records: RecordMark) -> Mark {
        let (changes, bytes, notices) = (self.changes.len(), self.bytes.len(), self.notices.len());
        Mark { changes, bytes, notices, change_count: self.change_count, records }
    }

    /// Clears the log behind a mark, after the changes there were undone.
    pub fn truncate(&mut self, mark: Mark) {
        debug_assert!(self.changes.len() >= mark.changes, "nothing before the mark is undone");
        self.bytes.truncate(mark.bytes);
        self.notices.truncate(mark.notices);
        self.change_count = mark.change_count;
        self.editing = None;
        self.disarm();
    }

    /// Clears the fuse, and announcements of changes that are no longer in the log.
    fn disarm(&mut self) {
        if self.listeners != 0 {
            self.set_fuse(0);
            self.forget_announced();
        }
    }

    /// Makes the command panic after so many changes; 0: never.
    pub fn set_fuse(&mut self, changes: u32) {
        self.fuse = changes;
        self.set_listeners(listeners::FUSE, changes > 0);
    }

    /// Sets or clears bits of the word.
    pub fn set_listeners(&mut self, bits: u32, on: bool) {
        self.listeners = if on { self.listeners | bits } else { self.listeners & !bits };
    }

    /// Bytes of the log. Replaced entries count only with their addresses.
    pub fn memory(&self) -> usize {
        self.changes.len() * size_of::<Change>() + self.bytes.len() + self.log.memory()
    }

    /// Clears the log and frees large buffers. Replaced entries have been moved elsewhere before.
    pub fn clear(&mut self) {
        debug_assert!(self.flushed.is_empty());
        self.changes.clear();
        self.bytes.clear();
        self.log.clear();
        self.editing = None;
        self.commit_work = 0;
        self.change_count = 0;
        self.notices.clear();
        self.disarm();
        if self.bytes.capacity() > BYTES_KEPT_MAX || self.changes.capacity() > OPS_KEPT_MAX {
            self.bytes = Vec::new();
            self.changes = Vec::new();
        }
    }
}
