//! Big sorted sets: a tree in the order of scores, and an index of members.

use super::score::{Prefix, ordered, score_in, score_of, with_key};
use crate::keyed::{Item, Iter, IterBack, Key, Keyed, WARM_MAX};
use crate::records::{Record, Records};

/// Members with scores. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Zset {
    /// Key: eight bytes of the score in an order-preserving form, then the member. Value: a byte
    /// for minus zero, which is in the place of zero.
    pub(super) order: Keyed,
    /// Key: the member in hash order. Value: eight bytes of its score.
    pub(super) members: Keyed,
}

// Operations of undo records: each is the inverse of the change that is logged, with its parts.

/// Member, score.
const SET: u8 = 0;
/// Member.
const REMOVE: u8 = 1;

/// A member with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored<'a> {
    /// The member.
    pub member: &'a [u8],
    /// Its score.
    pub score: f64,
}

fn scored(item: Item<'_>) -> Scored<'_> {
    let (low, member) = item.key.tail.split_first_chunk().expect("half a score");
    let bits = u64::from(item.key.head) << 32 | u64::from(u32::from_be_bytes(*low));
    let score = if item.value.short().is_empty() { score_of(bits) } else { -0.0 };
    Scored { member, score }
}

impl Zset {
    /// An empty sorted set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Members.
    #[inline]
    pub fn len(&self) -> u64 {
        self.members.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.order.memory() + self.members.memory()
    }

    /// Prefetches the index of members, then the places of their scores, then those of `scores`.
    pub(crate) fn warm(&self, keys: &[Key<'_>], scores: &[Option<f64>]) {
        let pages = self.members.warm(keys);
        let mut prefixes = [Prefix::default(); WARM_MAX];
        let olds =
            pages.iter().zip(keys).map(|(page, key)| Some(score_in(page.get(*key)?.short())));
        for ((prefix, key), old) in prefixes.iter_mut().zip(keys).zip(olds) {
            *prefix = Prefix::of(old, key.tail);
        }
        self.order.warm(&prefixes.each_ref().map(Prefix::key)[..keys.len()]);
        for ((prefix, key), new) in prefixes.iter_mut().zip(keys).zip(scores) {
            *prefix = Prefix::of(*new, key.tail);
        }
        self.order.warm(&prefixes.each_ref().map(Prefix::key)[..keys.len()]);
    }

    /// As [`crate::Big::is_shared`].
    pub(crate) fn is_shared(&self, key: Key<'_>) -> bool {
        self.members.is_shared(key)
    }

    /// As [`crate::Big::unshare`]: the places of the score that the member has, and of the given
    /// one.
    pub(crate) fn unshare(&mut self, key: Key<'_>, new: Option<f64>) {
        let old = self.members.get(key).map(|value| score_in(value.short()));
        self.members.unshare(key);
        for score in [old, new].into_iter().flatten() {
            with_key(score, key.tail, |key| self.order.unshare(key));
        }
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.order.nodes() + self.members.nodes()
    }

    /// As [`crate::Big::release_if_shared`].
    pub(crate) fn release_if_shared(&mut self) -> bool {
        let order = self.order.release_if_shared();
        self.members.release_if_shared() && order
    }

    /// As [`crate::Big::release_before`]. The index of members is given up as a whole.
    pub(crate) fn release_before(&mut self, rank: u64) -> usize {
        self.members.release() + self.order.release_before(rank)
    }

    /// The score of a member. O(log n), as all below.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.members.get(Key::hashed(member)).map(|value| score_in(value.short()))
    }

    /// Sets a member's score; returns the one that it had. The score is a number.
    #[inline]
    pub fn set(&mut self, member: &[u8], score: f64, log: &mut Records) -> Option<f64> {
        let old = self.score(member);
        self.replace(member, score, old, log);
        old
    }

    /// As [`Zset::set`], of a member whose score is known to be `old`.
    #[inline]
    pub fn replace(&mut self, member: &[u8], score: f64, old: Option<f64>, log: &mut Records) {
        match old {
            Some(old) => log.push(SET, &[member, &old.to_le_bytes()]),
            None => log.push(REMOVE, &[member]),
        }
        self.put(member, score);
    }

    /// As [`Zset::set`] without logging: for a sorted set that is no key's yet, or was captured.
    pub fn put(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let old = self.index(member, score);
        if let Some(old) = old {
            if old.to_bits() == score.to_bits() {
                return Some(old);
            }
            with_key(old, member, |key| self.order.remove(key, |_| ()));
        }
        self.place(member, score);
        old
    }

    /// The first half of [`Zset::put`], for a sorted set that is no key's yet: members are found,
    /// but have no order until [`Zset::place`] is called for each, with its last score.
    #[inline]
    pub fn index(&mut self, member: &[u8], score: f64) -> Option<f64> {
        debug_assert!(!score.is_nan());
        let key = Key::hashed(member);
        self.members.insert(key, &score.to_le_bytes(), |old| old.map(|old| score_in(old.short())))
    }

    /// The second half of [`Zset::put`]: fastest if called in the order of scores and members.
    #[inline]
    pub fn place(&mut self, member: &[u8], score: f64) {
        let mark: &[u8] = if score == 0.0 && score.is_sign_negative() { &[1] } else { &[] };
        with_key(score, member, |key| self.order.insert(key, mark, |_| ()));
    }

    /// Removes a member; returns its score.
    pub fn remove(&mut self, member: &[u8], log: &mut Records) -> Option<f64> {
        let score = self.take(member)?;
        log.push(SET, &[member, &score.to_le_bytes()]);
        Some(score)
    }

    /// As [`Zset::remove`] without logging.
    pub fn take(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.members.remove(Key::hashed(member), |old| score_in(old.short()))?;
        with_key(score, member, |key| self.order.remove(key, |_| ()));
        Some(score)
    }

    /// How many members are before this one, if it is a member.
    pub fn rank(&self, member: &[u8]) -> Option<u64> {
        let score = self.score(member)?;
        Some(with_key(score, member, |key| self.order.rank(key).0))
    }

    /// How many members have a lower score, or the same score and are smaller than `member`. With
    /// an empty member: those of a lower score.
    pub fn rank_of(&self, score: f64, member: &[u8]) -> u64 {
        with_key(score, member, |key| self.order.rank(key).0)
    }

    /// How many members have this score or a lower one.
    pub fn rank_above(&self, score: f64) -> u64 {
        match ordered(score).checked_add(1) {
            None => self.len(),
            Some(bits) => {
                let tail = (bits as u32).to_be_bytes();
                self.order.rank(Key { head: (bits >> 32) as u32, tail: &tail }).0
            }
        }
    }

    /// The member at a rank.
    pub fn at(&self, rank: u64) -> Option<Scored<'_>> {
        self.order.at(rank).map(scored)
    }

    /// The members from a rank on, upwards.
    pub fn iter_from(&self, rank: u64) -> Ascending<'_> {
        Ascending(self.order.from_rank(rank))
    }

    /// The members of this score or a higher one, upwards.
    pub fn iter_from_score(&self, score: f64) -> Ascending<'_> {
        with_key(score, b"", |key| Ascending(self.order.from_key(key)))
    }

    /// The members before a rank, downwards: the first is that of `rank - 1`.
    pub fn iter_back_from(&self, rank: u64) -> Descending<'_> {
        Descending(self.order.before_rank(rank))
    }

    /// All members in the order of their scores.
    pub fn iter(&self) -> Ascending<'_> {
        self.iter_from(0)
    }

    /// The members whose hash is at least this, in hash order: for cursors.
    pub fn iter_hashed(&self, hash: u32) -> impl Iterator<Item = Scored<'_>> {
        let items = self.members.from_key(Key { head: hash, tail: b"" });
        items.map(|item| Scored { member: item.key.tail, score: score_in(item.value.short()) })
    }

    /// The members from a rank in hash order on. Searching other trees for them moves from
    /// neighbour to neighbour.
    pub fn iter_hashed_at(&self, rank: u64) -> impl Iterator<Item = Scored<'_>> {
        let items = self.members.from_rank(rank);
        items.map(|item| Scored { member: item.key.tail, score: score_in(item.value.short()) })
    }

    /// The member at a rank in hash order: for random draws.
    pub fn at_hashed(&self, rank: u64) -> Option<Scored<'_>> {
        let item = self.members.at(rank)?;
        Some(Scored { member: item.key.tail, score: score_in(item.value.short()) })
    }

    /// Applies a record of the undo log.
    pub(crate) fn undo(&mut self, record: &Record) {
        let member = &record.parts[0];
        if record.op == SET {
            self.put(member, score_in(&record.parts[1]));
        } else {
            self.take(member);
        }
    }
}

/// Members upwards.
#[derive(Clone)]
pub struct Ascending<'a>(Iter<'a>);

impl<'a> Iterator for Ascending<'a> {
    type Item = Scored<'a>;

    #[inline]
    fn next(&mut self) -> Option<Scored<'a>> {
        self.0.next().map(scored)
    }
}

/// Members downwards.
#[derive(Clone)]
pub struct Descending<'a>(IterBack<'a>);

impl<'a> Iterator for Descending<'a> {
    type Item = Scored<'a>;

    #[inline]
    fn next(&mut self) -> Option<Scored<'a>> {
        self.0.next().map(scored)
    }
}
