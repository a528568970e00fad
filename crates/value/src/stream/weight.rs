//! What groups and consumers take of memory.

/// Bytes that a name takes beside its text, about: pointers and the allocator's rounding.
pub const NAME_BYTES: usize = 16;

/// What something takes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes on the heap.
    pub bytes: usize,
    /// Allocations that freeing it visits.
    pub nodes: usize,
}

impl Weight {
    pub fn swap(&mut self, before: Weight, after: Weight) {
        self.bytes = self.bytes + after.bytes - before.bytes;
        self.nodes = self.nodes + after.nodes - before.nodes;
    }
}
