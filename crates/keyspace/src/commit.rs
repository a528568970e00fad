//! The end of a command: counting its changes, and committing them.
#![allow(unsafe_code)]

use crate::capture::Listeners;
use crate::entry::{EntryPtr, Gone};
use crate::guard::Guard;
use crate::payload::Payload;
use crate::slab::Source;
use crate::stats::add;
use crate::undo::{Change, Mark, Notice};
use base::SeqNo;
use base::sync::hint::AtomicI64;
use value::Encoding;

/// An undo log of more bytes is large ([`Guard::is_undo_large`]).
const UNDO_BYTES_MAX: usize = 64 << 20;

impl Guard<'_> {
    /// Makes the command panic after `changes` further changes, or at once if that is 0: for tests
    /// of the rollback. Ends with the command.
    pub fn panic_after(&mut self, changes: u32) {
        assert!(changes > 0, "a panic was asked for, before any change");
        self.w.undo.set_fuse(changes);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Nothing);
    }

    /// The number of changes that are not committed, for [`Guard::count_as`].
    #[inline(always)]
    pub fn counted(&self) -> i64 {
        self.w.undo.change_count
    }

    /// Counts everything since [`Guard::counted`] returned `before` as so many changes: a command
    /// counts the elements that it has changed.
    #[inline(always)]
    pub fn count_as(&mut self, before: i64, changes: u64) {
        // A count without a logged change would add to the next command.
        debug_assert!(
            changes == 0 || !self.w.undo.is_empty(),
            "{changes} changes are counted and none was logged"
        );
        self.w.undo.change_count = before + changes as i64;
    }

    /// Logs a change without effect, for a command that counts as a change although the data stays
    /// the same ([`Guard::count_as`]).
    pub fn record_empty_change(&mut self) {
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Nothing);
    }

    /// Adds to the number of changes, or subtracts: one change may stand for many commands, and a
    /// command that changes two keys may count as one.
    pub fn adjust_change_count(&mut self, changes: i64) {
        self.w.undo.change_count += changes;
    }

    /// Counts a change of so many keys, which has no event.
    #[inline]
    pub(crate) fn count_change(&mut self, listeners: Listeners, keys: i64) {
        self.w.undo.change_count += keys;
        if listeners.any() {
            self.count_down_fuse();
        }
    }

    /// Ends a command: its changes get a sequence number, while numbers are drawn, and are
    /// committed. [`Guard::next_ready`], [`Guard::next_note`] and [`Guard::next_event`] return what
    /// follows from them.
    pub fn finish(&mut self) {
        self.number();
        self.commit();
    }

    /// Commits the changes so far, which frees their undo log. They get their sequence number, and
    /// one record, together with what is changed until [`Guard::finish`]. The guard must cover them
    /// until then.
    #[cold]
    pub fn commit_part(&mut self) {
        let has_part = self.ks.numbers.is_drawing() && self.draws_number(0);
        self.w.records.has_part |= has_part;
        // Nobody is told of what has no number yet.
        self.w.undo.events.set_held(self.w.records.has_part);
        self.commit();
        if self.w.records.has_part {
            self.w.records.part = self.w.records.mark();
            self.record_empty_change(); // a guard that drops sees that something is left to do
        }
    }

    /// Commits without a sequence number: on the short path while no numbers are drawn. Marks
    /// watches; replaced entries are freed after the guard has dropped.
    #[inline]
    pub fn commit(&mut self) {
        if !self.w.undo.is_empty() {
            if self.w.undo.is_plain() {
                add(&self.ks.stats(self.w.index).changes, self.w.undo.change_count);
                self.w.undo.clear_plain();
            } else {
                self.commit_changes();
            }
        }
    }

    #[inline(never)]
    fn commit_changes(&mut self) {
        if self.w.undo.listeners != 0 {
            self.before_commit();
        }
        let w = &mut *self.w;
        for change in &w.undo.changes {
            match *change {
                Change::Replaced { old, .. }
                | Change::Removed { old, .. }
                | Change::Expired { old, .. } => {
                    // SAFETY: 1. The change removed it from its table. 2. A line of the log is read
                    // once, here or by `undo`, which puts it back. 3. While a key is changed there
                    // is no reference into its entry.
                    w.graveyard.push(unsafe { old.into_gone() });
                }
                Change::Value { .. }
                | Change::Edited { .. }
                | Change::Header { .. }
                | Change::Moved { .. }
                | Change::Range { .. }
                | Change::Expiry { .. }
                | Change::Nothing
                | Change::Inserted { .. }
                | Change::BlobRange { .. }
                | Change::Flushed
                | Change::Swapped(..) => {}
            }
        }
        add(&self.ks.stats(w.index).changes, w.undo.change_count);
        // Replaced parts of values are freed like replaced entries: each in an entry without a key.
        let used = &self.ks.stats(w.index).used;
        let mut source = Source { mem: &self.ks.entries, cache: &mut w.entries };
        for root in w.undo.log.take_roots() {
            let old = Payload::Big(Encoding::Quicklist, Box::new(root));
            free_later(&mut source, old, used, &mut w.graveyard);
        }
        for blob in w.undo.log.take_blobs() {
            free_later(&mut source, Payload::Blob(blob), used, &mut w.graveyard);
        }
        if !w.undo.flushed.is_empty() {
            let bytes = w.undo.flushed.iter().map(|detached| detached.bytes).sum();
            add(&self.ks.stats(w.index).flushed, bytes);
            w.garbage.extend(w.undo.flushed.drain(..));
        }
        for told in w.undo.notices.drain(..) {
            match told {
                Notice::Watcher(cell) => cell.mark(),
                Notice::Waiters(ready) => w.ready.push(ready),
                Notice::Note(note) => w.notes.push_back(note),
                Notice::Event(event) => w.undo.events.keep(event),
            }
        }
        w.undo.clear();
        // Last: whoever is told finds the log empty, even if it panics.
        w.undo.events.tell(SeqNo(w.seq_max));
    }

    /// The position in the undo log at which the next command begins.
    pub fn mark(&self) -> Mark {
        self.w.undo.mark(self.w.records.mark())
    }

    /// True if the undo log has become so large that a caller which may commit in parts should.
    pub fn is_undo_large(&self) -> bool {
        self.w.undo.memory() > UNDO_BYTES_MAX
    }
}

/// Puts a part of a value on the graveyard: it is freed after the guard has dropped.
#[cold]
fn free_later(
    source: &mut Source<'_>,
    old: Payload<'_>,
    used: &AtomicI64,
    graveyard: &mut Vec<Gone>,
) {
    let old = EntryPtr::build(source, b"", old, None, 0);
    add(used, old.memory() as i64);
    // SAFETY: 1. It was just built, and put into no table. 2. Once. 3. Nobody else knows it.
    graveyard.push(unsafe { old.into_gone() });
}
