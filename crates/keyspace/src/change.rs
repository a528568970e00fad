//! All changes of entries pass through these functions. They maintain the undo log, the counters,
//! the memory account, the expiry index and the watches.
//!
//! ```text
//! insert, remove, EntryMut::...                          a command changes a key
//!   1. expire_or_hide | remove_if_due                    an old entry that is due (due.rs)
//!   2. before_change -> Listeners                        snapshot hook (capture.rs)
//!   3. Undo.changes.push(Change::...)                    how to take it back (undo.rs)
//!   4. the change: in place if the allocation fits and the entry is small,
//!      else a new entry replaces the old one, which is freed after the commit
//!   5. reindex, stats                                    expiry index, counters, memory
//!      (a new entry is logged, 3, after it is linked: taking it back needs its place)
//!   6. touch                                             watches, waiters, keyspace event
//! finish | rollback                                      ends the command (commit.rs, rollback.rs)
//! ```
#![allow(unsafe_code)]

use crate::capture::{Listeners, Subject};
use crate::directory::Directory;
use crate::entry::{EntryPtr, Gone, Room};
use crate::event::Event;
use crate::guard::Guard;
use crate::keyspace::Key;
use crate::memory::BUCKET_BYTES;
use crate::payload::{Form, Payload};
use crate::slab::Source;
use crate::slot::Held;
use crate::stats::{add, get, set};
use crate::table::{Found, HeldTable};
use crate::undo::{Change, Notice, Place};
use crate::wait::Ready;
use base::{DbIndex, UnixMs};
use value::{Big, Encoding, Kind, NewStr};

/// The largest entry that is overwritten in place: its old value is copied into the undo log. A
/// larger one is replaced by a new entry.
pub(crate) const COPY_MAX: usize = 1024;

/// What a table without keys keeps for its next ones: it counts for no database.
fn kept_bytes(table: HeldTable<'_>) -> i64 {
    Directory::taken_by(table.buckets()) as i64 * BUCKET_BYTES
}

impl<'a> Guard<'a> {
    /// Sets a key to a string, replacing its value and expiry.
    #[inline]
    pub fn insert(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
        value: NewStr<'_>,
        expiry: Option<UnixMs>,
    ) {
        self.put(event, db, key, Payload::of(value), expiry);
    }

    /// Sets a key to a packed collection, replacing its value and expiry.
    #[allow(clippy::too_many_arguments)]
    pub fn insert_packed(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
        kind: Kind,
        encoding: Encoding,
        bytes: &[u8],
        expiry: Option<UnixMs>,
    ) {
        self.put(event, db, key, Payload::packed(kind, encoding, bytes), expiry);
    }

    /// Sets a key to a collection outside the entry, replacing its value and expiry.
    pub fn insert_big(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
        encoding: Encoding,
        big: Big,
        expiry: Option<UnixMs>,
    ) {
        self.put(event, db, key, Payload::Big(encoding, Box::new(big)), expiry);
    }

    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        event: Event,
        db: DbIndex,
        key: &Key<'_>,
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
    ) {
        let place = self.place(db, key);
        let slot = self.owned(key.slot);
        let table = slot.table_or_new(place.physical);
        let Some(Found { entry, .. }) = table.find(&self.ks.mem, key.hash, key.bytes) else {
            return self.create(event, db, place, slot, table, key, payload, expiry);
        };
        if entry.header().has_ttl() && self.is_due(entry) && self.remove_if_due(db, place, entry) {
            return self.create(event, db, place, slot, table, key, payload, expiry);
        }
        let number;
        let (form, bytes) = match &payload {
            Payload::Int(int) => {
                number = int.to_ne_bytes();
                (Form::string(Encoding::Int), &number[..])
            }
            Payload::Inline(form, bytes) => (*form, *bytes),
            Payload::Blob(_) | Payload::Big(..) => {
                self.put_new(event, db, place, entry, payload, expiry);
                return;
            }
        };
        if entry.header().has_ttl() == expiry.is_some()
            && let Some(room) = entry.room_for(bytes.len(), COPY_MAX)
        {
            self.overwrite(event, db, place, entry, room, form, bytes);
            if let Some(at) = expiry {
                let _ = self.move_expiry(place, entry, at); // the change of the value was announced
            }
        } else {
            self.put_new(event, db, place, entry, payload, expiry);
        }
    }

    /// Overwrites the value of an entry that has room.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn overwrite(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
        room: Room,
        form: Form,
        bytes: &[u8],
    ) {
        // One test for listeners before and after the change.
        if self.w.undo.listeners == 0 {
            self.overwrite_in_place(db, place, entry, room, form, bytes);
        } else {
            self.overwrite_and_notify(event, db, place, entry, room, form, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn overwrite_and_notify(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
        room: Room,
        form: Form,
        bytes: &[u8],
    ) {
        let _ = self.before_change(place, entry);
        self.overwrite_in_place(db, place, entry, room, form, bytes);
        self.notify_before(Event::TOUCHED, db, entry);
        self.notify_change(event, db, entry);
    }

    #[inline(always)]
    fn overwrite_in_place(
        &mut self,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
        room: Room,
        form: Form,
        bytes: &[u8],
    ) {
        self.save_value(entry, room);
        let uses = self.w.used(room.header.uses());
        // SAFETY: 1. While a key is changed there is no reference into its entry: those to a
        // guard's entries borrow the guard. `bytes` are a request's or a scratch buffer's. 2. The
        // caller has just computed the room.
        unsafe { entry.overwrite(room, form, bytes, uses) };
        self.touch_if_watched(db, place, entry);
        self.w.undo.change_count += 1;
    }

    /// Copies an inline value to the undo log before it is changed in place.
    #[inline(always)]
    pub(crate) fn save_value(&mut self, entry: EntryPtr, room: Room) {
        let start = self.w.undo.save(entry.image(room));
        self.w.undo.changes.push(Change::Value { entry, header: room.header, start });
    }

    /// Changes the expiry of an entry that has one.
    #[inline(never)]
    pub(crate) fn move_expiry(&mut self, place: Place, entry: EntryPtr, at: UnixMs) -> Listeners {
        let from = entry.expiry().expect("an entry with an expiry");
        let listeners = self.before_change(place, entry);
        self.w.undo.changes.push(Change::Expiry { place, entry, from });
        entry.set_expiry(at);
        self.reindex(place, Some(from), Some(at));
        listeners
    }

    /// Builds an entry that is in no table yet.
    #[inline]
    pub(crate) fn build(
        &mut self,
        key: &[u8],
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
        uses: u32,
    ) -> EntryPtr {
        let mut source = Source { mem: &self.ks.entries, cache: &mut self.w.entries };
        let new = EntryPtr::build(&mut source, key, payload, expiry, uses);
        set(&self.ks.stats(self.w.index).entries, self.w.entries.bytes);
        new
    }

    /// Builds an entry equal to another one, in no table. A value outside is shared.
    pub(crate) fn build_aside(&mut self, of: EntryPtr) -> Gone {
        let copy = self.build(of.key(), of.payload(), of.expiry(), of.uses());
        // SAFETY: 1. It is in no table. 2. Once. 3. Nobody else knows it.
        unsafe { copy.into_gone() }
    }

    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn create(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        slot: Held<'_>,
        table: HeldTable<'_>,
        key: &Key<'_>,
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
    ) {
        let new = self.build(key.bytes, payload, expiry, self.w.uses_now);
        self.create_built(event, db, place, slot, table, new);
    }

    pub(crate) fn create_built(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        slot: Held<'_>,
        table: HeldTable<'_>,
        new: EntryPtr,
    ) {
        let listeners = self.before(|| Subject::Vacant(place));
        if listeners.any() {
            self.before_link(Event::NEW, db, place, new);
        }
        self.link(place, slot, table, new);
        self.w.undo.changes.push(Change::Inserted { place, new });
        self.touch(listeners, event, db, place, new);
    }

    /// Adds an entry to its table, to the counters and to the expiry index.
    pub(crate) fn link(
        &mut self,
        place: Place,
        slot: Held<'_>,
        table: HeldTable<'_>,
        new: EntryPtr,
    ) {
        debug_assert!(std::ptr::eq(&raw const *slot, self.ks.slot(place.slot)));
        let mut bytes = new.memory() as i64;
        if table.len() == 0 {
            self.ks.mark_occupied(place.physical, place.slot);
            bytes += kept_bytes(table);
        }
        table.insert(&mut self.workspace(), place.hash, new);
        let stats = self.ks.stats(self.w.index);
        add(&stats.of(place.physical).keys, 1);
        add(&stats.used, new.memory() as i64);
        self.account(place.physical, bytes);
        if new.header().has_ttl() {
            self.reindex(place, None, new.expiry());
        }
        self.reindex_fields(place, None, new.next_field_due());
    }

    /// Adds to the bytes of a database, and with them the buckets that its tables have taken or
    /// freed since the last call.
    #[inline]
    pub(crate) fn account(&self, physical: u16, bytes: i64) {
        let stats = self.ks.stats(self.w.index);
        let buckets = self.w.pages.buckets - get(&stats.buckets);
        set(&stats.buckets, self.w.pages.buckets);
        add(&stats.of(physical).bytes, bytes + buckets * BUCKET_BYTES);
    }

    /// Adds what a value outside its entry has grown by to all bytes and to its database's.
    #[inline]
    pub(crate) fn account_outside(&self, physical: u16, bytes: i64) {
        let stats = self.ks.stats(self.w.index);
        add(&stats.used, bytes);
        add(&stats.of(physical).bytes, bytes);
    }

    /// Removes an entry from its table, the counters and the expiry index. Its memory counts until
    /// it is freed.
    pub(crate) fn unlink(&mut self, place: Place, table: HeldTable<'_>, found: &Found<'_>) {
        table.remove(&mut self.workspace(), place.hash, found);
        add(&self.ks.stats(self.w.index).of(place.physical).keys, -1);
        let mut bytes = found.entry.memory() as i64;
        if table.len() == 0 {
            bytes += kept_bytes(table);
        }
        self.account(place.physical, -bytes);
        if found.entry.header().has_ttl() {
            self.reindex(place, found.entry.expiry(), None);
        }
        self.reindex_fields(place, found.entry.next_field_due(), None);
    }

    /// Replaces an entry by a new one with this value.
    #[inline(never)]
    pub(crate) fn put_new(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        old: EntryPtr,
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
    ) -> EntryPtr {
        let uses = self.w.used(old.uses());
        let new = self.build(old.key(), payload, expiry, uses);
        self.put_built(Event::SILENT, event, db, place, old, new);
        new
    }

    /// As [`Guard::put_new`] with the same value in another form: no change, and nobody is
    /// notified.
    pub(crate) fn put_unchanged(
        &mut self,
        db: DbIndex,
        place: Place,
        old: EntryPtr,
        payload: Payload<'_>,
        expiry: Option<UnixMs>,
    ) -> EntryPtr {
        let new = self.build(old.key(), payload, expiry, old.uses());
        let listeners = self.exchange_built(Event::SILENT, db, place, old, new);
        self.count_change(listeners, 0);
        new
    }

    /// Replaces an entry by one that was built; the event `first` precedes that of the change.
    pub(crate) fn put_built(
        &mut self,
        first: Event,
        event: Event,
        db: DbIndex,
        place: Place,
        old: EntryPtr,
        new: EntryPtr,
    ) {
        let listeners = self.exchange_built(first, db, place, old, new);
        self.touch(listeners, event, db, place, new);
    }

    #[inline(always)]
    fn exchange_built(
        &mut self,
        first: Event,
        db: DbIndex,
        place: Place,
        old: EntryPtr,
        new: EntryPtr,
    ) -> Listeners {
        let listeners = self.before(|| Subject::Leaving(place, old));
        if listeners.any() {
            self.before_link(first, db, place, new);
        }
        let found = self.table_of(place).find_entry(&self.ks.mem, place.hash, old);
        add(&self.ks.stats(self.w.index).used, new.memory() as i64);
        self.exchange(place, &found, new);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Replaced { place, old, new });
        listeners
    }

    /// Builds an entry with the collection of another one, which loses it. The caller adds the new
    /// entry to a table and removes `from` from its own.
    pub(crate) fn build_from(
        &mut self,
        key: &[u8],
        place: Place,
        from: EntryPtr,
        expiry: Option<UnixMs>,
    ) -> EntryPtr {
        let _ = self.before_change(place, from); // the change of the new entry notifies
        self.reindex_fields(place, from.next_field_due(), None);
        let moved = from.outside() as i64;
        let payload = // SAFETY: 1. As in `overwrite`.
            Payload::Big(from.encoding(), unsafe { from.take_box() });
        let to = self.build(key, payload, expiry, from.uses());
        // The new entry is accounted with its collection.
        self.account_outside(place.physical, -moved);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Moved { place, from, to });
        to
    }

    /// Adds or removes the room for an expiry in an entry with a collection outside.
    pub(crate) fn reshape(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        old: EntryPtr,
        expiry: Option<UnixMs>,
    ) -> EntryPtr {
        let new = self.build_from(old.key(), place, old, expiry);
        self.put_built(Event::SILENT, event, db, place, old, new);
        new
    }

    pub(crate) fn exchange(&mut self, place: Place, found: &Found<'_>, new: EntryPtr) {
        found.replace(new);
        let grown = new.memory() as i64 - found.entry.memory() as i64;
        add(&self.ks.stats(self.w.index).of(place.physical).bytes, grown);
        self.reindex(place, found.entry.expiry(), new.expiry());
        self.reindex_fields(place, found.entry.next_field_due(), new.next_field_due());
    }

    /// Removes a key; false if it did not exist.
    pub fn remove(&mut self, event: Event, db: DbIndex, key: &Key<'_>) -> bool {
        let Some((found, table, place)) = self.find_any(db, key) else { return false };
        if self.is_due(found.entry) {
            if self.expire_or_hide(db, place, found.entry) {
                return false;
            }
        } else if self.is_all_due(found.entry)
            && !self.expire_or_hide_fields(db, place, found.entry)
        {
            return false;
        }
        self.remove_found(Event::SILENT, event, db, place, table, &found);
        true
    }

    /// Removes an entry; the event `first` precedes that of its removal.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn remove_found(
        &mut self,
        first: Event,
        event: Event,
        db: DbIndex,
        place: Place,
        table: HeldTable<'_>,
        found: &Found<'_>,
    ) {
        let old = found.entry;
        let listeners = self.before(|| Subject::Leaving(place, old));
        if listeners.any() {
            self.notify_before(first, db, old);
        }
        self.unlink(place, table, found);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Removed { place, old });
        self.touch(listeners, event, db, place, old);
    }

    pub(crate) fn remove_entry(
        &mut self,
        first: Event,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) {
        let table = self.table_of(place);
        let found = table.find_entry(&self.ks.mem, place.hash, entry);
        self.remove_found(first, event, db, place, table, &found);
    }

    /// Ends a change of one key: notes the watches and waiters of the key, for the commit, and
    /// emits the event.
    #[inline(always)]
    pub(crate) fn touch(
        &mut self,
        listeners: Listeners,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) {
        self.touch_as(listeners, Event::TOUCHED, event, db, place, entry);
    }

    /// As [`Guard::touch`]; client-side caching is told `touched`.
    #[inline(always)]
    pub(crate) fn touch_as(
        &mut self,
        listeners: Listeners,
        touched: Event,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) {
        self.touch_if_watched(db, place, entry);
        self.w.undo.change_count += 1;
        if listeners.any() {
            self.notify_before(touched, db, entry);
            self.notify_change(event, db, entry);
        }
    }

    /// As [`Guard::touch`], for changes that do not concern watches.
    #[inline(always)]
    pub(crate) fn touch_unwatched(
        &mut self,
        listeners: Listeners,
        event: Event,
        db: DbIndex,
        entry: EntryPtr,
    ) {
        self.w.undo.change_count += 1;
        if listeners.any() {
            self.notify_change(event, db, entry);
        }
    }

    #[inline(always)]
    fn touch_if_watched(&mut self, db: DbIndex, place: Place, entry: EntryPtr) {
        if self.ks.slot(place.slot).is_watched() {
            self.touch_watched(db, place, entry.key());
        }
    }

    /// Notes for the commit that a key was changed for which tickets wait.
    pub(crate) fn wake(&mut self, db: DbIndex, place: Place, key: &[u8]) {
        if !self.ks.slot(place.slot).is_watched() {
            return;
        }
        let slot = self.owned(place.slot);
        if slot.with_parts(|_, parts| parts.waiters.has(db, place.hash, key)) {
            self.w.undo.commit_work += 1;
            self.w.undo.notices.push(Notice::Waiters(Ready { db, key: key.into() }));
        }
    }

    #[cold]
    pub(crate) fn touch_watched(&mut self, db: DbIndex, place: Place, key: &[u8]) {
        let slot = self.owned(place.slot);
        let (cells, waited) = slot.with_parts(|_, parts| {
            let cells: Vec<_> = parts.watchers.cells(db, place.hash, key).cloned().collect();
            (cells, parts.waiters.has(db, place.hash, key))
        });
        self.w.undo.commit_work += cells.len();
        self.w.undo.notices.extend(cells.into_iter().map(Notice::Watcher));
        if waited {
            self.w.undo.commit_work += 1;
            self.w.undo.notices.push(Notice::Waiters(Ready { db, key: key.into() }));
        }
    }

    pub(crate) fn table_of(&self, place: Place) -> HeldTable<'a> {
        self.owned(place.slot).table(place.physical).expect("a changed entry is in a table")
    }
}
