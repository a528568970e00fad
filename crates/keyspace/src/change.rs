//! The one door for change. Whatever changes an entry comes through these functions, which keep the
//! undo log, the counters, the memory account, the expiry index and the watchers right.
#![allow(unsafe_code)]

use crate::capture::Subject;
use crate::entry::{EntryPtr, Gone, Room};
use crate::event::{Event, listens};
use crate::guard::Guard;
use crate::payload::{Form, Payload};
use crate::slab::Source;
use crate::slot::Held;
use crate::space::Key;
use crate::stats::{add, set};
use crate::table::{Found, HeldTable};
use crate::undo::{Change, Detached, Mark, Place, Told};
use crate::wait::Ready;
use base::sync::hint::AtomicI64;
use base::{DbIndex, UnixMs};
use value::{Big, Encoding, Kind, NewStr};

/// The biggest entry that is overwritten in place, and so captured by copy; a bigger one is moved.
pub(crate) const COPY_MAX: usize = 1024;

/// Commands of one guard may leave so much to undo them; then those that have ended are committed.
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

    /// Creates the key or replaces what it holds by a collection outside the entry, expiry included.
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
        if entry.header().has_ttl() && self.is_due(entry) && self.make_way(db, place, entry) {
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
                self.move_expiry(place, entry, at);
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
        if self.w.undo.listens == 0 {
            self.overwrite_unheard(db, place, entry, room, form, bytes);
        } else {
            self.overwrite_heard(event, db, place, entry, room, form, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn overwrite_heard(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
        room: Room,
        form: Form,
        bytes: &[u8],
    ) {
        self.before_change(place, entry);
        self.overwrite_unheard(db, place, entry, room, form, bytes);
        self.tell_change(event, db, entry);
    }

    #[inline(always)]
    fn overwrite_unheard(
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
        // SAFETY: 1. Who changes a key has no reference into its entry: those to a guard's entries borrow the
        // guard; `bytes` are a request's or a scratch buffer's. 2. The caller has just asked for the room.
        unsafe { entry.overwrite(room, form, bytes, uses) };
        self.touch_if_watched(db, place, entry);
        self.w.undo.made += 1;
    }

    /// Captures an inline value before it is changed in place.
    #[inline(always)]
    pub(crate) fn save_value(&mut self, entry: EntryPtr, room: Room) {
        let start = self.w.undo.save(entry.image(room));
        self.w.undo.changes.push(Change::Value { entry, header: room.header, start });
    }

    /// Changes the expiry of an entry that has one.
    #[inline(never)]
    pub(crate) fn move_expiry(&mut self, place: Place, entry: EntryPtr, at: UnixMs) {
        let from = entry.expiry().expect("an entry with an expiry");
        self.before_change(place, entry);
        self.w.undo.changes.push(Change::Expiry { place, entry, from });
        entry.set_expiry(at);
        self.reindex(place, Some(from), Some(at));
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
        if self.w.undo.listens != 0 {
            self.announce(Subject::Vacant(place));
            self.tell_new(db, new);
        }
        self.link(place, slot, table, new);
        self.w.undo.changes.push(Change::Inserted { place, new });
        self.touch(event, db, place, new);
    }

    /// Puts an entry into its table, and into the books.
    fn link(&mut self, place: Place, slot: Held<'_>, table: HeldTable<'_>, new: EntryPtr) {
        debug_assert!(std::ptr::eq(&raw const *slot, self.ks.slot(place.slot)));
        if table.len() == 0 {
            self.ks.mark_occupied(place.physical, place.slot);
        }
        table.insert(&mut self.space(), place.hash, new);
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
        table.remove(&mut self.space(), place.hash, found);
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
        self.put_built(event, db, place, old, new);
        new
    }

    fn put_built(&mut self, event: Event, db: DbIndex, place: Place, old: EntryPtr, new: EntryPtr) {
        self.before_change(place, old);
        let found = self.table_of(place).find_entry(&self.ks.mem, place.hash, old);
        add(&self.ks.stats(self.w.index).used, new.memory() as i64);
        self.exchange(place, &found, new);
        self.w.undo.moved += 1;
        self.w.undo.changes.push(Change::Replaced { place, old, new });
        self.touch(event, db, place, new);
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
        self.before_change(place, from);
        self.reindex_fields(place, from.next_field_due(), None);
        let moved = from.outside() as i64;
        let payload = // SAFETY: 1. As in `overwrite`.
            Payload::Big(from.encoding(), unsafe { from.take_box() });
        let to = self.build(key, payload, expiry, from.uses());
        // The new entry is accounted for with all that it has.
        add(&self.ks.stats(self.w.index).used, -moved);
        self.w.undo.moved += 1;
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
        self.put_built(event, db, place, old, new);
        new
    }

    fn exchange(&mut self, place: Place, found: &Found<'_>, new: EntryPtr) {
        found.replace(new);
        self.reindex(place, found.entry.expiry(), new.expiry());
        self.reindex_fields(place, found.entry.next_field_due(), new.next_field_due());
    }

    /// Removes a key; false if it did not exist.
    pub fn remove(&mut self, event: Event, db: DbIndex, key: &Key<'_>) -> bool {
        let Some((found, table, place)) = self.find_any(db, key) else { return false };
        if self.is_due(found.entry) {
            if self.meet_due(db, place, found.entry) {
                return false;
            }
        } else if self.is_all_due(found.entry) && !self.meet_due_fields(db, place, found.entry) {
            return false;
        }
        self.remove_found(event, db, place, table, &found);
        true
    }

    fn remove_found(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        table: HeldTable<'_>,
        found: &Found<'_>,
    ) {
        let old = found.entry;
        self.before_change(place, old);
        self.unlink(place, table, found);
        self.w.undo.moved += 1;
        self.w.undo.changes.push(Change::Removed { place, old });
        self.touch(event, db, place, old);
    }

    pub(crate) fn remove_entry(
        &mut self,
        event: Event,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) {
        let table = self.table_of(place);
        let found = table.find_entry(&self.ks.mem, place.hash, entry);
        self.remove_found(event, db, place, table, &found);
    }

    /// Removes an entry whose time has come.
    #[cold]
    pub(crate) fn expire_entry(&mut self, db: DbIndex, place: Place, entry: EntryPtr) {
        self.count_expired(entry);
        self.take_away(db, place, entry, 0);
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
        // Before the collection is in neither entry: whoever watches what is due here may be told, and more.
        self.clear_way(to_db, to);
        let new = if old.big().is_some() {
            self.build_from(to.bytes, place, old, expiry)
        } else {
            self.build(to.bytes, old.payload(), expiry, old.uses())
        };
        self.place_built(Event::SILENT, to_db, to, new);
        self.remove_entry(events[0], from_db, place, old);
        self.tell(events[1], to_db, to);
        true
    }

    /// Removes what is due under a key.
    fn clear_way(&mut self, db: DbIndex, key: &Key<'_>) {
        if let Some((found, _, place)) = self.find_any(db, key)
            && self.is_due(found.entry)
        {
            self.make_way(db, place, found.entry);
        }
    }

    /// Puts a newly built entry in its table, in the place of what is there.
    fn place_built(&mut self, event: Event, db: DbIndex, key: &Key<'_>, new: EntryPtr) {
        let place = self.place(db, key);
        let slot = self.owned(key.slot);
        let table = slot.table_or_new(place.physical);
        match table.find(&self.ks.mem, key.hash, key.bytes) {
            Some(there) if !(self.is_due(there.entry) && self.make_way(db, place, there.entry)) => {
                // It is another key, though it stands in the same place.
                if self.w.undo.listens != 0 {
                    self.tell_new(db, new);
                }
                self.put_built(event, db, place, there.entry, new);
            }
            _ => self.create_built(event, db, place, slot, table, new),
        }
    }

    /// Ends a change of one key: notes the cells of who watches it, to be marked when the command commits, and tells who
    /// listens.
    #[inline(always)]
    pub(crate) fn touch(&mut self, event: Event, db: DbIndex, place: Place, entry: EntryPtr) {
        self.touch_if_watched(db, place, entry);
        self.touch_unwatched(event, db, entry);
    }

    /// As [`Guard::touch`], of what those who watch are not told.
    #[inline(always)]
    pub(crate) fn touch_unwatched(&mut self, event: Event, db: DbIndex, entry: EntryPtr) {
        self.w.undo.made += 1;
        if self.w.undo.listens != 0 {
            self.tell_change(event, db, entry);
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
        self.w.undo.moved += 1;
        self.w.undo.changes.push(Change::Nothing);
    }

    /// Counts so many changes more than were seen, or fewer: what was changed at once may stand for many
    /// commands, and what one command has changed in two places for one.
    pub fn count_further(&mut self, changes: i64) {
        self.w.undo.made += changes;
    }

    /// Counts a change that is of so many keys, and has no event.
    #[inline]
    pub(crate) fn count_change(&mut self, keys: i64) {
        self.w.undo.made += keys;
        if self.w.undo.listens != 0 {
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
            self.w.undo.moved += 1;
            self.w.undo.told.push(Told::Waiters(Ready { db, key: key.into() }));
        }
    }

    #[cold]
    pub(crate) fn touch_watched(&mut self, db: DbIndex, place: Place, key: &[u8]) {
        let slot = self.owned(place.slot);
        let (cells, waited) = slot.with_parts(|_, parts| {
            let cells: Vec<_> = parts.watchers.cells(db, place.hash, key).cloned().collect();
            (cells, parts.waiters.has(db, place.hash, key))
        });
        self.w.undo.moved += cells.len();
        self.w.undo.told.extend(cells.into_iter().map(Told::Watcher));
        if waited {
            self.w.undo.moved += 1;
            self.w.undo.told.push(Told::Waiters(Ready { db, key: key.into() }));
        }
    }

    /// Ends one command: its changes stand. Old entries are freed after the guard has dropped, and
    /// the watchers of the changed keys are told.
    #[inline]
    pub fn commit(&mut self) {
        if !self.w.undo.is_empty() {
            if self.w.undo.is_plain() {
                add(&self.ks.stats(self.w.index).changes, self.w.undo.made);
                self.w.undo.clear_plain();
            } else {
                self.commit_changes();
            }
        }
    }

    #[inline(never)]
    fn commit_changes(&mut self) {
        let w = &mut *self.w;
        if w.undo.listens & listens::CAPTURE != 0 {
            w.undo.count_announced();
        }
        for change in &w.undo.changes {
            match *change {
                Change::Replaced { old, .. }
                | Change::Removed { old, .. }
                | Change::Expired { old, .. } => {
                    // SAFETY: 1. The change took it out of its table. 2. A line of the log is read once, here or
                    // by `undo`, which puts it back. 3. Who changes a key has no reference into its entry.
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
        add(&self.ks.stats(w.index).changes, w.undo.made);
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
        for told in w.undo.told.drain(..) {
            match told {
                Told::Watcher(cell) => cell.mark(),
                Told::Waiters(ready) => w.ready.push(ready),
                Told::Note(note) => w.notes.push_back(note),
                Told::Event(event) => w.undo.events.push_back(event),
            }
        }
        w.undo.clear();
    }

    /// Takes back every change since the last commit, but for keys that were gone already because their time had come.
    #[cold]
    pub fn rollback(&mut self) {
        self.undo_to(0);
        let expired = self.expired_from(0);
        self.w.undo.events.extend(expired);
        for change in &self.w.undo.changes {
            if let Change::Expired { old, .. } = *change {
                // SAFETY: as in `commit_changes`.
                self.w.graveyard.push(unsafe { old.into_gone() });
            }
        }
        self.w.undo.clear();
    }

    /// Where the next command begins.
    pub fn mark(&self) -> Mark {
        self.w.undo.mark()
    }

    /// Takes back every change since `mark`, which was taken since the last commit, as [`Guard::rollback`] does; what
    /// came before it stays to be committed.
    #[cold]
    pub fn rollback_to(&mut self, mark: Mark) {
        self.undo_to(mark.changes);
        if self.w.undo.changes.is_empty() {
            self.w.undo.clear();
        } else {
            let expired = self.expired_from(mark.changes);
            self.w.undo.truncate(mark);
            self.w.undo.told.extend(expired.into_iter().map(Told::Event));
        }
    }

    /// Commits if what is kept to undo the commands so far has become too much to keep on: they stand.
    pub fn commit_if_large(&mut self) {
        if self.w.undo.memory() > UNDO_BYTES_MAX {
            self.number();
            self.commit();
        }
    }

    /// Undoes the changes behind the first `len`, but for keys that are gone because their time had come: those
    /// changes stay.
    fn undo_to(&mut self, len: usize) {
        let own_expired = self.own_expired(len);
        let mut stays = Vec::new();
        while self.w.undo.changes.len() > len
            && let Some(change) = self.w.undo.changes.pop()
        {
            match change {
                Change::Expired { old, .. } if !own_expired.contains(&old.address()) => {
                    stays.push(change);
                }
                change => self.undo(change),
            }
        }
        self.w.undo.changes.extend(stays.into_iter().rev());
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Value { entry, header, start } => {
                // SAFETY: 1. As in `overwrite`. 2. They were saved before the overwrite; what came later was
                // undone before.
                unsafe { entry.restore(header, &self.w.undo.bytes[start..]) };
            }
            Change::Range { entry, at, start, len } => {
                let value_len = entry.str().len();
                let room = entry.room_for(value_len, usize::MAX).expect("an inline value");
                let saved = &self.w.undo.bytes[start..start + len];
                // SAFETY: 1. As in `overwrite`; `saved` is in the log. 2. It was just asked for.
                unsafe { entry.patch(room, at, saved, value_len, entry.uses()) };
            }
            Change::Expiry { place, entry, from } => {
                let changed = entry.expiry();
                entry.set_expiry(from);
                self.reindex(place, changed, Some(from));
            }
            Change::Inserted { place, new } => {
                let table = self.table_of(place);
                let found = table.find_entry(&self.ks.mem, place.hash, new);
                self.unlink(place, table, &found);
                // SAFETY: 1. It was just taken out of its table. 2. This line of the log was popped. 3. As in
                // `overwrite`.
                self.w.graveyard.push(unsafe { new.into_gone() });
            }
            Change::Replaced { place, old, new } => {
                let found = self.table_of(place).find_entry(&self.ks.mem, place.hash, new);
                self.exchange(place, &found, old);
                // SAFETY: as above; `old` stands in its place again.
                self.w.graveyard.push(unsafe { new.into_gone() });
            }
            Change::Removed { place, old } => self.relink(place, old),
            Change::Expired { place, old, fields } => self.restore_expired(place, old, fields),
            Change::Edited { place, entry, mark } => self.undo_edit(place, entry, mark),
            // SAFETY: 1. It was saved before another encoding was said; what came later was undone before.
            Change::Header { entry, header } => unsafe { entry.restore_header(header) },
            Change::Moved { place, from, to } => {
                // SAFETY: 1. As in `overwrite`.
                from.put_box(unsafe { to.take_box() });
                self.reindex_fields(place, None, from.next_field_due());
            }
            Change::BlobRange { entry, old_len, at, start, len } => {
                let saved = std::mem::take(&mut self.w.undo.bytes);
                self.change_blob(entry, |bytes| {
                    bytes.truncate(old_len);
                    bytes[at..at + len].copy_from_slice(&saved[start..start + len]);
                });
                self.w.undo.bytes = saved;
            }
            Change::Flushed => {
                let detached = self.w.undo.flushed.pop().expect("a flush has detached something");
                self.attach(detached);
            }
            Change::Swapped(a, b) => self.ks.swap_map(a, b),
            Change::Nothing => {}
        }
    }

    /// Puts an entry back that was taken out.
    pub(crate) fn relink(&mut self, place: Place, old: EntryPtr) {
        let slot = self.owned(place.slot);
        let table = slot.table_or_new(place.physical);
        self.link(place, slot, table, old);
        // `link` counts the memory of a new entry; this one was never discounted.
        add(&self.ks.stats(self.w.index).used, -(old.memory() as i64));
    }

    pub(crate) fn table_of(&self, place: Place) -> HeldTable<'a> {
        self.owned(place.slot).table(place.physical).expect("a changed entry is in a table")
    }

    /// Puts a flushed database back.
    fn attach(&mut self, detached: Detached) {
        let Detached { physical, tables, due, fields, keys, expires, due_sum } = detached;
        for (id, mut table) in tables {
            let target = self.owned(id).table_or_new(physical);
            // What the command put there since is undone, but an emptied table keeps a page.
            while target.pop_bucket(&mut self.space(), |_| unreachable!("an emptied table")) {}
            HeldTable::of_mut(&mut table).move_to(target);
        }
        for (id, set) in fields {
            self.owned(id).with_parts(|_, parts| {
                parts.put_fields(physical, set);
                self.ks.due.publish(id, parts);
            });
        }
        for (id, set) in due {
            let slot = self.owned(id);
            slot.with_parts(|_, parts| {
                parts.put_due(physical, set);
                self.ks.due.publish(id, parts);
            });
        }
        let stats = self.ks.stats(self.w.index);
        add(&stats.keys[physical as usize], keys);
        add(&stats.expires[physical as usize], expires);
        stats.due[physical as usize].add(due_sum);
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
