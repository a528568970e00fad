//! Sequence numbers of changes, for which replies wait (the *hold* of a reply).
//!
//! A change draws the next number under its locks and stores it in its slots. A command that reads
//! a slot holds its reply until the number that it finds there is safe. So no reply shows a change
//! before that change is safe.
//!
//! - Keys that expire need no number for the sake of replies: after a crash they are due again.
//!   While records are kept (`records.rs`) their removal has one, for its place in the journal.
//! - A walk skips slots that the bitmap calls empty. It holds its reply at
//!   [`Numbers::passed_over`], which is raised before a slot leaves the bitmap, and by changes
//!   under World.
//!
//! Numbers are drawn while somebody reads the journal, and while DEBUG SAFE-UP-TO plays one.

use crate::guard::Guard;
use crate::undo::Change;
use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::{DbIndex, SeqNo, SlotId};

/// The numbers of a keyspace.
#[derive(Debug, Default)]
pub struct Numbers {
    is_drawing: AtomicBool,
    last: AtomicU64,
    passed_over: AtomicU64,
}

impl Numbers {
    /// The last number that is drawn when a fence has passed: until then a change that was read may
    /// be in progress and have no number yet.
    pub const LATEST: SeqNo = SeqNo(u64::MAX);

    /// Whether changes draw numbers.
    #[inline]
    pub fn is_drawing(&self) -> bool {
        self.is_drawing.load(Ordering::Relaxed)
    }

    /// Sets whether changes draw numbers. After a fence all workers follow it.
    pub fn set_drawing(&self, draws: bool) {
        self.is_drawing.store(draws, Ordering::Relaxed);
    }

    /// The last number that was drawn; 0 if none was.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.last.load(Ordering::SeqCst))
    }

    /// The next number will be above this one: those up to it were drawn by an earlier process.
    pub fn resume_behind(&self, last: SeqNo) {
        self.last.fetch_max(last.0, Ordering::SeqCst);
    }

    pub(crate) fn draw(&self) -> SeqNo {
        SeqNo(self.last.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The highest number of a slot that has left the bitmap.
    fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::SeqCst)
    }

    /// A slot with this number leaves the bitmap.
    pub(crate) fn pass_over(&self, seq: u64) {
        if seq > 0 {
            self.passed_over.fetch_max(seq, Ordering::SeqCst);
        }
    }
}

impl Guard<'_> {
    /// Numbers the changes since the last commit, while numbers are drawn.
    #[inline]
    pub(crate) fn number(&mut self) {
        if self.ks.numbers.is_drawing() {
            self.number_changes();
        }
    }

    #[inline(never)]
    fn number_changes(&mut self) {
        if self.w.records.is_exempt && self.ks.journal.is_recording() {
            if self.is_world() {
                // Slots may leave the bitmap.
                self.ks.numbers.pass_over(self.ks.numbers.last().0);
            }
            return;
        }
        let has_part = std::mem::take(&mut self.w.records.has_part);
        let is_change = has_part || self.draws_number(0);
        if !(is_change || self.has_pending_records()) {
            self.w.records.needs_none = false;
            return;
        }
        let seq = if self.is_recording() { self.number_recorded() } else { self.ks.numbers.draw() };
        if !is_change {
            return; // only keys that were due: after a crash they are due again
        }
        self.stamp(seq);
        if has_part {
            self.w.undo.events.set_held(false);
            self.w.undo.events.tell(seq);
        }
        self.w.drawn = seq;
        if self.is_world() {
            self.ks.numbers.pass_over(seq.0);
        }
    }

    /// True if a change behind the first `from` in the log needs a number of its own.
    pub(crate) fn draws_number(&self, from: usize) -> bool {
        let changes = self.w.undo.changes.get(from..).unwrap_or_default();
        let mut end = self.w.undo.log.mark();
        changes.iter().rev().any(|change| match *change {
            // Another encoding alone is no change of data.
            Change::Nothing | Change::Expired { .. } | Change::Header { .. } => false,
            // An edit without anything to undo, such as the removal of a member that is not there.
            Change::Edited { mark, .. } => std::mem::replace(&mut end, mark) != mark,
            _ => true,
        })
    }

    /// The last number that was drawn under this Access since the last call; 0 if none was.
    #[inline]
    pub fn take_drawn(&mut self) -> SeqNo {
        std::mem::take(&mut self.w.drawn)
    }

    /// True if something was changed, and has no number yet.
    pub fn has_unnumbered(&self) -> bool {
        self.w.records.has_part || self.draws_number(0) || self.has_pending_records()
    }

    /// Number of keys of a database.
    pub fn db_len(&mut self, db: DbIndex) -> u64 {
        let keys = self.ks.db_len(db);
        self.hold_at_latest();
        keys
    }

    /// Holds the reply until all changes so far are safe: for commands that read without locks.
    /// Under World no change is in progress, so the last number is known.
    pub fn hold_at_latest(&mut self) {
        if self.is_world() {
            self.hold_at(self.ks.numbers.last().0);
        } else if self.ks.numbers.is_drawing() {
            self.hold_at(Numbers::LATEST.0);
        }
    }

    /// Stops drawing numbers and clears those of all slots: no reply is held for one.
    pub fn forget_numbers(&mut self) {
        assert!(self.is_world(), "nobody else draws or reads a number meanwhile");
        self.ks.numbers.set_drawing(false);
        self.w.records.has_part = false;
        self.w.undo.events.set_held(false);
        self.ks.numbers.passed_over.store(0, Ordering::SeqCst);
        SlotId::all().for_each(|slot| self.owned(slot).set_last_seq(0));
        self.w.seq_max = 0;
    }

    /// Holds the reply until the changes are safe of the slots which were passed over as empty.
    pub(crate) fn hold_at_passed_over(&mut self) {
        self.hold_at(self.ks.numbers.passed_over());
    }

    /// Nothing of what was read so far is shown: the reply need not be held for it.
    pub fn forget_seen(&mut self) {
        self.w.seq_max = 0;
    }

    /// Holds the reply at least until the change with this number is safe.
    fn hold_at(&mut self, seq: u64) {
        self.w.seq_max = self.w.seq_max.max(seq);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{Access, Intent, Keyspace, Options};
    use base::sync::Arc;
    use base::{SeqNo, SlotId, UnixMs};

    /// Regression: slots kept their numbers, and replies were held because of them, until the
    /// process ended.
    #[test]
    fn forget_numbers_clears_every_slot() {
        let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 2 }));
        let mut access = Access::new(ks.clone(), 0);
        ks.numbers().set_drawing(true);
        let slot = SlotId::new(7);
        assert!(access.enter());
        access.lock_one(slot, UnixMs(1), Intent::Write).expect("free").stamp(SeqNo(5));
        let seen = |access: &mut Access| {
            access.lock_one(slot, UnixMs(1), Intent::Read).expect("free").seq()
        };
        assert_eq!(seen(&mut access), SeqNo(5));
        access.leave();
        access.try_world().expect("no other worker is inside");
        access.world(UnixMs(1)).forget_numbers();
        access.open_world();
        assert!(access.enter());
        assert_eq!((seen(&mut access), ks.numbers().is_drawing()), (SeqNo(0), false));
        access.leave();
    }
}
