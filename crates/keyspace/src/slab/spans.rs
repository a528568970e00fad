//! Which places of which spans are free. This is bookkeeping only: it never touches the memory.
//!
//! A span is free, or belongs to a class and has a bit for each of its places: 1 = free. Lists link
//! the spans of a class that have free places, by how empty they are. Places are allocated from the
//! fullest spans first, so that the emptiest can become free. Free spans are allocated by ascending
//! address, those that hold memory first. No place of a span that is being left is allocated
//! (`leaving.rs`).

use super::classes::{self, CLASSES};
use super::leaving::Leaving;
use base::sync::Arc;

/// Bytes of a span.
pub(crate) const SPAN: usize = 64 << 10;
/// Spans of a chunk, which is a huge page.
pub(crate) const CHUNK_SPANS: u32 = 32;
/// Number of lists per class.
pub(super) const LISTS: usize = 8;
/// In place of a list: the span is being left.
pub(super) const LEFT: u8 = LISTS as u8 + 1;
/// Free spans that always may keep their memory: 4 MiB.
const KEPT_MIN: u32 = 64;
/// One more free span may keep its memory for each of this many spans in use.
const KEPT_PART: u32 = 16;
const NONE: u32 = u32::MAX;

/// A span in use.
#[derive(Default)]
pub(super) struct Span {
    /// A bit per place: 1 = free.
    pub bits: Box<[u64]>,
    pub class: u16,
    /// The number of free places.
    pub free: u16,
    /// The list that contains it; [`LISTS`]: none; [`LEFT`]: none, because it is being left.
    pub list: u8,
    before: u32,
    after: u32,
}

/// The spans of a huge page, a bit for each: which of them are free.
#[derive(Clone, Copy, Default)]
struct Chunk {
    free: u32,
    /// The free spans that hold memory.
    dirty: u32,
}

/// The spans of a class that have free places.
#[derive(Clone, Copy)]
pub(super) struct Lists {
    first: [u32; LISTS],
    /// A bit for each list that is not empty.
    some: u8,
    /// Spans in each list.
    pub lengths: [u32; LISTS],
    /// Spans of the class, with and without free places.
    pub spans: u32,
    /// Their free places.
    pub free: u64,
}

/// The result of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocated {
    /// Places were added to the vector.
    Places,
    /// A whole span.
    Span(u32),
    /// There is no span left.
    Nothing,
}

/// Adjacent spans whose memory goes back to the system: the first, and their number.
pub(crate) type Run = (u32, u32);

/// All spans.
pub(crate) struct Spans {
    pub(super) all: Vec<Span>,
    chunks: Vec<Chunk>,
    chunks_max: usize,
    /// No chunk before this one has a free span.
    open_from: usize,
    /// No chunk before this one has a free span that holds memory.
    dirty_from: usize,
    pub(super) lists: Box<[Lists]>,
    used: u32,
    dirty: u32,
    /// The spans that are being left.
    pub(super) leaving: Option<Arc<Leaving>>,
}

impl Spans {
    /// No spans; at most `chunks_max` chunks of them.
    pub fn new(chunks_max: usize) -> Self {
        let (first, lengths) = ([NONE; LISTS], [0; LISTS]);
        let none = Lists { first, some: 0, lengths, spans: 0, free: 0 };
        Self {
            all: Vec::new(),
            chunks: Vec::new(),
            chunks_max,
            open_from: 0,
            dirty_from: 0,
            lists: vec![none; CLASSES].into_boxed_slice(),
            used: 0,
            dirty: 0,
            leaving: None,
        }
    }

    /// Spans in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Free spans that hold memory.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Allocates up to `max` places of a span that is in use, else a whole span. Addresses of
    /// places are pushed to `into`, the lowest last; the range begins at `base`.
    pub fn allocate(
        &mut self,
        class: usize,
        max: usize,
        base: u64,
        into: &mut Vec<u64>,
    ) -> Allocated {
        let some = self.lists[class].some;
        if some == 0 {
            return self.allocate_span(class).map_or(Allocated::Nothing, Allocated::Span);
        }
        let number = self.lists[class].first[some.trailing_zeros() as usize];
        let span = &mut self.all[number as usize];
        let start = base + u64::from(number) * SPAN as u64;
        let (size, from) = (classes::bytes(class) as u64, into.len());
        'all: for (at, bits) in span.bits.iter_mut().enumerate() {
            while *bits != 0 {
                if into.len() - from == max {
                    break 'all;
                }
                let place = at as u64 * 64 + u64::from(bits.trailing_zeros());
                *bits &= *bits - 1;
                into.push(start + place * size);
            }
        }
        span.free -= (into.len() - from) as u16;
        self.lists[class].free -= (into.len() - from) as u64;
        into[from..].reverse();
        self.relist(number);
        Allocated::Places
    }

    fn allocate_span(&mut self, class: usize) -> Option<u32> {
        let at = self.next_chunk()?;
        let chunk = &mut self.chunks[at];
        let choice = if chunk.dirty != 0 { chunk.dirty } else { chunk.free };
        let bit = choice.trailing_zeros();
        chunk.free &= !(1 << bit);
        self.dirty -= chunk.dirty >> bit & 1;
        chunk.dirty &= !(1 << bit);
        self.used += 1;
        self.lists[class].spans += 1;
        let number = at as u32 * CHUNK_SPANS + bit;
        let span = &mut self.all[number as usize];
        debug_assert!(span.bits.is_empty(), "a free span has no places");
        *span = Span {
            bits: vec![0; classes::places(class).div_ceil(64)].into_boxed_slice(),
            class: class as u16,
            free: 0,
            list: LISTS as u8,
            before: NONE,
            after: NONE,
        };
        Some(number)
    }

    /// The chunk from which to allocate a span: the first with a free span that holds memory, else
    /// the first with any free span.
    fn next_chunk(&mut self) -> Option<usize> {
        if self.dirty > 0 {
            while self.chunks[self.dirty_from].dirty == 0 {
                self.dirty_from += 1;
            }
            return Some(self.dirty_from);
        }
        while self.chunks.get(self.open_from).is_some_and(|chunk| chunk.free == 0) {
            self.open_from += 1;
        }
        if self.open_from == self.chunks.len() {
            if self.chunks.len() == self.chunks_max {
                return None;
            }
            self.chunks.push(Chunk { free: u32::MAX, dirty: 0 });
            self.all.resize_with(self.chunks.len() * CHUNK_SPANS as usize, Span::default);
        }
        Some(self.open_from)
    }

    /// Frees a place, by its offset in the range.
    pub fn free_place(&mut self, offset: u64) {
        let number = (offset / SPAN as u64) as u32;
        let span = &mut self.all[number as usize];
        let place = classes::place(span.class.into(), offset as usize % SPAN);
        let (word, bit) = (&mut span.bits[place / 64], 1 << (place % 64));
        assert!(*word & bit == 0, "a place is given back once");
        *word |= bit;
        span.free += 1;
        self.lists[usize::from(span.class)].free += 1;
        if usize::from(span.free) == classes::places(span.class.into()) {
            self.release(number);
        } else {
            self.relist(number);
        }
    }

    /// Moves a span to the list for its number of free places, unless it is being left.
    pub(super) fn relist(&mut self, number: u32) {
        let span = &self.all[number as usize];
        if span.list == LEFT {
            return;
        }
        let places = classes::places(span.class.into());
        let list = match usize::from(span.free) {
            0 => LISTS,
            free => (free * LISTS - 1) / places,
        };
        if list != usize::from(span.list) {
            self.unlist(number);
            self.enlist(number, list);
        }
    }

    fn enlist(&mut self, number: u32, list: usize) {
        self.all[number as usize].list = list as u8;
        if list == LISTS {
            return;
        }
        let lists = &mut self.lists[usize::from(self.all[number as usize].class)];
        let after = std::mem::replace(&mut lists.first[list], number);
        lists.some |= 1 << list;
        lists.lengths[list] += 1;
        if after != NONE {
            self.all[after as usize].before = number;
        }
        let span = &mut self.all[number as usize];
        (span.before, span.after) = (NONE, after);
    }

    pub(super) fn unlist(&mut self, number: u32) {
        let Span { class, list, before, after, .. } = self.all[number as usize];
        if usize::from(list) >= LISTS {
            return;
        }
        self.lists[usize::from(class)].lengths[usize::from(list)] -= 1;
        if after != NONE {
            self.all[after as usize].before = before;
        }
        if before != NONE {
            self.all[before as usize].after = after;
            return;
        }
        let lists = &mut self.lists[usize::from(class)];
        lists.first[usize::from(list)] = after;
        if after == NONE {
            lists.some &= !(1 << list);
        }
    }

    /// Frees a span whose places are all free.
    fn release(&mut self, number: u32) {
        self.unlist(number);
        let Span { class, free, list, .. } = std::mem::take(&mut self.all[number as usize]);
        let lists = &mut self.lists[usize::from(class)];
        lists.spans -= 1;
        lists.free -= u64::from(free);
        if list == LEFT
            && let Some(leaving) = &self.leaving
        {
            leaving.clear(number); // it may be allocated again
        }
        self.used -= 1;
        self.dirty += 1;
        let (chunk, bit) = self.chunk_of(number);
        chunk.free |= bit;
        chunk.dirty |= bit;
    }

    fn chunk_of(&mut self, number: u32) -> (&mut Chunk, u32) {
        let chunk = (number / CHUNK_SPANS) as usize;
        self.open_from = self.open_from.min(chunk);
        self.dirty_from = self.dirty_from.min(chunk);
        (&mut self.chunks[chunk], 1 << (number % CHUNK_SPANS))
    }

    /// Free spans that may keep their memory for coming allocations.
    fn reserve(&self) -> u32 {
        KEPT_MIN.max(self.used / KEPT_PART)
    }

    /// True if free spans hold more memory than the reserve.
    pub fn has_surplus(&self) -> bool {
        self.dirty > self.reserve()
    }

    /// Takes free spans whose memory exceeds the reserve, or all free spans: whole huge pages
    /// first, then the highest addresses. They are not allocated before [`Spans::mark_discarded`].
    pub fn surplus(&mut self, all: bool) -> Vec<Run> {
        self.surplus_of(all, usize::MAX)
    }

    /// As [`Spans::surplus`], of at most so many huge pages.
    pub fn surplus_of(&mut self, all: bool, chunks_max: usize) -> Vec<Run> {
        let kept = if all { 0 } else { self.reserve() };
        let (mut runs, mut chunks) = (Vec::new(), 0);
        if self.dirty <= kept {
            return runs;
        }
        for whole in [true, false] {
            for at in (0..self.chunks.len()).rev() {
                // Half of the reserve stays, so that the next freed span does not exceed it again.
                if self.dirty <= kept / 2 || chunks == chunks_max {
                    return runs;
                }
                let chunk = &mut self.chunks[at];
                if chunk.dirty == 0 || whole && chunk.free != u32::MAX {
                    continue;
                }
                chunks += 1;
                let mut bits = if whole { u32::MAX } else { chunk.dirty };
                self.dirty -= chunk.dirty.count_ones();
                chunk.dirty = 0;
                chunk.free &= !bits;
                while bits != 0 {
                    let first = bits.trailing_zeros();
                    let count = (!(bits >> first)).trailing_zeros();
                    runs.push((at as u32 * CHUNK_SPANS + first, count));
                    bits &= !((((1_u64 << count) - 1) << first) as u32);
                }
            }
        }
        runs
    }

    /// Makes spans free again whose memory the caller has returned to the system.
    pub fn mark_discarded(&mut self, runs: &[Run]) {
        for number in runs.iter().flat_map(|&(first, count)| first..first + count) {
            let (chunk, bit) = self.chunk_of(number);
            chunk.free |= bit;
        }
    }
}
