//! An entry to change: the part of the door that knows where the key already is.
#![allow(unsafe_code)]

use crate::change::COPY_MAX;
use crate::entry::{Entry, EntryPtr, INLINE_MAX, Payload, Room};
use crate::guard::Guard;
use crate::stats::add;
use crate::undo::{Change, Place, own_copy};
use base::{Blob, DbIndex, UnixMs};
use value::{Encoding, IntText, NewStr, Str};

/// An existing key, to change under its guard.
pub struct EntryMut<'b, 'a> {
    guard: &'b mut Guard<'a>,
    db: DbIndex,
    place: Place,
    entry: EntryPtr,
}

impl<'b, 'a> EntryMut<'b, 'a> {
    #[inline(always)]
    pub(crate) fn new(
        guard: &'b mut Guard<'a>,
        db: DbIndex,
        place: Place,
        entry: EntryPtr,
    ) -> Self {
        Self { guard, db, place, entry }
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

    /// Replaces the value; the expiry stays or goes.
    pub fn set_str(&mut self, value: NewStr<'_>, keep_ttl: bool) {
        let expiry = if keep_ttl { self.entry.expiry() } else { None };
        self.set_payload(Payload::of(value), expiry);
    }

    fn set_payload(&mut self, payload: Payload<'_>, expiry: Option<UnixMs>) {
        let has_ttl = self.entry.header().has_ttl();
        if let Payload::Inline(encoding, bytes) = payload
            && has_ttl == expiry.is_some()
            && let Some(room) = self.entry.room_for(bytes.len(), COPY_MAX)
        {
            self.overwrite(room, encoding, bytes);
            return;
        }
        self.replace(payload, expiry);
    }

    #[inline(always)]
    fn overwrite(&mut self, room: Room, encoding: Encoding, bytes: &[u8]) {
        self.guard.overwrite(self.db, self.place, self.entry, room, encoding, bytes);
    }

    fn replace(&mut self, payload: Payload<'_>, expiry: Option<UnixMs>) {
        self.entry = self.guard.put_new(self.db, self.place, self.entry, payload, expiry);
    }

    /// Replaces the value by a number; the expiry stays.
    #[inline]
    pub fn set_int(&mut self, value: i64) {
        if let Some(room) = self.entry.room_for(8, COPY_MAX) {
            self.overwrite(room, Encoding::Int, &value.to_ne_bytes());
        } else {
            self.set_payload(Payload::Int(value), self.entry.expiry());
        }
    }

    /// Changes when the key expires; the value stays.
    pub fn set_expiry(&mut self, expiry: Option<UnixMs>) {
        match (self.entry.expiry(), expiry) {
            (None, None) => {}
            (Some(_), Some(at)) => {
                self.guard.move_expiry(self.place, self.entry, at);
                self.guard.touch(self.db, self.place, self.entry);
            }
            _ => {
                // The entry changes its shape. A big value is shared by both for a moment.
                let lru = self.entry.lru();
                self.replace(self.entry.payload(), expiry);
                self.entry.touch(lru);
            }
        }
    }

    /// Appends to the text, which is `raw` afterwards; returns its new length.
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        let len = self.entry().str_len();
        self.write_at(len, bytes)
    }

    /// Overwrites the text from `at` on, after filling a gap with zeros; returns its new length,
    /// whose limit is the caller's. The text is `raw` afterwards, the expiry stays.
    pub fn write_at(&mut self, at: usize, bytes: &[u8]) -> usize {
        let text;
        let old = match self.entry.str() {
            Str::Blob(blob) => {
                let len = blob.len().max(at + bytes.len());
                self.write_blob(at, bytes, len);
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
            // Only what is overwritten is kept for undoing, however long the text is.
            let start = self.guard.w.undo.save(&old[at..at + bytes.len()]);
            let entry = self.entry;
            self.guard.w.undo.changes.push(Change::Range { entry, at, start, len: bytes.len() });
            self.entry.patch(room, at, bytes, len, self.guard.w.lru);
            self.guard.touch(self.db, self.place, self.entry);
            return len;
        }
        if is_text
            && len <= INLINE_MAX
            && let Some(room) = self.entry.room_for(len, COPY_MAX)
        {
            self.guard.save_value(self.entry, room);
            self.entry.patch(room, at, bytes, len, self.guard.w.lru);
            self.guard.touch(self.db, self.place, self.entry);
            return len;
        }
        let mut whole = std::mem::take(&mut self.guard.w.text);
        whole.clear();
        whole.extend_from_slice(old);
        whole.resize(len, 0);
        whole[at..at + bytes.len()].copy_from_slice(bytes);
        let payload = if len <= INLINE_MAX {
            Payload::Inline(Encoding::Raw, &whole)
        } else {
            Payload::Big(Blob::new(std::mem::take(&mut whole)))
        };
        self.replace(payload, self.entry.expiry());
        self.guard.w.text = whole;
        len
    }

    /// Changes a big value: in place if nobody else refers to it, else a copy of it.
    fn write_blob(&mut self, at: usize, bytes: &[u8], len: usize) {
        // SAFETY: the guard covers the slot, and `str()`'s borrow has ended.
        let unique = unsafe { self.entry.blob_mut() }.is_some_and(Blob::is_unique);
        if unique {
            let blob = self.entry.blob().expect("a big entry has a blob");
            let old = blob.as_slice();
            let from = at.min(old.len());
            let overwritten = &old[from..(at + bytes.len()).clamp(from, old.len())];
            let old_len = old.len();
            let start = self.guard.w.undo.save(overwritten);
            self.guard.w.undo.changes.push(Change::BlobRange {
                entry: self.entry,
                old_len,
                at: from,
                start,
                len: overwritten.len(),
            });
        } else {
            let blob = self.entry.blob().expect("a big entry has a blob");
            let copy = Payload::Big(own_copy(blob, len));
            self.replace(copy, self.entry.expiry());
        }
        self.guard.change_blob(self.entry, |old| {
            if old.len() < len {
                if old.capacity() < len {
                    // A quarter more than needed, so that many appends copy little.
                    old.reserve_exact(len + len / 4 - old.len());
                }
                old.resize(len, 0);
            }
            old[at..at + bytes.len()].copy_from_slice(bytes);
        });
        if unique {
            self.entry.touch(self.guard.w.lru);
            self.guard.touch(self.db, self.place, self.entry); // else `replace` has said it
        }
    }

    /// Removes the key.
    pub fn remove(self) {
        self.guard.remove_entry(self.db, self.place, self.entry);
    }
}

impl Guard<'_> {
    /// Changes the bytes of a big value that only this entry refers to, and accounts for them.
    pub(crate) fn change_blob(&mut self, entry: EntryPtr, f: impl FnOnce(&mut Vec<u8>)) {
        // SAFETY: the guard covers the entry's slot, and no borrow of its value is alive.
        let blob = unsafe { entry.blob_mut() }.expect("a big entry has a blob");
        let before = blob.capacity() as i64;
        f(blob.make_mut());
        add(&self.ks.stats(self.w.index).used, blob.capacity() as i64 - before);
    }
}
