//! [`EntryMut`]: an existing key, to be changed by a command that has found it.
#![allow(unsafe_code)]

use crate::capture::Listeners;
use crate::change::COPY_MAX;
use crate::entry::{EntryPtr, Room, blob_memory};
use crate::event::{Event, listeners};
use crate::guard::Guard;
use crate::keyspace::Key;
use crate::payload::{Form, INLINE_MAX, Payload};
use crate::undo::{Change, Place};
use crate::uses::{Uses, idle_since};
use crate::view::Entry;
use base::blob::{BLOCK_MAX, PATCH_MAX};
use base::{Blob, DbIndex, UnixMs};
use value::{Big, Encoding, IntText, Kind, Log, LogMark, NewStr, Str};

/// The most overwritten bytes of a string of pages which are copied into the undo log.
const SAVED_MAX: usize = 16 << 10;
// Who keeps the old root shares all pages for a moment; patched pages would stay behind.
const _: () = assert!(PATCH_MAX <= SAVED_MAX);

/// An existing key, to change under its guard.
pub struct EntryMut<'b, 'a> {
    guard: &'b mut Guard<'a>,
    db: DbIndex,
    place: Place,
    entry: EntryPtr,
    /// The event that the first change emits; silent from then on.
    event: Event,
}

impl<'b, 'a> EntryMut<'b, 'a> {
    #[inline(always)]
    pub(crate) fn new(
        guard: &'b mut Guard<'a>,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
        event: Event,
    ) -> Self {
        Self { guard, db, place, entry, event }
    }

    /// The event, for the first change; further changes of the same command are silent.
    #[inline(always)]
    fn event(&mut self) -> Event {
        std::mem::replace(&mut self.event, Event::SILENT)
    }

    /// Replaces the event; called before the first change.
    pub fn set_event(&mut self, event: Event) {
        self.event = event;
    }

    /// Emits an event of this key, after those of its changes.
    #[inline]
    pub fn notify(&mut self, event: Event) {
        if self.guard.w.undo.listeners & listeners::EVENTS != 0 {
            self.guard.push_event(event, self.db, self.entry.key());
            self.guard.w.undo.changes.push(Change::Nothing);
        }
    }

    /// Counts a collection outside the entry as changed although it is the same.
    pub fn count_as_changed(&mut self) {
        let (listeners, ()) = self.guard.edit_big(self.place, self.entry, |_, _| ());
        self.guard.w.touch(self.entry);
        self.touch(listeners);
    }

    #[inline(always)]
    fn touch(&mut self, listeners: Listeners) {
        let event = self.event();
        self.guard.touch(listeners, event, self.db, self.place, self.entry);
    }

    /// The entry as a reader sees it.
    #[inline]
    pub fn entry(&self) -> Entry<'_> {
        Entry::new(self.entry)
    }

    /// The string.
    #[inline]
    pub fn str(&self) -> Str<'_> {
        self.entry.str()
    }

    /// When it expires.
    #[inline]
    pub fn expiry(&self) -> Option<UnixMs> {
        self.entry.expiry()
    }

    /// Replaces the value; the expiry is kept or removed.
    pub fn set_str(&mut self, value: NewStr<'_>, keep_ttl: bool) {
        let expiry = if keep_ttl { self.entry.expiry() } else { None };
        self.set_payload(Payload::of(value), expiry);
    }

    fn set_payload(&mut self, payload: Payload<'_>, expiry: Option<UnixMs>) {
        let has_ttl = self.entry.header().has_ttl();
        if let Payload::Inline(form, bytes) = payload
            && has_ttl == expiry.is_some()
            && let Some(room) = self.entry.room_for(bytes.len(), COPY_MAX)
        {
            self.overwrite(room, form, bytes);
            return;
        }
        self.replace(payload, expiry);
    }

    #[inline(always)]
    fn overwrite(&mut self, room: Room, form: Form, bytes: &[u8]) {
        let event = self.event();
        self.guard.overwrite(event, self.db, self.place, self.entry, room, form, bytes);
    }

    fn replace(&mut self, payload: Payload<'_>, expiry: Option<UnixMs>) {
        let event = self.event();
        self.entry = self.guard.put_new(event, self.db, self.place, self.entry, payload, expiry);
    }

    /// Replaces the value by a number; the expiry stays.
    #[inline]
    pub fn set_int(&mut self, value: i64) {
        if let Some(room) = self.entry.room_for(8, COPY_MAX) {
            self.overwrite(room, Form::string(Encoding::Int), &value.to_ne_bytes());
        } else {
            self.set_payload(Payload::Int(value), self.entry.expiry());
        }
    }

    /// Changes when the key expires; the value stays.
    pub fn set_expiry(&mut self, expiry: Option<UnixMs>) {
        match (self.entry.expiry(), expiry) {
            (None, None) => {}
            (Some(_), Some(at)) => {
                let listeners = self.guard.move_expiry(self.place, self.entry, at);
                self.touch(listeners);
            }
            _ => {
                // A new entry, with or without room for the expiry. A blob is shared by both
                // briefly.
                let uses = self.entry.uses();
                if self.entry.big().is_some() {
                    let event = self.event();
                    self.entry = self.guard.reshape(event, self.db, self.place, self.entry, expiry);
                } else {
                    self.replace(self.entry.payload(), expiry);
                }
                self.entry.set_uses(uses);
            }
        }
    }

    /// What kind of value it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.entry.kind()
    }

    /// Replaces a collection by a packed one of the same kind; the expiry stays.
    pub fn set_packed(&mut self, encoding: Encoding, bytes: &[u8]) {
        let payload = Payload::packed(self.entry.kind(), encoding, bytes);
        self.set_payload(payload, self.entry.expiry());
    }

    /// Replaces a collection by one outside the entry; the expiry stays.
    pub fn set_big(&mut self, encoding: Encoding, big: Big) {
        self.replace(Payload::Big(encoding, Box::new(big)), self.entry.expiry());
    }

    /// Sets the time since the last use of the key.
    pub fn set_idle(&mut self, seconds: u64) {
        self.entry.set_uses(idle_since(seconds, self.guard.now()));
    }

    /// Resets what is recorded about uses, as for a new key.
    pub fn set_fresh(&mut self) {
        self.entry.set_uses(self.guard.w.uses_now);
    }

    /// Sets how often the key is used, on the scale of [`Entry::frequency`].
    pub fn set_frequency(&mut self, count: u8) {
        self.entry.set_uses(Uses::with_frequency(count, self.guard.now()));
    }

    /// Changes the encoding of a collection; the value stays.
    pub fn set_encoding(&mut self, encoding: Encoding) {
        assert!(self.entry.kind() != Kind::String, "a string's encoding follows from its value");
        if self.entry.encoding() != encoding {
            self.change_header(encoding);
        }
    }

    /// Changes a collection outside the entry in place; `f` logs what undoes each of its changes.
    /// The key counts as changed if there was any.
    pub fn edit<R>(&mut self, f: impl FnOnce(&mut Big, &mut Log) -> R) -> R {
        let before = self.guard.w.undo.log.mark();
        let (listeners, result) = self.guard.edit_big(self.place, self.entry, f);
        self.guard.w.touch(self.entry);
        if self.guard.w.undo.log.mark() != before {
            self.touch(listeners);
        }
        result
    }

    /// As [`EntryMut::edit`], for changes that do not concern watches: what consumer groups of a
    /// stream have read. With `wakes` the key becomes ready for its tickets.
    pub fn edit_unwatched<R>(&mut self, wakes: bool, f: impl FnOnce(&mut Big, &mut Log) -> R) -> R {
        let before = self.guard.w.undo.log.mark();
        let (listeners, result) = self.guard.edit_big(self.place, self.entry, f);
        self.guard.w.touch(self.entry);
        if self.guard.w.undo.log.mark() != before {
            if wakes {
                self.guard.wake(self.db, self.place, self.entry.key());
            }
            let event = self.event();
            self.guard.touch_unwatched(listeners, event, self.db, self.entry);
        }
        result
    }

    /// Changes the encoding of the text to `raw`, as a write of nothing does: no change, and nobody
    /// is notified.
    pub fn make_raw(&mut self) {
        if self.entry.encoding() == Encoding::Raw {
            return;
        }
        match self.entry.str() {
            Str::Blob(_) => {}
            Str::Int(number) => {
                let (text, expiry) = (IntText::new(number), self.entry.expiry());
                let payload = Payload::Inline(Form::string(Encoding::Raw), text.as_bytes());
                let (db, place) = (self.db, self.place);
                self.entry = self.guard.put_unchanged(db, place, self.entry, payload, expiry);
            }
            Str::Bytes(_) => self.change_header(Encoding::Raw),
        }
    }

    fn change_header(&mut self, encoding: Encoding) {
        let listeners = self.guard.before_change(self.place, self.entry);
        let header = self.entry.header();
        self.guard.w.undo.commit_work += 1;
        self.guard.w.undo.changes.push(Change::Header { entry: self.entry, header });
        self.entry.set_encoding(encoding);
        self.guard.count_change(listeners, 0);
    }

    /// Appends to the text, which is `raw` afterwards; returns its new length.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let len = self.entry().str_len();
        self.write_at(len, bytes)
    }

    /// Overwrites the text from `at` on, after filling a gap with zeros, and returns its new
    /// length. The caller checks the maximal length. The text is `raw` afterwards; the expiry
    /// stays.
    pub fn write_at(&mut self, at: usize, bytes: &[u8]) -> usize {
        let text;
        let old = match self.entry.str() {
            Str::Blob(blob) => {
                let len = blob.len().max(at + bytes.len());
                self.write_blob(at, bytes);
                return len;
            }
            Str::Int(number) => {
                text = IntText::new(number);
                text.as_bytes()
            }
            Str::Bytes(old) => old,
        };
        let len = old.len().max(at + bytes.len());
        let is_text = self.entry.encoding() != Encoding::Int;
        if self.entry.encoding() == Encoding::Raw
            && at + bytes.len() <= old.len()
            && let Some(room) = self.entry.room_for(len, usize::MAX)
        {
            let listeners = self.guard.before_change(self.place, self.entry);
            // The undo log gets only the overwritten part, however long the text is.
            let start = self.guard.w.undo.save(&old[at..at + bytes.len()]);
            let entry = self.entry;
            self.guard.w.undo.changes.push(Change::Range { entry, at, start, len: bytes.len() });
            let uses = self.guard.w.used(room.header.uses());
            // SAFETY: 1. `old` is not used any more; `bytes` are a request's. 2. It was just asked
            // for.
            unsafe { self.entry.patch(room, at, bytes, len, uses) };
            self.touch(listeners);
            return len;
        }
        if is_text
            && len <= INLINE_MAX
            && let Some(room) = self.entry.room_for(len, COPY_MAX)
        {
            let listeners = self.guard.before_change(self.place, self.entry);
            self.guard.save_value(self.entry, room);
            let uses = self.guard.w.used(room.header.uses());
            // SAFETY: 1. `old` is not used any more; `bytes` are a request's. 2. It was just asked
            // for.
            unsafe { self.entry.patch(room, at, bytes, len, uses) };
            self.touch(listeners);
            return len;
        }
        if len > BLOCK_MAX {
            let mut whole = Blob::from(old);
            whole.write_at(at, bytes);
            self.replace(Payload::Blob(whole), self.entry.expiry());
            return len;
        }
        let mut whole = std::mem::take(&mut self.guard.w.text);
        whole.clear();
        whole.extend_from_slice(old);
        whole.resize(len, 0);
        whole[at..at + bytes.len()].copy_from_slice(bytes);
        let payload = if len <= INLINE_MAX {
            Payload::Inline(Form::string(Encoding::Raw), &whole)
        } else {
            Payload::Blob(Blob::new(std::mem::take(&mut whole)))
        };
        self.replace(payload, self.entry.expiry());
        self.guard.w.text = whole;
        len
    }

    /// Changes a [`Blob`]. One of pages is changed in place, and copies the pages that it shares.
    /// One block is changed in place if nobody else refers to it, otherwise copied. A change which
    /// overwrites more than [`SAVED_MAX`] bytes keeps the old root for the undo instead of them.
    fn write_blob(&mut self, at: usize, bytes: &[u8]) {
        let blob = self.entry.blob().expect("a big entry has a blob");
        let old_len = blob.len();
        let from = at.min(old_len);
        let overwritten = from..(at + bytes.len()).clamp(from, old_len);
        let in_place =
            if blob.is_paged() { overwritten.len() <= SAVED_MAX } else { !blob.is_shared() };
        if !in_place {
            self.replace(Payload::Blob(blob.clone()), self.entry.expiry());
            self.guard
                .change_blob(self.place.physical, self.entry, |blob| blob.write_at(at, bytes));
            return; // `replace` has told listeners
        }
        let listeners = self.guard.before_change(self.place, self.entry);
        let blob = self.entry.blob().expect("a big entry has a blob");
        let undo = &mut self.guard.w.undo;
        let (start, len) = (undo.bytes.len(), overwritten.len());
        blob.pages_in(overwritten).for_each(|page| {
            undo.save(page);
        });
        undo.changes.push(Change::BlobRange {
            physical: self.place.physical,
            entry: self.entry,
            old_len,
            at: from,
            start,
            len,
        });
        self.guard.change_blob(self.place.physical, self.entry, |blob| blob.write_at(at, bytes));
        self.guard.w.touch(self.entry);
        self.touch(listeners);
    }

    /// Removes the key if it holds an empty collection; true if removed.
    pub fn remove_if_empty(self) -> bool {
        let is_empty = match (self.entry.packed(), self.entry.big()) {
            (Some(packed), _) => packed.is_empty(),
            (None, Some(big)) => big.is_empty(),
            (None, None) => false,
        };
        if is_empty {
            self.remove();
        }
        is_empty
    }

    /// Removes the key: emits its event, and then `del`.
    pub fn remove(mut self) {
        let mut first = self.event();
        if first == Event::DEL {
            first = Event::SILENT;
        }
        self.guard.remove_entry(first, Event::DEL, self.db, self.place, self.entry);
    }
}

impl Guard<'_> {
    /// Changes a collection outside its entry, and accounts for its memory.
    pub(crate) fn edit_big<R>(
        &mut self,
        place: Place,
        entry: EntryPtr,
        f: impl FnOnce(&mut Big, &mut Log) -> R,
    ) -> (Listeners, R) {
        let listeners = self.before_change(place, entry);
        // SAFETY: 1. References into a guard's entries borrow the guard, which is borrowed
        // exclusively here, and this function has none of its own.
        let big = unsafe { entry.big_mut() }.expect("a collection outside its entry");
        let undo = &mut self.w.undo;
        undo.changes.push(Change::Edited { place, entry, mark: undo.log.mark() });
        let (before, due) = (big.memory(), big.next_due());
        undo.due = due;
        undo.editing = Some(before);
        let result = f(big, &mut undo.log);
        undo.editing = None;
        undo.commit_work += usize::from(!undo.log.is_plain());
        let (after, next) = (big.memory(), big.next_due());
        self.account_outside(place.physical, after as i64 - before as i64);
        self.reindex_fields(place, due.map(UnixMs), next.map(UnixMs));
        (listeners, result)
    }

    /// Copies what others share of the places of these members, in the collection outside the
    /// entry of a key, so that a change of them copies nothing ([`Big::unshare`]). This is no
    /// change. False if the key holds no such collection. The guard covers the key's slot.
    pub fn unshare(
        &mut self,
        db: DbIndex,
        key: &Key<'_>,
        members: &[(&[u8], Option<f64>)],
    ) -> bool {
        let Some((found, _, place)) = self.find_any(db, key) else { return false };
        // SAFETY: 1. As in `edit_big`.
        let Some(big) = (unsafe { found.entry.big_mut() }) else { return false };
        let before = big.memory() as i64;
        big.unshare(members);
        self.account_outside(place.physical, big.memory() as i64 - before);
        if self.w.undo.listeners != 0 {
            // A snapshot may be what shares it: the commit counts what was copied.
            self.record_empty_change();
        }
        true
    }

    /// Takes back an edit.
    pub(crate) fn undo_edit(&mut self, place: Place, entry: EntryPtr, mark: LogMark) {
        // SAFETY: 1. As in `edit_big`.
        let big = unsafe { entry.big_mut() }.expect("a collection outside its entry");
        let undo = &mut self.w.undo;
        // After a panic in the edit the accounted memory is that from before.
        let was_open = undo.editing.is_some();
        let due = if was_open { undo.due } else { big.next_due() };
        let accounted = undo.editing.take().unwrap_or_else(|| big.memory());
        while undo.log.mark() != mark {
            big.undo(&mut undo.log);
        }
        let (memory, next) = (big.memory(), big.next_due());
        self.account_outside(place.physical, memory as i64 - accounted as i64);
        self.reindex_fields(place, due.map(UnixMs), next.map(UnixMs));
    }

    /// Changes a string outside its entry, and accounts for its memory.
    pub(crate) fn change_blob(
        &mut self,
        physical: u16,
        entry: EntryPtr,
        f: impl FnOnce(&mut Blob),
    ) {
        // SAFETY: 1. As in `edit_big`.
        let blob = unsafe { entry.blob_mut() }.expect("a big entry has a blob");
        let before = blob_memory(blob) as i64;
        f(blob);
        self.account_outside(physical, blob_memory(blob) as i64 - before);
    }
}
