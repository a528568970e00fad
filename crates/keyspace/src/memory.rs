//! Memory of buckets: one reserved address range, which is not unmapped while the keyspace lives.
//!
//! ```text
//! range    | chunk of 64 buckets = 4 KiB | chunk | chunk | ...   reserved, mapped on first use
//! bucket   64 bytes; its number is its index in the range
//! page     of class c: 1 << c buckets (1, 2, 4, 8, 16 or 32) with consecutive numbers
//!
//! alloc   from the worker's free pages <- the shared ones <- the next chunk, cut into pages
//! free    back to the worker's; above CACHED_MAX, half of them become shared
//! ```
//!
//! Memory that was a page of one class is only reused for the same class, and `number & mask` is
//! always mapped. So a reader without a lock may follow a stale number: it reads some bucket, and
//! at worst prefetches a useless line.
//!
//! A free page is all zero: fresh memory is, and pages are emptied word by word before they are
//! freed. Bucket 0 is never handed out: number 0 means "no page".
//!
//! Memory of free pages goes back to the system by [`BucketMem::trim`], which a thread calls that
//! no client waits for. It reads as zeros, so these pages may be handed out again without more
//! ado; they are the last to be.
#![allow(unsafe_code)]

use crate::bucket::{Bucket, WORDS, Word};
use crate::range::{Range, machine_bytes};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{CachePadded, Mutex, MutexGuard, PoisonError};
use std::ptr::NonNull;

/// Page classes: class `c` is a page of `1 << c` buckets.
pub(crate) const CLASSES: usize = 6;
/// Buckets taken from the range at once: a 4 KiB memory page.
const CHUNK: u32 = 64;
/// Bytes of a bucket.
pub(crate) const BUCKET_BYTES: i64 = size_of::<Bucket>() as i64;
/// Free pages of one class that a worker keeps to itself.
const CACHED_MAX: usize = 256;
/// Free chunks in a row whose memory goes back to the system: 64 KiB. Less would cost a call for
/// little, and take huge pages apart for it.
const RUN_MIN: usize = 16;
/// The beginning of the range uses small memory pages, so that a small keyspace stays small; the
/// rest uses huge ones.
const PLAIN_BYTES: usize = 2 << 20;

/// The address range and what is free in it.
pub(crate) struct BucketMem {
    base: NonNull<Bucket>,
    mask: u32,
    /// The range that `base` points into.
    range: Range,
    /// Tables do not shrink when entries are removed.
    keeps_buckets: AtomicBool,
    /// On a line of its own: the fields above are read by every lookup.
    central: CachePadded<Mutex<Central>>,
}

struct Central {
    next: u32,
    /// Free pages whose memory may be resident.
    free: [Vec<u32>; CLASSES],
    /// Free pages whose memory was returned to the system.
    returned: [Vec<u32>; CLASSES],
}

fn no_pages() -> [Vec<u32>; CLASSES] {
    std::array::from_fn(|_| Vec::new())
}

/// Moves all pages to another list; the longer one keeps its memory.
fn append(to: &mut Vec<u32>, mut from: Vec<u32>) {
    if to.len() < from.len() {
        std::mem::swap(to, &mut from);
    }
    to.append(&mut from);
}

// SAFETY: the range is plain memory of atomics, valid until drop on any thread.
unsafe impl Send for BucketMem {}
// SAFETY: all access to the range is through atomics; `central` is a mutex.
unsafe impl Sync for BucketMem {}

impl BucketMem {
    /// Reserves a range for this machine: its physical memory rounded up to a power of two, or
    /// less where the system refuses.
    pub fn new() -> Self {
        Self::with_bytes(machine_bytes().min(1 << 37))
    }

    /// Reserves `bytes` (a power of two, at most 2^38), or less where the system refuses.
    pub fn with_bytes(bytes: usize) -> Self {
        assert!(bytes.is_power_of_two() && (1 << 13..=1 << 38).contains(&bytes));
        let range = Range::reserve(bytes);
        range.prefer_huge_from(PLAIN_BYTES);
        let central = Central { next: CHUNK, free: no_pages(), returned: no_pages() };
        Self {
            base: range.base().cast(),
            mask: (range.bytes() / size_of::<Bucket>() - 1) as u32,
            range,
            keeps_buckets: AtomicBool::new(false),
            central: CachePadded(Mutex::new(central)),
        }
    }

    /// The bucket with this number; any number leads to some mapped bucket.
    #[inline(always)]
    pub fn bucket(&self, id: u32) -> &Bucket {
        // SAFETY: `id & mask` is inside the mapping, which lives as long as `self`, is aligned to a
        // huge page, zero-initialised by the kernel, and only ever accessed as atomics.
        unsafe { self.base.add((id & self.mask) as usize).as_ref() }
    }

    /// Sets whether tables keep their buckets when entries are removed.
    pub fn keep_buckets(&self, keep: bool) {
        self.keeps_buckets.store(keep, Ordering::Relaxed);
    }

    /// Whether tables keep their buckets when entries are removed.
    pub fn keeps_buckets(&self) -> bool {
        self.keeps_buckets.load(Ordering::Relaxed)
    }

    /// Fills a cache with a few pages of this class.
    #[cold]
    fn refill(&self, class: usize, into: &mut Vec<u32>) {
        let mut central = self.central();
        let Central { free, returned, .. } = &mut *central;
        for free in [&mut free[class], &mut returned[class]] {
            let keep = free.len().saturating_sub(CACHED_MAX / 2);
            into.extend(free.drain(keep..));
            if !into.is_empty() {
                return;
            }
        }
        if central.next > self.mask - (CHUNK - 1) {
            // More buckets than physical memory holds: out of memory, as of any allocation.
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<Bucket>());
        }
        let start = central.next;
        central.next += CHUNK;
        into.extend((start..start + CHUNK).step_by(1 << class).rev());
    }

    fn accept(&self, class: usize, from: &mut Vec<u32>) {
        self.central().free[class].extend(from.drain(..CACHED_MAX / 2));
    }

    fn central(&self) -> MutexGuard<'_, Central> {
        // A panic under this mutex leaves it whole: vectors and a number, changed one at a time.
        self.central.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of free pages whose memory may be resident, without those in the workers' caches.
    pub fn free_bytes(&self) -> u64 {
        let central = self.central();
        let buckets = central.free.iter().enumerate().map(|(class, free)| free.len() << class);
        buckets.sum::<usize>() as u64 * size_of::<Bucket>() as u64
    }

    /// Returns memory of free pages to the system, where at least [`RUN_MIN`] chunks in a row are
    /// free, and returns how many bytes. O(n log n) in the free pages, with a system call for each
    /// row: not for a thread that a client waits for. Until it is done, workers get fresh pages.
    pub fn trim(&self) -> u64 {
        let pages = std::mem::replace(&mut self.central().free, no_pages());
        let (mut kept, mut free_chunks) = (no_pages(), Vec::new());
        for (class, mut pages) in pages.into_iter().enumerate() {
            pages.sort_unstable();
            for chunk in pages.chunk_by(|a, b| a / CHUNK == b / CHUNK) {
                if chunk.len() == CHUNK as usize >> class {
                    free_chunks.push((chunk[0] / CHUNK, class));
                } else {
                    kept[class].extend_from_slice(chunk);
                }
            }
        }
        free_chunks.sort_unstable();
        let (mut returned, mut bytes) = (no_pages(), 0);
        for run in free_chunks.chunk_by(|a, b| a.0 + 1 == b.0) {
            let is_long = run.len() >= RUN_MIN;
            if is_long {
                bytes += self.discard(run[0].0, run.len());
            }
            let to = if is_long { &mut returned } else { &mut kept };
            for &(chunk, class) in run {
                let start = chunk * CHUNK;
                to[class].extend((start..start + CHUNK).step_by(1 << class));
            }
        }
        let mut central = self.central();
        for (class, pages) in kept.into_iter().enumerate() {
            append(&mut central.free[class], pages);
        }
        for (class, pages) in returned.into_iter().enumerate() {
            append(&mut central.returned[class], pages);
        }
        bytes
    }

    /// Returns the memory of free chunks, which the caller has taken out of the lists.
    fn discard(&self, chunk: u32, count: usize) -> u64 {
        const BYTES: usize = CHUNK as usize * size_of::<Bucket>();
        // SAFETY: all pages of these chunks are free and in no list, so nobody writes them. Who
        // follows a stale number reads zeros before, meanwhile and afterwards.
        unsafe { self.range.discard(chunk as usize * BYTES, count * BYTES) };
        (count * BYTES) as u64
    }
}

/// One worker's free pages.
pub(crate) struct PageCache {
    free: [Vec<u32>; CLASSES],
    /// Buckets allocated minus buckets freed through this cache.
    pub buckets: i64,
}

impl PageCache {
    pub fn new() -> Self {
        Self { free: std::array::from_fn(|_| Vec::with_capacity(CHUNK as usize)), buckets: 0 }
    }

    /// An empty cache that continues the count of the worker's previous one.
    pub fn continuing(buckets: i64) -> Self {
        Self { buckets, ..Self::new() }
    }

    /// A page of `1 << class` buckets, all zero.
    #[inline]
    pub fn alloc(&mut self, mem: &BucketMem, class: usize) -> u32 {
        if self.free[class].is_empty() {
            mem.refill(class, &mut self.free[class]);
        }
        self.buckets += 1 << class;
        self.free[class].pop().expect("a refill brings at least one page")
    }

    /// Frees a page that holds only zeros.
    pub fn free(&mut self, mem: &BucketMem, class: usize, page: u32) {
        debug_assert!(page != 0, "page 0 is never handed out");
        debug_assert!(
            (0..1 << class)
                .all(|i| (0..WORDS).all(|w| mem.bucket(page + i).word(w) == Word::EMPTY)),
            "a freed page is empty"
        );
        self.buckets -= 1 << class;
        self.free[class].push(page);
        if self.free[class].len() > CACHED_MAX {
            mem.accept(class, &mut self.free[class]);
        }
    }

    /// Shares every free page with the other workers.
    pub fn return_all(&mut self, mem: &BucketMem) {
        let mut central = mem.central();
        for (mine, all) in self.free.iter_mut().zip(&mut central.free) {
            all.append(mine);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Free pages in long rows are returned and handed out again, zero and each once; others stay.
    #[test]
    fn memory_of_free_pages_is_returned() {
        let mem = BucketMem::with_bytes(64 << 20);
        let mut cache = PageCache::new();
        let pages: Vec<u32> = (0..8_000).map(|_| cache.alloc(&mem, 5)).collect();
        let small: Vec<u32> = (0..64 * 40).map(|_| cache.alloc(&mem, 0)).collect();
        let word = Word::link(7);
        for &page in &pages {
            mem.bucket(page).set(0, word);
            mem.bucket(page).set(0, Word::EMPTY);
            cache.free(&mem, 5, page);
        }
        for &page in small.iter().step_by(2) {
            cache.free(&mem, 0, page); // half of each chunk
        }
        cache.return_all(&mem);
        let free = mem.free_bytes();
        let returned = mem.trim();
        assert!((7_900 * 32 * 64..=8_000 * 32 * 64).contains(&returned), "{returned}");
        assert_eq!(mem.free_bytes(), free - returned);
        assert_eq!(mem.trim(), 0, "once");
        let next = mem.central().next;
        let mut again: Vec<u32> = (0..8_000).map(|_| cache.alloc(&mem, 5)).collect();
        assert_eq!(mem.central().next, next, "no fresh memory");
        for &page in &again {
            assert_eq!(mem.bucket(page).word(0), Word::EMPTY);
        }
        again.sort_unstable();
        again.dedup();
        assert_eq!(again.len(), 8_000);
    }
}
