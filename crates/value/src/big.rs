//! Collections that are not small: what an entry holds a box of.

use crate::hash::Hash;
use crate::keyed::{Key, WARM_MAX};
use crate::kind::Kind;
use crate::list::List;
use crate::set::Set;
use crate::stream::Stream;
use crate::zset::Zset;

/// A collection outside its entry. Cloning it takes references, O(1).
#[derive(Clone, Debug)]
pub enum Big {
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A sorted set.
    Zset(Zset),
    /// A hash.
    Hash(Hash),
    /// A stream.
    Stream(Stream),
}

macro_rules! each {
    ($big:expr, $value:ident => $body:expr) => {
        match $big {
            Big::List($value) => $body,
            Big::Set($value) => $body,
            Big::Zset($value) => $body,
            Big::Hash($value) => $body,
            Big::Stream($value) => $body,
        }
    };
}

impl Big {
    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::Zset(_) => Kind::Zset,
            Self::Hash(_) => Kind::Hash,
            Self::Stream(_) => Kind::Stream,
        }
    }

    /// Bytes on the heap, O(1); the `Big` itself is not counted.
    #[inline]
    pub fn memory(&self) -> usize {
        each!(self, value => value.memory())
    }

    /// Elements, O(1).
    #[inline]
    pub fn len(&self) -> u64 {
        each!(self, value => value.len())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nodes that dropping it may free, O(1).
    pub fn node_count(&self) -> usize {
        each!(self, value => value.nodes())
    }

    /// True if both are clones of one collection, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) => a.is_same(b),
            (Self::Set(a), Self::Set(b)) => a.is_same(b),
            (Self::Zset(a), Self::Zset(b)) => a.is_same(b),
            (Self::Hash(a), Self::Hash(b)) => a.is_same(b),
            (Self::Stream(a), Self::Stream(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// Gives up the nodes which clones of it have, which frees none. True if dropping it frees next
    /// to nothing then; otherwise it can only be dropped all the same. Of a stream, and of a hash
    /// with fields that expire, nothing is given up: false. O(1).
    pub fn release_if_shared(&mut self) -> bool {
        match self {
            Self::List(list) => list.release_if_shared(),
            Self::Set(set) => set.release_if_shared(),
            Self::Zset(zset) => zset.release_if_shared(),
            Self::Hash(hash) => hash.release_if_shared(),
            Self::Stream(_) => false,
        }
    }

    /// Gives up what only parts before a rank need, which are read no more: later on only parts
    /// from that rank on are read, in order. A writer then finds unshared, and changes in place,
    /// what this was the last one to share. Length, bytes and nodes are reported as before. Returns
    /// the heap bytes that this frees. Of a stream nothing is given up.
    pub fn release_before(&mut self, rank: u64) -> usize {
        match self {
            Self::List(list) => list.release_before(rank),
            Self::Set(set) => set.release_before(rank),
            Self::Zset(zset) => zset.release_before(rank),
            Self::Hash(hash) => hash.release_before(rank),
            Self::Stream(_) => 0,
        }
    }

    /// When the next field of a hash expires, in milliseconds since the epoch. O(log n).
    #[inline]
    pub fn next_due(&self) -> Option<i64> {
        if let Self::Hash(hash) = self { hash.next_due() } else { None }
    }

    /// Prefetches the memory that commands on these members will read, for all of them at once, so
    /// that their waits overlap. A member may have the score which it will get. Members after the
    /// first [`WARM_MAX`] are ignored.
    pub fn warm(&self, members: &[(&[u8], Option<f64>)]) {
        let mut keys = [Key { head: 0, tail: b"" }; WARM_MAX];
        let mut scores = [None; WARM_MAX];
        for ((key, score), (member, given)) in keys.iter_mut().zip(&mut scores).zip(members) {
            (*key, *score) = (Key::hashed(member), *given);
        }
        let keys = &keys[..members.len().min(WARM_MAX)];
        match self {
            Self::List(_) | Self::Stream(_) => {}
            Self::Set(set) => set.warm(keys),
            Self::Hash(hash) => hash.warm(keys),
            Self::Zset(zset) => zset.warm(keys, &scores),
        }
    }

    /// True if a clone shares the place of this member, which a change of it would copy. Of lists
    /// and streams: false. O(log n).
    pub fn is_shared(&self, member: &[u8]) -> bool {
        let key = Key::hashed(member);
        match self {
            Self::List(_) | Self::Stream(_) => false,
            Self::Set(set) => set.is_shared(key),
            Self::Hash(hash) => hash.is_shared(key),
            Self::Zset(zset) => zset.is_shared(key),
        }
    }

    /// Copies what clones share of the places of these members, so that changes of them copy
    /// nothing. What it holds stays the same. A member may have the score which it will get.
    pub fn unshare(&mut self, members: &[(&[u8], Option<f64>)]) {
        for members in members.chunks(WARM_MAX) {
            self.warm(members);
            for (member, score) in members {
                let key = Key::hashed(member);
                match self {
                    Self::List(_) | Self::Stream(_) => {}
                    Self::Set(set) => set.unshare(key),
                    Self::Hash(hash) => hash.unshare(key),
                    Self::Zset(zset) => zset.unshare(key, *score),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Big;
    use crate::{Hash, Log, Set, Zset};
    use base::shared::take_copied;

    const MEMBERS: u32 = 30_000;

    fn name(n: u32) -> Vec<u8> {
        format!("a member of some length {n}").into_bytes()
    }

    fn filled(mut big: Big) -> Big {
        (0..MEMBERS).for_each(|n| put(&mut big, n, f64::from(n % 100)));
        big
    }

    /// Adds a member, or changes it.
    fn put(big: &mut Big, n: u32, score: f64) {
        let mut log = Log::default();
        match big {
            Big::Set(set) => drop(set.add(&name(n), &mut log)),
            Big::Hash(hash) => drop(hash.set(&name(n), &[score as u8; 30], &mut log)),
            Big::Zset(zset) => drop(zset.set(&name(n), score, &mut log)),
            Big::List(_) | Big::Stream(_) => unreachable!("it has no members"),
        }
    }

    /// What was unshared ahead is changed without a copy, and nothing else happens to it.
    #[test]
    fn a_change_of_unshared_places_copies_nothing() {
        for big in [Big::Set(Set::new()), Big::Hash(Hash::new()), Big::Zset(Zset::new())] {
            let mut live = filled(big);
            let other = live.clone();
            let at = |n: u32| n * 7 + 5; // some of them are new
            let changed: Vec<Vec<u8>> = (0..5_000).map(|n| name(at(n))).collect();
            let members: Vec<(&[u8], Option<f64>)> =
                changed.iter().map(|name| (&name[..], Some(250.0))).collect();
            assert!(changed.iter().all(|name| live.is_shared(name)), "{:?}", live.kind());
            live.unshare(&members);
            assert!(!changed.iter().any(|name| live.is_shared(name)), "{:?}", live.kind());
            assert_eq!(live.len(), u64::from(MEMBERS));
            assert!(take_copied() > 0);
            (0..5_000).for_each(|n| put(&mut live, at(n), 250.0));
            assert_eq!(take_copied(), 0, "{:?}", live.kind());
            assert_eq!(other.len(), u64::from(MEMBERS), "the clone has what it had");
        }
    }
}
