//! The bytes of entries: room for them, holes where some were removed, and far entries.

use super::block::{SLOT, blank, size_class};
use super::far::FarEntry;
use super::slot::Slot;
use super::{PAGE_BYTES, Page};
use crate::keyed::entry::Key;
use base::sync::Arc;

/// A hole of so many bytes says where the next one is.
const HOLE_MIN: usize = 3;

impl Page {
    /// Stores a far entry; returns its place.
    pub(super) fn store_far(&mut self, entry: Arc<FarEntry>) -> usize {
        let far = self.far.get_or_insert_default();
        far.bytes += entry.memory();
        let place = far.entries.iter().position(Option::is_none).unwrap_or(far.entries.len());
        if place == far.entries.len() {
            far.entries.push(None);
        }
        far.entries[place] = Some(entry);
        place
    }

    /// Writes an entry to the heap, and leaves `besides` bytes free for its slot.
    #[inline]
    pub(super) fn write_entry(&mut self, key: Key<'_>, value: &[u8], besides: usize) -> Slot {
        let (tail, size) = (key.tail.len(), key.tail.len() + value.len());
        self.reserve(besides);
        let start = self.reuse_hole(size).unwrap_or_else(|| {
            self.reserve(besides + size);
            self.heap += size as u16;
            // An entry of no bytes stands at the end of the block.
            if size == 0 { 0 } else { usize::from(self.heap) }
        });
        let (first, second) = self.bytes_mut(start, size).split_at_mut(tail);
        first.copy_from_slice(key.tail);
        second.copy_from_slice(value);
        Slot::near(key.head, start, tail, value.len())
    }

    /// Takes the first hole, if it is of this size. Other holes are not tried.
    #[inline]
    fn reuse_hole(&mut self, size: usize) -> Option<usize> {
        let start = usize::from(self.first_hole);
        if start == 0 || size < HOLE_MIN {
            return None;
        }
        let hole = self.bytes(start, HOLE_MIN);
        if usize::from(hole[0]) != size {
            return None;
        }
        self.first_hole = u16::from_le_bytes([hole[1], hole[2]]);
        self.hole_bytes -= size as u16;
        Some(start)
    }

    /// Frees the bytes of an entry.
    pub(super) fn free(&mut self, slot: Slot) {
        let (start, size) = (slot.start(), slot.size());
        if slot.is_far() {
            let far = self.far.as_mut().expect("a far slot has its entry");
            let entry = far.entries[start].take().expect("a far slot has its entry");
            far.bytes -= entry.memory();
            while far.entries.last().is_some_and(Option::is_none) {
                far.entries.pop();
            }
            if far.entries.is_empty() {
                self.far = None;
            }
        } else if size > 0 && start == usize::from(self.heap) {
            self.heap -= size as u16;
        } else {
            self.hole_bytes += size as u16;
            if size >= HOLE_MIN {
                let [low, high] = self.first_hole.to_le_bytes();
                let hole = [size as u8, low, high];
                self.bytes_mut(start, HOLE_MIN).copy_from_slice(&hole);
                self.first_hole = start as u16;
            }
        }
    }

    /// Makes sure that so many bytes are free between slots and heap.
    #[inline]
    pub(super) fn reserve(&mut self, bytes: usize) {
        if (self.block.len() - usize::from(self.len)) * SLOT < usize::from(self.heap) + bytes {
            self.make_room(bytes);
        }
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) {
        let (now, holes) = (self.block.len() * SLOT, usize::from(self.hole_bytes));
        if holes >= bytes.max(usize::from(self.heap) / 8) {
            return self.compact(now);
        }
        let need = usize::from(self.len) * SLOT + usize::from(self.heap) + bytes;
        // Entries which come in order will fill the page, so it grows in few steps.
        let wish = if self.ordered { (now + now / 2).min(PAGE_BYTES) } else { 0 };
        let mut block = blank(size_class(need.max(wish)));
        let len = usize::from(self.len);
        block[..len].copy_from_slice(&self.block[..len]);
        let (heap, to) = (usize::from(self.heap), block.len() * SLOT);
        let from = self.bytes(heap, heap);
        block.as_flattened_mut()[to - heap..].copy_from_slice(from);
        self.block = block;
    }

    /// Closes the holes, in a block of so many bytes.
    pub(super) fn compact(&mut self, bytes: usize) {
        let mut new = Self { block: blank(bytes), far: self.far.take(), ..Self::default() };
        for &word in self.words() {
            let slot = Slot::of(word);
            let own = if slot.is_far() { slot } else { new.copy_entry(self, slot) };
            new.push_slot(own);
        }
        (new.heads, new.ordered) = (self.heads, self.ordered);
        *self = new;
    }

    /// Copies an entry of another page to the heap, which has room for it.
    #[inline]
    fn copy_entry(&mut self, other: &Self, slot: Slot) -> Slot {
        let size = slot.size();
        self.heap += size as u16;
        let start = if size == 0 { 0 } else { usize::from(self.heap) };
        self.bytes_mut(start, size).copy_from_slice(other.bytes(slot.start(), size));
        Slot::near(slot.head(), start, slot.tail(), slot.value())
    }

    /// Appends a slot, for which there is room.
    #[inline]
    fn push_slot(&mut self, slot: Slot) {
        self.block[usize::from(self.len)] = slot.word();
        self.len += 1;
    }

    /// Appends the entries of these ranks of another page, whose keys are all larger. There is room
    /// for them.
    pub(super) fn append(&mut self, other: &Self, ranks: std::ops::Range<usize>) {
        for &word in &other.words()[ranks] {
            let slot = Slot::of(word);
            let own = if slot.is_far() {
                let far = other.far.as_ref().and_then(|far| far.entries[slot.start()].clone());
                Slot::far(slot.head(), self.store_far(far.expect("a far slot has its entry")))
            } else {
                self.copy_entry(other, slot)
            };
            self.push_slot(own);
        }
        if let (Some(first), Some(last)) = (self.words().first(), self.words().last()) {
            self.heads = (Slot::of(*first).head(), Slot::of(*last).head());
        }
    }

    /// A page of these ranks, with `besides` free bytes.
    pub(super) fn part(&self, ranks: std::ops::Range<usize>, besides: usize) -> Self {
        let sizes = self.words()[ranks.clone()].iter().map(|word| SLOT + Slot::of(*word).size());
        let mut part =
            Self { block: blank(size_class(sizes.sum::<usize>() + besides)), ..Self::default() };
        part.append(self, ranks);
        part
    }
}
