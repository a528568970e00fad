//! Memory of entries: spans of 64 KiB, each with places of one size class, in one reserved range
//! whose huge pages the workers share. Reasons: `docs/design/0010-entry-slab.md`.
//!
//! ```text
//! range   | 8 MiB of small pages | huge page = chunk of 32 spans | huge page | ...
//! span    | place | place | ... | less than a place
//! worker  per class: free places (taken back last, given out first), and a whole span's rest
//! ```
//! A worker allocates and frees places in its own cache. Only when the cache is empty or full it
//! uses the shared spans, under one mutex. An empty cache gets a whole span, which then belongs to
//! this worker alone, or some places of a span that others use, too. A full cache returns the
//! places that were freed first. So any worker may free what another one allocated. Entries larger
//! than the largest class come from the process's allocator, and so does everything once the range
//! is full.
#![allow(unsafe_code)]

mod classes;
mod leaving;
mod spans;

use crate::range::{HUGE_PAGE, Range, machine_bytes};
use base::sync::{Arc, CachePadded, Mutex, MutexGuard};
use classes::{CLASS_MAX, CLASSES};
use spans::{Allocated, Run, SPAN, Spans};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

pub(crate) use classes::{class_bytes, heap_bytes};
pub(crate) use leaving::{Choice, Leaving};

/// The first bytes of the range use small memory pages, so that a small keyspace stays small; the
/// others use huge pages.
const PLAIN_BYTES: usize = 8 << 20;
/// The largest range: more memory than any machine has today.
const RANGE_MAX: usize = 1 << 42;
/// Huge pages whose memory a thread returns to the system at most when it frees places. What is
/// left is for [`EntryMem::trim_some`].
const RETURNED_MAX: usize = 4;
/// Bytes of free places of one class that a worker caches; their number is clamped to the two
/// bounds below.
const CACHED_BYTES: usize = 16 << 10;
const CACHED_MAX: usize = 256;
const CACHED_MIN: usize = 8;

/// The memory that all workers share.
pub(crate) struct EntryMem {
    range: Range,
    /// The address where `range` begins.
    base: u64,
    spans: CachePadded<Mutex<Spans>>,
}

/// The memory of entries, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryPages {
    /// Spans with at least one allocated place.
    pub active: u64,
    /// Those, and free spans whose memory was not returned to the system.
    pub resident: u64,
}

impl EntryMem {
    /// An empty range as large as the machine's memory; less where the system refuses.
    pub fn new() -> Self {
        Self::with_bytes(machine_bytes().min(RANGE_MAX))
    }

    /// An empty range of `bytes`, a power of two.
    pub fn with_bytes(bytes: usize) -> Self {
        let range = Range::reserve(bytes);
        range.prefer_huge_from(PLAIN_BYTES);
        let spans = CachePadded(Mutex::new(Spans::new(range.bytes() / HUGE_PAGE)));
        let base = range.base().as_ptr().expose_provenance() as u64;
        Self { range, base, spans }
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().expect("the books of the spans are whole")
    }

    /// The memory in use; spans with places in a worker's cache count as active.
    pub fn pages(&self) -> EntryPages {
        let spans = self.spans();
        let (used, dirty) = (u64::from(spans.used()), u64::from(spans.dirty()));
        EntryPages { active: used * SPAN as u64, resident: (used + dirty) * SPAN as u64 }
    }

    /// Returns memory of free spans to the system: all of it, or only what exceeds the reserve for
    /// coming allocations. One system call per run of spans.
    pub fn trim(&self, all: bool) {
        let surplus = self.spans().surplus(all);
        self.discard_runs(&surplus);
    }

    /// True if free spans hold more memory than the reserve.
    pub fn has_surplus(&self) -> bool {
        self.spans().has_surplus()
    }

    /// As [`EntryMem::trim`] of what exceeds the reserve, of at most `chunks_max` huge pages. False
    /// if there was nothing to return.
    pub fn trim_some(&self, chunks_max: usize) -> bool {
        let surplus = self.spans().surplus_of(false, chunks_max);
        self.discard_runs(&surplus);
        !surplus.is_empty()
    }

    /// Begins to choose spans to leave; `None` if there are none to spare. Spans that are being
    /// left already must be ended first ([`EntryMem::end_leaving`]).
    pub fn begin_choice(&self) -> Option<Choice> {
        self.spans().begin_choice()
    }

    /// Continues a choice by a bounded part. True if there is more.
    pub fn choose(&self, choice: &mut Choice) -> bool {
        self.spans().choose(choice)
    }

    /// The spans that are being left.
    pub fn leaving(&self) -> Option<Arc<Leaving>> {
        self.spans().leaving.clone()
    }

    /// Ends the leaving of spans, by a bounded part: those from number `from` on. Returns where the
    /// next call begins, `None` at the end.
    pub fn end_leaving(&self, from: u32) -> Option<u32> {
        self.spans().end_leaving(from)
    }

    /// True if an entry at this address stands in a span that is being left.
    #[inline]
    pub fn is_left(&self, leaving: &Leaving, address: u64) -> bool {
        self.offset(address).is_some_and(|offset| leaving.has((offset / SPAN as u64) as u32))
    }

    /// Frees places that entries were moved out of. They pass by every cache, so that nobody
    /// allocates them again. No system call.
    pub fn free_left(&self, addresses: &mut Vec<u64>) {
        if addresses.is_empty() {
            return;
        }
        let mut spans = self.spans();
        for address in addresses.drain(..) {
            spans.free_place(address - self.base);
        }
    }

    fn discard_runs(&self, runs: &[Run]) {
        if runs.is_empty() {
            return;
        }
        for &(first, count) in runs {
            // SAFETY: all places of these spans are free, and none is allocated before
            // `mark_discarded`.
            unsafe { self.range.discard(first as usize * SPAN, count as usize * SPAN) };
        }
        self.spans().mark_discarded(runs);
    }

    /// The offset of an address in the range; `None` for memory of the process's allocator.
    #[inline(always)]
    fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.range.bytes() as u64).then_some(offset)
    }

    /// Frees places, by their addresses.
    #[cold]
    fn free_all(&self, addresses: impl Iterator<Item = u64>) {
        let mut spans = self.spans();
        for address in addresses {
            spans.free_place(address - self.base);
        }
        let surplus = spans.surplus_of(false, RETURNED_MAX);
        drop(spans);
        self.discard_runs(&surplus);
    }
}

/// One worker's free places of one class.
#[derive(Default)]
struct Bin {
    /// Addresses of freed places; the vector never grows beyond its capacity.
    free: Vec<u64>,
    /// From `next` to `end`: the unused part of a span that belongs to this worker alone.
    next: u64,
    end: u64,
}

/// One worker's free places.
pub(crate) struct EntryCache {
    bins: Box<[Bin]>,
    /// Bytes allocated minus bytes freed through this cache, without those of the process's
    /// allocator.
    pub bytes: i64,
}

impl EntryCache {
    /// An empty cache that continues the balance of the worker's previous one.
    pub fn continuing(bytes: i64) -> Self {
        Self { bins: (0..CLASSES).map(|_| Bin::default()).collect(), bytes }
    }

    /// Returns all free places to the shared spans.
    pub fn return_all(&mut self, mem: &EntryMem) {
        for (class, bin) in self.bins.iter_mut().enumerate() {
            if bin.free.is_empty() && bin.next == bin.end {
                continue;
            }
            let rest = (bin.next..bin.end).step_by(classes::bytes(class));
            mem.free_all(bin.free.drain(..).chain(rest));
            bin.next = bin.end;
        }
    }

    /// Returns the free places of spans that are being left. O(cached places): 8,000 at most.
    pub fn return_left(&mut self, mem: &EntryMem, leaving: &Leaving) {
        let mut left = Vec::new();
        for (class, bin) in self.bins.iter_mut().enumerate() {
            let is_left = |address: u64| mem.is_left(leaving, address);
            bin.free.retain(|&address| {
                let stays = !is_left(address);
                if !stays {
                    left.push(address);
                }
                stays
            });
            if bin.next < bin.end && is_left(bin.next) {
                left.extend((bin.next..bin.end).step_by(classes::bytes(class)));
                bin.next = bin.end;
            }
        }
        mem.free_left(&mut left);
    }
}

/// Allocates and frees places for one worker.
pub(crate) struct Source<'a> {
    pub mem: &'a EntryMem,
    pub cache: &'a mut EntryCache,
}

impl Source<'_> {
    /// Allocates a place for `size` bytes: [`class_bytes`] bytes, 8-byte aligned. O(1), except that
    /// one call in some hundred refills the cache.
    #[inline(always)]
    pub fn alloc(&mut self, size: usize) -> NonNull<u64> {
        let bytes = class_bytes(size);
        if bytes > CLASS_MAX {
            return from_heap(bytes);
        }
        match self.alloc_place(bytes) {
            Some(place) => place,
            None => from_heap(bytes),
        }
    }

    /// Allocates a place in the range, for the bytes of a class that has spans; `None` if the range
    /// is full.
    #[inline(always)]
    pub fn alloc_place(&mut self, bytes: usize) -> Option<NonNull<u64>> {
        let class = classes::index(bytes);
        let bin = &mut self.cache.bins[class];
        let address = if let Some(address) = bin.free.pop() {
            address
        } else if bin.next < bin.end {
            let address = bin.next;
            bin.next += bytes as u64;
            address
        } else {
            self.refill(class)?
        };
        self.cache.bytes += bytes as i64;
        let place = NonNull::new(ptr::with_exposed_provenance_mut(address as usize));
        Some(place.expect("inside the range"))
    }

    /// Notes that a place of so many bytes was vacated, which [`EntryMem::free_left`] will free.
    pub fn vacate(&mut self, bytes: usize) {
        self.cache.bytes -= bytes as i64;
    }

    /// Refills the cache of a class with a few places or a whole span; returns one place.
    #[cold]
    fn refill(&mut self, class: usize) -> Option<u64> {
        let bin = &mut self.cache.bins[class];
        if bin.free.capacity() == 0 {
            bin.free.reserve_exact(cached_max(class));
        }
        let (bytes, many) = (classes::bytes(class) as u64, bin.free.capacity() / 2);
        match self.mem.spans().allocate(class, many, self.mem.base, &mut bin.free) {
            Allocated::Places => bin.free.pop(),
            Allocated::Span(number) => {
                let start = self.mem.base + u64::from(number) * SPAN as u64;
                (bin.next, bin.end) =
                    (start + bytes, start + classes::places(class) as u64 * bytes);
                Some(start)
            }
            Allocated::Nothing => None,
        }
    }

    /// Frees a place. O(1), except that one call in some hundred returns places to the shared
    /// spans, with a system call if enough spans become free.
    ///
    /// # Safety
    /// `place` came from [`Source::alloc`] of the same memory for a size of the same class, and
    /// nobody uses it afterwards.
    #[inline(always)]
    pub unsafe fn free(&mut self, place: NonNull<u64>, size: usize) {
        let bytes = class_bytes(size);
        let address = place.as_ptr().expose_provenance() as u64;
        if self.mem.offset(address).is_none() {
            // SAFETY: outside the range, so it came from the heap, with the same class.
            unsafe { to_heap(place, bytes) };
            return;
        }
        let class = classes::index(bytes);
        let bin = &mut self.cache.bins[class];
        if bin.free.len() == bin.free.capacity() {
            flush_half(self.mem, class, &mut bin.free);
        }
        bin.free.push(address);
        self.cache.bytes -= bytes as i64;
    }
}

/// Maximum number of free places of a class in a worker's cache.
fn cached_max(class: usize) -> usize {
    (CACHED_BYTES / classes::bytes(class)).clamp(CACHED_MIN, CACHED_MAX)
}

/// Returns the half of the cached places that was freed first.
#[cold]
fn flush_half(mem: &EntryMem, class: usize, free: &mut Vec<u64>) {
    if free.capacity() == 0 {
        free.reserve_exact(cached_max(class));
        return;
    }
    let half = free.len() / 2;
    mem.free_all(free.drain(..half));
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("a class is far below isize::MAX")
}

#[cold]
fn from_heap(bytes: usize) -> NonNull<u64> {
    let layout = layout(bytes);
    // SAFETY: the layout's size is not zero: an entry has a header.
    let place = unsafe { alloc(layout) };
    match NonNull::new(place.cast()) {
        Some(place) => place,
        None => handle_alloc_error(layout),
    }
}

/// # Safety
/// `place` came from [`from_heap`] with the same number of bytes, and nobody uses it afterwards.
#[cold]
unsafe fn to_heap(place: NonNull<u64>, bytes: usize) {
    // SAFETY: allocated with the same layout, as the caller says.
    unsafe { dealloc(place.as_ptr().cast(), layout(bytes)) };
}

#[cfg(test)]
mod tests;
