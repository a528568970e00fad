//! Changing a list in either form. A packed list is rebuilt in a scratch buffer, a list of pages is
//! changed in place. Only this code moves a list from one form to the other.

mod turn;

use base::DbIndex;
use keyspace::{EntryMut, Event, Guard, Key};
use resp::Reply;
use value::list::{Item, List, NewItem};
use value::packed::{Elem, Packed, skip};
use value::{Big, Encoding, Kind, Log};

use super::element::{owned, text_len};
use super::end::End;
use super::limit::Limit;
use super::packed::{PACKED_AGAIN, PACKED_MAX, append, coming, compose, compose_back, last};
use super::view::{View, of_big_mut, offset, offsets};
use crate::ctx::{Ctx, Settings};
use crate::error::Error;

/// The list of a key that exists.
pub(crate) struct Edit<'b, 'g> {
    entry: EntryMut<'b, 'g>,
    limit: Limit,
    scratch: &'b mut Vec<u8>,
}

/// What a change left of a list of pages.
struct After {
    called: Encoding,
    /// It is so short that it belongs into its entry.
    is_light: bool,
}

impl<'b, 'g> Edit<'b, 'g> {
    /// The list of a key; `None` if it does not exist, an error if it holds something else. Its
    /// first change tells the event.
    #[inline]
    pub fn open(
        event: Event,
        guard: &'b mut Guard<'g>,
        db: DbIndex,
        key: &Key<'_>,
        settings: &Settings,
        scratch: &'b mut Vec<u8>,
    ) -> Result<Option<Self>, Error> {
        match guard.entry_mut(event, db, key) {
            None => Ok(None),
            Some(entry) if entry.kind() != Kind::List => Err(Error::WrongType),
            Some(entry) => Ok(Some(Self { entry, limit: Limit::of(settings), scratch })),
        }
    }

    /// The list.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View::of(self.entry.entry())
    }

    /// The list outside the entry.
    pub fn big(&self) -> Option<&Big> {
        self.entry.entry().big()
    }

    #[inline]
    fn called(&self) -> Encoding {
        self.entry.entry().encoding()
    }

    /// Lets the key count as changed.
    pub fn touch(&mut self) {
        if let Some(bytes) = self.entry.entry().packed() {
            self.scratch.clear();
            self.scratch.extend_from_slice(bytes);
            let called = self.called();
            self.entry.set_packed(called, self.scratch);
        } else {
            self.entry.count_as_changed();
        }
    }

    /// Removes the key.
    pub fn remove_key(self) {
        self.entry.remove();
    }

    /// Puts what the scratch buffer holds in the place of a packed list.
    #[inline]
    fn put_scratch(&mut self, has_grown: bool) {
        let called = self.limit.packed(self.scratch, self.called(), has_grown);
        self.entry.set_packed(called, self.scratch);
    }

    /// Moves a packed list that grows too long out of its entry.
    #[cold]
    fn unpack(&mut self) {
        let mut list = List::new();
        self.view().iter_from(0).for_each(|item| list.build(owned(item)));
        let called = self.called();
        self.entry.set_big(called, Big::List(list));
    }

    /// Adds elements at an end, one after the other; how many there are then.
    #[inline]
    pub fn push<'t>(
        &mut self,
        end: End,
        texts: impl DoubleEndedIterator<Item = NewItem<'t>> + Clone,
    ) -> u64 {
        if let Some(old) = self.entry.entry().packed() {
            if compose(self.scratch, old, end, texts.clone()) {
                let was = self.called();
                let after = self.limit.growing_packed(old, self.scratch, was, || coming(texts));
                self.entry.set_packed(after, self.scratch);
                return Packed::new(self.scratch).count() as u64;
            }
            self.unpack();
        }
        let new = texts.clone();
        self.grow_by(
            || coming(texts),
            |list, log| {
                for new in new {
                    let at = if end == End::Front { 0 } else { list.len() };
                    list.insert_new(at, new, log);
                }
                list.len()
            },
        )
    }

    /// As [`Edit::push`] at the back, with one operation in the log.
    pub fn extend<'t>(&mut self, texts: impl Iterator<Item = NewItem<'t>> + Clone) {
        if let Some(old) = self.entry.entry().packed() {
            if compose_back(self.scratch, old, texts.clone()) {
                return self.put_scratch(true);
            }
            self.unpack();
        }
        self.grow(|list, log| list.extend(texts, log));
    }

    /// Changes a list of pages that does not get shorter.
    fn grow<R>(&mut self, f: impl FnOnce(&mut List, &mut Log) -> R) -> R {
        let (limit, was) = (self.limit, self.called());
        let (result, called) = self.entry.edit(|big, log| {
            let list = of_big_mut(big);
            let result = f(list, log);
            (result, limit.big(list, was, true))
        });
        if called != was {
            self.entry.set_encoding(called);
        }
        result
    }

    /// As [`Edit::grow`], where it is known what comes: the encoding is decided before it is there.
    #[inline]
    fn grow_by<R>(
        &mut self,
        coming: impl FnOnce() -> (u64, u64),
        f: impl FnOnce(&mut List, &mut Log) -> R,
    ) -> R {
        let (limit, was) = (self.limit, self.called());
        let (result, after) = self.entry.edit(|big, log| {
            let list = of_big_mut(big);
            let after = limit.growing_big(list, was, coming);
            (f(list, log), after)
        });
        if after != was {
            self.entry.set_encoding(after);
        }
        result
    }

    /// Changes a list of pages that gets shorter but not empty; `f` may capture it.
    #[inline]
    pub fn shrink(&mut self, f: impl FnOnce(&mut Big, &mut Log)) {
        let (limit, was) = (self.limit, self.called());
        let after = self.entry.edit(|big, log| {
            f(big, log);
            let list = of_big_mut(big);
            let called = limit.big(list, was, false);
            let is_light = list.len() <= PACKED_AGAIN
                && list.weight().is_some_and(|weight| weight <= PACKED_AGAIN);
            After { called, is_light }
        });
        if after.is_light {
            self.pack(after.called);
        } else if after.called != was {
            self.entry.set_encoding(after.called);
        }
    }

    /// Packs a list that has become short into its entry.
    #[cold]
    fn pack(&mut self, called: Encoding) {
        self.scratch.clear();
        let View::Big(list) = View::of(self.entry.entry()) else { return };
        if list.iter().all(|item| append(self.scratch, &owned(item))) {
            self.entry.set_packed(called, self.scratch);
        }
    }

    /// Removes `count` elements at an end, from the outermost inwards; `old` sees each. There are
    /// as many at least, and the key goes with the last one.
    #[inline]
    pub fn pop(mut self, end: End, count: u64, mut old: impl FnMut(Item<'_>)) {
        match View::of(self.entry.entry()) {
            View::Small(packed) => {
                let bytes = packed.as_bytes();
                let left = match end {
                    End::Front => {
                        let mut from = 0;
                        for _ in 0..count {
                            let (elem, len) = Elem::first(&bytes[from..]).expect("as many");
                            old(Item::Near(elem));
                            from += len;
                        }
                        &bytes[from..]
                    }
                    End::Back if count == 1 => {
                        let last = last(bytes);
                        let (elem, _) = Elem::first(&bytes[last..]).expect("one at least");
                        old(Item::Near(elem));
                        &bytes[..last]
                    }
                    End::Back => {
                        let mut starts = offsets(packed);
                        let mut to = bytes.len();
                        for _ in 0..count {
                            to = usize::from(starts.pop().expect("as many"));
                            let (elem, _) = Elem::first(&bytes[to..]).expect("as many");
                            old(Item::Near(elem));
                        }
                        &bytes[..to]
                    }
                };
                if left.is_empty() {
                    return self.remove_key();
                }
                self.scratch.clear();
                self.scratch.extend_from_slice(left);
                self.put_scratch(false);
            }
            View::Big(list) if list.len() == count => {
                match end {
                    End::Front => list.iter().for_each(old),
                    End::Back => list.iter_back_from(count).for_each(old),
                }
                self.remove_key();
            }
            View::Big(_) => self.shrink(|big, log| {
                let list = of_big_mut(big);
                for _ in 0..count {
                    let at = if end == End::Front { 0 } else { list.len() - 1 };
                    list.remove(at, log, &mut old);
                }
            }),
        }
    }

    /// Removes elements from a position on; the key goes with the last one.
    pub fn cut(mut self, at: u64, count: u64) {
        if self.view().len() == count {
            self.remove_key();
        } else {
            self.cut_some(at, count);
        }
    }

    /// As [`Edit::cut`], where others stay.
    fn cut_some(&mut self, at: u64, count: u64) {
        let gone = at..at + count;
        if let View::Small(_) = self.view() {
            self.retain_packed(|position| !gone.contains(&position));
        } else {
            self.shrink(|big, log| {
                log.capture(big);
                of_big_mut(big).remove_range(at, count);
            });
        }
    }

    /// Puts another element at a position.
    pub fn set(&mut self, at: u64, new: NewItem<'_>) {
        let more = text_len(&new);
        let mut was = self.called();
        if let View::Small(packed) = self.view() {
            // As Redis 7.2: it must have room for the new element beside the old one.
            if was == Encoding::Listpack && !self.limit.takes_packed(packed.as_bytes(), 1, more) {
                was = Encoding::Quicklist;
            }
            let from = offset(packed, at);
            let to = from + skip(&packed.as_bytes()[from..]);
            if self.splice(from, to, &new) {
                let called = self.limit.packed(self.scratch, was, false);
                return self.entry.set_packed(called, self.scratch);
            }
            self.unpack();
        }
        let limit = self.limit;
        let called = self.entry.edit(|big, log| {
            let list = of_big_mut(big);
            if was == Encoding::Listpack && !limit.takes_list(list, 1, more) {
                was = Encoding::Quicklist;
            }
            list.set(at, new, log);
            limit.big(list, was, false)
        });
        self.entry.set_encoding(called);
    }

    /// Inserts an element before the one at a position, or at the end.
    pub fn insert(&mut self, at: u64, new: NewItem<'_>) {
        let coming = (1, text_len(&new));
        if let View::Small(packed) = self.view() {
            let from = offset(packed, at);
            if self.splice(from, from, &new) {
                let (old, was) = (self.entry.entry().packed().unwrap_or_default(), self.called());
                let after = self.limit.growing_packed(old, self.scratch, was, || coming);
                return self.entry.set_packed(after, self.scratch);
            }
            self.unpack();
        }
        self.grow_by(|| coming, |list, log| list.insert_new(at, new, log));
    }

    /// Writes a packed list with an element in the place of some bytes; false if it would be too
    /// long.
    fn splice(&mut self, from: usize, to: usize, new: &NewItem<'_>) -> bool {
        let entry = self.entry.entry();
        let old = entry.packed().expect("a packed list");
        self.scratch.clear();
        self.scratch.extend_from_slice(&old[..from]);
        let fits = append(self.scratch, new);
        self.scratch.extend_from_slice(&old[to..]);
        fits && self.scratch.len() <= PACKED_MAX
    }

    /// Keeps of a packed list only the elements that `keep` says by their positions; not empty
    /// then.
    pub fn retain_packed(&mut self, mut keep: impl FnMut(u64) -> bool) {
        let entry = self.entry.entry();
        let old = entry.packed().expect("a packed list");
        self.scratch.clear();
        let (mut at, mut from) = (0, 0);
        while from < old.len() {
            let to = from + skip(&old[from..]);
            if keep(at) {
                self.scratch.extend_from_slice(&old[from..to]);
            }
            (at, from) = (at + 1, to);
        }
        self.put_scratch(false);
    }

    /// Replaces a list of pages by some of its elements, in their order.
    pub fn rebuild(&mut self, mut list: List) {
        let called = self.limit.big(&mut list, self.called(), false);
        self.scratch.clear();
        let is_light = list.weight().is_some_and(|weight| weight <= PACKED_AGAIN);
        if is_light && list.iter().all(|item| append(self.scratch, &owned(item))) {
            self.entry.set_packed(called, self.scratch);
        } else {
            self.entry.set_big(called, Big::List(list));
        }
    }
}

/// The list of a key, to be changed, which tells the event.
#[inline]
pub(super) fn open<'b, 'a, 'g>(
    event: Event,
    ctx: &'b mut Ctx<'a, 'g>,
    key: &Key<'_>,
) -> Result<(Option<Edit<'b, 'g>>, &'b mut Reply<'a>), Error> {
    let edit = Edit::open(event, ctx.guard, ctx.db, key, ctx.settings, &mut ctx.tally.scratch)?;
    Ok((edit, &mut ctx.reply))
}
