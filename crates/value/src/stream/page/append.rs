//! Appending entries to a page.

use super::form::{
    FORM_SHIFT, LEN_LONG, LEN_ROW, LEN_SHIFT, LISTPACK_FRAME, NO_TAGS, SAME_FIELDS, encode_id,
};
use super::limits::{Limits, NODE_BYTES_MAX};
use super::read::Page;
use crate::packed::Elem;
use crate::stream::elem::{
    is_text, listpack_number, listpack_text, number_size, push_number, push_text, short_tag,
    text_size, write_elem, write_number,
};
use crate::stream::id::StreamId;
use crate::string::IntText;

/// Bytes of a head and the length of a body, at most.
const HEAD_MAX: usize = 11;
/// Lengths of bodies below this one stand in the head.
const LEN_SHORT_END: usize = LEN_ROW as usize;

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

    /// Appends an entry, whose id is higher than all here; into a new page if this one is full.
    /// `size` is the sum of the lengths of the fields and values.
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
    pub(in crate::stream) fn is_full(&self, size: u64, limits: Limits) -> bool {
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
        self.join_tail();
        self.set_mark();
        let has_same_fields = self.has_fields(fields.clone().map(|(name, _)| name));
        let (mut count, mut weight) = (u64::from(self.fields), None);
        let (form, ident, ident_len) = encode_id(self.last, id);
        let tag = u8::from(has_same_fields) | form << FORM_SHIFT;
        if has_same_fields {
            let values = fields.clone().map(|(_, value)| Elem::of(value));
            self.set_tags(values.clone());
            weight = self.push_values(tag, &ident[..ident_len], values);
        } else {
            count = fields.clone().count() as u64;
        }
        let weight =
            weight.unwrap_or_else(|| self.push_body(tag, &ident[..ident_len], count, fields));
        self.listpack += (weight + self.listpack_overhead(id, has_same_fields, count)) as u32;
        self.recount(self.count + 1, self.deleted);
        self.last = id;
    }

    /// Takes the tags of the page from the values of its first entry.
    fn set_tags<'f>(&mut self, values: impl Iterator<Item = Elem<'f>>) {
        if self.count > 0 || self.row != NO_TAGS || self.bytes.len() > self.start as usize {
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

    /// Appends an entry whose values have the tags of the page, which are not repeated; returns the
    /// values' bytes in a listpack. `None`, and nothing appended, if the tags differ.
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
            value.push_payload(&mut self.bytes);
            weight += listpack_text(value);
        }
        Some(weight)
    }

    /// Appends an entry whose values have tags of their own, with its fields if they are not those
    /// of the page; returns their bytes in a listpack.
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

    /// Writes the head and the id of an entry at `from`. Its body stands at the end, two bytes and
    /// the length of the id behind `from`, and moves if the head needs another room.
    pub(super) fn put_head(&mut self, from: usize, tag: u8, ident: &[u8], has_same_tags: bool) {
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

    /// Bytes of an entry in a listpack besides its fields and values: flags, id, element count.
    pub(super) fn listpack_overhead(
        &self,
        id: StreamId,
        has_same_fields: bool,
        fields: u64,
    ) -> u64 {
        let elements = if has_same_fields { 3 + fields } else { 4 + 2 * fields };
        listpack_number(0)
            + listpack_number(id.ms.wrapping_sub(self.master.ms) as i64)
            + listpack_number(id.seq.wrapping_sub(self.master.seq) as i64)
            + listpack_number(elements as i64)
    }

    #[inline]
    pub(in crate::stream) fn has_fields<'f>(
        &self,
        mut names: impl Iterator<Item = &'f [u8]>,
    ) -> bool {
        let (mut at, end) = (0, self.names_end());
        while at < end {
            let Some(name) = names.next() else { return false };
            if !is_text(&self.bytes, &mut at, name) {
                return false;
            }
        }
        names.next().is_none()
    }

    /// Sets the page which the tree will split off behind this one.
    pub(in crate::stream) fn set_following(&mut self, page: Self) {
        self.following = Some(Box::new(page));
    }

    /// The id of the last entry, of a following page if there is one.
    pub(in crate::stream) fn newest(&self) -> StreamId {
        self.following.as_ref().map_or(self.last, |page| page.last)
    }

    /// True if it has entries, and began with these fields.
    pub(in crate::stream) fn is_named<const N: usize>(&self, names: [&[u8]; N]) -> bool {
        self.count > 0 && self.has_fields(names.into_iter())
    }

    /// A page that follows this one, without entries; with room for about as much as this one
    /// holds.
    pub(in crate::stream) fn follower<'f>(
        &self,
        master: StreamId,
        names: impl Iterator<Item = &'f [u8]>,
    ) -> Self {
        let room = self.bytes.len() + self.bytes.len() / 16;
        Self::named_in(Vec::with_capacity(room), master, names)
    }

    /// Appends an entry whose fields are those of the page; or with `names`, others.
    #[inline]
    pub(in crate::stream) fn push_row<const N: usize>(
        &mut self,
        id: StreamId,
        names: Option<&[&[u8]; N]>,
        values: &[Elem<'_>; N],
    ) {
        if let Some(names) = names {
            return self.push_named(id, names, values);
        }
        self.join_tail();
        self.set_mark();
        let (form, ident, ident_len) = encode_id(self.last, id);
        let tag = SAME_FIELDS | form << FORM_SHIFT;
        self.set_tags(values.iter().copied());
        let weight = self.push_values(tag, &ident[..ident_len], values.iter().copied());
        let weight = weight.unwrap_or_else(|| self.push_tagged(tag, &ident[..ident_len], values));
        self.listpack += (weight + self.listpack_overhead(id, true, N as u64)) as u32;
        self.recount(self.count + 1, self.deleted);
        self.last = id;
    }

    /// Appends an entry with the page's fields, whose values have tags of their own; returns their
    /// bytes in a listpack.
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
        // Resized once and written in place: this is most of the cost of a message.
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
}
