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
#![allow(unsafe_code)]

use crate::bucket::{Bucket, WORDS, Word};
use crate::range::{Range, machine_bytes};
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{CachePadded, Mutex, PoisonError};
use std::ptr::NonNull;

/// Page classes: class `c` is a page of `1 << c` buckets.
pub(crate) const CLASSES: usize = 6;
/// Buckets taken from the range at once: a 4 KiB memory page.
const CHUNK: u32 = 64;
/// Bytes of a bucket.
pub(crate) const BUCKET_BYTES: i64 = size_of::<Bucket>() as i64;
/// Free pages of one class that a worker keeps to itself.
const CACHED_MAX: usize = 256;
/// The beginning of the range uses small memory pages, so that a small keyspace stays small; the
/// rest uses huge ones.
const PLAIN_BYTES: usize = 2 << 20;

/// The address range and what is free in it.
pub(crate) struct BucketMem {
    base: NonNull<Bucket>,
    mask: u32,
    /// Keeps the range that `base` points into.
    _range: Range,
    /// Tables do not shrink when entries are removed.
    keeps_buckets: AtomicBool,
    /// On a line of its own: the fields above are read by every lookup.
    central: CachePadded<Mutex<Central>>,
}

struct Central {
    next: u32,
    free: [Vec<u32>; CLASSES],
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
        let central = Central { next: CHUNK, free: std::array::from_fn(|_| Vec::new()) };
        Self {
            base: range.base().cast(),
            mask: (range.bytes() / size_of::<Bucket>() - 1) as u32,
            _range: range,
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
        // A panic under this mutex leaves it whole: vectors and a number, changed one at a time.
        let mut central = self.central.lock().unwrap_or_else(PoisonError::into_inner);
        let free = &mut central.free[class];
        let keep = free.len().saturating_sub(CACHED_MAX / 2);
        into.extend(free.drain(keep..));
        if !into.is_empty() {
            return;
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
        let mut central = self.central.lock().unwrap_or_else(PoisonError::into_inner);
        central.free[class].extend(from.drain(..CACHED_MAX / 2));
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
        let mut central = mem.central.lock().unwrap_or_else(PoisonError::into_inner);
        for (mine, all) in self.free.iter_mut().zip(&mut central.free) {
            all.append(mine);
        }
    }
}
