//! The libraries of functions that a file had.

use base::sync::Arc;
use std::collections::BTreeSet;

/// Libraries, each once, in the order in which they came. A file may have millions of them, so it
/// is not searched for a library from the beginning.
pub(crate) struct Functions<T = Arc<[u8]>> {
    in_order: Vec<T>,
    known: BTreeSet<T>,
}

impl<T> Default for Functions<T> {
    fn default() -> Self {
        Self { in_order: Vec::new(), known: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Functions<T> {
    /// Keeps a library, unless it is there. O(log of their number) comparisons.
    pub fn add(&mut self, library: T) {
        if self.known.insert(library.clone()) {
            self.in_order.push(library);
        }
    }

    /// All of them.
    pub fn to_vec(&self) -> Vec<T> {
        self.in_order.clone()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
