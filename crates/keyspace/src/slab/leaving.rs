//! Spans that are being left: their entries are moved to other spans of the class
//! (`crate::defrag`), so that they become free.
//!
//! ```text
//! a class   [####......] [###.......] [##........] [####......] [##........]    5 spans, 30 % used
//!            stays        stays        left         left         left
//! ```
//!
//! A class keeps the spans that its entries fill, and some in reserve. The others are left: the
//! emptiest first, and of equally empty ones those with the highest addresses, so that whole huge
//! pages become free. While a span is being left, none of its places is allocated from the shared
//! spans. A worker may still allocate the places that it has cached; it returns them when it learns
//! of the round ([`super::EntryCache::return_left`]).

use super::classes::{self, CLASSES};
use super::spans::{LEFT, LISTS, Spans};
use base::sync::Arc;
use base::sync::hint::{AtomicU64, Ordering};

/// Spans that are examined under the mutex at a time.
pub(crate) const EXAMINED_MAX: usize = 512;
/// A round is worth its walk if at least one of so many spans can be left.
const CHOSEN_PART: u32 = 64;
/// A class keeps one span more for each of this many that its entries fill, and at least one.
const RESERVE_PART: u64 = 32;

/// A bit for each span: 1 = it is being left. Bits are changed under the mutex of the spans.
///
/// A reader that holds the slot of an entry reads the right bit of the entry's span: the span
/// cannot become free before the entry is moved, and whoever allocated the place did so behind the
/// mutex.
#[derive(Debug)]
pub(crate) struct Leaving {
    bits: Box<[AtomicU64]>,
}

impl Leaving {
    fn new(spans: usize) -> Self {
        Self { bits: (0..spans.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether a span is being left.
    #[inline]
    pub fn has(&self, number: u32) -> bool {
        let word = self.bits.get(number as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (number % 64) & 1 != 0)
    }

    fn set(&self, number: u32) {
        let word = &self.bits[number as usize / 64];
        word.store(word.load(Ordering::Relaxed) | 1 << (number % 64), Ordering::Relaxed);
    }

    /// The span is free, or it is not left any longer.
    pub fn clear(&self, number: u32) {
        let word = &self.bits[number as usize / 64];
        word.store(word.load(Ordering::Relaxed) & !(1 << (number % 64)), Ordering::Relaxed);
    }
}

/// Which spans of a class are left.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Spans of emptier lists than `list` that are still to be chosen.
    emptier: u32,
    /// Spans of this list that are still to be chosen.
    equal: u32,
    list: u8,
}

/// A choice of spans that is being made.
pub(crate) struct Choice {
    shares: Box<[Share]>,
    /// Spans below this one were not examined yet.
    below: usize,
    /// The spans chosen so far.
    pub chosen: u32,
    pub leaving: Arc<Leaving>,
}

/// How many spans of a class, of which `free` places are free, its entries do not need.
fn superfluous(class: usize, spans: u32, free: u64) -> u32 {
    let places = classes::places(class) as u64;
    let taken = u64::from(spans) * places - free;
    let filled = taken.div_ceil(places);
    let kept = filled + (filled / RESERVE_PART).max(1);
    u64::from(spans).saturating_sub(kept) as u32
}

impl Spans {
    /// Begins to choose spans to leave; `None` if the classes have too few to spare. The ones that
    /// were left before must be none. O(classes), and a bit for each span.
    pub fn begin_choice(&mut self) -> Option<Choice> {
        assert!(self.leaving.is_none(), "one choice at a time");
        let mut shares = vec![Share::default(); CLASSES].into_boxed_slice();
        let mut all = 0;
        for (class, share) in shares.iter_mut().enumerate().skip(1) {
            let lists = &self.lists[class];
            let mut count = superfluous(class, lists.spans, lists.free);
            all += count;
            for list in (0..LISTS).rev() {
                share.list = list as u8;
                if lists.lengths[list] >= count {
                    share.equal = count;
                    break;
                }
                share.emptier += lists.lengths[list];
                count -= lists.lengths[list];
            }
        }
        if all < (self.used() / CHOSEN_PART).max(1) {
            return None;
        }
        let leaving = Arc::new(Leaving::new(self.all.len()));
        self.leaving = Some(Arc::clone(&leaving));
        Some(Choice { shares, below: self.all.len(), chosen: 0, leaving })
    }

    /// Examines the next spans, at most [`EXAMINED_MAX`]. True if there are more.
    pub fn choose(&mut self, choice: &mut Choice) -> bool {
        let from = choice.below.saturating_sub(EXAMINED_MAX);
        for number in (from..choice.below).rev() {
            let span = &self.all[number];
            if usize::from(span.list) >= LISTS {
                continue;
            }
            let share = &mut choice.shares[usize::from(span.class)];
            let left = match span.list.cmp(&share.list) {
                std::cmp::Ordering::Greater => &mut share.emptier,
                std::cmp::Ordering::Equal => &mut share.equal,
                std::cmp::Ordering::Less => continue,
            };
            if span.bits.is_empty() || *left == 0 {
                continue;
            }
            *left -= 1;
            choice.chosen += 1;
            self.unlist(number as u32);
            self.all[number].list = LEFT;
            choice.leaving.set(number as u32);
        }
        choice.below = from;
        from > 0
    }

    /// Ends the leaving of the spans from `from` on, at most [`EXAMINED_MAX`] of them: their places
    /// are allocated again. Returns the first span of the next call, `None` at the end.
    pub fn end_leaving(&mut self, from: u32) -> Option<u32> {
        let leaving = self.leaving.clone()?;
        let to = from as usize + EXAMINED_MAX;
        for number in from..(to.min(self.all.len())) as u32 {
            if leaving.has(number) {
                leaving.clear(number);
                self.all[number as usize].list = LISTS as u8;
                self.relist(number);
            }
        }
        if to < self.all.len() {
            return Some(to as u32);
        }
        self.leaving = None;
        None
    }
}
