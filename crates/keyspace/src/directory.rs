//! The directory of a table: from the index of a bucket to the number of its memory
//! (`memory.rs`).
//!
//! Buckets are allocated in pages of up to 32. The directory has the number of the first bucket of
//! each page: nine 32-bit numbers in the slot's cache line. Up to 128 buckets (860 keys in one
//! slot) a lookup goes directly from that line to the bucket.
//!
//! ```text
//! the directory, 36 bytes
//!              0     1     2     3     4      5      6      7       8
//!           +-----+-----+-----+-----+------+------+------+-------+------+
//!           |     |     |     |     |      |      |      |       | root |
//!           +-----+-----+-----+-----+------+------+------+-------+------+
//! buckets     0-1   2-3   4-7  8-15  16-31  32-63  64-95  96-127   128 and up
//! page size    2     2     4     8    16     32     32     32
//!
//! below NEAR = 128
//!   index < 32    number = pages[log2(index)] + index without its top bit   (0 counts as 1, so
//!                 bucket 0 is the second of its page; without bucket 1 it has a page of one,
//!                 and pages[0] is one less than its number)
//!   index < 128   number = pages[4 + index / 32] + index % 32
//!
//! from 128 on: far page q = (index - 128) / 32, found through the root
//!
//!   the root: one bucket (64 bytes) as 16 numbers of 4 bytes
//!     0 .. 7     8 .. 13           14               15
//!   +---------+-----------------+----------------+---------------------+
//!   | DIRECT  | LEAVES          | two levels     | three levels        |
//!   +---------+-----------------+----------------+---------------------+
//!     8 pages   6 x 512 pages     512^2 pages      512^3 pages
//!      |          |                 |
//!      v          v                 v
//!    page of    directory page    directory page -> directory page -> page of 32 buckets
//!    32           |
//!    buckets      v
//!               page of 32 buckets
//!
//!   a directory page: 32 buckets (2 KiB) as 512 numbers (IDS); 0: no page
//! ```
//!
//! Pages are added and dropped at the end only, as the table grows and shrinks by one bucket.

use crate::bucket::{WORDS, Word};
use crate::memory::{BucketMem, PageCache};
use base::sync::hint::{AtomicU32, Ordering};

/// Numbers in the slot's line.
const PAGES: usize = 9;
/// Which of them is the root.
const ROOT: usize = PAGES - 1;
/// Buckets that are found without the root.
const NEAR: u32 = 128;
/// Buckets of the largest page.
const PAGE: u32 = 32;
/// The class of that page, and of directory pages (`memory.rs`).
const PAGE_CLASS: usize = 5;
/// Numbers in a directory page.
const IDS: u32 = 512;
/// The class of a page of one bucket.
const ONE_CLASS: usize = 0;
/// Far pages whose numbers the root has itself: its numbers 0..8.
const DIRECT: u32 = 8;
/// Directory pages with the numbers of pages: the root's numbers 8..14.
const LEAVES: u32 = 6;
/// The first far page that is reached through two levels of directory pages.
const TWO_LEVELS: u32 = DIRECT + LEAVES * IDS;
/// The first one that is reached through three.
const THREE_LEVELS: u32 = TWO_LEVELS + IDS * IDS;
/// Directory pages on the way to a page at most.
const FAR_STEPS_MAX: usize = 3;

/// The numbers in the slot's line. All zero: no bucket.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct Directory {
    pages: [AtomicU32; PAGES],
}

const _: () = assert!(cfg!(shuttle) || size_of::<Directory>() == 4 * PAGES);

impl Directory {
    #[inline(always)]
    fn page(&self, at: usize) -> u32 {
        self.pages[at].load(Ordering::Relaxed)
    }

    /// The number of bucket `index`. Without the slot's lock it may be that of any bucket.
    #[inline(always)]
    pub fn bucket_id(&self, mem: &BucketMem, index: u32) -> u32 {
        if index < PAGE {
            let top = (index | 1).ilog2();
            self.page(top as usize & 7).wrapping_add(index ^ (1 << top))
        } else if index < NEAR {
            self.page(4 + (index / PAGE) as usize).wrapping_add(index % PAGE)
        } else {
            self.far_bucket_id(mem, index)
        }
    }

    #[cold]
    fn far_bucket_id(&self, mem: &BucketMem, index: u32) -> u32 {
        let page = (index - NEAR) / PAGE;
        let root = mem.bucket(self.page(ROOT));
        let number = if page < DIRECT {
            root.half(page as usize)
        } else if page < TWO_LEVELS {
            let q = page - DIRECT;
            read_id(mem, root.half((DIRECT + q / IDS) as usize), q % IDS)
        } else if page < THREE_LEVELS {
            let q = page - TWO_LEVELS;
            read_id(mem, read_id(mem, root.half(14), q / IDS), q % IDS)
        } else {
            let q = page - THREE_LEVELS;
            let upper = read_id(mem, root.half(15), q / (IDS * IDS));
            read_id(mem, read_id(mem, upper, q / IDS % IDS), q % IDS)
        };
        number.wrapping_add(index % PAGE)
    }

    /// Allocates the page that begins with bucket `index`, if one does.
    pub fn add_page(&self, mem: &BucketMem, cache: &mut PageCache, index: u32) {
        let Some(class) = page_start(index) else { return };
        let page = cache.alloc(mem, class);
        if index < 2 {
            // Bucket 0 alone has a page of one; with bucket 1, it moves to their page of two.
            if index == 1 {
                self.move_first(mem, cache, ONE_CLASS, page + 1);
            }
            self.pages[0].store(page - (1 - index), Ordering::Relaxed);
            return;
        }
        if index < NEAR {
            let at = if index < PAGE { (index | 1).ilog2() } else { 4 + index / PAGE };
            self.pages[at as usize].store(page, Ordering::Relaxed);
            return;
        }
        let far = (index - NEAR) / PAGE;
        if far == 0 {
            let root = cache.alloc(mem, ONE_CLASS);
            self.pages[ROOT].store(root, Ordering::Relaxed);
        }
        let path = FarPath::of(far);
        let (mut holder, mut at) = (self.page(ROOT), path.root_word);
        for &next in path.steps() {
            let mut below = read_id(mem, holder, at);
            if below == 0 {
                below = cache.alloc(mem, PAGE_CLASS);
                write_id(mem, holder, at, below);
            }
            (holder, at) = (below, next);
        }
        write_id(mem, holder, at, page);
    }

    /// Frees the page that begins with bucket `index`, if one does, and the directory pages that
    /// had no other. `index` is the last bucket of the table.
    pub fn drop_page(&self, mem: &BucketMem, cache: &mut PageCache, index: u32) {
        let Some(class) = page_start(index) else { return };
        if index == 0 {
            let page = self.bucket_id(mem, 0);
            cache.free(mem, ONE_CLASS, page);
            self.pages[0].store(0, Ordering::Relaxed);
            return;
        }
        if index == 1 {
            let page = cache.alloc(mem, ONE_CLASS);
            self.move_first(mem, cache, class, page);
            self.pages[0].store(page - 1, Ordering::Relaxed);
            return;
        }
        let page = self.bucket_id(mem, index);
        cache.free(mem, class, page);
        if index < NEAR {
            let at = if index < PAGE { (index | 1).ilog2() } else { 4 + index / PAGE };
            self.pages[at as usize].store(0, Ordering::Relaxed);
            return;
        }
        let far = (index - NEAR) / PAGE;
        let root = self.page(ROOT);
        let path = FarPath::of(far);
        let mut holders = [(root, path.root_word); 1 + FAR_STEPS_MAX];
        for (depth, &step) in path.steps().iter().enumerate() {
            let (holder, at) = holders[depth];
            holders[depth + 1] = (read_id(mem, holder, at), step);
        }
        for depth in (0..=path.steps().len()).rev() {
            let (holder, at) = holders[depth];
            write_id(mem, holder, at, 0);
            if depth == 0 || at != 0 {
                break; // it still has the numbers of earlier pages
            }
            cache.free(mem, PAGE_CLASS, holder);
        }
        if far == 0 {
            cache.free(mem, ONE_CLASS, root);
            self.pages[ROOT].store(0, Ordering::Relaxed);
        }
    }

    /// Buckets that the pages of so many buckets take, with the pages of the directory. O(n).
    pub fn taken_by(buckets: u32) -> u64 {
        let pages = (0..buckets).filter_map(page_start).map(|class| 1u64 << class).sum::<u64>();
        // The page of the first bucket alone is replaced by that of the first two.
        let first = u64::from(buckets > 1);
        let far = (NEAR..buckets).step_by(PAGE as usize).map(|index| (index - NEAR) / PAGE);
        let begun = far.map(|far| {
            let path = FarPath::of(far);
            path.steps().iter().rev().take_while(|step| **step == 0).count() as u64
        });
        pages - first + u64::from(buckets > NEAR) + (begun.sum::<u64>() << PAGE_CLASS)
    }

    /// Moves all numbers to an empty directory.
    pub fn move_to(&self, other: &Self) {
        for (from, to) in self.pages.iter().zip(&other.pages) {
            to.store(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Moves bucket 0 to bucket number `to` and frees its page of this class.
    fn move_first(&self, mem: &BucketMem, cache: &mut PageCache, class: usize, to: u32) {
        let from = self.bucket_id(mem, 0);
        for at in 0..WORDS {
            mem.bucket(to).set(at, mem.bucket(from).word(at));
            mem.bucket(from).set(at, Word::EMPTY);
        }
        cache.free(mem, class, from - class as u32);
    }
}

/// The class of the page that begins with bucket `index`; none if the bucket is inside a page.
fn page_start(index: u32) -> Option<usize> {
    if index < 2 {
        Some(index as usize)
    } else if index < PAGE {
        (index.is_power_of_two() && index >= 2).then(|| index.ilog2() as usize)
    } else {
        index.is_multiple_of(PAGE).then_some(PAGE_CLASS)
    }
}

/// Where a far page's number stands: in the root, or behind steps through directory pages.
struct FarPath {
    root_word: u32,
    steps: [u32; FAR_STEPS_MAX],
    len: usize,
}

impl FarPath {
    fn of(far: u32) -> Self {
        if far < DIRECT {
            Self { root_word: far, steps: [0; 3], len: 0 }
        } else if far < TWO_LEVELS {
            let q = far - DIRECT;
            Self { root_word: DIRECT + q / IDS, steps: [q % IDS, 0, 0], len: 1 }
        } else if far < THREE_LEVELS {
            let q = far - TWO_LEVELS;
            Self { root_word: 14, steps: [q / IDS, q % IDS, 0], len: 2 }
        } else {
            let q = far - THREE_LEVELS;
            Self { root_word: 15, steps: [q / (IDS * IDS), q / IDS % IDS, q % IDS], len: 3 }
        }
    }

    fn steps(&self) -> &[u32] {
        &self.steps[..self.len]
    }
}

/// Number `at` of a directory page.
fn read_id(mem: &BucketMem, page: u32, at: u32) -> u32 {
    mem.bucket(page.wrapping_add(at / 16)).half((at % 16) as usize)
}

/// Writes number `at` of a directory page.
fn write_id(mem: &BucketMem, page: u32, at: u32, id: u32) {
    mem.bucket(page + at / 16).set_half((at % 16) as usize, id);
}
