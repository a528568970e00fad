//! Capturing: what a worker does for the snapshot when it changes an entry.
//!
//! ```text
//! Guard::before            the entry is ahead of the walker, not skipped, and not seen in this log
//!   it changes in place      -> its pre-image: a copy, or a new reference to its root
//!   it leaves its table      -> nothing: the log keeps it, unchanged, until the commit
//! link of a new entry      ahead of the walker -> skip
//! commit                   pre-images -> lane, and their entries -> skip
//!                          entries that left -> lane instead of the graveyard
//!                          flushed tables -> the walker instead of the worker's garbage
//! rollback                 drops the pre-images of what it takes back; headers get their old bits
//! ```
//!
//! Only the commit sets `skip` of an entry that is in a table. So a header that the log has saved
//! has the bit of the present, and putting it back changes nothing.
#![allow(unsafe_code)]

use crate::capture::Subject;
use crate::entry::EntryPtr;
use crate::event::listeners;
use crate::guard::Guard;
use crate::snapshot::Running;
use crate::snapshot::item::Item;
use crate::undo::{Change, Place, Undo};
use base::shared::{set_copy_epoch, take_copied, take_returned};
use base::sync::Arc;
use std::collections::{BTreeMap, BTreeSet};

/// What the changes in a worker's log owe to the snapshot.
pub(crate) struct Door {
    running: Arc<Running>,
    /// By address, the entries that the log has changed first. No address is reused before the
    /// guard drops, because entries are freed after that.
    seen: BTreeMap<u64, Seen>,
    /// Pre-images of entries that were changed in place, in the order of the changes.
    images: Vec<Image>,
}

/// An entry that the changes in the log concern.
struct Seen {
    /// The index of its first change.
    at: usize,
    /// That change takes it out of its table, and it has no pre-image.
    leaves: bool,
}

/// The pre-image of an entry.
struct Image {
    /// The index of the change.
    at: usize,
    of: EntryPtr,
    item: Item,
}

/// Bytes outside its entry by which a key loses a value that was captured before. The snapshot
/// alone holds what nobody has copied of it.
fn outside_lost(change: &Change) -> usize {
    let outside = |entry: EntryPtr| if entry.is_skipped() { entry.outside() } else { 0 };
    match *change {
        Change::Removed { old, .. } | Change::Expired { old, .. } => outside(old),
        // A long write puts a clone in the place of a string.
        Change::Replaced { old, new, .. } => outside(old).saturating_sub(new.outside()),
        _ => 0,
    }
}

impl Undo {
    /// Adopts the snapshot that runs. No change is under way for another one: a snapshot begins
    /// under World, and ends when nothing is ahead of its walker.
    pub fn adopt_snapshot(&mut self, running: Option<Arc<Running>>) {
        self.set_listeners(listeners::SNAPSHOT, running.is_some());
        let _before = (take_copied(), take_returned());
        set_copy_epoch(running.as_ref().map_or(0, |running| running.epoch));
        let door = &mut self.capture.door;
        match (&door, running) {
            (Some(door), Some(running)) if Arc::ptr_eq(&door.running, &running) => {}
            (_, running) => {
                debug_assert!(door.as_ref().is_none_or(|door| door.images.is_empty()));
                let open = |running| Door { running, seen: BTreeMap::new(), images: Vec::new() };
                *door = running.map(|running| Box::new(open(running)));
            }
        }
    }
}

impl Guard<'_> {
    /// Keeps the pre-image of an entry, if the snapshot needs it.
    #[cold]
    pub(crate) fn keep_pre_image(&mut self, subject: Subject) {
        let (place, entry, leaves) = match subject {
            Subject::Entry(place, entry) => (place, entry, false),
            Subject::Leaving(place, entry) => (place, entry, true),
            Subject::Vacant(_) | Subject::Database(_) | Subject::Names(..) => return,
        };
        let undo = &mut self.w.undo;
        let Some(door) = &mut undo.capture.door else { return };
        if entry.is_skipped() || !door.running.is_ahead(place) {
            // The snapshot may share the value: the commit counts what the change copies of it.
            undo.commit_work += usize::from(entry.header().is_big());
            return;
        }
        if door.seen.contains_key(&entry.address()) {
            return;
        }
        if undo.changes.is_empty() {
            // A panic before the change is logged must find something to roll back.
            undo.changes.push(Change::Nothing);
        }
        undo.commit_work += 1;
        let at = undo.changes.len();
        door.seen.insert(entry.address(), Seen { at, leaves });
        if !leaves {
            let item = Item::copy_of(self, place.physical, entry).counted();
            if let Some(door) = &mut self.w.undo.capture.door {
                door.images.push(Image { at, of: entry, item });
            }
        }
    }

    /// Makes the walker skip a new entry, which is no part of the snapshot, if it will meet it.
    pub(crate) fn skip_if_ahead(&mut self, place: Place, new: EntryPtr) {
        if let Some(door) = &self.w.undo.capture.door
            && door.running.is_ahead(place)
        {
            new.set_skipped(true);
        }
    }

    /// Gives the snapshot what the changes in the log owe to it, before they are committed.
    pub(crate) fn hand_over(&mut self) {
        let w = &mut *self.w;
        let Some(door) = &mut w.undo.capture.door else { return };
        let (copied, returned) = (take_copied(), take_returned());
        // Before the entries are freed.
        door.running.note_removed(w.undo.changes.iter().map(outside_lost).sum());
        if copied > 0 || !(door.seen.is_empty() && door.images.is_empty()) {
            let Door { running, seen, images } = &mut **door;
            let stats = self.ks.stats(w.index);
            let kept = images.drain(..).map(|image| {
                image.of.set_skipped(true);
                image.item
            });
            let left = w.undo.changes.iter_mut().filter_map(|change| {
                let (Change::Replaced { place, old, .. }
                | Change::Removed { place, old }
                | Change::Expired { place, old, .. }) = *change
                else {
                    return None;
                };
                if !seen.remove(&old.address()).is_some_and(|seen| seen.leaves) {
                    return None;
                }
                let successor =
                    if let Change::Replaced { new, .. } = *change { Some(new) } else { None };
                *change = Change::Nothing;
                // SAFETY: 1. The change took it out of its table. 2. The line of the log that said
                // so is gone. 3. While a key is changed there is no reference into its entry.
                let gone = unsafe { old.into_gone() };
                let mut item = Item::moved(place.physical, gone);
                if let Some(new) = successor {
                    item = item.shared_with(new, stats);
                }
                Some(item.counted())
            });
            running.capture(self.ks, w.index, kept.chain(left), copied);
            seen.clear();
        }
        if returned > 0 {
            door.running.release_copied(self.ks, returned, false);
        }
        if !w.undo.flushed.is_empty() {
            let stats = self.ks.stats(w.index);
            for detached in &mut w.undo.flushed {
                let passed = door.running.inherit(std::mem::take(detached), stats);
                *detached = passed;
            }
        }
    }

    /// Drops the pre-images of changes that were taken back: those behind the first `len` in the
    /// log, except the removals of expired keys that stand there.
    #[cold]
    pub(crate) fn keep_pre_images_of(&mut self, len: usize) {
        let w = &mut *self.w;
        let stats = self.ks.stats(w.index);
        let Some(door) = &mut w.undo.capture.door else { return };
        let stays: BTreeSet<u64> = w.undo.changes[len.min(w.undo.changes.len())..]
            .iter()
            .filter_map(|change| match change {
                Change::Expired { old, .. } => Some(old.address()),
                _ => None,
            })
            .collect();
        door.seen.retain(|address, seen| {
            let stays = stays.contains(address);
            if stays {
                seen.at = seen.at.min(len); // its line has moved forward
            }
            stays || seen.at < len
        });
        for image in std::mem::take(&mut door.images) {
            if image.at < len {
                door.images.push(image);
            } else {
                w.graveyard.push(image.item.into_gone(stats));
            }
        }
    }
}
