//! Entries that go, and spare room.

use super::form::{FORM_SHIFT, ident};
use super::read::{Cursor, Mark, Page};
use crate::stream::elem::{listpack_number, listpack_text};
use crate::stream::id::StreamId;

/// Entries between two marks.
const MARK_EVERY: u32 = 16;
/// What a smaller page leaves of its place is not worth another one.
const SETTLE_MIN: usize = 1024;
/// So many bytes of spare room are given back when a page shrinks.
const SPARE_MAX: usize = 1024;

impl Page {
    /// Sets the counts, which stand in the listpack, too.
    pub(super) fn recount(&mut self, count: u32, deleted: u32) {
        let weight = |number| listpack_number(i64::from(number));
        self.listpack += (weight(count) + weight(deleted)) as u32;
        self.listpack -= (weight(self.count) + weight(self.deleted)) as u32;
        (self.count, self.deleted) = (count, deleted);
    }

    /// Gives spare room back, of a page to which nothing is appended. The allocator's places for so
    /// many bytes are up to a quarter apart, so what goes only a little beyond such a place gets
    /// one of its own.
    pub(super) fn settle(&mut self) {
        self.join();
        let len = self.bytes.len();
        if len >= SETTLE_MIN {
            let step = 1 << (len.ilog2() - 2);
            let mut at = self.first();
            while let Some((_, next)) = self.read(at)
                && next.offset <= len / step * step
            {
                at = next;
            }
            if len - at.offset <= step / 4 * 3 {
                self.rest = self.bytes[at.offset..].into();
                self.bytes.truncate(at.offset);
            }
        }
        self.bytes.shrink_to_fit();
    }

    /// Undoes [`Page::settle`], so that the entries can be changed.
    #[inline]
    pub(super) fn join(&mut self) {
        if !self.rest.is_empty() {
            self.bytes.extend_from_slice(&std::mem::take(&mut self.rest));
        }
    }

    /// Marks the end, before an entry comes there.
    #[inline]
    pub(super) fn set_mark(&mut self) {
        if self.count > 0 && self.count.is_multiple_of(MARK_EVERY) {
            let offset = self.bytes.len() as u32;
            self.mark = Mark { offset, rank: self.count, before: self.last };
        }
    }

    /// Removes so many entries from a place on.
    pub(super) fn remove(&mut self, from: Cursor, count: usize) {
        let was_settled = !self.rest.is_empty();
        self.join();
        self.mark = Mark::default();
        let mut to = from;
        for _ in 0..count {
            to = self.read(to).expect("an entry of the page").1;
        }
        let gone = count as u32;
        self.recount(self.count - gone, self.deleted + gone);
        if let Some((entry, next)) = self.read(to) {
            // What follows tells its id from what is before it.
            let (form, ident, ident_len) = ident(from.before, entry.id);
            let tag = u8::from(entry.has_same_fields) | form << FORM_SHIFT;
            let rest = self.bytes[next.offset - entry.body.len()..].to_vec();
            let (len, has_same_tags) = (entry.body.len(), entry.has_same_tags);
            self.bytes.truncate(from.offset);
            self.bytes.resize(from.offset + 2 + ident_len, 0);
            self.bytes.extend_from_slice(&rest[..len]);
            self.put_head(from.offset, tag, &ident[..ident_len], has_same_tags);
            self.bytes.extend_from_slice(&rest[len..]);
        } else {
            self.bytes.truncate(from.offset);
            self.last = from.before;
        }
        if was_settled || self.bytes.capacity() - self.bytes.len() > SPARE_MAX {
            self.settle();
        }
    }

    /// Removes an entry; false if it is not there.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let (_, at) = self.seek(id);
        let is_there = self.read(at).is_some_and(|(entry, _)| entry.id == id);
        if is_there {
            self.remove(at, 1);
        }
        is_there
    }

    /// Takes the last entry back, as if it had never come.
    pub fn take_back(&mut self) {
        self.join();
        let at = self.place(self.count as usize - 1);
        let (entry, _) = self.read(at).expect("the last entry");
        let mut weight = self.weight_beside(entry.id, entry.has_same_fields, entry.len() as u64);
        if !entry.has_same_fields {
            weight += listpack_number(entry.len() as i64);
        }
        for (name, value) in entry.fields() {
            if !entry.has_same_fields {
                weight += listpack_text(name);
            }
            weight += listpack_text(value);
        }
        self.listpack -= weight as u32;
        self.recount(self.count - 1, self.deleted);
        self.bytes.truncate(at.offset);
        self.last = at.before;
        self.mark = Mark::default();
    }

    /// Gives spare room back.
    pub fn shrink(&mut self) {
        self.settle();
    }

    /// Says what Redis's node counts: its bytes, and entries that were deleted. For a page that was
    /// read from one.
    pub fn set_history(&mut self, listpack: u32, deleted: u32) {
        (self.listpack, self.deleted) = (listpack, deleted);
    }
}
