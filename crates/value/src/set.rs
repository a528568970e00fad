//! Big sets.

use crate::keyed::{Iter, Key, Keyed};
use crate::log::{Log, Record};

/// Members in the order of their hash. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Set(Keyed);

const ADDED: u8 = 0;
const REMOVED: u8 = 1;

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

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Is it a member? O(log n), as all below.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.0.get(Key::hashed(member)).is_some()
    }

    /// Adds a member; false if it was there.
    #[inline]
    pub fn add(&mut self, member: &[u8], log: &mut Log) -> bool {
        let new = self.0.insert(Key::hashed(member), b"", |old| old.is_none());
        if new {
            log.push(ADDED, &[member]);
        }
        new
    }

    /// Removes a member; false if it was not there.
    pub fn remove(&mut self, member: &[u8], log: &mut Log) -> bool {
        let gone = self.0.remove(Key::hashed(member), |_| ()).is_some();
        if gone {
            log.push(REMOVED, &[member]);
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

    pub(crate) fn undo(&mut self, record: &Record) {
        let member = &record.parts[0];
        if record.op == ADDED {
            self.0.remove(Key::hashed(member), |_| ());
        } else {
            self.0.insert(Key::hashed(member), b"", |_| ());
        }
    }
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
