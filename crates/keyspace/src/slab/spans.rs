//! Who has which place of which span: plain books, no memory.
//!
//! A span is free, or belongs to a class and then has a bit for each of its places: 1 = not handed
//! out. Spans of a class that have places to give hang in lists by how empty they are; places come
//! from the fullest first, so that the emptiest get a chance to become free. Free spans are taken
//! by address, those that hold memory first.

use super::classes::{self, CLASSES};

/// Bytes of a span.
pub(crate) const SPAN: usize = 64 << 10;
/// Spans of a chunk, which is a huge page.
pub(crate) const CHUNK_SPANS: u32 = 32;
/// Lists of a class.
const LISTS: usize = 8;
/// Free spans that keep their memory, at least: 4 MiB.
const KEPT_MIN: u32 = 64;
/// More of them stay, one for so many in use.
const KEPT_PART: u32 = 16;
const NONE: u32 = u32::MAX;

/// A span in use.
#[derive(Default)]
struct Span {
    /// Places that are not handed out.
    bits: Box<[u64]>,
    class: u16,
    /// How many those are.
    free: u16,
    /// The list it is in, if it has any.
    list: u8,
    before: u32,
    after: u32,
}

/// Which spans of a huge page are free; bits.
#[derive(Clone, Copy, Default)]
struct Chunk {
    free: u32,
    /// Those of them that hold memory.
    dirty: u32,
}

/// The spans of a class that have places to give.
#[derive(Clone, Copy)]
struct Lists {
    first: [u32; LISTS],
    /// A bit for each that is not empty.
    some: u8,
}

/// Where places come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// They were added to the vector.
    Places,
    /// A whole span.
    Span(u32),
    /// There is no span left.
    Nothing,
}

/// Spans to be given back to the system: the first, and how many.
pub(crate) type Run = (u32, u32);

/// All spans.
pub(crate) struct Spans {
    all: Vec<Span>,
    chunks: Vec<Chunk>,
    chunks_max: usize,
    /// No chunk before this one has a free span.
    open_from: usize,
    /// No chunk before this one has a free span that holds memory.
    dirty_from: usize,
    lists: Box<[Lists]>,
    used: u32,
    dirty: u32,
}

impl Spans {
    /// No spans; at most `chunks_max` chunks of them.
    pub fn new(chunks_max: usize) -> Self {
        let none = Lists { first: [NONE; LISTS], some: 0 };
        Self {
            all: Vec::new(),
            chunks: Vec::new(),
            chunks_max,
            open_from: 0,
            dirty_from: 0,
            lists: vec![none; CLASSES].into_boxed_slice(),
            used: 0,
            dirty: 0,
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

    /// Hands out up to `max` places of a span that is in use already, by their addresses in a range
    /// that begins at `base`, the lowest last; else a whole span.
    pub fn take(&mut self, class: usize, max: usize, base: u64, into: &mut Vec<u64>) -> Taken {
        let some = self.lists[class].some;
        if some == 0 {
            return self.take_span(class).map_or(Taken::Nothing, Taken::Span);
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
        into[from..].reverse();
        self.relist(number);
        Taken::Places
    }

    fn take_span(&mut self, class: usize) -> Option<u32> {
        let at = self.next_chunk()?;
        let chunk = &mut self.chunks[at];
        let choice = if chunk.dirty != 0 { chunk.dirty } else { chunk.free };
        let bit = choice.trailing_zeros();
        chunk.free &= !(1 << bit);
        self.dirty -= chunk.dirty >> bit & 1;
        chunk.dirty &= !(1 << bit);
        self.used += 1;
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

    /// The chunk that the next span comes from: the first that has one which holds memory; else the
    /// first that has any.
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

    /// Takes a place back, by its offset.
    pub fn give(&mut self, offset: u64) {
        let number = (offset / SPAN as u64) as u32;
        let span = &mut self.all[number as usize];
        let place = classes::place(span.class.into(), offset as usize % SPAN);
        let (word, bit) = (&mut span.bits[place / 64], 1 << (place % 64));
        assert!(*word & bit == 0, "a place is given back once");
        *word |= bit;
        span.free += 1;
        if usize::from(span.free) == classes::places(span.class.into()) {
            self.release(number);
        } else {
            self.relist(number);
        }
    }

    /// Puts a span in the list where it belongs now.
    fn relist(&mut self, number: u32) {
        let span = &self.all[number as usize];
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
        if after != NONE {
            self.all[after as usize].before = number;
        }
        let span = &mut self.all[number as usize];
        (span.before, span.after) = (NONE, after);
    }

    fn unlist(&mut self, number: u32) {
        let Span { class, list, before, after, .. } = self.all[number as usize];
        if usize::from(list) == LISTS {
            return;
        }
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

    /// Makes a span free whose places have all come back.
    fn release(&mut self, number: u32) {
        self.unlist(number);
        self.all[number as usize] = Span::default();
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

    /// Free spans whose memory is more than what is kept for the next ones, or all; whole huge
    /// pages first, then those of the highest addresses. Nobody gets them until
    /// [`Spans::given_back`].
    pub fn surplus(&mut self, all: bool) -> Vec<Run> {
        let kept = if all { 0 } else { KEPT_MIN.max(self.used / KEPT_PART) };
        let mut runs = Vec::new();
        if self.dirty <= kept {
            return runs;
        }
        for whole in [true, false] {
            for at in (0..self.chunks.len()).rev() {
                // Half of it stays, so that the next one free is not a reason to come again.
                if self.dirty <= kept / 2 {
                    return runs;
                }
                let chunk = &mut self.chunks[at];
                if chunk.dirty == 0 || whole && chunk.free != u32::MAX {
                    continue;
                }
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

    /// The memory of these spans is the system's; they are free.
    pub fn given_back(&mut self, runs: &[Run]) {
        for number in runs.iter().flat_map(|&(first, count)| first..first + count) {
            let (chunk, bit) = self.chunk_of(number);
            chunk.free |= bit;
        }
    }
}
