//! A page of sorted entries.
//!
//! ```text
//! block: slots | free room | heap
//! slots: one u64 per entry (little-endian), in the order of keys
//!        63..32 head of the key    31..16 where its bytes start, counted from the block's end; or its place among the
//!        far ones    15..8 length of the tail     7..0 length of the value; 255 and 255: far
//! heap:  tail and value of each entry, in the order in which they came, towards the slots; holes where some went
//! hole:  size u8, where the next one starts u16, nothing; one of less than three bytes is not in the row
//! far:   entries whose tail and value are 255 bytes or more together, each in an allocation of its own
//! ```
//! So a search reads the slots, which are one run of memory, and then mostly one entry. Entries of
//! one size, as members of a sorted set that get other scores, take each other's places, and the
//! page neither grows nor is tidied.

use super::entry::{Item, Key, Val};
use crate::tree::search::{ask, first_not_below};
use crate::tree::{End, Leaf, Separator, number};
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
/// Bytes of a slot.
const SLOT: usize = size_of::<Word>();
/// A hole of so many bytes says where the next one is.
const HOLE_MIN: usize = 3;

/// Memory of a page is counted in these: a slot's bytes.
type Word = [u8; 8];

/// The leaf of a [`super::Keyed`]. With its count it takes one line of memory.
#[derive(Clone, Default)]
pub struct Page {
    block: Box<[Word]>,
    far: Option<Box<Fars>>,
    /// No head is or was below the first or above the second: where a search begins.
    heads: (u32, u32),
    len: u16,
    /// Bytes of the heap.
    heap: u16,
    /// Bytes of the heap that nobody needs.
    holes: u16,
    /// Where the first hole starts; 0 if there is none.
    hole: u16,
    /// The last entry came at the end: the load may be in order.
    ordered: bool,
}

/// Far entries.
#[derive(Clone, Default)]
struct Fars {
    entries: Vec<Option<Arc<Far>>>,
    /// Heap bytes of all of them.
    bytes: usize,
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

    fn of(word: Word) -> Self {
        Self(u64::from_le_bytes(word))
    }

    fn word(self) -> Word {
        self.0.to_le_bytes()
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
        usize::from(self.len)
    }

    /// The entry of this rank in the page.
    #[inline]
    pub fn item(&self, at: usize) -> Option<Item<'_>> {
        let slot = Slot::of(*self.words().get(at)?);
        let key = Key { head: slot.head(), tail: self.tail(slot) };
        Some(Item { key, value: self.value(slot) })
    }

    /// The slots.
    #[inline]
    fn words(&self) -> &[Word] {
        &self.block[..usize::from(self.len)]
    }

    #[inline]
    fn slot(&self, at: usize) -> Slot {
        Slot::of(self.words()[at])
    }

    /// So many bytes of the heap from a start on.
    #[inline]
    fn bytes(&self, start: usize, size: usize) -> &[u8] {
        let all = self.block.as_flattened();
        &all[all.len() - start..][..size]
    }

    #[inline]
    fn bytes_mut(&mut self, start: usize, size: usize) -> &mut [u8] {
        let all = self.block.as_flattened_mut();
        let from = all.len() - start;
        &mut all[from..][..size]
    }

    #[inline]
    fn tail(&self, slot: Slot) -> &[u8] {
        if slot.is_far() {
            return &self.far_of(slot).tail;
        }
        self.bytes(slot.start(), slot.tail())
    }

    #[inline]
    fn value(&self, slot: Slot) -> Val<'_> {
        if slot.is_far() {
            return Val::Blob(&self.far_of(slot).value);
        }
        Val::Bytes(self.bytes(slot.start() - slot.tail(), slot.value()))
    }

    fn far_of(&self, slot: Slot) -> &Far {
        let far = self.far.as_ref().and_then(|far| far.entries[slot.start()].as_deref());
        far.expect("a far slot has its entry")
    }

    /// Where the key is, or would be.
    #[inline]
    pub fn seek(&self, key: Key<'_>) -> (usize, bool) {
        let mut at = self.first_of_head(key.head);
        while let Some(&word) = self.words().get(at) {
            let slot = Slot::of(word);
            if slot.head() != key.head {
                break;
            }
            match self.tail(slot).cmp(key.tail) {
                Ordering::Less => at = self.seek_in_run(at, key),
                Ordering::Equal => return (at, true),
                Ordering::Greater => break,
            }
            if self.words().get(at).is_none_or(|word| self.tail(Slot::of(*word)) != key.tail) {
                break;
            }
        }
        (at, false)
    }

    /// The first entry whose head is not smaller. Heads that are hashes are spread evenly: the
    /// place is guessed, so that few lines of the slots are read.
    #[inline]
    fn first_of_head(&self, head: u32) -> usize {
        let (low, high) = self.heads;
        if head <= low || head > high {
            // Below all, or above all.
            return if head <= low { 0 } else { self.slots() };
        }
        let limit = u64::from(head) << 32;
        first_not_below(self.words(), limit, self.guess(head), |word| u64::from_le_bytes(*word))
    }

    /// Where a head would be if all were spread evenly.
    #[inline]
    fn guess(&self, head: u32) -> usize {
        let (low, high) = self.heads;
        let (above, span) = (head.saturating_sub(low).min(high - low), u64::from(high - low) + 1);
        (u64::from(above) * u64::from(self.len) / span) as usize
    }

    /// Asks for the slots where a search for this head begins; the page itself is there.
    #[inline]
    pub fn ask_slots(&self, head: u32) {
        ask(&self.block, self.guess(head));
    }

    /// Asks for the bytes of the entry that a search for this key will look at; the slots are
    /// there.
    #[inline]
    pub fn ask_entry(&self, key: Key<'_>) {
        let at = self.first_of_head(key.head);
        if let Some(slot) = self.words().get(at).map(|word| Slot::of(*word))
            && !slot.is_far()
        {
            let at = self.block.as_ptr_range().end.addr() - slot.start();
            prefetch(at);
            prefetch(at + slot.size());
        }
    }

    /// Among entries of the same head from `from` on: the first whose tail is not smaller.
    #[cold]
    fn seek_in_run(&self, from: usize, key: Key<'_>) -> usize {
        let smaller = |word: &Word| {
            let slot = Slot::of(*word);
            slot.head() == key.head && self.tail(slot) < key.tail
        };
        from + self.words()[from..].partition_point(smaller)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<Val<'_>> {
        let (at, found) = self.seek(key);
        found.then(|| self.value(self.slot(at)))
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
            let slot = self.write(key, value, SLOT);
            self.open(at, slot);
            return result;
        }
        let slot = self.slot(at);
        let result = old(Some(self.value(slot).bytes()));
        if !slot.is_far() && slot.value() == value.len() {
            self.bytes_mut(slot.start() - slot.tail(), value.len()).copy_from_slice(value);
        } else {
            self.give(slot);
            // It has no bytes until they are written.
            self.block[at] = Slot::near(key.head, 0, 0, 0).word();
            self.block[at] = self.write(key, value, 0).word();
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
            let slot = self.slot(at);
            let result = old(Some(self.value(slot).bytes()));
            self.give(slot);
            result
        } else {
            old(None)
        };
        let place = self.keep(Arc::new(Far { tail: key.tail.into(), value }));
        let slot = Slot::far(key.head, place);
        if found {
            self.block[at] = slot.word();
        } else {
            self.room(SLOT);
            self.open(at, slot);
        }
        result
    }

    /// A place among the far ones.
    fn keep(&mut self, entry: Arc<Far>) -> usize {
        let far = self.far.get_or_insert_default();
        far.bytes += entry.memory();
        let place = far.entries.iter().position(Option::is_none).unwrap_or(far.entries.len());
        if place == far.entries.len() {
            far.entries.push(None);
        }
        far.entries[place] = Some(entry);
        place
    }

    /// Removes an entry; `old` sees its value.
    pub fn remove<R>(&mut self, key: Key<'_>, old: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let (at, found) = self.seek(key);
        if !found {
            return None;
        }
        let slot = self.slot(at);
        let result = old(self.value(slot).bytes());
        self.give(slot);
        self.block.copy_within(at + 1..usize::from(self.len), at);
        self.len -= 1;
        self.ordered = false;
        let live = self.live();
        if live * 2 < self.block.len() * SLOT {
            self.tidy(class(live + live / 8));
        }
        Some(result)
    }

    /// Puts a slot in its place; there is room for it.
    #[inline]
    fn open(&mut self, at: usize, slot: Slot) {
        let (len, head) = (usize::from(self.len), slot.head());
        self.block.copy_within(at..len, at + 1);
        self.block[at] = slot.word();
        self.len += 1;
        self.ordered = at == len;
        self.heads =
            if len == 0 { (head, head) } else { (self.heads.0.min(head), self.heads.1.max(head)) };
    }

    /// Writes a near entry to the heap, and leaves so much room besides.
    #[inline]
    fn write(&mut self, key: Key<'_>, value: &[u8], besides: usize) -> Slot {
        let (tail, size) = (key.tail.len(), key.tail.len() + value.len());
        self.room(besides);
        let start = self.take_hole(size).unwrap_or_else(|| {
            self.room(besides + size);
            self.heap += size as u16;
            // One of no bytes stands at the end, which is always there.
            if size == 0 { 0 } else { usize::from(self.heap) }
        });
        let (first, second) = self.bytes_mut(start, size).split_at_mut(tail);
        first.copy_from_slice(key.tail);
        second.copy_from_slice(value);
        Slot::near(key.head, start, tail, value.len())
    }

    /// The first hole, if it is of this size.
    #[inline]
    fn take_hole(&mut self, size: usize) -> Option<usize> {
        let start = usize::from(self.hole);
        if start == 0 || size < HOLE_MIN {
            return None;
        }
        let hole = self.bytes(start, HOLE_MIN);
        if usize::from(hole[0]) != size {
            return None;
        }
        self.hole = u16::from_le_bytes([hole[1], hole[2]]);
        self.holes -= size as u16;
        Some(start)
    }

    /// An entry's bytes are no longer needed.
    fn give(&mut self, slot: Slot) {
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
            self.holes += size as u16;
            if size >= HOLE_MIN {
                let [low, high] = self.hole.to_le_bytes();
                let hole = [size as u8, low, high];
                self.bytes_mut(start, HOLE_MIN).copy_from_slice(&hole);
                self.hole = start as u16;
            }
        }
    }

    /// Makes room for so many bytes between slots and heap.
    #[inline]
    fn room(&mut self, bytes: usize) {
        if (self.block.len() - usize::from(self.len)) * SLOT < usize::from(self.heap) + bytes {
            self.make_room(bytes);
        }
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) {
        let (now, holes) = (self.block.len() * SLOT, usize::from(self.holes));
        if holes >= bytes.max(usize::from(self.heap) / 8) {
            return self.tidy(now);
        }
        let need = usize::from(self.len) * SLOT + usize::from(self.heap) + bytes;
        // What comes in order fills the page: it grows in few steps.
        let wish = if self.ordered { (now + now / 2).min(PAGE_BYTES) } else { 0 };
        let mut block = blank(class(need.max(wish)));
        let len = usize::from(self.len);
        block[..len].copy_from_slice(&self.block[..len]);
        let (heap, to) = (usize::from(self.heap), block.len() * SLOT);
        let from = self.bytes(heap, heap);
        block.as_flattened_mut()[to - heap..].copy_from_slice(from);
        self.block = block;
    }

    /// Closes the holes, in a block of so many bytes.
    fn tidy(&mut self, bytes: usize) {
        let mut new = Self { block: blank(bytes), far: self.far.take(), ..Self::default() };
        for &word in self.words() {
            let slot = Slot::of(word);
            let own = if slot.is_far() { slot } else { new.copy(self, slot) };
            new.push(own);
        }
        (new.heads, new.ordered) = (self.heads, self.ordered);
        *self = new;
    }

    /// Copies a near entry of another page to the heap; there is room.
    #[inline]
    fn copy(&mut self, other: &Self, slot: Slot) -> Slot {
        let size = slot.size();
        self.heap += size as u16;
        let start = if size == 0 { 0 } else { usize::from(self.heap) };
        self.bytes_mut(start, size).copy_from_slice(other.bytes(slot.start(), size));
        Slot::near(slot.head(), start, slot.tail(), slot.value())
    }

    /// Appends a slot; there is room.
    #[inline]
    fn push(&mut self, slot: Slot) {
        self.block[usize::from(self.len)] = slot.word();
        self.len += 1;
    }

    /// Bytes of slots and entries.
    #[inline]
    fn live(&self) -> usize {
        usize::from(self.len) * SLOT + usize::from(self.heap) - usize::from(self.holes)
    }

    /// Bytes in use, with a share for far entries.
    #[inline]
    fn used(&self) -> usize {
        self.live() + self.far.as_ref().map_or(0, |far| far.entries.len() * FAR_WEIGHT)
    }

    /// Appends the entries of these ranks of another page, whose keys are all larger; there is
    /// room.
    fn append(&mut self, other: &Self, ranks: std::ops::Range<usize>) {
        for &word in &other.words()[ranks] {
            let slot = Slot::of(word);
            let own = if slot.is_far() {
                let far = other.far.as_ref().and_then(|far| far.entries[slot.start()].clone());
                Slot::far(slot.head(), self.keep(far.expect("a far slot has its entry")))
            } else {
                self.copy(other, slot)
            };
            self.push(own);
        }
        if let (Some(first), Some(last)) = (self.words().first(), self.words().last()) {
            self.heads = (Slot::of(*first).head(), Slot::of(*last).head());
        }
    }

    /// A page of these ranks, with so much room besides.
    fn part(&self, ranks: std::ops::Range<usize>, besides: usize) -> Self {
        let sizes = self.words()[ranks.clone()].iter().map(|word| SLOT + Slot::of(*word).size());
        let mut part =
            Self { block: blank(class(sizes.sum::<usize>() + besides)), ..Self::default() };
        part.append(self, ranks);
        part
    }
}

/// A block of zeros.
fn blank(bytes: usize) -> Box<[Word]> {
    vec![[0; SLOT]; bytes / SLOT].into_boxed_slice()
}

/// The next size that the allocator does not round up: four steps from one power of two to the
/// next.
fn class(bytes: usize) -> usize {
    if bytes <= 128 {
        bytes.next_multiple_of(16)
    } else {
        bytes.next_multiple_of(1 << ((bytes - 1).ilog2() - 2))
    }
}

impl Leaf for Page {
    type Key<'a> = Key<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.slots()
    }

    #[inline]
    fn memory(&self) -> usize {
        let far = self.far.as_ref().map_or(0, |far| {
            size_of::<Fars>() + far.entries.capacity() * size_of::<usize>() + far.bytes
        });
        self.block.len() * SLOT + far
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.used() > PAGE_BYTES && self.len > 1
    }

    #[inline]
    fn is_under(&self) -> bool {
        self.used() < PAGE_BYTES_MIN
    }

    fn split(&mut self) -> Self {
        let len = self.slots();
        let from = if self.ordered { len - 1 } else { len / 2 };
        let mut right = self.part(from..len, 4 * SLOT);
        right.ordered = self.ordered;
        *self = self.part(0..from, 0);
        right
    }

    fn absorb(&mut self, right: &Self) -> bool {
        if self.used() + right.used() > PAGE_BYTES_JOINED {
            return false;
        }
        self.tidy(class(self.live() + right.live()));
        self.append(right, 0..right.slots());
        self.ordered = false;
        true
    }

    fn separator(&self, left: &Self) -> Separator {
        let first = self.item(0).expect("a page after a split has entries").key;
        let last = left.item(left.slots() - 1).expect("a page after a split has entries").key;
        // The shortest start of the first key here that is above the last one there.
        if first.head != last.head {
            return Separator::new(first.head, &[]);
        }
        let same = first.tail.iter().zip(last.tail).take_while(|(a, b)| a == b).count();
        Separator::new(first.head, &first.tail[..=same])
    }

    #[inline]
    fn number(key: Key<'_>) -> u64 {
        number(key.head, key.tail)
    }

    fn compare(key: Key<'_>, separator: &End) -> Ordering {
        separator.compare(key.tail)
    }
}
