//! A page of sorted entries.
//!
//! A page is one block of bytes. Slots grow from its start, in the order of keys; entries grow from
//! its end, in the order in which they came:
//!
//! ```text
//! +--------+--------+-- ... --+--------+-------------------+-------+------+-------+-------+
//! | slot 0 | slot 1 |         | slot n |     free room     | entry | hole | entry | entry |
//! +--------+--------+-- ... --+--------+-------------------+-------+------+-------+-------+
//!                                                          |<----------- heap ----------->|
//!
//! slot, a u64 in little-endian order:
//!
//!  63               32 31                16 15          8 7            0
//! +-------------------+--------------------+-------------+--------------+
//! |  head of the key  | start (far: place) | length of   | length of    |
//! |                   |                    | the tail    | the value    |
//! +-------------------+--------------------+-------------+--------------+
//!
//! start   where the entry's bytes begin, counted backwards from the end of the block
//! entry   tail, value
//! far     both lengths are 255: tail and value have 255 bytes or more together and stand in an
//!         allocation of their own; `place` is its index among the far entries
//! hole    what a removed entry leaves: its size u8, the start of the next hole u16, unused bytes;
//!         a hole of less than three bytes is not in this list
//! ```
//!
//! So a search reads slots, which are contiguous, and then mostly one entry. Entries of one size,
//! as members of a sorted set which get other scores, reuse each other's holes: the page neither
//! grows nor has to be compacted.

mod block;
mod far;
mod heap;
mod leaf;
mod slot;

use super::entry::{Item, Key, Val};
use crate::tree::search::{first_not_below, prefetch_around};
use base::Blob;
use base::prefetch::prefetch;
use base::sync::Arc;
use block::{SLOT, Word, size_class};
use far::{FarEntries, FarEntry};
pub use slot::FAR_MIN;
use slot::Slot;
use std::cmp::Ordering;

/// Bytes of slots and heap from which on a page is split.
const PAGE_BYTES: usize = 4096;

/// The leaf of a [`super::Keyed`]. With its count it takes one line of memory.
#[derive(Clone, Default)]
pub struct Page {
    block: Box<[Word]>,
    far: Option<Box<FarEntries>>,
    /// The lowest and the highest head that the page has, or had. A search estimates its place
    /// between them.
    heads: (u32, u32),
    len: u16,
    /// Bytes of the heap, holes included.
    heap: u16,
    /// Bytes of all holes.
    hole_bytes: u16,
    /// Where the first hole starts; 0 if there is none.
    first_hole: u16,
    /// The last entry came at the end, so entries may be coming in order.
    ordered: bool,
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

    /// `size` bytes of the heap from `start` on, which is counted from the end of the block.
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
            return &self.far_entry(slot).tail;
        }
        self.bytes(slot.start(), slot.tail())
    }

    #[inline]
    fn value(&self, slot: Slot) -> Val<'_> {
        if slot.is_far() {
            return Val::Blob(&self.far_entry(slot).value);
        }
        Val::Bytes(self.bytes(slot.start() - slot.tail(), slot.value()))
    }

    fn far_entry(&self, slot: Slot) -> &FarEntry {
        let far = self.far.as_ref().and_then(|far| far.entries[slot.start()].as_deref());
        far.expect("a far slot has its entry")
    }

    /// Where the key is, or would be; and whether it is there.
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
    /// place is estimated, so that few cache lines of slots are read.
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

    /// Prefetches the slots where a search for this head begins. The page itself is in the cache.
    #[inline]
    pub fn prefetch_slots(&self, head: u32) {
        prefetch_around(&self.block, self.guess(head));
    }

    /// Prefetches the bytes of the entry that a search for this key compares. The slots are in the
    /// cache.
    #[inline]
    pub fn prefetch_entry(&self, key: Key<'_>) {
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
        old: impl FnOnce(Option<Val<'_>>) -> R,
    ) -> R {
        if key.tail.len() + value.len() >= FAR_MIN {
            return self.insert_blob(key, Blob::from(value), old);
        }
        let (at, found) = self.seek(key);
        if !found {
            let result = old(None);
            let slot = self.write_entry(key, value, SLOT);
            self.insert_slot(at, slot);
            return result;
        }
        let slot = self.slot(at);
        let result = old(Some(self.value(slot)));
        if !slot.is_far() && slot.value() == value.len() {
            self.bytes_mut(slot.start() - slot.tail(), value.len()).copy_from_slice(value);
        } else {
            self.free(slot);
            // It has no bytes until they are written.
            self.block[at] = Slot::near(key.head, 0, 0, 0).word();
            self.block[at] = self.write_entry(key, value, 0).word();
        }
        result
    }

    /// As [`Page::insert`], of a far entry.
    pub fn insert_blob<R>(
        &mut self,
        key: Key<'_>,
        value: Blob,
        old: impl FnOnce(Option<Val<'_>>) -> R,
    ) -> R {
        let (at, found) = self.seek(key);
        let result = if found {
            let slot = self.slot(at);
            let result = old(Some(self.value(slot)));
            self.free(slot);
            result
        } else {
            old(None)
        };
        let place = self.store_far(Arc::new(FarEntry { tail: key.tail.into(), value }));
        let slot = Slot::far(key.head, place);
        if found {
            self.block[at] = slot.word();
        } else {
            self.reserve(SLOT);
            self.insert_slot(at, slot);
        }
        result
    }

    /// Removes an entry; `old` sees its value.
    pub fn remove<R>(&mut self, key: Key<'_>, old: impl FnOnce(Val<'_>) -> R) -> Option<R> {
        let (at, found) = self.seek(key);
        if !found {
            return None;
        }
        let slot = self.slot(at);
        let result = old(self.value(slot));
        self.free(slot);
        self.block.copy_within(at + 1..usize::from(self.len), at);
        self.len -= 1;
        self.ordered = false;
        let live = self.live();
        if live * 2 < self.block.len() * SLOT {
            self.compact(size_class(live + live / 8));
        }
        Some(result)
    }

    /// Inserts a slot, for which there is room.
    #[inline]
    fn insert_slot(&mut self, at: usize, slot: Slot) {
        let (len, head) = (usize::from(self.len), slot.head());
        self.block.copy_within(at..len, at + 1);
        self.block[at] = slot.word();
        self.len += 1;
        self.ordered = at == len;
        self.heads =
            if len == 0 { (head, head) } else { (self.heads.0.min(head), self.heads.1.max(head)) };
    }
}
