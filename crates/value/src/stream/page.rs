//! A page of a stream: what Redis keeps in one listpack, so that trimming by whole nodes cuts at the same places.
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
//! Numbers and texts are those of [`super::elem`]. An entry that is deleted leaves nothing behind but its share of
//! `listpack`, by which Redis's node would be full.

use super::StreamId;
use super::elem::{
    is_text, listpack_number, listpack_text, number_size, push_number, push_text, read_number,
    read_text, short_tag, text_size, write_elem, write_number,
};
use crate::packed::Elem;
use crate::string::IntText;
use crate::tree::{Cut, End, Leaf, Separator};
use std::cmp::Ordering;
use std::slice;

/// Bytes of an id, at most: two numbers.
const ID_MAX: usize = 20;
/// Bytes of a head and the length of a body, at most.
const HEAD_MAX: usize = 11;
const SAME_FIELDS: u8 = 1;
const FORM_SHIFT: u8 = 1;
const LEN_SHIFT: u8 = 3;
/// The length of a body follows.
const LEN_LONG: u8 = 31;
/// The body is values without tags: those of the page.
const LEN_ROW: u8 = 30;
/// Lengths of bodies below this one stand in the head.
const LEN_SHORT_END: usize = LEN_ROW as usize;
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
    /// A place from which the newest entries are not far: who reads them need not walk over all others.
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

/// An entry as it is stored.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    page: &'a Page,
    has_same_fields: bool,
    has_same_tags: bool,
    body: &'a [u8],
}

impl<'a> Entry<'a> {
    /// How many fields it has.
    pub fn len(&self) -> usize {
        if self.has_same_fields {
            self.page.fields as usize
        } else {
            read_number(self.body, &mut 0) as usize
        }
    }

    /// True if it has none; Redis takes no such entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its fields with their values.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        let (mut at, left) = (0, self.len());
        let names = if self.has_same_fields {
            Some((&self.page.bytes[..], 0))
        } else {
            read_number(self.body, &mut at);
            None
        };
        let tags = if self.has_same_tags { self.page.tags() } else { &[] };
        Fields { body: self.body, at, names, tags: tags.iter(), left }
    }

    /// Whether its fields are those that its page began with.
    pub fn has_page_fields(&self) -> bool {
        self.has_same_fields
    }
}

/// The fields of an entry with their values.
#[derive(Clone)]
pub struct Fields<'a> {
    body: &'a [u8],
    at: usize,
    names: Option<(&'a [u8], usize)>,
    /// Of values that have none of their own.
    tags: slice::Iter<'a, u8>,
    left: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Elem<'a>, Elem<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = match &mut self.names {
            Some((names, at)) => read_text(names, at),
            None => read_text(self.body, &mut self.at),
        };
        let Some(tag) = self.tags.next() else {
            return Some((name, read_text(self.body, &mut self.at)));
        };
        let (value, len) = Elem::tagged(*tag, &self.body[self.at..]);
        self.at += len;
        Some((name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl Page {
    /// A page that begins with an entry.
    fn beginning<'f>(
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) -> Self {
        let mut page = Self::named(id, fields.clone().map(|(name, _)| name));
        page.push(id, fields);
        page
    }

    /// A page without entries, with its own id and the names of its fields.
    pub fn named<'f>(master: StreamId, names: impl Iterator<Item = &'f [u8]>) -> Self {
        Self::named_in(Vec::new(), master, names)
    }

    /// As [`Page::named`], in an empty buffer.
    fn named_in<'f>(
        bytes: Vec<u8>,
        master: StreamId,
        names: impl Iterator<Item = &'f [u8]>,
    ) -> Self {
        let mut page = Self { bytes, master, last: master, ..Self::default() };
        let mut weight = LISTPACK_FRAME + 3 * listpack_number(0);
        for name in names {
            weight += push_text(&mut page.bytes, name);
            page.fields += 1;
        }
        page.listpack = (weight + listpack_number(i64::from(page.fields))) as u32;
        page.start = page.bytes.len() as u32;
        page
    }

    /// Appends an entry, whose id is higher than all here; into a new page if this one is full. `size` is the sum of
    /// the lengths of the fields and values.
    #[inline]
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        size: u64,
        limits: Limits,
    ) {
        if self.count == 0 {
            *self = Self::beginning(id, fields);
        } else if self.is_full(size, limits) {
            self.following = Some(Box::new(Self::beginning(id, fields)));
        } else {
            self.push(id, fields);
        }
    }

    #[inline]
    pub(super) fn is_full(&self, size: u64, limits: Limits) -> bool {
        let bytes =
            if limits.bytes == 0 { NODE_BYTES_MAX } else { limits.bytes.min(NODE_BYTES_MAX) };
        self.listpack() + size >= bytes
            || limits.entries != 0 && u64::from(self.count) >= limits.entries
    }

    /// Appends an entry to this page, whatever its size.
    pub fn push<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) {
        self.join();
        self.set_mark();
        let has_same_fields = self.has_fields(fields.clone().map(|(name, _)| name));
        let (mut count, mut weight) = (u64::from(self.fields), None);
        let (form, ident, ident_len) = ident(self.last, id);
        let tag = u8::from(has_same_fields) | form << FORM_SHIFT;
        if has_same_fields {
            let values = fields.clone().map(|(_, value)| Elem::of(value));
            self.take_tags(values.clone());
            weight = self.push_values(tag, &ident[..ident_len], values);
        } else {
            count = fields.clone().count() as u64;
        }
        let weight =
            weight.unwrap_or_else(|| self.push_body(tag, &ident[..ident_len], count, fields));
        self.listpack += (weight + self.weight_beside(id, has_same_fields, count)) as u32;
        self.recount(self.count + 1, self.deleted);
        self.last = id;
    }

    /// The values of the first entry, whose fields are the page's, say which tags need not be repeated.
    fn take_tags<'f>(&mut self, values: impl Iterator<Item = Elem<'f>>) {
        if self.count > 0 || self.bytes.len() > self.start as usize {
            return;
        }
        let mut row = 0;
        for value in values {
            let Some(tag) = short_tag(value) else {
                self.bytes.truncate(self.start as usize);
                return;
            };
            self.bytes.push(tag);
            row += value.size() as u32 - 1;
        }
        (self.row, self.start) = (row, self.bytes.len() as u32);
    }

    /// The tags that need not be repeated; none if there are none in common.
    fn tags(&self) -> &[u8] {
        &self.bytes[self.names_end()..self.start as usize]
    }

    /// Where the field names end.
    fn names_end(&self) -> usize {
        (if self.row == NO_TAGS { self.start } else { self.start - self.fields }) as usize
    }

    /// Appends an entry whose values have the tags of the page, which are not repeated, and says what they weigh in a
    /// listpack. If they have others nothing is appended.
    #[inline]
    fn push_values<'f>(
        &mut self,
        tag: u8,
        ident: &[u8],
        values: impl Iterator<Item = Elem<'f>>,
    ) -> Option<u64> {
        if self.row == NO_TAGS {
            return None;
        }
        let (from, tags, mut weight) = (self.bytes.len(), self.names_end(), 0);
        self.bytes.reserve(1 + ident.len() + self.row as usize);
        self.bytes.push(tag | LEN_ROW << LEN_SHIFT);
        self.bytes.extend_from_slice(ident);
        for (n, value) in values.enumerate() {
            if short_tag(value) != Some(self.bytes[tags + n]) {
                self.bytes.truncate(from);
                return None;
            }
            value.push_rest(&mut self.bytes);
            weight += listpack_text(value);
        }
        Some(weight)
    }

    /// Appends an entry with what tells its values, and its fields if they are not those of the page; says what these
    /// weigh in a listpack.
    fn push_body<'f>(
        &mut self,
        tag: u8,
        ident: &[u8],
        count: u64,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> u64 {
        let has_same_fields = tag & SAME_FIELDS != 0;
        // Room for the length in one byte, as it mostly is.
        let (from, mut weight) = (self.bytes.len(), 0);
        self.bytes.resize(from + 2 + ident.len(), 0);
        if !has_same_fields {
            push_number(&mut self.bytes, count);
            weight += listpack_number(count as i64);
        }
        for (name, value) in fields {
            if !has_same_fields {
                weight += push_text(&mut self.bytes, name);
            }
            weight += push_text(&mut self.bytes, value);
        }
        self.put_head(from, tag, ident, false);
        weight
    }

    /// Writes the head of an entry before its body, which starts two bytes and the id behind it.
    fn put_head(&mut self, from: usize, tag: u8, ident: &[u8], has_same_tags: bool) {
        let body = from + 2 + ident.len();
        let len = self.bytes.len() - body;
        let mut head = [0; HEAD_MAX];
        let mut n = 1;
        if has_same_tags {
            head[0] = tag | LEN_ROW << LEN_SHIFT;
        } else if len < LEN_SHORT_END {
            head[0] = tag | (len as u8) << LEN_SHIFT;
        } else {
            head[0] = tag | LEN_LONG << LEN_SHIFT;
            let mut left = len;
            while left >= 0x80 {
                head[n] = left as u8 | 0x80;
                (left, n) = (left >> 7, n + 1);
            }
            head[n] = left as u8;
            n += 1;
        }
        let start = from + n + ident.len();
        if start > body {
            self.bytes.resize(start + len, 0);
        }
        self.bytes.copy_within(body..body + len, start);
        self.bytes.truncate(start + len);
        self.bytes[from..from + n].copy_from_slice(&head[..n]);
        self.bytes[from + n..start].copy_from_slice(ident);
    }

    /// Bytes of the listpack entries that every entry has: what it is, its id, how many it takes.
    fn weight_beside(&self, id: StreamId, has_same_fields: bool, fields: u64) -> u64 {
        let elements = if has_same_fields { 3 + fields } else { 4 + 2 * fields };
        listpack_number(0)
            + listpack_number(id.ms.wrapping_sub(self.master.ms) as i64)
            + listpack_number(id.seq.wrapping_sub(self.master.seq) as i64)
            + listpack_number(elements as i64)
    }

    /// Sets the counts, which stand in the listpack, too.
    fn recount(&mut self, count: u32, deleted: u32) {
        let weight = |number| listpack_number(i64::from(number));
        self.listpack += (weight(count) + weight(deleted)) as u32;
        self.listpack -= (weight(self.count) + weight(self.deleted)) as u32;
        (self.count, self.deleted) = (count, deleted);
    }

    #[inline]
    pub(super) fn has_fields<'f>(&self, mut names: impl Iterator<Item = &'f [u8]>) -> bool {
        let (mut at, end) = (0, self.names_end());
        while at < end {
            let Some(name) = names.next() else { return false };
            if !is_text(&self.bytes, &mut at, name) {
                return false;
            }
        }
        names.next().is_none()
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

    /// Gives spare room back, of a page to which nothing is appended. The allocator's places for so many bytes are up to
    /// a quarter apart, so what goes only a little beyond such a place gets one of its own.
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

    /// The place before the first entry whose id is not below this one, and how many entries are before it.
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

    /// The tree is to take this page behind this one.
    pub(super) fn set_following(&mut self, page: Self) {
        self.following = Some(Box::new(page));
    }

    /// The id of the last entry, of a following page if there is one.
    pub(super) fn newest(&self) -> StreamId {
        self.following.as_ref().map_or(self.last, |page| page.last)
    }

    /// True if it has entries, and began with these fields.
    pub(super) fn is_named<const N: usize>(&self, names: [&[u8]; N]) -> bool {
        self.count > 0 && self.has_fields(names.into_iter())
    }

    /// A page that follows this one, without entries; with room for about as much as this one holds.
    pub(super) fn follower<'f>(
        &self,
        master: StreamId,
        names: impl Iterator<Item = &'f [u8]>,
    ) -> Self {
        let room = self.bytes.len() + self.bytes.len() / 16;
        Self::named_in(Vec::with_capacity(room), master, names)
    }

    /// Appends an entry whose fields are those of the page; or with `names`, others.
    #[inline]
    pub(super) fn push_row<const N: usize>(
        &mut self,
        id: StreamId,
        names: Option<&[&[u8]; N]>,
        values: &[Elem<'_>; N],
    ) {
        if let Some(names) = names {
            return self.push_named(id, names, values);
        }
        self.join();
        self.set_mark();
        let (form, ident, ident_len) = ident(self.last, id);
        let tag = SAME_FIELDS | form << FORM_SHIFT;
        self.take_tags(values.iter().copied());
        let weight = self.push_values(tag, &ident[..ident_len], values.iter().copied());
        let weight = weight.unwrap_or_else(|| self.push_tagged(tag, &ident[..ident_len], values));
        self.listpack += (weight + self.weight_beside(id, true, N as u64)) as u32;
        self.recount(self.count + 1, self.deleted);
        self.last = id;
    }

    /// Appends an entry of the page's fields with what tells its values; says what these weigh in a listpack.
    fn push_tagged<const N: usize>(
        &mut self,
        tag: u8,
        ident: &[u8],
        values: &[Elem<'_>; N],
    ) -> u64 {
        let sizes = values.map(text_size);
        let len: usize = sizes.iter().sum();
        let head_len = if len < LEN_SHORT_END { 1 } else { 1 + number_size(len as u64) };
        let mut weight = 0;
        // Once for all, and written in place: this is what a message costs.
        let from = self.bytes.len();
        self.bytes.resize(from + head_len + ident.len() + len, 0);
        let (head, mut rest) = self.bytes[from..].split_at_mut(head_len);
        if let [one] = head {
            *one = tag | (len as u8) << LEN_SHIFT;
        } else {
            head[0] = tag | LEN_LONG << LEN_SHIFT;
            write_number(&mut head[1..], len as u64);
        }
        rest[..ident.len()].copy_from_slice(ident);
        rest = &mut rest[ident.len()..];
        for (value, size) in values.iter().zip(sizes) {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(size);
            weight += write_elem(place, *value);
            rest = behind;
        }
        weight
    }

    /// Appends an entry whose fields are not those of the page.
    #[cold]
    fn push_named<const N: usize>(
        &mut self,
        id: StreamId,
        names: &[&[u8]; N],
        values: &[Elem<'_>; N],
    ) {
        let mut scratch = [IntText::default(); N];
        let mut pairs = [(&b""[..], &b""[..]); N];
        let parts = names.iter().zip(values).zip(&mut scratch);
        for (pair, ((name, value), scratch)) in pairs.iter_mut().zip(parts) {
            *pair = (name, value.bytes(scratch));
        }
        self.push(id, pairs.iter().copied());
    }

    /// Gives spare room back.
    pub fn shrink(&mut self) {
        self.settle();
    }

    /// Says what Redis's node counts: its bytes, and entries that were deleted. For a page that was read from one.
    pub fn set_history(&mut self, listpack: u32, deleted: u32) {
        (self.listpack, self.deleted) = (listpack, deleted);
    }
}

/// How an id is told from the one before it: the form, and its numbers.
#[inline]
fn ident(before: StreamId, id: StreamId) -> (u8, [u8; ID_MAX], usize) {
    let (mut bytes, mut len) = ([0; ID_MAX], 0);
    let mut put = |mut number: u64| {
        while number >= 0x80 {
            bytes[len] = number as u8 | 0x80;
            (number, len) = (number >> 7, len + 1);
        }
        bytes[len] = number as u8;
        len += 1;
    };
    let form = if id.ms == before.ms {
        match id.seq - before.seq {
            1 => 0,
            more => {
                put(more);
                2
            }
        }
    } else {
        put(id.ms - before.ms);
        if id.seq == 0 {
            1
        } else {
            put(id.seq);
            3
        }
    };
    (form, bytes, len)
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
