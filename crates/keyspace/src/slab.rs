//! Memory of entries: spans of 64 KiB, each with places of one size class, in one reserved range
//! whose huge pages the workers share; `docs/design/0010-entry-slab.md` tells why.
//!
//! ```text
//! range   | 8 MiB of small pages | huge page = chunk of 32 spans | huge page | ...
//! span    | place | place | ... | less than a place
//! worker  per class: free places (taken back last, given out first), and a whole span's rest
//! ```
//! A worker gives out and takes back places of its own cache; only when that is empty or full it
//! comes to the books of the spans, under one mutex: for a whole span, which is then its own to
//! fill, for some places of a span that others use too, or to leave the places that were taken back
//! first. So it does not matter which worker frees what which one has allocated. Entries that are
//! larger than the largest class, and all where the range is full, come from the process's
//! allocator.
#![allow(unsafe_code)]

mod classes;
mod spans;

use crate::range::{HUGE_PAGE, Range, machine_bytes};
use base::sync::{CachePadded, Mutex, MutexGuard};
use classes::{CLASS_MAX, CLASSES};
use spans::{Run, SPAN, Spans, Taken};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

pub(crate) use classes::{class_bytes, heap_bytes};

/// What a small keyspace uses is left in small memory pages; behind it come huge ones.
const PLAIN_BYTES: usize = 8 << 20;
/// The largest range: more memory than any machine has today.
const RANGE_MAX: usize = 1 << 42;
/// Free places of one class that a worker keeps to itself: as many bytes, within these numbers.
const CACHED_BYTES: usize = 16 << 10;
const CACHED_MAX: usize = 256;
const CACHED_MIN: usize = 8;

/// The memory that all workers share.
pub(crate) struct EntryMem {
    range: Range,
    /// The address where it begins.
    base: u64,
    spans: CachePadded<Mutex<Spans>>,
}

/// The memory in which entries stand, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryPages {
    /// Spans of which a place is handed out.
    pub active: u64,
    /// Those, and free ones that were not given back to the system.
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

    /// What it takes; bytes that a worker keeps for itself are among the active ones.
    pub fn pages(&self) -> EntryPages {
        let spans = self.spans();
        let (used, dirty) = (u64::from(spans.used()), u64::from(spans.dirty()));
        EntryPages { active: used * SPAN as u64, resident: (used + dirty) * SPAN as u64 }
    }

    /// Gives the memory of free spans back to the system: all of it, or what is more than is kept
    /// for what comes next. A system call for each run of them.
    pub fn give_back(&self, all: bool) {
        let surplus = self.spans().surplus(all);
        self.return_runs(&surplus);
    }

    fn return_runs(&self, runs: &[Run]) {
        if runs.is_empty() {
            return;
        }
        for &(first, count) in runs {
            // SAFETY: all places of these spans are free, and nobody gets any until they are said
            // to be given back.
            unsafe { self.range.give_back(first as usize * SPAN, count as usize * SPAN) };
        }
        self.spans().given_back(runs);
    }

    /// The offset of an address in the range; none if it came from the process's allocator.
    #[inline(always)]
    fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.range.bytes() as u64).then_some(offset)
    }

    /// Takes places back, by their addresses.
    #[cold]
    fn accept(&self, addresses: impl Iterator<Item = u64>) {
        let mut spans = self.spans();
        for address in addresses {
            spans.give(address - self.base);
        }
        let surplus = spans.surplus(false);
        drop(spans);
        self.return_runs(&surplus);
    }
}

/// One worker's free places of one class.
#[derive(Default)]
struct Bin {
    /// Addresses; its capacity is the bound.
    free: Vec<u64>,
    /// The rest of a span that is this worker's alone.
    next: u64,
    end: u64,
}

/// One worker's free places.
pub(crate) struct EntryCache {
    bins: Box<[Bin]>,
    /// Bytes given out minus bytes taken back through this cache, those from the heap aside.
    pub bytes: i64,
}

impl EntryCache {
    /// An empty cache that counts on from the balance of the worker's last one.
    pub fn continuing(bytes: i64) -> Self {
        Self { bins: (0..CLASSES).map(|_| Bin::default()).collect(), bytes }
    }

    /// Gives every free place to the other workers.
    pub fn return_all(&mut self, mem: &EntryMem) {
        for (class, bin) in self.bins.iter_mut().enumerate() {
            if bin.free.is_empty() && bin.next == bin.end {
                continue;
            }
            let rest = (bin.next..bin.end).step_by(classes::bytes(class));
            mem.accept(bin.free.drain(..).chain(rest));
            bin.next = bin.end;
        }
    }
}

/// Where a worker's entries come from and go to.
pub(crate) struct Source<'a> {
    pub mem: &'a EntryMem,
    pub cache: &'a mut EntryCache,
}

impl Source<'_> {
    /// A place for `size` bytes, 8-byte aligned, as large as [`class_bytes`] says. O(1) but for
    /// each few hundredth time.
    #[inline(always)]
    pub fn alloc(&mut self, size: usize) -> NonNull<u64> {
        let bytes = class_bytes(size);
        if bytes > CLASS_MAX {
            return from_heap(bytes);
        }
        let class = classes::index(bytes);
        let bin = &mut self.cache.bins[class];
        let address = if let Some(address) = bin.free.pop() {
            address
        } else if bin.next < bin.end {
            let address = bin.next;
            bin.next += bytes as u64;
            address
        } else {
            match self.refill(class) {
                Some(address) => address,
                None => return from_heap(bytes),
            }
        };
        self.cache.bytes += bytes as i64;
        NonNull::new(ptr::with_exposed_provenance_mut(address as usize)).expect("inside the range")
    }

    /// Gets a few places or a whole span of a class of which the worker has nothing left.
    #[cold]
    fn refill(&mut self, class: usize) -> Option<u64> {
        let bin = &mut self.cache.bins[class];
        if bin.free.capacity() == 0 {
            bin.free.reserve_exact(cached_max(class));
        }
        let (bytes, many) = (classes::bytes(class) as u64, bin.free.capacity() / 2);
        match self.mem.spans().take(class, many, self.mem.base, &mut bin.free) {
            Taken::Places => bin.free.pop(),
            Taken::Span(number) => {
                let start = self.mem.base + u64::from(number) * SPAN as u64;
                (bin.next, bin.end) =
                    (start + bytes, start + classes::places(class) as u64 * bytes);
                Some(start)
            }
            Taken::Nothing => None,
        }
    }

    /// Takes a place back. O(1) but for each few hundredth time; a span that becomes free then may
    /// cost a system call.
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
            make_room(self.mem, class, &mut bin.free);
        }
        bin.free.push(address);
        self.cache.bytes -= bytes as i64;
    }
}

/// How many free places of a class a worker keeps.
fn cached_max(class: usize) -> usize {
    (CACHED_BYTES / classes::bytes(class)).clamp(CACHED_MIN, CACHED_MAX)
}

/// Leaves the half that was taken back first.
#[cold]
fn make_room(mem: &EntryMem, class: usize, free: &mut Vec<u64>) {
    if free.capacity() == 0 {
        free.reserve_exact(cached_max(class));
        return;
    }
    let half = free.len() / 2;
    mem.accept(free.drain(..half));
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
