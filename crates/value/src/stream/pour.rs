//! Appending many entries at once: as if each were added by itself, but the tree is searched once
//! per page, and nothing is allocated for an entry.

use super::id::StreamId;
use super::page::{Limits, Page};
use super::root::{Stream, TRUNCATE};
use crate::packed::Elem;
use crate::records::Records;
use crate::tree::Way;
use base::num::{U64_TEXT_MAX, format_u64};
use std::iter::Peekable;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// The decimal text of a number.
    Number(u64),
    /// This text.
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    /// How it is stored; a number that has no other form is written into `scratch`.
    #[inline]
    fn elem(self, scratch: &'a mut [u8; U64_TEXT_MAX]) -> Elem<'a> {
        match self {
            Self::Bytes(text) => Elem::of(text),
            Self::Number(number) => match i64::try_from(number) {
                Ok(number) => Elem::Int(number),
                Err(_) => Elem::Bytes(format_u64(scratch, number)),
            },
        }
    }
}

impl Stream {
    /// Appends entries that have these fields and no others, the first with `id`, which is higher
    /// than the last one; each of the others has the next id. How many came: fewer than there are
    /// only where the ids are used up. O(log n) for each page, and O(1) for each entry.
    pub fn pour<'f, const N: usize>(
        &mut self,
        id: StreamId,
        names: [&[u8]; N],
        entries: impl Iterator<Item = [Text<'f>; N]>,
        limits: Limits,
        log: &mut Records,
    ) -> u64 {
        log.push(TRUNCATE, &[&self.last.to_bytes(), &self.added.to_le_bytes()]);
        self.pour_aside(id, names, entries, limits)
    }

    /// As [`Stream::pour`] without a log, into a stream that is no key's yet or was captured.
    pub fn pour_aside<'f, const N: usize>(
        &mut self,
        id: StreamId,
        names: [&[u8]; N],
        entries: impl Iterator<Item = [Text<'f>; N]>,
        limits: Limits,
    ) -> u64 {
        debug_assert!(id > self.last);
        let (mut entries, before, mut next) = (entries.peekable(), self.added, Some(id));
        while let Some(id) = next
            && entries.peek().is_some()
        {
            let fill = |page: &mut Page, _| page.fill(id, names, &mut entries, limits);
            let (last, count) = self.entries.edit(Way::Last, fill);
            self.last = last;
            self.added = self.added.wrapping_add(count);
            next = last.next();
        }
        self.added.wrapping_sub(before)
    }

    /// Undoes [`Stream::pour`]: removes the entries after `last`.
    pub(super) fn undo_pour(&mut self, last: StreamId, added: u64) {
        while self.iter_back_from(self.len()).next().is_some_and(|entry| entry.id > last) {
            self.entries.edit(Way::Last, |page, _| page.undo_append());
        }
        (self.last, self.added) = (last, added);
    }
}

impl Page {
    /// Appends entries with these fields, the first with `id` and each with the next one. It ends
    /// with the entry for which this page is full, and which begins a new page. Returns the last
    /// id, and how many entries were appended: at least one.
    fn fill<'f, const N: usize>(
        &mut self,
        mut id: StreamId,
        names: [&[u8]; N],
        entries: &mut Peekable<impl Iterator<Item = [Text<'f>; N]>>,
        limits: Limits,
    ) -> (StreamId, u64) {
        let names_len: usize = names.iter().map(|name| name.len()).sum();
        let (mut count, mut same) = (0, self.is_named(names));
        for texts in entries {
            let mut scratch = [[0; U64_TEXT_MAX]; N];
            let mut values = [Elem::Int(0); N];
            for ((value, text), scratch) in values.iter_mut().zip(texts).zip(&mut scratch) {
                *value = text.elem(scratch);
            }
            let size = names_len + values.iter().map(|value| value.len()).sum::<usize>();
            count += 1;
            if self.count() == 0 {
                *self = Self::named(id, names.into_iter());
                same = true;
            } else if self.is_full(size as u64, limits) {
                let mut page = self.follower(id, names.into_iter());
                page.push_row(id, None, &values);
                self.set_following(page);
                break;
            }
            self.push_row(id, (!same).then_some(&names), &values);
            match id.next() {
                Some(next) => id = next,
                None => break,
            }
        }
        (self.newest(), count)
    }
}
