//! Sets.
//!
//! ```text
//! small   | member | member | ...   in the order in which they came; integers: the least first
//! big     member -> -               a tree in the order of hashes
//! ```

use crate::keyed::{Iter, Key, Keyed};
use crate::packed::{Elem, Packed, skip};
use crate::records::{Record, Records};
use crate::string::IntText;

/// Members in the order of their hash. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Set(Keyed);

// Operations of undo records: each is the inverse of the change that is logged, with its parts.

/// Member.
const REMOVE: u8 = 0;
/// Member.
const ADD: u8 = 1;

impl Set {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Members.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// True if both are clones of one set, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }

    /// As [`crate::Big::is_shared`].
    pub(crate) fn is_shared(&self, key: Key<'_>) -> bool {
        self.0.is_shared(key)
    }

    /// As [`crate::Big::unshare`].
    pub(crate) fn unshare(&mut self, key: Key<'_>) {
        self.0.unshare(key);
    }

    /// Prefetches what commands on these members will read.
    pub(crate) fn warm(&self, keys: &[Key<'_>]) {
        self.0.warm(keys);
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// As [`crate::Big::release_if_shared`].
    pub(crate) fn release_if_shared(&mut self) -> bool {
        self.0.release_if_shared()
    }

    /// As [`crate::Big::release_before`].
    pub(crate) fn release_before(&mut self, rank: u64) -> usize {
        self.0.release_before(rank)
    }

    /// Is it a member? O(log n), as all below.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.0.get(Key::hashed(member)).is_some()
    }

    /// Adds a member; false if it was there.
    #[inline]
    pub fn add(&mut self, member: &[u8], log: &mut Records) -> bool {
        let new = self.0.insert(Key::hashed(member), b"", |old| old.is_none());
        if new {
            log.push(REMOVE, &[member]);
        }
        new
    }

    /// Removes a member; false if it was not there.
    pub fn remove(&mut self, member: &[u8], log: &mut Records) -> bool {
        let gone = self.0.remove(Key::hashed(member), |_| ()).is_some();
        if gone {
            log.push(ADD, &[member]);
        }
        gone
    }

    /// The member at a rank in hash order.
    pub fn at(&self, rank: u64) -> Option<&[u8]> {
        self.0.at(rank).map(|item| item.key.tail)
    }

    /// The members in hash order.
    pub fn iter(&self) -> Members<'_> {
        Members(self.0.iter())
    }

    /// The members whose hash is at least this.
    pub fn iter_from(&self, hash: u32) -> Members<'_> {
        Members(self.0.from_key(Key { head: hash, tail: b"" }))
    }

    /// The members from this rank on, in hash order.
    pub fn iter_at(&self, rank: u64) -> Members<'_> {
        Members(self.0.from_rank(rank))
    }

    /// The members from this one on, or from where it would be, with what they are ordered by.
    pub fn keys_from(&self, key: Key<'_>) -> impl Iterator<Item = Key<'_>> + use<'_> {
        self.0.from_key(key).map(|item| item.key)
    }

    /// True if this is a member, whose hash is known.
    #[inline]
    pub fn contains_key(&self, key: Key<'_>) -> bool {
        self.0.get(key).is_some()
    }

    /// Adds a member whose hash is known to a set that is being built; false if it was there.
    pub fn build(&mut self, key: Key<'_>) -> bool {
        self.0.insert(key, b"", |old| old.is_none())
    }

    /// The set that a packed one becomes when it grows.
    pub fn of_packed(packed: &[u8]) -> Self {
        let (mut set, mut text) = (Self::new(), IntText::default());
        for member in Packed::new(packed) {
            set.build(Key::hashed(member.bytes(&mut text)));
        }
        set
    }

    /// Applies a record of the undo log.
    pub(crate) fn undo(&mut self, record: &Record) {
        let member = &record.parts[0];
        if record.op == REMOVE {
            self.0.remove(Key::hashed(member), |_| ());
        } else {
            self.0.insert(Key::hashed(member), b"", |_| ());
        }
    }
}

/// Looks for a member in a packed set: where it starts and ends; if it is not there, where it would
/// start, and how many there are. A set that is `ordered` has integers only, the least first. O(n).
#[inline]
pub fn find(
    packed: &[u8],
    member: Elem<'_>,
    ordered: bool,
) -> Result<(usize, usize), (usize, u64)> {
    let (mut start, mut members, mut place) = (0, 0, None);
    while let Some((element, len)) = Elem::first(&packed[start..]) {
        if element == member {
            return Ok((start, start + len));
        }
        if ordered
            && place.is_none()
            && let (Elem::Int(there), Elem::Int(new)) = (element, member)
            && there > new
        {
            place = Some(start);
        }
        start += len;
        members += 1;
    }
    Err((place.unwrap_or(start), members))
}

/// True if a packed set has a member, given as it is stored. O(n).
#[inline]
pub fn has_stored(packed: &[u8], member: &[u8]) -> bool {
    let mut at = 0;
    while at < packed.len() {
        let len = skip(&packed[at..]);
        if len == member.len() && packed[at..at + len] == *member {
            return true;
        }
        at += len;
    }
    false
}

/// Inserts an element at an offset of a packed set.
pub fn insert_at(packed: &mut Vec<u8>, at: usize, member: Elem<'_>) {
    let size = member.size();
    member.push(packed);
    packed[at..].rotate_right(size);
}

/// Members of a set.
#[derive(Clone)]
pub struct Members<'a>(Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|item| item.key.tail)
    }
}
