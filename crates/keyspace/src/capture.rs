//! Announcements before changes: the hook for a snapshot, which needs an entry that it has not
//! walked yet as it was before the change (`snapshot.rs`). Announcements are also counted, so that
//! tests can verify that each kind of change is announced.

use crate::entry::EntryPtr;
use crate::event::{Event, listeners};
use crate::guard::Guard;
use crate::snapshot::Door;
use crate::undo::{Change, Place, Undo};
use base::DbIndex;
use std::collections::BTreeMap;

/// What is about to change.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    /// An entry, in its place.
    Entry(Place, EntryPtr),
    /// An entry that leaves its table unchanged: it is replaced or removed.
    Leaving(Place, EntryPtr),
    /// A place without an entry.
    Vacant(Place),
    /// A whole physical database.
    Database(u16),
    /// Two logical databases, which are swapped.
    Names(DbIndex, DbIndex),
}

/// Changes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many were committed.
    pub made: u64,
    /// How many of them were announced before.
    pub announced: u64,
}

/// Changes by the name of their kind.
pub type Census = BTreeMap<&'static str, Counted>;

/// Announcements of the changes in the log.
#[derive(Default)]
pub(crate) struct Capture {
    /// Each with the index in the log that its change would get.
    announced: Vec<(usize, Subject)>,
    pub census: Census,
    /// The way to the snapshot that runs, for this worker's changes.
    pub door: Option<Box<Door>>,
}

/// Whether anybody listens to a change, read once before the change. The functions that notify
/// after it take this value, so no change is reported that was not announced.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Listeners(bool);

impl Listeners {
    /// True if somebody listens.
    #[inline(always)]
    pub fn any(self) -> bool {
        self.0
    }
}

impl Guard<'_> {
    /// Every change of an entry passes here before it is made.
    #[inline(always)]
    pub(crate) fn before_change(&mut self, place: Place, entry: EntryPtr) -> Listeners {
        self.before(|| Subject::Entry(place, entry))
    }

    /// Every change passes here before it is made; this tests the word of listeners.
    #[inline(always)]
    pub(crate) fn before(&mut self, subject: impl FnOnce() -> Subject) -> Listeners {
        let listeners = Listeners(self.w.undo.listeners != 0);
        if listeners.any() {
            self.announce(subject());
        }
        listeners
    }

    /// Announces a change to the snapshot hook.
    #[cold]
    #[inline(never)]
    fn announce(&mut self, subject: Subject) {
        if self.w.undo.listeners & listeners::SNAPSHOT != 0 {
            self.keep_pre_image(subject);
        }
        let undo = &mut self.w.undo;
        if undo.listeners & listeners::CAPTURE != 0 {
            undo.commit_work += 1; // so that the commit counts
            let at = undo.changes.len();
            undo.capture.announced.push((at, subject));
        }
    }

    /// Tells those who listen of a new entry, before it is linked: the event `first` precedes that
    /// of the change.
    #[cold]
    #[inline(never)]
    pub(crate) fn before_link(&mut self, first: Event, db: DbIndex, place: Place, new: EntryPtr) {
        self.notify_before(first, db, new);
        self.skip_if_ahead(place, new);
    }

    /// Passes the changes that are about to be committed to those who listen.
    #[cold]
    #[inline(never)]
    pub(crate) fn before_commit(&mut self) {
        if self.w.undo.listeners & listeners::CAPTURE != 0 {
            self.w.undo.count_announced();
        }
        self.hand_over();
    }
}

impl Undo {
    /// Counts committed changes, and those that were announced.
    #[cold]
    pub fn count_announced(&mut self) {
        let mut announced = self.capture.announced.drain(..).peekable();
        let mut flushed = self.flushed.iter().map(|detached| detached.physical);
        for (at, change) in self.changes.iter().enumerate() {
            while announced.next_if(|(of, _)| *of < at).is_some() {}
            let Some(name) = change.name() else { continue };
            let subject = announced.next_if(|(of, _)| *of == at).map(|(_, subject)| subject);
            let is_right = match (change, subject) {
                (_, None) => false,
                (Change::Flushed, Some(Subject::Database(physical))) => {
                    flushed.next() == Some(physical)
                }
                (change, Some(subject)) => change.is_of(subject),
            };
            let counted = self.capture.census.entry(name).or_default();
            counted.made += 1;
            counted.announced += u64::from(is_right);
        }
    }

    /// Drops the announcements of changes that were undone.
    #[cold]
    pub fn forget_announced(&mut self) {
        let len = self.changes.len();
        self.capture.announced.retain(|(at, _)| *at < len);
    }
}

impl Change {
    /// The name of its kind; none if nothing has changed.
    fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Value { .. } => "value",
            Self::Range { .. } => "range",
            Self::Expiry { .. } => "expiry",
            Self::Inserted { .. } => "inserted",
            Self::Replaced { .. } => "replaced",
            Self::Removed { .. } => "removed",
            Self::Expired { .. } => "expired",
            Self::BlobRange { .. } => "blob range",
            Self::Edited { .. } => "edited",
            Self::Header { .. } => "header",
            Self::Moved { .. } => "moved",
            Self::Flushed => "flushed",
            Self::Swapped(..) => "swapped",
            Self::Nothing => return None,
        })
    }

    /// True if the announcement was of this change.
    fn is_of(&self, subject: Subject) -> bool {
        match (*self, subject) {
            (
                Self::Value { entry, .. }
                | Self::Range { entry, .. }
                | Self::BlobRange { entry, .. }
                | Self::Header { entry, .. },
                Subject::Entry(_, announced),
            ) => entry.address() == announced.address(),
            (
                Self::Expiry { place, entry, .. }
                | Self::Edited { place, entry, .. }
                | Self::Moved { place, from: entry, .. },
                Subject::Entry(at, announced),
            )
            | (
                Self::Replaced { place, old: entry, .. }
                | Self::Removed { place, old: entry }
                | Self::Expired { place, old: entry, .. },
                Subject::Leaving(at, announced),
            ) => entry.address() == announced.address() && place == at,
            (Self::Inserted { place, .. }, Subject::Vacant(at)) => place == at,
            (Self::Swapped(a, b), Subject::Names(c, d)) => (a, b) == (c, d),
            _ => false,
        }
    }
}
