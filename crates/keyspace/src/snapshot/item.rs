//! An entry on its way to the sink, which is in no table.

use crate::entry::{EntryPtr, Gone};
use crate::guard::Guard;
use crate::stats::{WorkerStats, add};

/// An entry that only the owner of this value can reach. It must be freed through
/// [`Item::into_gone`]: it has no `Drop`.
pub(crate) struct Item {
    /// Its physical database.
    pub physical: u16,
    gone: Gone,
    /// It is a copy, or like one: its value outside is counted by the entry in the table.
    is_copy: bool,
    /// The bytes that it counts as captured.
    pub bytes: u64,
}

impl Item {
    /// An entry that has left its table.
    pub fn moved(physical: u16, gone: Gone) -> Self {
        Self { physical, gone, is_copy: false, bytes: 0 }
    }

    /// The same, if the entry that has taken its place has pages of its string: like a copy then.
    /// The new string counts as data, and what was copied or replaced of it as captured.
    pub fn shared_with(mut self, new: EntryPtr, stats: &WorkerStats) -> Self {
        let (old, new) = (self.gone.entry().blob(), new.blob());
        if old.zip(new).is_some_and(|(old, new)| old.shares_pages(new)) {
            add(&stats.used, -(self.gone.entry().outside() as i64));
            self.is_copy = true;
        }
        self
    }

    /// A copy of an entry. Its value outside is shared.
    pub fn copy_of(guard: &mut Guard<'_>, physical: u16, entry: EntryPtr) -> Self {
        let copy = guard.build_aside(entry);
        add(&guard.ks.stats(guard.w.index).used, copy.entry().class() as i64);
        Self { physical, gone: copy, is_copy: true, bytes: 0 }
    }

    /// The same, counted as captured. What writers copy of a value which they share with a copy is
    /// counted when they copy it.
    pub fn counted(mut self) -> Self {
        let entry = self.gone.entry();
        let outside = if self.is_copy || !self.is_big() { 0 } else { entry.outside() };
        self.bytes = (entry.class() + outside) as u64;
        self
    }

    /// It is a copy: a writer may hold the same value outside.
    pub fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Its value is outside the entry.
    pub fn is_big(&self) -> bool {
        self.gone.entry().header().is_big()
    }

    /// The entry, to be read while this value lives.
    pub fn entry(&self) -> EntryPtr {
        self.gone.entry()
    }

    /// The entry, to be freed as one of a table.
    pub fn into_gone(self, stats: &WorkerStats) -> Gone {
        if self.is_copy && self.gone.entry().header().is_big() {
            add(&stats.used, self.gone.entry().outside() as i64);
        }
        self.gone
    }

    /// As [`Item::into_gone`], when the counters end together with the keyspace.
    pub fn into_last(self) -> Gone {
        self.gone
    }
}
