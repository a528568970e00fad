//! A page of a stream: what Redis keeps in one listpack, so that trimming by whole nodes cuts at
//! the same places.
//!
//! ```text
//! bytes:  field names of the page | [tags] | entry | entry | ... | (spare capacity)
//! tags:   one byte for each value of the first entry, if none of them is longer than a tag can say
//! entry:  head u8 | [length of the body, if it is 30 or more] | id | body
//! head:   bit 0     the fields are those of the page
//!         bits 1-2  the id, seen from the one before (from the page's own, of the first):
//!                   0 the next number of the same millisecond: nothing
//!                   1 a later millisecond, number 0: the difference
//!                   2 the same millisecond: the difference of the numbers
//!                   3 the difference of the milliseconds, the number
//!         bits 3-7  length of the body; 31: it follows; 30: the body is values without their tags, which are the page's
//! body:   values; or the number of fields, and field, value, field, value, ...
//! ```
//! Numbers and texts are those of [`super::elem`]. An entry that is deleted leaves nothing behind
//! but its share of `listpack`, by which Redis's node would be full.

mod append;
mod entry;

pub use entry::{Entry, Fields};

use super::StreamId;
use super::elem::{listpack_number, listpack_text, read_number, read_text};
use crate::packed::Elem;
use crate::tree::{Cut, End, Leaf, Separator};
use append::ident;
use std::cmp::Ordering;

const SAME_FIELDS: u8 = 1;
const FORM_SHIFT: u8 = 1;
const LEN_SHIFT: u8 = 3;
/// The length of a body follows.
const LEN_LONG: u8 = 31;
/// The body is values without tags: those of the page.
const LEN_ROW: u8 = 30;
/// A page whose values have no tags in common.
const NO_TAGS: u32 = u32::MAX;
/// Redis's frame around the elements of a listpack.
const LISTPACK_FRAME: u64 = 7;
/// No node is larger, whatever the settings say.
pub const NODE_BYTES_MAX: u64 = 1 << 30;
/// Entries between two marks.
const MARK_EVERY: u32 = 16;
/// What a smaller page leaves of its place is not worth another one.
const SETTLE_MIN: usize = 1024;
/// So many bytes of spare room are given back when a page shrinks.
const SPARE_MAX: usize = 1024;

/// When a page is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `stream-node-max-bytes`: bytes of Redis's node; 0 is no limit.
    pub bytes: u64,
    /// `stream-node-max-entries`: its entries; 0 is no limit.
    pub entries: u64,
}

/// The leaf of a stream's tree.
#[derive(Clone, Debug)]
pub struct Page {
    bytes: Vec<u8>,
    /// The entries behind those of `bytes`, while nothing is appended here; see [`Page::settle`].
    rest: Box<[u8]>,
    /// The page that begins with the entry for which this one was full, until the tree takes it.
    following: Option<Box<Page>>,
    /// The id with which it began; that entry may be gone.
    master: StreamId,
    /// The id of the last entry.
    last: StreamId,
    /// Bytes of Redis's listpack.
    listpack: u32,
    count: u32,
    /// Entries that were deleted since it began.
    deleted: u32,
    /// How many field names there are, and where the entries start.
    fields: u32,
    start: u32,
    /// Length of a body whose values have the tags of the page, or [`NO_TAGS`].
    row: u32,
    /// A place from which the newest entries are not far: who reads them need not walk over all
    /// others.
    mark: Mark,
}

/// A place, and how many entries are before it. The default is none.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    offset: u32,
    rank: u32,
    before: StreamId,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            rest: Box::default(),
            following: None,
            master: StreamId::MIN,
            last: StreamId::MIN,
            listpack: 0,
            count: 0,
            deleted: 0,
            fields: 0,
            start: 0,
            row: NO_TAGS,
            mark: Mark::default(),
        }
    }
}

/// A place before an entry: where it starts, and the id before it.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    offset: usize,
    before: StreamId,
}

impl Page {
    /// The tags that need not be repeated; none if there are none in common.
    fn tags(&self) -> &[u8] {
        &self.bytes[self.names_end()..self.start as usize]
    }

    /// Where the field names end.
    fn names_end(&self) -> usize {
        (if self.row == NO_TAGS { self.start } else { self.start - self.fields }) as usize
    }

    /// Sets the counts, which stand in the listpack, too.
    fn recount(&mut self, count: u32, deleted: u32) {
        let weight = |number| listpack_number(i64::from(number));
        self.listpack += (weight(count) + weight(deleted)) as u32;
        self.listpack -= (weight(self.count) + weight(self.deleted)) as u32;
        (self.count, self.deleted) = (count, deleted);
    }

    /// Before the first entry.
    pub fn first(&self) -> Cursor {
        Cursor { offset: self.start as usize, before: self.master }
    }

    /// The entry behind a place, and the place behind it.
    #[inline]
    pub fn read(&self, at: Cursor) -> Option<(Entry<'_>, Cursor)> {
        let bytes = self.bytes_from(at.offset);
        let (head, mut from) = (*bytes.first()?, 1);
        let len = match head >> LEN_SHIFT {
            LEN_ROW => self.row as usize,
            LEN_LONG => read_number(bytes, &mut from) as usize,
            short => usize::from(short),
        };
        let StreamId { ms, seq } = at.before;
        let id = match head >> FORM_SHIFT & 3 {
            0 => StreamId { ms, seq: seq + 1 },
            1 => StreamId { ms: ms + read_number(bytes, &mut from), seq: 0 },
            2 => StreamId { ms, seq: seq + read_number(bytes, &mut from) },
            _ => {
                let ms = ms + read_number(bytes, &mut from);
                StreamId { ms, seq: read_number(bytes, &mut from) }
            }
        };
        let body = &bytes[from..from + len];
        let has_same_fields = head & SAME_FIELDS != 0;
        let has_same_tags = head >> LEN_SHIFT == LEN_ROW;
        let entry = Entry { id, page: self, has_same_fields, has_same_tags, body };
        Some((entry, Cursor { offset: at.offset + from + len, before: id }))
    }

    /// The bytes of the entry at an offset, and others behind them.
    #[inline]
    fn bytes_from(&self, offset: usize) -> &[u8] {
        match offset.checked_sub(self.bytes.len()) {
            None => &self.bytes[offset..],
            Some(offset) => &self.rest[offset..],
        }
    }

    /// Gives spare room back, of a page to which nothing is appended. The allocator's places for so
    /// many bytes are up to a quarter apart, so what goes only a little beyond such a place gets
    /// one of its own.
    fn settle(&mut self) {
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
    fn join(&mut self) {
        if !self.rest.is_empty() {
            self.bytes.extend_from_slice(&std::mem::take(&mut self.rest));
        }
    }

    /// Marks the end, before an entry comes there.
    #[inline]
    fn set_mark(&mut self) {
        if self.count > 0 && self.count.is_multiple_of(MARK_EVERY) {
            let offset = self.bytes.len() as u32;
            self.mark = Mark { offset, rank: self.count, before: self.last };
        }
    }

    /// The mark, if the wanted place is behind it; else the beginning. With the entries before it.
    #[inline]
    fn start_at(&self, is_behind: impl FnOnce(&Mark) -> bool) -> (usize, Cursor) {
        let Mark { offset, rank, before } = self.mark;
        if rank > 0 && is_behind(&self.mark) {
            (rank as usize, Cursor { offset: offset as usize, before })
        } else {
            (0, self.first())
        }
    }

    /// The place before the first entry whose id is not below this one, and how many entries are
    /// before it.
    #[inline]
    pub fn seek(&self, id: StreamId) -> (usize, Cursor) {
        let end = Cursor { offset: self.bytes.len() + self.rest.len(), before: self.last };
        if id > self.last {
            return (self.count as usize, end);
        }
        let (mut rank, mut at) = self.start_at(|mark| mark.before < id);
        while let Some((entry, next)) = self.read(at)
            && entry.id < id
        {
            (at, rank) = (next, rank + 1);
        }
        (rank, at)
    }

    /// The place before the entry of a rank; the end for the length.
    pub fn place(&self, rank: usize) -> Cursor {
        let (before, mut at) = self.start_at(|mark| mark.rank as usize <= rank);
        for _ in before..rank {
            at = self.read(at).expect("a rank of the page").1;
        }
        at
    }

    /// Removes so many entries from a place on.
    fn remove(&mut self, from: Cursor, count: usize) {
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

    /// Entries.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }

    /// The id with which the page began.
    pub fn master(&self) -> StreamId {
        self.master
    }

    /// The id of the last entry.
    pub fn last(&self) -> StreamId {
        self.last
    }

    /// The names of the fields with which it began.
    pub fn names(&self) -> impl Iterator<Item = Elem<'_>> {
        let mut at = 0;
        (0..self.fields).map(move |_| read_text(&self.bytes, &mut at))
    }

    /// Bytes of Redis's node.
    pub fn listpack(&self) -> u64 {
        u64::from(self.listpack)
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

impl Leaf for Page {
    type Key<'a> = StreamId;

    #[inline]
    fn len(&self) -> usize {
        self.count as usize + self.following.as_ref().map_or(0, |page| page.len())
    }

    #[inline]
    fn memory(&self) -> usize {
        let following = self.following.as_ref();
        self.bytes.capacity()
            + self.rest.len()
            + following.map_or(0, |page| page.memory() + size_of::<Self>())
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.following.is_some()
    }

    fn is_under(&self) -> bool {
        self.len() == 0
    }

    fn split(&mut self) -> Self {
        // Nothing is appended here any more.
        self.settle();
        *self.following.take().expect("a page that is over has a following one")
    }

    /// Only if one of them is empty: a page stays what Redis's node would be.
    fn absorb(&mut self, right: &Self) -> bool {
        if self.len() == 0 {
            *self = right.clone();
            return true;
        }
        right.len() == 0
    }

    fn separator(&self, _: &Self) -> Separator {
        self.master.separator()
    }

    #[inline]
    fn number(key: StreamId) -> u64 {
        key.ms
    }

    fn compare(key: StreamId, separator: &End) -> Ordering {
        key.against(separator)
    }
}

impl Cut for Page {
    fn cut(&mut self, at: usize, count: usize) {
        self.remove(self.place(at), count);
    }
}
