//! Consumer groups: who has read what, and what is not acknowledged.

use super::consumer::{Consumer, ConsumerId};
use super::consumers::Consumers;
use super::id::StreamId;
use super::pending::Pending;
use super::rows::{RowsIter, Table};
use super::weight::{NAME_BYTES, Weight};

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

    /// Heap bytes which a copy does not share.
    pub(super) fn copied_bytes(&self) -> usize {
        self.consumers.copied_bytes()
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

    /// Sets when a consumer last tried to get something, and when it last got something.
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
