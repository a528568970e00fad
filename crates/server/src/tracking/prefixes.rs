//! Who is told of every key that begins with a prefix (BCAST).

use crate::pubsub::patterns::each_beginning;
use crate::tracking::listed::ByWorker;
use driver::ConnId;
use std::collections::BTreeMap;

/// Prefixes, and who is told of their keys.
#[derive(Debug, Default)]
pub struct Prefixes(BTreeMap<Box<[u8]>, ByWorker>);

impl Prefixes {
    /// A connection is told of the keys of a prefix, of which it was not told.
    pub fn join(&mut self, prefix: &[u8], worker: usize, conn: ConnId) {
        if !self.0.contains_key(prefix) {
            self.0.insert(prefix.into(), ByWorker::default());
        }
        self.0.get_mut(prefix).expect("it was made").join(worker, conn);
    }

    /// It is told of them no more.
    pub fn leave(&mut self, prefix: &[u8], worker: usize, conn: ConnId) {
        let Some(told) = self.0.get_mut(prefix) else { return };
        told.leave(worker, conn);
        if told.is_empty() {
            self.0.remove(prefix);
        }
    }

    /// Different prefixes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Calls `f` with those who are told of a key, once for each prefix that it begins with.
    pub fn each(&mut self, key: &[u8], mut f: impl FnMut(&mut ByWorker)) {
        let mut found = Vec::new();
        each_beginning(&self.0, key, |prefix, _| found.push(prefix.len()));
        for len in found {
            f(self.0.get_mut(&key[..len]).expect("it was found"));
        }
    }
}
