//! Copying and moving keys: COPY, RENAME, MOVE.

use crate::entry::EntryPtr;
use crate::event::Event;
use crate::guard::Guard;
use crate::keyspace::Key;
use base::DbIndex;

impl Guard<'_> {
    /// Copies a key with its value and expiry to another key, which it replaces; false if there is
    /// no such key. A value outside the entry is shared, not copied.
    pub fn copy_entry(
        &mut self,
        event: Event,
        from_db: DbIndex,
        from: &Key<'_>,
        to_db: DbIndex,
        to: &Key<'_>,
    ) -> bool {
        let Some((found, _)) = self.find_live(from_db, from) else { return false };
        if from_db == to_db && from.bytes == to.bytes {
            return true;
        }
        // `payload` refers to the bytes of an entry, so it must not be written into one: the copy
        // is always a new entry.
        let (payload, expiry) = (found.entry.payload(), found.entry.expiry());
        let new = self.build(to.bytes, payload, expiry, self.w.uses_now);
        self.place_built(event, to_db, to, new);
        true
    }

    /// Moves a key with its value and expiry to another key or database, which it replaces; false
    /// if there is no such key. The events are for the old key and for the new one.
    pub fn move_entry(
        &mut self,
        events: [Event; 2],
        from_db: DbIndex,
        from: &Key<'_>,
        to_db: DbIndex,
        to: &Key<'_>,
    ) -> bool {
        let Some((found, place)) = self.find_live(from_db, from) else { return false };
        if from_db == to_db && from.bytes == to.bytes {
            return true;
        }
        let (old, expiry) = (found.entry, found.entry.expiry());
        // A due entry at the destination expires now, with its notifications, while the collection
        // is still in its entry.
        self.remove_due(to_db, to);
        let new = if old.big().is_some() {
            self.build_from(to.bytes, place, old, expiry)
        } else {
            self.build(to.bytes, old.payload(), expiry, old.uses())
        };
        self.place_built(Event::SILENT, to_db, to, new);
        self.remove_entry(Event::SILENT, events[0], from_db, place, old);
        self.notify(events[1], to_db, to);
        true
    }

    /// Removes a key that is due, if the rule says so.
    fn remove_due(&mut self, db: DbIndex, key: &Key<'_>) {
        if let Some((found, _, place)) = self.find_any(db, key)
            && self.is_due(found.entry)
        {
            self.remove_if_due(db, place, found.entry);
        }
    }

    /// Adds an entry that was built to its table, or replaces the one that is there.
    fn place_built(&mut self, event: Event, db: DbIndex, key: &Key<'_>, new: EntryPtr) {
        let place = self.place(db, key);
        let slot = self.owned(key.slot);
        let table = slot.table_or_new(place.physical);
        match table.find(&self.ks.mem, key.hash, key.bytes) {
            Some(there)
                if !(self.is_due(there.entry) && self.remove_if_due(db, place, there.entry)) =>
            {
                // For keyspace events the replaced key is a new one.
                self.put_built(Event::NEW, event, db, place, there.entry, new);
            }
            _ => self.create_built(event, db, place, slot, table, new),
        }
    }
}
