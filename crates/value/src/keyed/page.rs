//! A page of sorted entries.
//!
//! ```text
//! slots: one u64 per entry, in the order of keys
//!        63..32 head of the key    31..16 where its bytes start in the heap, or its place among the far ones
//!        15..8  length of the tail     7..0 length of the value; 255 and 255: far
//! heap:  tail and value of each entry, in the order in which they came; holes where some went
//! far:   entries whose tail and value are 255 bytes or more together, each in an allocation of its own
//! ```
//! So a search reads the slots, which are one run of memory, and then mostly one entry.

use super::{Item, Key, Val};
use crate::tree::{Leaf, Separator};
use base::Blob;
use base::prefetch::prefetch;
use base::sync::Arc;
use std::cmp::Ordering;

/// Bytes of slots and heap from which on a page is split.
const PAGE_BYTES: usize = 4096;
/// A page of less joins a neighbour.
const PAGE_BYTES_MIN: usize = PAGE_BYTES / 4;
/// Bytes of two pages that become one, at most.
const PAGE_BYTES_JOINED: usize = PAGE_BYTES * 3 / 4;
/// Tail and value of this many bytes together stand by themselves.
pub const FAR_MIN: usize = 255;
/// Far entries of a page, at most: with their slots they count as so many bytes of it.
const FAR_WEIGHT: usize = 64;
const FAR: u64 = 0xFFFF;

/// The leaf of a [`super::Keyed`].
#[derive(Clone, Default)]
pub struct Page {
    slots: Vec<u64>,
    heap: Vec<u8>,
    far: Vec<Option<Arc<Far>>>,
    /// Bytes of the heap that nobody needs.
    holes: u32,
    /// Heap bytes of the far entries.
    far_bytes: usize,
    /// The last entry came at the end: the load may be in order.
    ordered: bool,
    /// No head is or was below the first or above the second: where a search begins.
    heads: (u32, u32),
}

struct Far {
    tail: Box<[u8]>,
    value: Blob,
}

impl Far {
    fn memory(&self) -> usize {
        size_of::<Self>() + 16 + self.tail.len() + self.value.capacity() + 40
    }
}

/// A slot taken apart.
#[derive(Clone, Copy)]
struct Slot(u64);

impl Slot {
    fn near(head: u32, start: usize, tail: usize, value: usize) -> Self {
        debug_assert!(start <= 0xFFFF && tail + value < FAR_MIN);
        Self(u64::from(head) << 32 | (start as u64) << 16 | (tail as u64) << 8 | value as u64)
    }

    fn far(head: u32, place: usize) -> Self {
        Self(u64::from(head) << 32 | (place as u64) << 16 | FAR)
    }

    fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn is_far(self) -> bool {
        self.0 & FAR == FAR
    }

    fn start(self) -> usize {
        (self.0 >> 16 & 0xFFFF) as usize
    }

    fn tail(self) -> usize {
        (self.0 >> 8 & 0xFF) as usize
    }

    fn value(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    /// Bytes in the heap.
    fn size(self) -> usize {
        if self.is_far() { 0 } else { self.tail() + self.value() }
    }
}

impl Page {
    /// Entries.
    #[inline]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The entry of this rank in the page.
    #[inline]
    pub fn item(&self, at: usize) -> Option<Item<'_>> {
        let slot = Slot(*self.slots.get(at)?);
        let key = Key { head: slot.head(), tail: self.tail(slot) };
        Some(Item { key, value: self.value(slot) })
    }

    #[inline]
    fn tail(&self, slot: Slot) -> &[u8] {
        if slot.is_far() {
            return &self.far_of(slot).tail;
        }
        &self.heap[slot.start()..slot.start() + slot.tail()]
    }

    #[inline]
    fn value(&self, slot: Slot) -> Val<'_> {
        if slot.is_far() {
            return Val::Blob(&self.far_of(slot).value);
        }
        let start = slot.start() + slot.tail();
        Val::Bytes(&self.heap[start..start + slot.value()])
    }

    fn far_of(&self, slot: Slot) -> &Far {
        self.far[slot.start()].as_deref().expect("a far slot has its entry")
    }

    /// Where the key is, or would be.
    #[inline]
    pub fn seek(&self, key: Key<'_>) -> (usize, bool) {
        let mut at = self.first_of_head(key.head);
        while let Some(&slot) = self.slots.get(at) {
            let slot = Slot(slot);
            if slot.head() != key.head {
                break;
            }
            match self.tail(slot).cmp(key.tail) {
                Ordering::Less => at = self.seek_in_run(at, key),
                Ordering::Equal => return (at, true),
                Ordering::Greater => break,
            }
            if self.slots.get(at).is_none_or(|&s| self.tail(Slot(s)) != key.tail) {
                break;
            }
        }
        (at, false)
    }

    /// The first entry whose head is not smaller. Heads that are hashes are spread evenly: the place is guessed, and
    /// found by ever wider steps from there, so that few lines of the slots are read.
    #[inline]
    fn first_of_head(&self, head: u32) -> usize {
        let len = self.slots.len();
        let (low, high) = self.heads;
        if head <= low || head > high {
            // Below all, or above all.
            return if head <= low { 0 } else { len };
        }
        let guess = self.guess(head);
        let is_before = |at: usize| Slot(self.slots[at]).head() < head;
        let (mut from, mut to, mut step) = (0, len, 4);
        let mut at = guess.min(len.saturating_sub(1));
        if len > 0 && is_before(at) {
            from = at + 1;
            while at + step < len {
                at += step;
                if !is_before(at) {
                    to = at;
                    break;
                }
                (from, step) = (at + 1, step * 4);
            }
        } else {
            to = at;
            while at >= step {
                at -= step;
                if is_before(at) {
                    from = at + 1;
                    break;
                }
                (to, step) = (at, step * 4);
            }
        }
        from + self.slots[from..to].partition_point(|&slot| Slot(slot).head() < head)
    }

    /// Where a head would be if all were spread evenly.
    #[inline]
    fn guess(&self, head: u32) -> usize {
        let (low, high) = self.heads;
        let (above, span) = (head.saturating_sub(low).min(high - low), u64::from(high - low) + 1);
        (u64::from(above) * self.slots.len() as u64 / span) as usize
    }

    /// Asks for the page itself.
    #[inline]
    pub fn ask(&self) {
        let at = std::ptr::from_ref(self).addr();
        prefetch(at);
        prefetch(at + 64);
    }

    /// Asks for the slots where a search for this head begins; the page itself is there.
    #[inline]
    pub fn ask_slots(&self, head: u32) {
        let at = self.slots.as_ptr().addr() + self.guess(head) * size_of::<u64>();
        prefetch(at);
        prefetch(at + 64);
    }

    /// Asks for the bytes of the entry that a search for this key will look at; the slots are there.
    #[inline]
    pub fn ask_entry(&self, key: Key<'_>) {
        let at = self.first_of_head(key.head);
        if let Some(&slot) = self.slots.get(at).filter(|slot| !Slot(**slot).is_far()) {
            let at = self.heap.as_ptr().addr() + Slot(slot).start();
            prefetch(at);
            prefetch(at + 64);
        }
    }

    /// Among entries of the same head from `from` on: the first whose tail is not smaller.
    #[cold]
    fn seek_in_run(&self, from: usize, key: Key<'_>) -> usize {
        let run = &self.slots[from..];
        let smaller =
            |&slot: &u64| Slot(slot).head() == key.head && self.tail(Slot(slot)) < key.tail;
        from + run.partition_point(smaller)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<Val<'_>> {
        let (at, found) = self.seek(key);
        found.then(|| self.value(Slot(self.slots[at])))
    }

    /// Sets a value; `old` sees the one that was there.
    #[inline]
    pub fn insert<R>(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        old: impl FnOnce(Option<&[u8]>) -> R,
    ) -> R {
        if key.tail.len() + value.len() >= FAR_MIN {
            return self.insert_blob(key, Blob::from(value), old);
        }
        let (at, found) = self.seek(key);
        if !found {
            let result = old(None);
            self.open(at, key.head);
            self.slots[at] = self.write(key.head, key.tail, value).0;
            return result;
        }
        let slot = Slot(self.slots[at]);
        let result = old(Some(self.value(slot).bytes()));
        if !slot.is_far() && slot.value() == value.len() {
            let start = slot.start() + slot.tail();
            self.heap[start..start + value.len()].copy_from_slice(value);
        } else {
            self.give(slot);
            self.slots[at] = 0;
            self.slots[at] = self.write(key.head, key.tail, value).0;
        }
        result
    }

    /// As [`Page::insert`], of an entry that stands by itself.
    pub fn insert_blob<R>(
        &mut self,
        key: Key<'_>,
        value: Blob,
        old: impl FnOnce(Option<&[u8]>) -> R,
    ) -> R {
        let (at, found) = self.seek(key);
        let result = if found {
            let slot = Slot(self.slots[at]);
            let result = old(Some(self.value(slot).bytes()));
            self.give(slot);
            result
        } else {
            let result = old(None);
            self.open(at, key.head);
            result
        };
        let far = Far { tail: key.tail.into(), value };
        self.far_bytes += far.memory();
        let place = self.far.iter().position(Option::is_none).unwrap_or(self.far.len());
        if place == self.far.len() {
            self.far.push(None);
        }
        self.far[place] = Some(Arc::new(far));
        self.slots[at] = Slot::far(key.head, place).0;
        result
    }

    /// Removes an entry; `old` sees its value.
    pub fn remove<R>(&mut self, key: Key<'_>, old: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (at, found) = self.seek(key);
        if !found {
            return None;
        }
        let slot = Slot(self.slots[at]);
        let result = old(self.value(slot).bytes());
        self.give(slot);
        self.slots.remove(at);
        self.ordered = false;
        let sparse = self.slots.len() < self.slots.capacity() / 2;
        if sparse || self.holes as usize > self.heap.len() / 2 {
            self.compact();
        }
        Some(result)
    }

    /// Makes room for a slot.
    fn open(&mut self, at: usize, head: u32) {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(self.slots.len() / 8 + 4);
        }
        self.ordered = at == self.slots.len();
        self.slots.insert(at, 0);
        self.heads = if self.slots.len() == 1 {
            (head, head)
        } else {
            (self.heads.0.min(head), self.heads.1.max(head))
        };
    }

    /// Writes a near entry to the heap's end.
    fn write(&mut self, head: u32, tail: &[u8], value: &[u8]) -> Slot {
        let size = tail.len() + value.len();
        if self.heap.len() + size > self.heap.capacity() {
            if self.holes as usize >= size.max(self.heap.len() / 8) {
                self.compact();
            }
            if self.heap.len() + size > self.heap.capacity() {
                self.heap.reserve_exact(size.max(self.heap.len() / 8 + 32));
            }
        }
        // One of no bytes stands at the beginning, which no cut takes away.
        let start = if size == 0 { 0 } else { self.heap.len() };
        self.heap.extend_from_slice(tail);
        self.heap.extend_from_slice(value);
        Slot::near(head, start, tail.len(), value.len())
    }

    /// An entry's bytes are no longer needed.
    fn give(&mut self, slot: Slot) {
        if slot.is_far() {
            let far = self.far[slot.start()].take().expect("a far slot has its entry");
            self.far_bytes -= far.memory();
            while self.far.last().is_some_and(Option::is_none) {
                self.far.pop();
            }
        } else if slot.size() > 0 && slot.start() + slot.size() == self.heap.len() {
            self.heap.truncate(slot.start());
        } else {
            self.holes += slot.size() as u32;
        }
    }

    /// Closes the holes. A slot that is being written is 0: it has no bytes yet.
    fn compact(&mut self) {
        let live = self.heap.len() - self.holes as usize;
        let mut heap = Vec::with_capacity(live + live / 8 + 32);
        for slot in &mut self.slots {
            let old = Slot(*slot);
            if !old.is_far() {
                let start = if old.size() == 0 { 0 } else { heap.len() };
                heap.extend_from_slice(&self.heap[old.start()..old.start() + old.size()]);
                *slot = Slot::near(old.head(), start, old.tail(), old.value()).0;
            }
        }
        self.heap = heap;
        self.holes = 0;
        self.slots.shrink_to(self.slots.len() + self.slots.len() / 8 + 4);
    }

    /// Bytes in use, with a share for far entries.
    fn used(&self) -> usize {
        self.slots.len() * 8 + self.heap.len() - self.holes as usize + self.far.len() * FAR_WEIGHT
    }

    /// Appends the entries from `from` of another page, whose keys are all larger.
    fn append(&mut self, other: &Self, from: usize) {
        for &slot in &other.slots[from..] {
            let slot = Slot(slot);
            let own = if slot.is_far() {
                let far = other.far[slot.start()].clone().expect("a far slot has its entry");
                self.far_bytes += far.memory();
                self.far.push(Some(far));
                Slot::far(slot.head(), self.far.len() - 1)
            } else {
                let bytes = &other.heap[slot.start()..slot.start() + slot.size()];
                let start = if bytes.is_empty() { 0 } else { self.heap.len() };
                self.heap.extend_from_slice(bytes);
                Slot::near(slot.head(), start, slot.tail(), slot.value())
            };
            self.slots.push(own.0);
        }
        if let (Some(&first), Some(&last)) = (self.slots.first(), self.slots.last()) {
            self.heads = (Slot(first).head(), Slot(last).head());
        }
    }
}

impl Leaf for Page {
    type Key<'a> = Key<'a>;

    fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn memory(&self) -> usize {
        self.slots.capacity() * 8
            + self.heap.capacity()
            + self.far.capacity() * size_of::<usize>()
            + self.far_bytes
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.used() > PAGE_BYTES && self.slots.len() > 1
    }

    #[inline]
    fn is_under(&self) -> bool {
        self.used() < PAGE_BYTES_MIN
    }

    fn split(&mut self) -> Self {
        let len = self.slots.len();
        let from = if self.ordered { len - 1 } else { len / 2 };
        let mut right = Self { ordered: self.ordered, ..Self::default() };
        right.slots.reserve_exact(len - from + 4);
        right.append(self, from);
        let mut left = Self::default();
        left.slots.reserve_exact(from);
        self.slots.truncate(from);
        left.append(self, 0);
        *self = left;
        right
    }

    fn absorb(&mut self, right: &Self) -> bool {
        if self.used() + right.used() > PAGE_BYTES_JOINED {
            return false;
        }
        self.compact();
        self.slots.reserve_exact(right.slots.len());
        self.append(right, 0);
        self.ordered = false;
        true
    }

    fn separator(&self, left: &Self) -> Separator {
        let first = self.item(0).expect("a page after a split has entries").key;
        let last = left.item(left.slots.len() - 1).expect("a page after a split has entries").key;
        // The shortest start of the first key here that is above the last one there.
        if first.head != last.head {
            return Separator::new(first.head, &[]);
        }
        let same = first.tail.iter().zip(last.tail).take_while(|(a, b)| a == b).count();
        Separator::new(first.head, &first.tail[..=same])
    }

    #[inline]
    fn compare(key: Key<'_>, separator: &Separator) -> Ordering {
        separator.compare(key.head, key.tail)
    }
}
