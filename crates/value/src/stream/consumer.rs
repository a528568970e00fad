//! A consumer of a group.

use super::id::StreamId;
use super::rows::{RowsIter, Table};
use super::weight::{NAME_BYTES, Weight};

/// A consumer's place in its group; it stays the same as long as the consumer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConsumerId(u32);

impl ConsumerId {
    /// No consumer: of an entry that was released and waits for somebody to claim it.
    pub const NOBODY: Self = Self(u32::MAX);

    pub(super) fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    pub(super) fn of_bytes(bytes: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(bytes))
    }

    pub(super) fn of_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer consumers than there are places"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One that reads for a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it last tried to get something, in milliseconds since the epoch.
    pub seen_ms: i64,
    /// When it last got something; -1 if it never did.
    pub active_ms: i64,
    pub(super) pending: Table<StreamId>,
}

impl Consumer {
    /// Heap bytes which a copy does not share.
    pub(super) fn copied_bytes(&self) -> usize {
        self.name.len()
    }

    pub(super) fn new(name: &[u8], seen_ms: i64, active_ms: i64) -> Self {
        Self { name: name.into(), seen_ms, active_ms, pending: Table::default() }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many entries are pending for it.
    pub fn pending(&self) -> u64 {
        self.pending.len()
    }

    /// Their ids, from one on. O(log n), and O(1) for each.
    pub fn pending_from(&self, id: StreamId) -> RowsIter<'_, StreamId> {
        self.pending.iter_from(id)
    }

    pub(super) fn weight(&self) -> Weight {
        Weight {
            bytes: size_of::<Self>() + NAME_BYTES + self.name.len() + self.pending.memory(),
            nodes: 1 + self.pending.nodes(),
        }
    }
}
