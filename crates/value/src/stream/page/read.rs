//! A page, and how its entries are read.

use super::form::{FORM_SHIFT, LEN_LONG, LEN_ROW, LEN_SHIFT, NO_TAGS, SAME_FIELDS};
use crate::packed::Elem;
use crate::stream::elem::{read_number, read_text};
use crate::stream::id::StreamId;
use std::slice;

/// The leaf of a stream's tree.
#[derive(Clone, Debug)]
pub struct Page {
    pub(super) bytes: Vec<u8>,
    /// The entries after those of `bytes`, while nothing is appended here; see [`Page::shrink`].
    pub(super) tail: Box<[u8]>,
    /// The page that begins with the entry for which this one was full, until the tree splits it
    /// off.
    pub(super) following: Option<Box<Page>>,
    /// The id with which it began; that entry may be gone.
    pub(super) master: StreamId,
    /// The id of the last entry.
    pub(super) last: StreamId,
    /// Bytes of Redis's listpack.
    pub(super) listpack: u32,
    pub(super) count: u32,
    /// Entries that were deleted since it began.
    pub(super) deleted: u32,
    /// How many field names there are, and where the entries start.
    pub(super) fields: u32,
    pub(super) start: u32,
    /// Length of a body whose values have the tags of the page, or [`NO_TAGS`].
    pub(super) row: u32,
    /// A place near the newest entries, so that reading them does not walk over all others.
    pub(super) mark: Mark,
}

/// A place, and the number and the id of the entries before it. The default is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub offset: u32,
    pub rank: u32,
    pub before: StreamId,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            tail: Box::default(),
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
    pub(super) offset: usize,
    pub(super) before: StreamId,
}

impl Page {
    /// The tags that entries with the page's fields need not repeat; none if there are no tags.
    fn tags(&self) -> &[u8] {
        &self.bytes[self.names_end()..self.start as usize]
    }

    /// Where the field names end.
    pub(super) fn names_end(&self) -> usize {
        (if self.row == NO_TAGS { self.start } else { self.start - self.fields }) as usize
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
            Some(offset) => &self.tail[offset..],
        }
    }

    /// Where a walk to a place starts, and how many entries are before it: at the mark if the place
    /// is behind it, otherwise at the first entry.
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
        let end = Cursor { offset: self.bytes.len() + self.tail.len(), before: self.last };
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
}

/// An entry as it is stored.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    pub(super) page: &'a Page,
    pub(super) has_same_fields: bool,
    pub(super) has_same_tags: bool,
    pub(super) body: &'a [u8],
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
