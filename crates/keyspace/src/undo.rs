//! The undo log: what the guard's commands have changed since the last commit, so that an error or
//! a panic of the last one can take back what that one did ([`Mark`]), and what is to be told once
//! they stand.
//!
//! A small entry that is overwritten in place is captured by copy; whatever else is replaced or
//! removed is *moved* here and freed after the guard has dropped. The log is the worker's and is
//! reused, so an overwrite allocates nothing.

use crate::capture::Capture;
use crate::due_set::DueSet;
use crate::entry::{EntryPtr, Header};
use crate::event::{KeyEvent, listeners};
use crate::table::Table;
use crate::wait::Ready;
use crate::watch::WatchCell;
use base::sync::Arc;
use base::{Blob, DbIndex, SlotId, UnixMs};
use std::collections::VecDeque;
use value::{Log, LogMark};

/// Saved bytes kept for reuse; a bigger buffer is given back after its command.
const BYTES_KEPT_MAX: usize = 1 << 20;
const OPS_KEPT_MAX: usize = 1 << 14;

/// Where an entry belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A key whose time had come, or that of all its `fields`, was taken away: a change of its own,
    /// which is taken back only if the command had made or changed the key before.
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
    /// No change: keeps the log from being empty while the fuse is set, or something is to be told.
    Nothing,
}

/// Somebody who is told that changes stand.
pub(crate) enum Notice {
    /// A session watches a key that has changed.
    Watcher(Arc<WatchCell>),
    /// Somebody waits for a key that has changed.
    Waiters(Ready),
    /// What the caller keeps for itself until then ([`crate::Guard::note`]).
    Note(Note),
    /// An event of a key ([`crate::Guard::next_event`]).
    Event(KeyEvent),
}

/// What a caller leaves with the changes of a command and takes back once they stand.
pub type Note = Box<dyn std::any::Any + Send>;

/// Where a command begins in the undo log of its guard: what comes behind it can be taken back
/// alone ([`crate::Guard::rollback_to`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub(crate) changes: usize,
    bytes: usize,
    notices: usize,
    change_count: i64,
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
    pub with_fields: i64,
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
    /// Bytes for which the collection that is being edited was accounted before; a panic in the
    /// edit leaves it here.
    pub editing: Option<usize>,
    /// When the next field of the hash that is being edited was due before.
    pub due: Option<i64>,
    /// How many changes the command has made, to be counted when it commits.
    pub change_count: i64,
    /// Not 0 if a commit has more to do than to forget: something was moved here, somebody must
    /// be told, or a buffer has grown.
    pub commit_work: usize,
    /// What is to be told once the changes stand, in the order in which it happened.
    pub notices: Vec<Notice>,
    /// After so many further changes the command panics; 0 = never.
    pub fuse: u32,
    /// Who listens to changes ([`listens`]): the one word that the door tests.
    pub listeners: u32,
    /// Events of what was committed.
    pub events: VecDeque<KeyEvent>,
    /// What was announced of the changes above.
    pub capture: Capture,
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
            self.commit_work += 1; // so that the buffer is given back
        }
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// True if a commit has only to forget.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.commit_work == 0
    }

    /// Forgets changes that are plain.
    #[inline(always)]
    pub fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.log.clear_plain();
        self.change_count = 0;
        self.changes.clear();
        self.bytes.clear();
    }

    /// The place where a command begins.
    pub fn mark(&self) -> Mark {
        let (changes, bytes, notices) = (self.changes.len(), self.bytes.len(), self.notices.len());
        Mark { changes, bytes, notices, change_count: self.change_count }
    }

    /// Drops what is left of the commands behind a mark, whose changes are undone.
    pub fn truncate(&mut self, mark: Mark) {
        debug_assert!(self.changes.len() >= mark.changes, "nothing before the mark is undone");
        self.bytes.truncate(mark.bytes);
        self.notices.truncate(mark.notices);
        self.change_count = mark.change_count;
        self.editing = None;
        self.forget_listeners();
    }

    /// Ends what was armed, or announced, for changes that are gone from the log.
    fn forget_listeners(&mut self) {
        if self.listeners != 0 {
            self.set_fuse(0);
            self.forget_announced();
        }
    }

    /// Lets a change panic, behind so many; 0 for none.
    pub fn set_fuse(&mut self, changes: u32) {
        self.fuse = changes;
        self.set_listeners(listeners::FUSE, changes > 0);
    }

    /// Sets or clears bits of the word.
    pub fn set_listeners(&mut self, bits: u32, on: bool) {
        self.listeners = if on { self.listeners | bits } else { self.listeners & !bits };
    }

    /// Bytes that are kept to undo what stands in the log; of what was replaced only the places in
    /// it.
    pub fn memory(&self) -> usize {
        self.changes.len() * size_of::<Change>() + self.bytes.len() + self.log.memory()
    }

    /// Forgets everything, keeping modest buffers. What was moved here has been passed on.
    pub fn clear(&mut self) {
        debug_assert!(self.flushed.is_empty());
        self.changes.clear();
        self.bytes.clear();
        self.log.clear();
        self.editing = None;
        self.commit_work = 0;
        self.change_count = 0;
        self.notices.clear();
        self.forget_listeners();
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
