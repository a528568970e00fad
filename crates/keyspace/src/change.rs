//! The one door for change. Whatever changes an entry comes through these functions, which keep the
//! undo log, the counters, the memory account, the expiry index and the watchers right.
#![allow(unsafe_code)]

use crate::capture::{Listeners, Subject};
use crate::entry::{EntryPtr, Gone, Room};
use crate::event::{Event, listeners};
use crate::guard::Guard;
use crate::keyspace::Key;
use crate::payload::{Form, Payload};
use crate::slab::Source;
use crate::slot::Held;
use crate::stats::{add, set};
use crate::table::{Found, HeldTable};
use crate::undo::{Change, Mark, Notice, Place};
use crate::wait::Ready;
use base::sync::hint::AtomicI64;
use base::{DbIndex, UnixMs};
use value::{Big, Encoding, Kind, NewStr};

/// The biggest entry that is overwritten in place, and so captured by copy; a bigger one is moved.
pub(crate) const COPY_MAX: usize = 1024;

/// What the commands of one guard may leave to undo them.
const UNDO_BYTES_MAX: usize = 64 << 20;

impl<'a> Guard<'a> {
    /// Creates the key or replaces what it holds, expiry included.
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

    /// Creates the key or replaces what it holds by a packed collection, expiry included.
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

    /// Creates the key or replaces what it holds by a collection outside the entry, expiry
    /// included.
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
                let _ = self.move_expiry(place, entry, at); // the value's change has told it
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
        // One test for those before the change and those behind it.
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
        // SAFETY: 1. Who changes a key has no reference into its entry: those to a guard's entries
        // borrow the guard; `bytes` are a request's or a scratch buffer's. 2. The caller has just
        // asked for the room.
        unsafe { entry.overwrite(room, form, bytes, uses) };
        self.touch_if_watched(db, place, entry);
        self.w.undo.change_count += 1;
    }

    /// Captures an inline value before it is changed in place.
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

    /// Builds an entry, which is in no table yet.
    #[inline]
    fn build(
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

    fn create_built(
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
            self.notify_before(Event::NEW, db, new);
        }
        self.link(place, slot, table, new);
        self.w.undo.changes.push(Change::Inserted { place, new });
        self.touch(listeners, event, db, place, new);
    }

    /// Puts an entry into its table, and into the books.
    pub(crate) fn link(
        &mut self,
        place: Place,
        slot: Held<'_>,
        table: HeldTable<'_>,
        new: EntryPtr,
    ) {
        debug_assert!(std::ptr::eq(&raw const *slot, self.ks.slot(place.slot)));
        if table.len() == 0 {
            self.ks.mark_occupied(place.physical, place.slot);
        }
        table.insert(&mut self.workspace(), place.hash, new);
        let stats = self.ks.stats(self.w.index);
        add(&stats.keys[place.physical as usize], 1);
        add(&stats.used, new.memory() as i64);
        set(&stats.buckets, self.w.pages.buckets);
        if new.header().has_ttl() {
            self.reindex(place, None, new.expiry());
        }
        self.reindex_fields(place, None, new.next_field_due());
    }

    /// Takes an entry out of its table and the books; its memory counts until it is freed.
    pub(crate) fn unlink(&mut self, place: Place, table: HeldTable<'_>, found: &Found<'_>) {
        table.remove(&mut self.workspace(), place.hash, found);
        let stats = self.ks.stats(self.w.index);
        add(&stats.keys[place.physical as usize], -1);
        set(&stats.buckets, self.w.pages.buckets);
        if found.entry.header().has_ttl() {
            self.reindex(place, found.entry.expiry(), None);
        }
        self.reindex_fields(place, found.entry.next_field_due(), None);
    }

    /// Puts a newly built entry in the place of the one that was found.
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

    /// As [`Guard::put_new`] of the same value in another form: it is no change, and nobody is
    /// told.
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

    /// Puts an entry in the place of another one; the event `first` comes before that of the
    /// change.
    fn put_built(
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
        let listeners = self.before_change(place, old);
        if listeners.any() {
            self.notify_before(first, db, new);
        }
        let found = self.table_of(place).find_entry(&self.ks.mem, place.hash, old);
        add(&self.ks.stats(self.w.index).used, new.memory() as i64);
        self.exchange(place, &found, new);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Replaced { place, old, new });
        listeners
    }

    /// Builds an entry that takes the collection outside another one over; the caller puts it in a
    /// table and takes `from` out of its own.
    fn build_from(
        &mut self,
        key: &[u8],
        place: Place,
        from: EntryPtr,
        expiry: Option<UnixMs>,
    ) -> EntryPtr {
        let _ = self.before_change(place, from); // the new entry's change tells it
        self.reindex_fields(place, from.next_field_due(), None);
        let moved = from.outside() as i64;
        let payload = // SAFETY: 1. As in `overwrite`.
            Payload::Big(from.encoding(), unsafe { from.take_box() });
        let to = self.build(key, payload, expiry, from.uses());
        // The new entry is accounted for with all that it has.
        add(&self.ks.stats(self.w.index).used, -moved);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Moved { place, from, to });
        to
    }

    /// Gives an entry with a collection outside, or takes from it, the room for an expiry.
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

    /// Removes an entry; the event `first` comes before that of its removal.
    #[allow(clippy::too_many_arguments)]
    fn remove_found(
        &mut self,
        first: Event,
        event: Event,
        db: DbIndex,
        place: Place,
        table: HeldTable<'_>,
        found: &Found<'_>,
    ) {
        let old = found.entry;
        let listeners = self.before_change(place, old);
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

    /// Removes an entry whose time has come.
    #[cold]
    pub(crate) fn expire_entry(&mut self, db: DbIndex, place: Place, entry: EntryPtr) {
        self.count_expired(entry);
        self.remove_expired(db, place, entry, 0);
    }

    /// Counts an entry that goes because its time has come, and measures how late that is.
    #[cold]
    fn count_expired(&self, entry: EntryPtr) {
        let late = entry.expiry().map_or(0, |at| self.w.now.0.saturating_sub(at.0));
        let stats = self.ks.stats(self.w.index);
        add(&stats.expired, 1);
        set(&stats.lag_last_ms, late);
        if late > crate::stats::get(&stats.lag_max_ms) {
            set(&stats.lag_max_ms, late);
        }
    }

    /// Copies a key with its value and expiry to another key, replacing what is there; false if
    /// there is nothing to copy. A big value is shared, not copied.
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
        // An entry's bytes must not be overwritten by themselves, nor in place by another's while
        // the table may change: the copy is always a new entry.
        let (payload, expiry) = (found.entry.payload(), found.entry.expiry());
        let new = self.build(to.bytes, payload, expiry, self.w.uses_now);
        self.place_built(event, to_db, to, new);
        true
    }

    /// Moves a key with its value and expiry to another key or database, replacing what is there;
    /// false if there is nothing to move. The events are of the old key and of the new one.
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
        // Before the collection is in neither entry: whoever watches what is due here may be told,
        // and more.
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

    /// Removes what is due under a key.
    fn remove_due(&mut self, db: DbIndex, key: &Key<'_>) {
        if let Some((found, _, place)) = self.find_any(db, key)
            && self.is_due(found.entry)
        {
            self.remove_if_due(db, place, found.entry);
        }
    }

    /// Puts a newly built entry in its table, in the place of what is there.
    fn place_built(&mut self, event: Event, db: DbIndex, key: &Key<'_>, new: EntryPtr) {
        let place = self.place(db, key);
        let slot = self.owned(key.slot);
        let table = slot.table_or_new(place.physical);
        match table.find(&self.ks.mem, key.hash, key.bytes) {
            Some(there)
                if !(self.is_due(there.entry) && self.remove_if_due(db, place, there.entry)) =>
            {
                // It is another key, though it stands in the same place.
                self.put_built(Event::NEW, event, db, place, there.entry, new);
            }
            _ => self.create_built(event, db, place, slot, table, new),
        }
    }

    /// Ends a change of one key: notes the cells of who watches it, to be marked when the command
    /// commits, and tells who listens.
    #[inline(always)]
    pub(crate) fn touch(
        &mut self,
        listeners: Listeners,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) {
        self.touch_if_watched(db, place, entry);
        self.touch_unwatched(listeners, event, db, entry);
    }

    /// As [`Guard::touch`], of what those who watch are not told.
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

    /// Lets the command panic once it has made `changes` further changes, at once if that is 0: to
    /// test that what it did is undone. Ends with the command; one that makes fewer goes through.
    pub fn panic_after(&mut self, changes: u32) {
        assert!(changes > 0, "a panic was asked for, before any change");
        self.w.undo.set_fuse(changes);
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Nothing);
    }

    /// Changes that were counted so far and are not committed, for [`Guard::count_as`].
    #[inline(always)]
    pub fn counted(&self) -> i64 {
        self.w.undo.change_count
    }

    /// Counts all that was changed since [`Guard::counted`] said `before` as so many changes: a
    /// command counts as many as it has changed elements.
    #[inline(always)]
    pub fn count_as(&mut self, before: i64, changes: u64) {
        // A count without a change would be the next command's.
        debug_assert!(changes == 0 || !self.w.undo.is_empty(), "{changes} changes of nothing");
        self.w.undo.change_count = before + changes as i64;
    }

    /// Lets what is as it was be a change, for [`Guard::count_as`].
    pub fn record_empty_change(&mut self) {
        self.w.undo.commit_work += 1;
        self.w.undo.changes.push(Change::Nothing);
    }

    /// Counts so many changes more than were seen, or fewer: what was changed at once may stand for
    /// many commands, and what one command has changed in two places for one.
    pub fn adjust_change_count(&mut self, changes: i64) {
        self.w.undo.change_count += changes;
    }

    /// Counts a change that is of so many keys, and has no event.
    #[inline]
    pub(crate) fn count_change(&mut self, listeners: Listeners, keys: i64) {
        self.w.undo.change_count += keys;
        if listeners.any() {
            self.burn();
        }
    }

    /// Notes that a key was changed for those who wait for it.
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

    /// Ends what was changed since the last time, whoever changed it: the changes get their number,
    /// while numbers are drawn, and stand. What is to be told waits for [`Guard::next_ready`],
    /// [`Guard::next_note`] and [`Guard::next_event`].
    pub fn finish(&mut self) {
        self.number();
        self.commit();
    }

    /// As [`Guard::finish`], for the short path, which is closed while numbers are drawn, and for
    /// what draws none: a removal because of time. Old entries are freed after the guard has
    /// dropped, and the watchers of the changed keys are told.
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
        let w = &mut *self.w;
        if w.undo.listeners & listeners::CAPTURE != 0 {
            w.undo.count_announced();
        }
        for change in &w.undo.changes {
            match *change {
                Change::Replaced { old, .. }
                | Change::Removed { old, .. }
                | Change::Expired { old, .. } => {
                    // SAFETY: 1. The change took it out of its table. 2. A line of the log is read
                    // once, here or by `undo`, which puts it back. 3. Who changes a key has no
                    // reference into its entry.
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
        // What a value was leaves by the same way as what a key held: as an entry of no key.
        let used = &self.ks.stats(w.index).used;
        let mut source = Source { mem: &self.ks.entries, cache: &mut w.entries };
        for root in w.undo.log.take_roots() {
            let old = Payload::Big(Encoding::Quicklist, Box::new(root));
            bury(&mut source, old, used, &mut w.graveyard);
        }
        for blob in w.undo.log.take_blobs() {
            bury(&mut source, Payload::Blob(blob), used, &mut w.graveyard);
        }
        w.garbage.extend(w.undo.flushed.drain(..));
        for told in w.undo.notices.drain(..) {
            match told {
                Notice::Watcher(cell) => cell.mark(),
                Notice::Waiters(ready) => w.ready.push(ready),
                Notice::Note(note) => w.notes.push_back(note),
                Notice::Event(event) => w.undo.events.push_back(event),
            }
        }
        w.undo.clear();
    }
    /// Where the next command begins.
    pub fn mark(&self) -> Mark {
        self.w.undo.mark()
    }

    /// True if what is kept to undo the commands so far has become too much to keep on.
    pub fn is_undo_large(&self) -> bool {
        self.w.undo.memory() > UNDO_BYTES_MAX
    }

    pub(crate) fn table_of(&self, place: Place) -> HeldTable<'a> {
        self.owned(place.slot).table(place.physical).expect("a changed entry is in a table")
    }
}

/// Leaves a part of a value to be freed after the guard has dropped.
#[cold]
fn bury(source: &mut Source<'_>, old: Payload<'_>, used: &AtomicI64, graveyard: &mut Vec<Gone>) {
    let old = EntryPtr::build(source, b"", old, None, 0);
    add(used, old.memory() as i64);
    // SAFETY: 1. It was just built, and put into no table. 2. Once. 3. Nobody else knows it.
    graveyard.push(unsafe { old.into_gone() });
}
