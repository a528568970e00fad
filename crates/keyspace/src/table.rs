//! The hash table of one slot and database: linear hashing over buckets of one cache line.
//!
//! ```text
//! slot, one cache line (slot.rs)
//! +------+---------+-------+--------------------------------+----------+------+
//! | lock | buckets | count | directory: nine u32 numbers    | last seq | cold |
//! +------+---------+-------+--------------------------------+----------+------+
//!        |<-------------- Table, 44 bytes ------------------>|
//!                             |  index of the bucket -> its number (directory.rs)
//!                             v
//!                    bucket, one cache line (bucket.rs): eight words
//!                    +-----------------+-----------------+- - -+------------------------+
//!                    | tag 16, addr 48 | tag 16, addr 48 |     | an entry, or a link to |
//!                    +-----------------+-----------------+- - -+  an overflow bucket    |
//!                             |                                +------------------------+
//!                             v                                   (chain.rs)
//!                    entry (entry.rs): header, key, value
//! ```
//!
//! A table of `n` buckets, `2^k <= n < 2^(k+1)`, uses the low `k+1` bits of the hash as the index
//! of the bucket; if that bucket does not exist yet, the low `k`. The *level* of a bucket is the
//! number of low hash bits that its entries share. With `n = 6`, so `k = 2`:
//!
//! ```text
//! index   0    1    2    3    4    5
//! bits   000  001   10   11  100  101     0, 1, 4, 5 have level 3; 2 and 3 level 2
//!         |    |              |    |      an insert above the load limit splits 2 into 2 and 6,
//!         +----|--------------+    |      a removal below the lower limit merges 5 into 1
//!              +-------------------+
//! ```
//!
//! Seen through bit-reversed hashes each bucket is an interval. Splits halve one, merges join two
//! neighbours, and nothing changes their order: a cursor of SCAN is a point in that space. No array
//! is ever reallocated. `docs/design/0001-table.md` gives the reasons.
//!
//! [`Table`] has what may be read without the slot's lock. Entries are reached only through
//! [`HeldTable`], the proof that the slot is held.
#![allow(unsafe_code)]

use crate::bucket::{Bucket, WORDS, Word};
use crate::chain::{drain, pop, push};
use crate::directory::Directory;
use crate::entry::{EntryPtr, Gone};
use crate::memory::BucketMem;
use crate::workspace::Workspace;
use base::prefetch::prefetch;
use base::sync::hint::{AtomicU32, Ordering};

/// Up to this level a tag is the low 16 bits of the hash, so a split needs no hash. Above, most of
/// these bits are the same for all entries of a bucket, and the tag is bits 32..48.
const NARROW_LEVEL_MAX: u32 = 9;
const NARROW_BUCKETS_MAX: u32 = 1 << NARROW_LEVEL_MAX;
/// A bucket is split when entries exceed `buckets * LOAD_NUM / LOAD_DEN`.
const LOAD_NUM: u64 = 27;
const LOAD_DEN: u64 = 4;
/// From here on the second line of an entry is fetched: the end of one of 88 bytes.
const FETCHED_BYTES: usize = 80;

/// The head of a table, in its slot's cache line. All zero: empty. Written under the slot's lock.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Table {
    buckets: AtomicU32,
    count: AtomicU32,
    directory: Directory,
}

const _: () = assert!(cfg!(shuttle) || size_of::<Table>() == 44);

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

/// The bucket to which a hash belongs, and that bucket's level.
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

impl Home {
    /// The first point behind the bucket's interval, `None` if it is the last.
    fn end(self) -> Option<u64> {
        if self.level == 0 {
            return None;
        }
        u64::from(self.index).reverse_bits().checked_add(1 << (64 - self.level))
    }
}

#[inline(always)]
fn tag_of(n: u32, hash: u64) -> u16 {
    if n <= NARROW_BUCKETS_MAX { narrow_tag(hash) } else { tag_of_many(n, hash) }
}

#[cold]
fn tag_of_many(n: u32, hash: u64) -> u16 {
    tag_at(home_of(n, hash).level, hash)
}

impl Table {
    /// Entries in it.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Buckets in it, without overflow buckets.
    #[inline(always)]
    pub fn buckets(&self) -> u32 {
        self.buckets.load(Ordering::Relaxed)
    }

    fn set_len(&self, n: u32) {
        self.count.store(n, Ordering::Relaxed);
    }

    #[inline(always)]
    fn bucket<'m>(&self, mem: &'m BucketMem, index: u32) -> &'m Bucket {
        mem.bucket(self.directory.bucket_id(mem, index))
    }

    /// The number of the bucket to which `hash` belongs, and its tag. Read without the lock, for a
    /// prefetch.
    #[inline(always)]
    pub fn prefetch_target(&self, mem: &BucketMem, hash: u64) -> Option<(u32, u16)> {
        let n = self.buckets();
        if n == 0 {
            return None;
        }
        // The table may change meanwhile. An index of a page that is gone leads to bucket 0, which
        // is all zero.
        Some((self.directory.bucket_id(mem, index_of(n, hash)), tag_of(n, hash)))
    }

    /// The numbers of the bucket that contains a point and of the next ones, in the order of
    /// [`HeldTable::visit`]. Read without the lock, for a prefetch.
    pub fn prefetch_from(&self, mem: &BucketMem, reversed: u64, buckets: &mut [u32]) {
        let (n, mut reversed) = (self.buckets(), reversed);
        if n == 0 {
            return;
        }
        for bucket in buckets {
            let home = home_of(n, reversed.reverse_bits());
            // (As in `prefetch_target`.)
            *bucket = self.directory.bucket_id(mem, home.index);
            reversed = home.end().unwrap_or(0);
        }
    }
}

/// A table whose slot is held, or that the caller owns. Entries are reached through it.
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
    /// A table that nobody else can reach: one that was detached.
    pub fn of_mut(table: &'a mut Table) -> Self {
        Self(table)
    }

    /// # Safety
    /// 1. The caller holds the table's slot (is inside and has its lock, or holds World).
    /// 2. The proof, and every entry and place found through it, is used only while that holds. An
    ///    entry may also be used when it is out of its table and only the caller can reach it.
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
        self.find_address(mem, hash, entry.address()).expect("the entry is in its home bucket")
    }

    /// The entry at this address, if the table has one there under this hash.
    pub fn find_address(self, mem: &BucketMem, hash: u64, address: u64) -> Option<Found<'_>> {
        let n = self.buckets();
        if n == 0 {
            return None;
        }
        let mut bucket = self.bucket(mem, index_of(n, hash));
        loop {
            for at in 0..WORDS {
                let word = bucket.word(at);
                if word.address() == Some(address) {
                    // SAFETY: 1. The bucket is this table's, which is held. 2. `HeldTable::new`'s
                    // point 2.
                    return unsafe { word.as_entry() }.map(|entry| Found { bucket, at, entry });
                }
            }
            let last = bucket.word(WORDS - 1);
            if !last.is_link() {
                return None;
            }
            bucket = mem.bucket(last.link_id());
        }
    }

    /// Adds an entry whose key is not in the table.
    #[inline]
    pub fn insert(self, work: &mut Workspace<'_>, hash: u64, entry: EntryPtr) {
        let count = self.len() + 1;
        if u64::from(count) * LOAD_DEN > u64::from(self.buckets()) * LOAD_NUM {
            self.grow(work);
        }
        self.set_len(count);
        let n = self.buckets();
        let bucket = self.bucket(work.mem, index_of(n, hash));
        push(work, bucket, Word::entry(entry, tag_of(n, hash)));
    }

    /// Removes the entry found at `found`.
    pub fn remove(self, work: &mut Workspace<'_>, hash: u64, found: &Found<'_>) {
        let n = self.buckets();
        let gone = found.bucket.word(found.at);
        let moved = pop(work, self.bucket(work.mem, index_of(n, hash)));
        if moved != gone {
            found.bucket.set(found.at, moved);
        }
        let count = self.len() - 1;
        self.set_len(count);
        // At half the load that splits, so that no sequence of changes alternates between both.
        if u64::from(count) * LOAD_DEN * 2 < u64::from(n) * LOAD_NUM && n > 1 {
            self.shrink(work);
        }
    }

    /// Gives a table without entries the buckets which so many will need, O(buckets). Buckets that
    /// were never used take no memory.
    pub fn reserve(self, work: &mut Workspace<'_>, entries: u32) {
        assert!(self.len() == 0, "nothing is to be moved");
        let goal = u64::from(entries) * LOAD_DEN / LOAD_NUM;
        while u64::from(self.buckets()) < goal {
            let n = self.buckets();
            self.directory.add_page(work.mem, work.pages, n);
            self.buckets.store(n + 1, Ordering::Relaxed);
        }
    }

    /// Splits one bucket.
    fn grow(self, work: &mut Workspace<'_>) {
        let n = self.buckets();
        if n == u32::MAX {
            return; // chains grow instead
        }
        self.directory.add_page(work.mem, work.pages, n);
        self.buckets.store(n + 1, Ordering::Relaxed);
        if n == 0 {
            return;
        }
        let k = n.ilog2();
        let (from, to) = (n - (1 << k), n);
        let (from, to) = (self.bucket(work.mem, from), self.bucket(work.mem, to));
        let mut words = drain(work, from);
        for &word in &words {
            let (high, word) = if k < NARROW_LEVEL_MAX {
                (word.tag() >> k & 1 != 0, word)
            } else {
                // SAFETY: 1. It was drained from this table, which is held.
                let hash = unsafe { rehash(work, word) };
                (hash >> k & 1 != 0, word.with_tag(wide_tag(hash)))
            };
            push(work, if high { to } else { from }, word);
        }
        words.clear();
        *work.scratch = words;
    }

    /// Merges the last bucket into the one that it was split from, unless tables keep their
    /// buckets.
    fn shrink(self, work: &mut Workspace<'_>) {
        if work.mem.keeps_buckets() {
            return;
        }
        let last = self.buckets() - 1;
        let k = last.ilog2();
        let buddy = self.bucket(work.mem, last - (1 << k));
        let mut words = drain(work, self.bucket(work.mem, last));
        if k == NARROW_LEVEL_MAX {
            // The merged bucket has narrow tags again: those of its own entries change, too.
            words.append(&mut drain(work, buddy));
        }
        for &word in &words {
            let word = if k == NARROW_LEVEL_MAX {
                // SAFETY: 1. It was drained from this table, which is held.
                word.with_tag(narrow_tag(unsafe { rehash(work, word) }))
            } else {
                word
            };
            push(work, buddy, word);
        }
        words.clear();
        *work.scratch = words;
        self.buckets.store(last, Ordering::Relaxed);
        self.directory.drop_page(work.mem, work.pages, last);
    }

    /// Removes the last bucket and passes its entries to `entry`; false if there is none. Frees a
    /// table in steps.
    pub fn pop_bucket(self, work: &mut Workspace<'_>, mut entry: impl FnMut(Gone)) -> bool {
        let n = self.buckets();
        if n == 0 {
            return false;
        }
        let mut words = drain(work, self.bucket(work.mem, n - 1));
        self.set_len(self.len() - words.len() as u32);
        for word in words.drain(..) {
            // SAFETY: `as_entry`: 1. It was drained from this table, which is held. 2. It is out of
            // it. `into_gone`: 1. It was in one table, and is out of it. 2. A word is drained once.
            // 3. The holder has no reference into a table that it takes apart.
            entry(unsafe { word.as_entry().expect("a drained word is an entry").into_gone() });
        }
        *work.scratch = words;
        self.buckets.store(n - 1, Ordering::Relaxed);
        self.directory.drop_page(work.mem, work.pages, n - 1);
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
        self.directory.move_to(&other.directory);
    }

    /// The first point (a bit-reversed hash) of the bucket that contains the point `reversed`. The
    /// table must have a bucket.
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
        self.visit_found(mem, reversed, |found| entry(found.entry))
    }

    /// Fetches what a [`HeldTable::visit`] of the same point reads first of each entry: all at once
    /// instead of one after the other.
    pub fn fetch(self, mem: &BucketMem, reversed: u64) {
        self.visit(mem, reversed, |entry| {
            prefetch(entry.address() as usize);
            prefetch(entry.address() as usize + FETCHED_BYTES);
        });
    }

    /// As [`HeldTable::visit`], with the places of the entries, which the caller may replace
    /// ([`Found::replace`]).
    pub fn visit_found<'m>(
        self,
        mem: &'m BucketMem,
        reversed: u64,
        mut each: impl FnMut(Found<'m>),
    ) -> Option<u64> {
        let home = home_of(self.buckets(), reversed.reverse_bits());
        let mut bucket = self.bucket(mem, home.index);
        loop {
            for at in 0..WORDS {
                // SAFETY: 1. The bucket is this table's, which is held. 2. `HeldTable::new`'s point
                // 2.
                if let Some(entry) = unsafe { bucket.word(at).as_entry() } {
                    each(Found { bucket, at, entry });
                }
            }
            let last = bucket.word(WORDS - 1);
            if !last.is_link() {
                break;
            }
            bucket = mem.bucket(last.link_id());
        }
        home.end()
    }

    /// Buckets that the table has taken, counted one by one. O(n).
    pub fn taken(self, mem: &BucketMem) -> u64 {
        let links = (0..self.buckets()).map(|index| {
            let last = |bucket: &Bucket| bucket.word(WORDS - 1);
            let mut word = last(self.bucket(mem, index));
            std::iter::from_fn(|| {
                let id = word.is_link().then(|| word.link_id())?;
                word = last(mem.bucket(id));
                Some(id)
            })
            .count() as u64
        });
        Directory::taken_by(self.buckets()) + links.sum::<u64>()
    }

    /// Calls `entry` for every entry in the bucket of `hash` that has the same tag.
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

/// # Safety
/// 1. `word` was drained from a table that the caller holds.
unsafe fn rehash(work: &Workspace<'_>, word: Word) -> u64 {
    // SAFETY: 1. As point 1 here. 2. Used in this function only, while the table is held.
    let entry = unsafe { word.as_entry() }.expect("a drained word is an entry");
    work.hasher.hash(entry.key())
}
