//! The hash table of one slot and database: linear hashing over pages of buckets.
//!
//! A table of `n` buckets, `2^k <= n < 2^(k+1)`, uses the low `k+1` bits of the hash as the
//! bucket's index, or the low `k` if that index does not exist yet. So a bucket at *level* `l`
//! holds the hashes that share `l` low bits: an interval of the space of bit-reversed hashes. One
//! more entry than the load allows splits one bucket into two of the next level; too few merge the
//! last bucket into its buddy. No array is ever reallocated. See `docs/design/0001-table.md`.
//!
//! [`Table`] has what may be read without the slot; everything that touches entries is of
//! [`HeldTable`].
#![allow(unsafe_code)]

use crate::bucket::{Bucket, WORDS, Word};
use crate::entry::{EntryPtr, Gone};
use crate::memory::{BucketMem, PageCache};
use base::hash::KeyHasher;
use base::sync::hint::{AtomicU32, Ordering};

/// Words of the inline directory.
pub(crate) const PAGES: usize = 9;
/// Where in the inline directory the root of the far directory stands.
const ROOT: usize = PAGES - 1;
/// Buckets reached without the root.
const NEAR: u32 = 128;
/// Buckets of the biggest page.
const PAGE: u32 = 32;
const PAGE_CLASS: usize = 5;
/// Numbers in a directory page of 32 buckets.
const IDS: u32 = 512;
const ONE_CLASS: usize = 0;
/// Pages named by the root itself: its words 0..8.
const DIRECT: u32 = 8;
/// Directory pages named by the root: its words 8..14.
const LEAVES: u32 = 6;
const TWO_LEVELS: u32 = DIRECT + LEAVES * IDS;
const THREE_LEVELS: u32 = TWO_LEVELS + IDS * IDS;
/// Up to this level a tag is the hash's low 16 bits, which also decide splits; above, those bits
/// say little that the index does not, and the tag is bits 32..48.
const NARROW_LEVEL_MAX: u32 = 9;
const NARROW_BUCKETS_MAX: u32 = 1 << NARROW_LEVEL_MAX;
/// A bucket is split when entries exceed `buckets * LOAD_NUM / LOAD_DEN`.
const LOAD_NUM: u64 = 27;
const LOAD_DEN: u64 = 4;

/// What a table needs from around it to change.
pub(crate) struct Space<'a> {
    pub mem: &'a BucketMem,
    pub pages: &'a mut PageCache,
    pub hasher: &'a KeyHasher,
    pub scratch: &'a mut Vec<Word>,
}

/// The head of a table; all zero is an empty one. Written under the slot's lock.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Table {
    buckets: AtomicU32,
    count: AtomicU32,
    pages: [AtomicU32; PAGES],
}

/// Where an entry was found.
#[derive(Clone, Copy)]
pub(crate) struct Found<'m> {
    pub bucket: &'m Bucket,
    pub at: usize,
    pub entry: EntryPtr,
}

impl Found<'_> {
    /// Puts another entry with the same key in its place.
    #[inline]
    pub fn replace(&self, entry: EntryPtr) {
        self.bucket.set(self.at, Word::entry(entry, self.bucket.word(self.at).tag()));
    }
}

/// The bucket of a hash and the tag of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    index: u32,
    level: u32,
}

#[inline(always)]
fn narrow_tag(hash: u64) -> u16 {
    hash as u16
}

#[inline(always)]
fn wide_tag(hash: u64) -> u16 {
    (hash >> 32) as u16
}

#[inline(always)]
fn tag_at(level: u32, hash: u64) -> u16 {
    if level <= NARROW_LEVEL_MAX { narrow_tag(hash) } else { wide_tag(hash) }
}

/// The index of the bucket of `hash` among `n >= 1` buckets.
#[inline(always)]
fn index_of(n: u32, hash: u64) -> u32 {
    let mask = u32::MAX >> n.leading_zeros();
    let index = hash as u32 & mask;
    if index < n { index } else { index & (mask >> 1) }
}

fn home_of(n: u32, hash: u64) -> Home {
    let k = n.ilog2();
    let index = index_of(n, hash);
    let split = u64::from(index) >= 1 << k || index < n - (1 << k);
    Home { index, level: k + u32::from(split) }
}

#[inline(always)]
fn tag_of(n: u32, hash: u64) -> u16 {
    if n <= NARROW_BUCKETS_MAX { narrow_tag(hash) } else { tag_of_many(n, hash) }
}

#[cold]
fn tag_of_many(n: u32, hash: u64) -> u16 {
    tag_at(home_of(n, hash).level, hash)
}

/// The class of the page that begins with bucket `index`, if one does.
fn page_start(index: u32) -> Option<usize> {
    if index < 2 {
        Some(index as usize)
    } else if index < PAGE {
        (index.is_power_of_two() && index >= 2).then(|| index.ilog2() as usize)
    } else {
        index.is_multiple_of(PAGE).then_some(PAGE_CLASS)
    }
}

impl Table {
    /// Entries in it.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Buckets in it, overflow aside.
    #[inline(always)]
    pub fn buckets(&self) -> u32 {
        self.buckets.load(Ordering::Relaxed)
    }

    fn set_len(&self, n: u32) {
        self.count.store(n, Ordering::Relaxed);
    }

    #[inline(always)]
    fn page(&self, at: usize) -> u32 {
        self.pages[at].load(Ordering::Relaxed)
    }

    /// The number of bucket `index`; nonsense, but harmless, if read without the lock.
    #[inline(always)]
    fn bucket_id(&self, mem: &BucketMem, index: u32) -> u32 {
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

    #[inline(always)]
    fn bucket<'m>(&self, mem: &'m BucketMem, index: u32) -> &'m Bucket {
        mem.bucket(self.bucket_id(mem, index))
    }

    /// The number of the bucket where `hash` is at home, and the tag to look for, read without the
    /// lock, for a prefetch.
    #[inline(always)]
    pub fn guess(&self, mem: &BucketMem, hash: u64) -> Option<(u32, u16)> {
        let n = self.buckets();
        if n == 0 {
            return None;
        }
        // The table may have changed since: an index past the near pages of a table that has no
        // far ones leads through bucket 0, which is all zero.
        Some((self.bucket_id(mem, index_of(n, hash)), tag_of(n, hash)))
    }
}

/// A table whose slot is held, or that its holder owns: what touches entries is reached through it.
#[derive(Clone, Copy)]
pub(crate) struct HeldTable<'a>(&'a Table);

impl std::ops::Deref for HeldTable<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        self.0
    }
}

impl<'a> HeldTable<'a> {
    /// A table that nobody else reaches: one that was detached.
    pub fn of_mut(table: &'a mut Table) -> Self {
        Self(table)
    }

    /// # Safety
    /// 1. The caller holds the table's slot (is inside and has its lock, or holds World).
    /// 2. The proof, and every entry and place that is found by it, is used only while that is so;
    ///    an entry also once it is out of its table and the caller alone can reach it.
    #[inline(always)]
    pub unsafe fn new(table: &'a Table) -> Self {
        Self(table)
    }

    /// The entry with this key.
    #[inline(always)]
    pub fn find<'m>(self, mem: &'m BucketMem, hash: u64, key: &[u8]) -> Option<Found<'m>> {
        let n = self.buckets();
        if n == 0 {
            return None;
        }
        let tag = tag_of(n, hash);
        let mut bucket = self.bucket(mem, index_of(n, hash));
        loop {
            let mut mask = bucket.matches(tag);
            while mask != 0 {
                let at = mask.trailing_zeros() as usize;
                // SAFETY: 1. The bucket is this table's, which is held. 2. `HeldTable::new`'s point
                // 2.
                if let Some(entry) = unsafe { bucket.word(at).as_entry() }
                    && entry.has_key(key)
                {
                    return Some(Found { bucket, at, entry });
                }
                mask &= mask - 1;
            }
            let last = bucket.word(WORDS - 1);
            if !last.is_link() {
                return None;
            }
            bucket = mem.bucket(last.link_id());
        }
    }

    /// The place of an entry that is known to be in the table.
    pub fn find_entry(self, mem: &BucketMem, hash: u64, entry: EntryPtr) -> Found<'_> {
        let mut bucket = self.bucket(mem, index_of(self.buckets(), hash));
        loop {
            for at in 0..WORDS {
                if bucket.word(at).address() == Some(entry.address()) {
                    return Found { bucket, at, entry };
                }
            }
            let last = bucket.word(WORDS - 1);
            assert!(last.is_link(), "the entry is in its home bucket");
            bucket = mem.bucket(last.link_id());
        }
    }

    /// Adds an entry whose key is not in the table.
    #[inline]
    pub fn insert(self, space: &mut Space<'_>, hash: u64, entry: EntryPtr) {
        let count = self.len() + 1;
        if u64::from(count) * LOAD_DEN > u64::from(self.buckets()) * LOAD_NUM {
            self.grow(space);
        }
        self.set_len(count);
        let n = self.buckets();
        let bucket = self.bucket(space.mem, index_of(n, hash));
        push(space, bucket, Word::entry(entry, tag_of(n, hash)));
    }

    /// Removes the entry found at `found`.
    pub fn remove(self, space: &mut Space<'_>, hash: u64, found: &Found<'_>) {
        let n = self.buckets();
        let gone = found.bucket.word(found.at);
        let moved = pop(space, self.bucket(space.mem, index_of(n, hash)));
        if moved != gone {
            found.bucket.set(found.at, moved);
        }
        let count = self.len() - 1;
        self.set_len(count);
        // Merge at half the load that splits, so that no sequence of changes flutters.
        if u64::from(count) * LOAD_DEN * 2 < u64::from(n) * LOAD_NUM && n > 1 {
            self.shrink(space);
        }
    }

    /// Splits one bucket.
    fn grow(self, space: &mut Space<'_>) {
        let n = self.buckets();
        if n == u32::MAX {
            return; // chains grow instead
        }
        self.add_page(space, n);
        self.buckets.store(n + 1, Ordering::Relaxed);
        if n == 0 {
            return;
        }
        let k = n.ilog2();
        let (from, to) = (n - (1 << k), n);
        let (from, to) = (self.bucket(space.mem, from), self.bucket(space.mem, to));
        let mut words = drain(space, from);
        for &word in &words {
            let (high, word) = if k < NARROW_LEVEL_MAX {
                (word.tag() >> k & 1 != 0, word)
            } else {
                // SAFETY: 1. It was drained from this table, which is held.
                let hash = unsafe { rehash(space, word) };
                (hash >> k & 1 != 0, word.with_tag(wide_tag(hash)))
            };
            push(space, if high { to } else { from }, word);
        }
        words.clear();
        *space.scratch = words;
    }

    /// Merges the last bucket into its buddy, unless tables keep their buckets.
    fn shrink(self, space: &mut Space<'_>) {
        if space.mem.keeps_buckets() {
            return;
        }
        let last = self.buckets() - 1;
        let k = last.ilog2();
        let buddy = self.bucket(space.mem, last - (1 << k));
        let mut words = drain(space, self.bucket(space.mem, last));
        if k == NARROW_LEVEL_MAX {
            // The buddy goes back to narrow tags; first what came, then what was there.
            words.append(&mut drain(space, buddy));
        }
        for &word in &words {
            let word = if k == NARROW_LEVEL_MAX {
                // SAFETY: 1. It was drained from this table, which is held.
                word.with_tag(narrow_tag(unsafe { rehash(space, word) }))
            } else {
                word
            };
            push(space, buddy, word);
        }
        words.clear();
        *space.scratch = words;
        self.buckets.store(last, Ordering::Relaxed);
        self.drop_page(space, last);
    }

    /// Makes the page that begins with bucket `index`, if one does.
    fn add_page(self, space: &mut Space<'_>, index: u32) {
        let Some(class) = page_start(index) else { return };
        let page = space.pages.take(space.mem, class);
        if index < 2 {
            // Bucket 0 alone has a page of one; with bucket 1, it moves to their page of two.
            if index == 1 {
                self.move_first(space, ONE_CLASS, page + 1);
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
            let root = space.pages.take(space.mem, ONE_CLASS);
            self.pages[ROOT].store(root, Ordering::Relaxed);
        }
        let path = FarPath::of(far);
        let (mut holder, mut at) = (self.page(ROOT), path.root_word);
        for &next in path.steps() {
            let mut below = read_id(space.mem, holder, at);
            if below == 0 {
                below = space.pages.take(space.mem, PAGE_CLASS);
                write_id(space.mem, holder, at, below);
            }
            (holder, at) = (below, next);
        }
        write_id(space.mem, holder, at, page);
    }

    /// Gives back the page that began with bucket `index`, if one did, and the directory pages
    /// that named only it. Pages go in the reverse of the order in which they came.
    fn drop_page(self, space: &mut Space<'_>, index: u32) {
        let Some(class) = page_start(index) else { return };
        if index == 0 {
            let page = self.bucket_id(space.mem, 0);
            space.pages.give(space.mem, ONE_CLASS, page);
            self.pages[0].store(0, Ordering::Relaxed);
            return;
        }
        if index == 1 {
            let page = space.pages.take(space.mem, ONE_CLASS);
            self.move_first(space, class, page);
            self.pages[0].store(page - 1, Ordering::Relaxed);
            return;
        }
        let page = self.bucket_id(space.mem, index);
        space.pages.give(space.mem, class, page);
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
            holders[depth + 1] = (read_id(space.mem, holder, at), step);
        }
        for depth in (0..=path.steps().len()).rev() {
            let (holder, at) = holders[depth];
            write_id(space.mem, holder, at, 0);
            if depth == 0 || at != 0 {
                break; // earlier pages are still named here
            }
            space.pages.give(space.mem, PAGE_CLASS, holder);
        }
        if far == 0 {
            space.pages.give(space.mem, ONE_CLASS, root);
            self.pages[ROOT].store(0, Ordering::Relaxed);
        }
    }

    /// Moves bucket 0 to another place and gives its page of this class back. An index's top bit is
    /// flipped for its place in the page, 0 counting as 1: so bucket 0 is the second of its page.
    fn move_first(self, space: &mut Space<'_>, class: usize, to: u32) {
        let from = self.bucket_id(space.mem, 0);
        for at in 0..WORDS {
            space.mem.bucket(to).set(at, space.mem.bucket(from).word(at));
            space.mem.bucket(from).set(at, Word::EMPTY);
        }
        space.pages.give(space.mem, class, from - class as u32);
    }

    /// Takes the last bucket away with its entries; false if there is none left. Frees a table
    /// step by step.
    pub fn pop_bucket(self, space: &mut Space<'_>, mut entry: impl FnMut(Gone)) -> bool {
        let n = self.buckets();
        if n == 0 {
            return false;
        }
        let mut words = drain(space, self.bucket(space.mem, n - 1));
        self.set_len(self.len() - words.len() as u32);
        for word in words.drain(..) {
            // SAFETY: `as_entry`: 1. It was drained from this table, which is held. 2. It is out of
            // it. `into_gone`: 1. It was in one table, and is out of it. 2. A word is drained once.
            // 3. The holder has no reference into a table that it takes apart.
            entry(unsafe { word.as_entry().expect("a drained word is an entry").into_gone() });
        }
        *space.scratch = words;
        self.buckets.store(n - 1, Ordering::Relaxed);
        self.drop_page(space, n - 1);
        true
    }

    /// Moves everything to `other`, which must be empty.
    pub fn move_to(self, other: HeldTable<'_>) {
        assert!(other.buckets() == 0, "the target is empty");
        let move_word = |from: &AtomicU32, to: &AtomicU32| {
            to.store(from.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        };
        move_word(&self.buckets, &other.buckets);
        move_word(&self.count, &other.count);
        for (from, to) in self.pages.iter().zip(&other.pages) {
            move_word(from, to);
        }
    }

    /// The first point of the bucket that contains the point `reversed`. The table must have a
    /// bucket.
    pub fn bucket_start(self, reversed: u64) -> u64 {
        u64::from(home_of(self.buckets(), reversed.reverse_bits()).index).reverse_bits()
    }

    /// Calls `entry` for everything in the bucket that contains the point `reversed` (a
    /// bit-reversed hash) and returns the first point after that bucket's interval, `None` if it
    /// was the last. The table must have a bucket.
    pub fn visit(
        self,
        mem: &BucketMem,
        reversed: u64,
        mut entry: impl FnMut(EntryPtr),
    ) -> Option<u64> {
        let home = home_of(self.buckets(), reversed.reverse_bits());
        let mut bucket = self.bucket(mem, home.index);
        loop {
            // SAFETY: 1. The bucket is this table's, which is held. 2. `HeldTable::new`'s point 2.
            (0..WORDS).filter_map(|at| unsafe { bucket.word(at).as_entry() }).for_each(&mut entry);
            let last = bucket.word(WORDS - 1);
            if !last.is_link() {
                break;
            }
            bucket = mem.bucket(last.link_id());
        }
        if home.level == 0 {
            return None;
        }
        u64::from(home.index).reverse_bits().checked_add(1 << (64 - home.level))
    }

    /// Calls `entry` for every entry in the home bucket of `hash` whose tag fits.
    pub fn visit_tag(self, mem: &BucketMem, hash: u64, mut entry: impl FnMut(EntryPtr)) {
        let n = self.buckets();
        if n == 0 {
            return;
        }
        let tag = tag_of(n, hash);
        let mut bucket = self.bucket(mem, index_of(n, hash));
        loop {
            (0..WORDS)
                .map(|at| bucket.word(at))
                .filter(|word| word.tag() == tag)
                // SAFETY: 1. The bucket is this table's, which is held. 2. `HeldTable::new`'s point
                // 2.
                .filter_map(|word| unsafe { word.as_entry() })
                .for_each(&mut entry);
            let last = bucket.word(WORDS - 1);
            if !last.is_link() {
                return;
            }
            bucket = mem.bucket(last.link_id());
        }
    }
}

const FAR_STEPS_MAX: usize = 3;

/// How a far page's number is reached: a word of the root, then words of directory pages.
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

fn write_id(mem: &BucketMem, page: u32, at: u32, id: u32) {
    mem.bucket(page + at / 16).set_half((at % 16) as usize, id);
}

/// # Safety
/// 1. `word` was drained from a table that the caller holds.
unsafe fn rehash(space: &Space<'_>, word: Word) -> u64 {
    // SAFETY: 1. As point 1 here. 2. Used in this function only, while the table is held.
    let entry = unsafe { word.as_entry() }.expect("a drained word is an entry");
    space.hasher.hash(entry.key())
}

/// Adds a word at the end of a bucket's chain.
#[inline]
fn push(space: &mut Space<'_>, bucket: &Bucket, word: Word) {
    let mut bucket = bucket;
    loop {
        for at in 0..WORDS {
            if bucket.word(at) == Word::EMPTY {
                bucket.set(at, word);
                return;
            }
        }
        let last = bucket.word(WORDS - 1);
        if last.is_link() {
            bucket = space.mem.bucket(last.link_id());
            continue;
        }
        let id = space.pages.take(space.mem, 0);
        let overflow = space.mem.bucket(id);
        overflow.set(0, last);
        overflow.set(1, word);
        bucket.set(WORDS - 1, Word::link(id));
        return;
    }
}

/// Takes the last word of a bucket's chain, which must not be empty.
#[inline]
fn pop(space: &mut Space<'_>, bucket: &Bucket) -> Word {
    let (mut bucket, mut before) = (bucket, None);
    while bucket.word(WORDS - 1).is_link() {
        before = Some(bucket);
        bucket = space.mem.bucket(bucket.word(WORDS - 1).link_id());
    }
    let at = bucket.fill() - 1;
    let word = bucket.word(at);
    bucket.set(at, Word::EMPTY);
    if at == 0
        && let Some(before) = before
    {
        let id = before.word(WORDS - 1).link_id();
        before.set(WORDS - 1, Word::EMPTY);
        space.pages.give(space.mem, 0, id);
    }
    word
}

/// Empties a bucket's chain; the words are in the scratch vector, to be given back.
fn drain(space: &mut Space<'_>, bucket: &Bucket) -> Vec<Word> {
    let mut words = std::mem::take(space.scratch);
    let (mut bucket, mut own) = (bucket, None);
    loop {
        let last = bucket.word(WORDS - 1);
        for at in 0..WORDS {
            let word = bucket.word(at);
            if word.address().is_some() {
                words.push(word);
            }
            bucket.set(at, Word::EMPTY);
        }
        if let Some(id) = own {
            space.pages.give(space.mem, 0, id);
        }
        if !last.is_link() {
            return words;
        }
        own = Some(last.link_id());
        bucket = space.mem.bucket(last.link_id());
    }
}
