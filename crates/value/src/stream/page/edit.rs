//! Removing entries, and freeing spare room.

use super::form::{FORM_SHIFT, encode_id};
use super::read::{Cursor, Mark, Page};
use crate::stream::elem::{listpack_number, listpack_text};
use crate::stream::id::StreamId;

/// Entries between two marks.
const MARK_EVERY: u32 = 16;
/// A page of fewer bytes has no `tail`: a second allocation would save too little.
const TAIL_PAGE_MIN: usize = 1024;
/// Spare room that a page keeps after a removal, at most.
const SPARE_MAX: usize = 1024;

impl Page {
    /// Sets the counts. Redis's listpack has them as elements, so its length changes, too.
    pub(super) fn recount(&mut self, count: u32, deleted: u32) {
        let weight = |number| listpack_number(i64::from(number));
        self.listpack += (weight(count) + weight(deleted)) as u32;
        self.listpack -= (weight(self.count) + weight(self.deleted)) as u32;
        (self.count, self.deleted) = (count, deleted);
    }

    /// Frees spare room, of a page to which nothing is appended. The allocator's sizes are up to a
    /// quarter apart. If the entries exceed such a size by little, the last ones move to an
    /// allocation of their own, `tail`.
    pub fn shrink(&mut self) {
        self.join_tail();
        let len = self.bytes.len();
        if len >= TAIL_PAGE_MIN {
            let step = 1 << (len.ilog2() - 2);
            let mut at = self.first();
            while let Some((_, next)) = self.read(at)
                && next.offset <= len / step * step
            {
                at = next;
            }
            if len - at.offset <= step / 4 * 3 {
                self.tail = self.bytes[at.offset..].into();
                self.bytes.truncate(at.offset);
            }
        }
        self.bytes.shrink_to_fit();
    }

    /// Undoes [`Page::shrink`], so that the entries can be changed.
    #[inline]
    pub(super) fn join_tail(&mut self) {
        if !self.tail.is_empty() {
            self.bytes.extend_from_slice(&std::mem::take(&mut self.tail));
        }
    }

    /// Marks the end of the page, every so many entries, before one is appended.
    #[inline]
    pub(super) fn set_mark(&mut self) {
        if self.count > 0 && self.count.is_multiple_of(MARK_EVERY) {
            let offset = self.bytes.len() as u32;
            self.mark = Mark { offset, rank: self.count, before: self.last };
        }
    }

    /// Removes so many entries from a place on.
    pub(super) fn remove(&mut self, from: Cursor, count: usize) {
        let had_tail = !self.tail.is_empty();
        self.join_tail();
        self.mark = Mark::default();
        let mut to = from;
        for _ in 0..count {
            to = self.read(to).expect("an entry of the page").1;
        }
        let gone = count as u32;
        self.recount(self.count - gone, self.deleted + gone);
        if let Some((entry, next)) = self.read(to) {
            // The id of the next entry is relative to the one before it.
            let (form, ident, ident_len) = encode_id(from.before, entry.id);
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
        if had_tail || self.bytes.capacity() - self.bytes.len() > SPARE_MAX {
            self.shrink();
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

    /// Removes the last entry, as if it had never been appended.
    pub fn undo_append(&mut self) {
        self.join_tail();
        let at = self.place(self.count as usize - 1);
        let (entry, _) = self.read(at).expect("the last entry");
        let mut weight =
            self.listpack_overhead(entry.id, entry.has_same_fields, entry.len() as u64);
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

    /// Sets what Redis's node counts: its bytes, and the entries that were deleted. For a page that
    /// was loaded from one.
    pub fn set_history(&mut self, listpack: u32, deleted: u32) {
        (self.listpack, self.deleted) = (listpack, deleted);
    }
}
