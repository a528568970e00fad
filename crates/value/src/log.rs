//! The undo log of one command on big collections.
//!
//! A single change appends its inverse ([`Records`]). Before a bulk change the collection itself is
//! captured: a clone takes one reference, whatever its size.

use crate::big::Big;
use crate::records::{CAPTURED, Records};
use std::ops::{Deref, DerefMut};

/// The log. Methods of collections get its [`Records`] only; a caller that holds the whole [`Big`]
/// may also capture it.
#[derive(Default)]
pub struct Log {
    records: Records,
    /// Captured collections; each has a record, which tells when it was captured.
    roots: Vec<Big>,
}

impl Log {
    /// Bytes that it keeps alive. A captured collection counts as its root, for the nodes are
    /// shared.
    pub fn memory(&self) -> usize {
        self.records.memory() + self.roots.len() * size_of::<Big>()
    }

    /// Keeps a clone of a collection that is about to change in many places.
    pub fn capture(&mut self, big: &Big) {
        self.roots.push(big.clone());
        self.records.push_captured();
    }

    /// Takes the captured collections out: freeing them may take long.
    pub fn take_roots(&mut self) -> impl Iterator<Item = Big> + '_ {
        self.roots.drain(..)
    }

    /// True if clearing it takes no time: nothing is captured, no blobs are held, and no more
    /// capacity than is kept.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.roots.is_empty() && self.records.is_plain()
    }

    /// As [`Log::clear`], of a log that is plain.
    #[inline]
    pub fn clear_plain(&mut self) {
        debug_assert!(self.is_plain());
        self.records.clear_plain();
    }

    /// Drops everything: the command is committed.
    #[inline]
    pub fn clear(&mut self) {
        self.roots.clear();
        self.records.clear();
    }
}

impl Deref for Log {
    type Target = Records;

    #[inline]
    fn deref(&self) -> &Records {
        &self.records
    }
}

impl DerefMut for Log {
    #[inline]
    fn deref_mut(&mut self) -> &mut Records {
        &mut self.records
    }
}

impl Big {
    /// Undoes the last change in the log, which is one of this collection.
    pub fn undo(&mut self, log: &mut Log) {
        let record = log.records.pop().expect("an operation was logged");
        if record.op == CAPTURED {
            *self = log.roots.pop().expect("a clone was captured");
            return;
        }
        match self {
            Self::List(list) => list.undo(record),
            Self::Set(set) => set.undo(&record),
            Self::Zset(zset) => zset.undo(&record),
            Self::Hash(hash) => hash.undo(record),
            Self::Stream(stream) => stream.undo(&record),
        }
    }
}

#[cfg(test)]
mod tests;
