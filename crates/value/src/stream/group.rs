//! Consumer groups: who has read what, and what is not acknowledged.
//!
//! ```text
//! groups    names in order, each with its group ([`super::groups`])
//! group     last id, entries read, pending: rows of 40 bytes by id, consumers
//! consumer  name, times, ids of what is pending for it: rows of 16 bytes
//! ```
//! All of it hangs on counted references: a clone of a stream takes one, and a change copies what a
//! clone shares.

use super::StreamId;
use super::consumers::Consumers;
use super::rows::{Record, RowsIter, Table};

/// Bytes that a name takes beside its text, about: pointers and the allocator's rounding.
const NAME_BYTES: usize = 16;

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The entry, which may be gone.
    pub id: StreamId,
    /// When it was delivered last, in milliseconds since the epoch.
    pub at_ms: i64,
    /// How often.
    pub count: u64,
    /// To whom; [`ConsumerId::NOBODY`] once it was released.
    pub consumer: ConsumerId,
}

impl Record for Pending {
    fn id(&self) -> StreamId {
        self.id
    }
}

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
    pending: Table<StreamId>,
}

impl Consumer {
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

    fn weight(&self) -> Weight {
        Weight {
            bytes: size_of::<Self>() + NAME_BYTES + self.name.len() + self.pending.memory(),
            nodes: 1 + self.pending.nodes(),
        }
    }
}

/// What something takes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes on the heap.
    pub bytes: usize,
    /// Allocations that freeing it visits.
    pub nodes: usize,
}

impl Weight {
    pub(super) fn swap(&mut self, before: Weight, after: Weight) {
        self.bytes = self.bytes + after.bytes - before.bytes;
        self.nodes = self.nodes + after.nodes - before.nodes;
    }
}

/// A consumer group.
#[derive(Clone)]
pub struct Group {
    /// The last entry that was delivered.
    pub last: StreamId,
    /// How many entries were read, as if none had been deleted; `None` if that cannot be said.
    pub read: Option<u64>,
    pending: Table<Pending>,
    consumers: Consumers,
    /// What all consumers take.
    weight: Weight,
}

impl Group {
    /// A group without consumers.
    pub fn new(last: StreamId, read: Option<u64>) -> Self {
        let (pending, weight) = (Table::default(), Weight::default());
        Self { last, read, pending, consumers: Consumers::default(), weight }
    }

    pub(super) fn weight(&self) -> Weight {
        let (places, nodes) = self.consumers.index_weight();
        Weight {
            bytes: size_of::<Self>()
                + NAME_BYTES
                + places
                + self.pending.memory()
                + self.weight.bytes,
            nodes: 1 + self.pending.nodes() + nodes + self.weight.nodes,
        }
    }

    /// The consumer of a name. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<ConsumerId> {
        self.consumers.find(name)
    }

    /// A consumer.
    ///
    /// # Panics
    /// If it is gone.
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers.get(id).expect("a consumer of the group")
    }

    /// The name of the consumer for which an entry is pending; empty if that is nobody.
    pub fn owner_name(&self, row: &Pending) -> &[u8] {
        if row.consumer == ConsumerId::NOBODY {
            return b"";
        }
        self.consumer(row.consumer).name()
    }

    /// The consumers, by name.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = (ConsumerId, &Consumer)> {
        self.consumers.iter()
    }

    /// The consumer at a place among them. O(log n).
    pub fn consumer_at(&self, place: usize) -> Option<ConsumerId> {
        self.consumers.at(place)
    }

    /// Adds a consumer, which is not there. O(log n).
    pub fn add_consumer(&mut self, name: &[u8], seen_ms: i64, active_ms: i64) -> ConsumerId {
        let consumer = Consumer::new(name, seen_ms, active_ms);
        self.weight.swap(Weight::default(), consumer.weight());
        self.consumers.add(consumer)
    }

    /// Removes a consumer and what is pending for it; says how much that was.
    pub fn remove_consumer(&mut self, id: ConsumerId) -> u64 {
        let consumer = self.consumers.remove(id).expect("a consumer of the group");
        self.weight.swap(consumer.weight(), Weight::default());
        for entry in consumer.pending.iter() {
            self.pending.take(*entry);
        }
        consumer.pending()
    }

    /// Takes up to `count` of what is pending for a consumer away from it; says how many.
    pub fn drop_pending(&mut self, id: ConsumerId, count: usize) -> usize {
        let ids: Vec<_> = self.consumer(id).pending.iter().take(count).copied().collect();
        for entry in &ids {
            self.take(*entry);
        }
        ids.len()
    }

    fn edit_consumer<R>(&mut self, id: ConsumerId, f: impl FnOnce(&mut Consumer) -> R) -> R {
        let edited = self.consumers.edit(id, |consumer| {
            let before = consumer.weight();
            let result = f(consumer);
            (before, consumer.weight(), result)
        });
        let (before, after, result) = edited.expect("a consumer of the group");
        self.weight.swap(before, after);
        result
    }

    /// Says when a consumer tried to get something, and got something.
    pub fn set_times(&mut self, id: ConsumerId, seen_ms: i64, active_ms: i64) {
        let set = |consumer: &mut Consumer| {
            (consumer.seen_ms, consumer.active_ms) = (seen_ms, active_ms);
        };
        self.consumers.edit(id, set).expect("a consumer of the group");
    }

    /// How many entries are pending.
    pub fn pending(&self) -> u64 {
        self.pending.len()
    }

    /// A pending entry.
    pub fn get(&self, id: StreamId) -> Option<Pending> {
        self.pending.get(id).copied()
    }

    /// The pending entries from one on. O(log n), and O(1) for each.
    pub fn pending_from(&self, id: StreamId) -> RowsIter<'_, Pending> {
        self.pending.iter_from(id)
    }

    /// The highest pending entry.
    pub fn last_pending(&self) -> Option<StreamId> {
        self.pending.last().map(|row| row.id)
    }

    /// Makes an entry pending, or changes it; returns what it was. O(log n).
    pub fn put(&mut self, row: Pending) -> Option<Pending> {
        let old = self.pending.put(row);
        let was = old.map_or(ConsumerId::NOBODY, |old| old.consumer);
        if was != row.consumer {
            if was != ConsumerId::NOBODY {
                self.edit_consumer(was, |consumer| consumer.pending.take(row.id));
            }
            if row.consumer != ConsumerId::NOBODY {
                self.edit_consumer(row.consumer, |consumer| consumer.pending.put(row.id));
            }
        }
        old
    }

    /// Makes an entry pending no longer; returns what it was. O(log n).
    pub fn take(&mut self, id: StreamId) -> Option<Pending> {
        let old = self.pending.take(id)?;
        if old.consumer != ConsumerId::NOBODY {
            self.edit_consumer(old.consumer, |consumer| consumer.pending.take(id));
        }
        Some(old)
    }
}
