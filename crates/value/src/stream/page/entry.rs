//! An entry of a page.

use super::Page;
use crate::packed::Elem;
use crate::stream::StreamId;
use crate::stream::elem::{read_number, read_text};
use std::slice;

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
