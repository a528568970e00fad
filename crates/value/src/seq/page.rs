//! A page of a list: elements one after the other, with room before the first and after the last.
//!
//! ```text
//! 0           start                                                           len    capacity
//! +-----------+---------+---------+-- ... --+---------+---------+-------------+--------+
//! | free room | element | element |         | element | element |   element   | spare  |
//! +-----------+---------+---------+-- ... --+---------+---------+-------------+--------+
//!                                           tail[0]   tail[1]   tail[known-1]
//!
//! element   as in crate::packed, or: | 0xC9 | place, u16 little-endian |
//!           a far element of 1 KiB or more, in its own allocation, at this place of `far`
//! ```
//!
//! An end grows and shrinks without moving the others. Elements are read forwards. The starts of
//! the last few are remembered, so removing elements from the end reads the page once per [`TAIL`]
//! of them.

mod leaf;

use super::item::{Item, NewItem};
use crate::packed::{Elem, skip as skip_packed};
use base::Blob;

/// Bytes of elements from which on a page is split.
const PAGE_BYTES: usize = 4096;
/// Bytes of its page that a far element counts as.
const FAR_WEIGHT: usize = 64;
const FAR: u8 = 0xC9;
/// Starts that are remembered, at most.
const TAIL: usize = 16;

/// The leaf of a [`super::Seq`].
#[derive(Clone, Default)]
pub struct Page {
    bytes: Vec<u8>,
    far: Vec<Option<Blob>>,
    /// Where the last elements start; the first `known` of these are valid.
    tail: [u16; TAIL],
    known: u8,
    /// The last insertion: at the front, at the back, or neither.
    grew: Grew,
    start: u16,
    count: u16,
    far_bytes: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Grew {
    #[default]
    Middle,
    Front,
    Back,
}

impl Page {
    /// The element that starts at an offset, and where the next one does.
    #[inline]
    pub fn read(&self, offset: usize) -> Option<(Item<'_>, usize)> {
        let bytes = &self.bytes[offset..];
        if bytes.first() == Some(&FAR) {
            let place = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
            let blob = self.far[place].as_ref().expect("a far element is there");
            return Some((Item::Far(blob), offset + 3));
        }
        let (elem, len) = Elem::first(bytes)?;
        Some((Item::Near(elem), offset + len))
    }

    /// Where the element of this rank starts; the length gives the end.
    pub fn offset(&self, at: usize) -> usize {
        let (count, known) = (usize::from(self.count), usize::from(self.known));
        if at >= count {
            return self.bytes.len();
        }
        if at + known >= count {
            return usize::from(self.tail[at + known - count]);
        }
        self.scan(at)
    }

    fn scan(&self, at: usize) -> usize {
        let mut offset = usize::from(self.start);
        for _ in 0..at {
            offset += skip(&self.bytes[offset..]);
        }
        offset
    }

    /// Where the first `count` elements start.
    pub fn offsets(&self, count: usize, out: &mut Vec<u16>) {
        out.clear();
        let mut offset = usize::from(self.start);
        for _ in 0..count {
            out.push(offset as u16);
            offset += skip(&self.bytes[offset..]);
        }
    }

    /// The element of this rank.
    #[inline]
    pub fn get(&self, at: usize) -> Item<'_> {
        self.read(self.offset(at)).expect("a rank of the page").0
    }

    /// Inserts before the element of this rank.
    #[inline]
    pub fn insert(&mut self, at: usize, new: NewItem<'_>) {
        match new {
            NewItem::Near(elem) => self.write_at(at, elem.size(), |out| elem.write(out)),
            NewItem::Far(blob) => {
                let place = self.store_far(blob);
                let [low, high] = (place as u16).to_le_bytes();
                self.write_at(at, 3, |out| out.copy_from_slice(&[FAR, low, high]));
            }
        }
    }

    fn store_far(&mut self, blob: Blob) -> usize {
        self.far_bytes += blob.capacity() + FAR_WEIGHT;
        let place = self.far.iter().position(Option::is_none).unwrap_or(self.far.len());
        if place == self.far.len() {
            self.far.push(None);
        }
        self.far[place] = Some(blob);
        place
    }

    /// Writes an element of `size` bytes before the one of this rank.
    #[inline]
    fn write_at(&mut self, at: usize, size: usize, write: impl FnOnce(&mut [u8])) {
        let count = usize::from(self.count);
        let from = if at == count {
            let end = self.bytes.len();
            self.grow(size, end);
            self.remember(end);
            self.bytes.resize(end + size, 0);
            self.grew = Grew::Back;
            end
        } else if at == 0 {
            if usize::from(self.start) < size {
                self.open_front(size);
            }
            self.start -= size as u16;
            self.grew = Grew::Front;
            usize::from(self.start)
        } else {
            let from = self.offset(at);
            let end = self.bytes.len();
            self.grow(size, end / 8);
            self.bytes.resize(end + size, 0);
            self.bytes.copy_within(from..end, from + size);
            self.known = 0;
            self.grew = Grew::Middle;
            from
        };
        write(&mut self.bytes[from..from + size]);
        self.count += 1;
    }

    /// Moves the elements up, to make room for one in front of them and for half as much as they
    /// take, so that a page that is filled from its end is moved a few times only; the last time to
    /// what a page holds.
    #[cold]
    fn open_front(&mut self, size: usize) {
        let start = usize::from(self.start);
        let live = self.bytes.len() - start;
        let room = size.max(end_room(live));
        let mut bytes = Vec::with_capacity(room + live);
        bytes.resize(room, 0);
        bytes.extend_from_slice(&self.bytes[start..]);
        self.bytes = bytes;
        self.start = room as u16;
        let by = room as i32 - start as i32;
        for offset in &mut self.tail[..usize::from(self.known)] {
            *offset = (i32::from(*offset) + by) as u16;
        }
    }

    /// Makes room for `size` bytes at the end, and for more if that takes a new allocation.
    #[inline]
    fn grow(&mut self, size: usize, more: usize) {
        if self.bytes.len() + size > self.bytes.capacity() {
            self.bytes.reserve_exact(size.max(more.min(end_room(self.bytes.len())).max(32)));
        }
    }

    /// A new last element starts here.
    fn remember(&mut self, offset: usize) {
        if usize::from(self.known) == TAIL {
            self.tail.copy_within(1.., 0);
            self.known -= 1;
        }
        self.tail[usize::from(self.known)] = offset as u16;
        self.known += 1;
    }

    /// Finds the starts of the last elements.
    fn find_tail(&mut self) {
        let count = usize::from(self.count);
        let mut offset = self.scan(count.saturating_sub(TAIL));
        self.known = 0;
        for _ in count.saturating_sub(TAIL)..count {
            self.remember(offset);
            offset += skip(&self.bytes[offset..]);
        }
    }

    /// Removes the element of this rank; `old` sees it.
    pub fn remove<R>(&mut self, at: usize, old: impl FnOnce(Item<'_>) -> R) -> R {
        let count = usize::from(self.count);
        if at + 1 == count && self.known == 0 {
            self.find_tail();
        }
        let offset = self.offset(at);
        let (item, next) = self.read(offset).expect("a rank of the page");
        let result = old(item);
        self.free(offset);
        self.count -= 1;
        if at + 1 == count {
            self.bytes.truncate(offset);
            self.known -= 1;
        } else if at == 0 {
            self.start = next as u16;
            if self.known > 0 && usize::from(self.known) + 1 > count {
                // Its own start was remembered, too.
                self.tail.copy_within(1.., 0);
                self.known -= 1;
            }
        } else {
            self.bytes.drain(offset..next);
            self.known = 0;
        }
        self.shrink();
        result
    }

    /// Removes up to `count` elements from this rank on; returns how many.
    pub fn remove_range(&mut self, at: usize, count: u64) -> u64 {
        let gone = (usize::from(self.count) - at).min(usize::try_from(count).unwrap_or(usize::MAX));
        let from = self.offset(at);
        let mut to = from;
        for _ in 0..gone {
            self.free(to);
            to += skip(&self.bytes[to..]);
        }
        self.bytes.drain(from..to);
        self.count -= gone as u16;
        self.known = 0;
        self.shrink();
        gone as u64
    }

    /// Puts another element at this rank; `old` sees the one that was there.
    pub fn set<R>(&mut self, at: usize, to: NewItem<'_>, old: impl FnOnce(Item<'_>) -> R) -> R {
        let offset = self.offset(at);
        let (item, next) = self.read(offset).expect("a rank of the page");
        let result = old(item);
        self.free(offset);
        let mut new = Vec::new();
        match to {
            NewItem::Near(elem) => elem.push(&mut new),
            NewItem::Far(blob) => {
                new.push(FAR);
                new.extend_from_slice(&(self.store_far(blob) as u16).to_le_bytes());
            }
        }
        if new.len() == next - offset {
            self.bytes[offset..next].copy_from_slice(&new);
        } else {
            self.bytes.splice(offset..next, new);
            self.known = 0;
        }
        self.grew = Grew::Middle;
        result
    }

    /// Frees what the element at this offset holds outside the page.
    fn free(&mut self, offset: usize) {
        if self.bytes[offset] == FAR {
            let place =
                usize::from(u16::from_le_bytes([self.bytes[offset + 1], self.bytes[offset + 2]]));
            let blob = self.far[place].take().expect("a far element is there");
            self.far_bytes -= blob.capacity() + FAR_WEIGHT;
            while self.far.last().is_some_and(Option::is_none) {
                self.far.pop();
            }
        }
    }

    /// Frees unused room once it is more than half of the page.
    fn shrink(&mut self) {
        self.grew = Grew::Middle;
        let start = usize::from(self.start);
        let live = self.bytes.len() - start;
        if self.bytes.capacity() > 2 * live + 128 {
            self.bytes.drain(..start);
            self.bytes.shrink_to(live + live / 8 + 32);
            self.start = 0;
            for offset in &mut self.tail[..usize::from(self.known)] {
                *offset -= start as u16;
            }
        }
    }

    /// Bytes of elements, with a share for far ones.
    fn used(&self) -> usize {
        self.bytes.len() - usize::from(self.start) + self.far.len() * FAR_WEIGHT
    }
}

/// Room for further elements beside so many bytes of them.
fn end_room(live: usize) -> usize {
    (live / 2).max(64).min(PAGE_BYTES.saturating_sub(live))
}

/// Bytes of the first element.
#[inline]
fn skip(bytes: &[u8]) -> usize {
    if bytes[0] == FAR { 3 } else { skip_packed(bytes) }
}
