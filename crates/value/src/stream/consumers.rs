//! The consumers of a group, by their places and by their names.
//!
//! ```text
//! few, up to 64   places   [ consumer | free | consumer | ... ]     by place
//!                 by_name  [ place | place | ... ]                  in the order of the names
//!                 a change copies both, if a clone of the group shares them
//!
//! many            places   a tree of consumers by place
//!                 by_name  a tree from names to places
//!                 a change copies O(log n) of what a clone shares
//! ```
//!
//! A change of consumers captures the stream, so it always finds the group shared.

use super::consumer::{Consumer, ConsumerId};
use super::id::StreamId;
use super::name_key::with_key;
use super::rows::{Row, Table};
use crate::keyed::Keyed;
use base::shared::Shared;

/// Consumers up to which a group has lists.
const FEW_MAX: usize = 64;
#[derive(Clone)]
pub(super) enum Consumers {
    Few { places: Vec<Option<Shared<Consumer>>>, by_name: Vec<ConsumerId> },
    Many { places: Table<Placed>, by_name: Keyed },
}

/// A consumer at its place.
#[derive(Clone)]
pub(super) struct Placed {
    id: ConsumerId,
    consumer: Shared<Consumer>,
}

impl Row for Placed {
    fn id(&self) -> StreamId {
        row_id(self.id)
    }
}

/// Rows are found by ids of streams.
fn row_id(id: ConsumerId) -> StreamId {
    StreamId::new(u64::from(u32::from_le_bytes(id.to_bytes())), 0)
}

impl Default for Consumers {
    fn default() -> Self {
        Self::Few { places: Vec::new(), by_name: Vec::new() }
    }
}

impl Consumers {
    /// Consumers, O(1).
    pub fn len(&self) -> usize {
        match self {
            Self::Few { by_name, .. } => by_name.len(),
            Self::Many { by_name, .. } => by_name.len() as usize,
        }
    }

    /// Heap bytes and allocations, those of the consumers aside. O(1).
    pub fn index_weight(&self) -> (usize, usize) {
        match self {
            Self::Few { places, by_name } => (
                places.len() * size_of::<Option<Shared<Consumer>>>()
                    + by_name.len() * size_of::<ConsumerId>(),
                0,
            ),
            Self::Many { places, by_name } => {
                (places.memory() + by_name.memory(), places.nodes() + by_name.nodes())
            }
        }
    }

    /// Heap bytes which a copy does not share.
    pub fn copied_bytes(&self) -> usize {
        if matches!(self, Self::Few { .. }) { self.index_weight().0 } else { 0 }
    }

    /// The consumer at a place, if there is one. O(log n).
    pub fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        match self {
            Self::Few { places, .. } => places.get(id.index())?.as_deref(),
            Self::Many { places, .. } => places.get(row_id(id)).map(|placed| &*placed.consumer),
        }
    }

    /// Changes the consumer at a place, if there is one; a copy of it if a clone shares it. O(log
    /// n).
    pub fn edit<R>(&mut self, id: ConsumerId, f: impl FnOnce(&mut Consumer) -> R) -> Option<R> {
        match self {
            Self::Few { places, .. } => {
                Some(f(places.get_mut(id.index())?.as_mut()?.make_mut(Consumer::copied_bytes)))
            }
            Self::Many { places, .. } => places
                .edit(row_id(id), |placed| f(placed.consumer.make_mut(Consumer::copied_bytes))),
        }
    }

    /// The place of a name. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<ConsumerId> {
        match self {
            Self::Few { places, by_name } => seek(places, by_name, name).ok().map(|at| by_name[at]),
            Self::Many { by_name, .. } => {
                with_key(name, |key| by_name.get(key).map(|val| place(val.short())))
            }
        }
    }

    /// The place of the consumer with so many names before its own. O(log n).
    pub fn at(&self, rank: usize) -> Option<ConsumerId> {
        match self {
            Self::Few { by_name, .. } => by_name.get(rank).copied(),
            Self::Many { by_name, .. } => {
                by_name.at(rank as u64).map(|item| place(item.value.short()))
            }
        }
    }

    /// All, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ConsumerId, &Consumer)> {
        let (few, many) = match self {
            Self::Few { by_name, .. } => (by_name.as_slice(), None),
            Self::Many { by_name, .. } => (&[][..], Some(by_name.iter())),
        };
        let many = many.into_iter().flatten().map(|item| place(item.value.short()));
        let mut ids = few.iter().copied().chain(many);
        (0..self.len()).map(move |_| {
            let id = ids.next().expect("as many as there are");
            (id, self.get(id).expect("a name leads to its consumer"))
        })
    }

    /// Adds a consumer, whose name is not there. O(log n).
    pub fn add(&mut self, consumer: Consumer) -> ConsumerId {
        if self.len() == FEW_MAX {
            self.become_many();
        }
        match self {
            Self::Few { places, by_name } => {
                let at = seek(places, by_name, consumer.name());
                let at = at.expect_err("a consumer is added once");
                let free = places.iter().position(Option::is_none);
                let id = ConsumerId::of_index(free.unwrap_or(places.len()));
                if free.is_none() {
                    places.push(None);
                }
                places[id.index()] = Some(Shared::new(consumer));
                by_name.insert(at, id);
                id
            }
            Self::Many { places, by_name } => {
                let id = free_place(places);
                let was_there = with_key(consumer.name(), |key| {
                    by_name.insert(key, &id.to_bytes(), |old| old.is_some())
                });
                assert!(!was_there, "a consumer is added once");
                places.put(Placed { id, consumer: Shared::new(consumer) });
                id
            }
        }
    }

    /// Takes a consumer out, if it is there. O(log n).
    pub fn remove(&mut self, id: ConsumerId) -> Option<Shared<Consumer>> {
        match self {
            Self::Few { places, by_name } => {
                let consumer = places.get_mut(id.index())?.take()?;
                by_name.retain(|other| *other != id);
                Some(consumer)
            }
            Self::Many { places, by_name } => {
                let consumer = places.take(row_id(id))?.consumer;
                with_key(consumer.name(), |key| by_name.remove(key, |_| ()));
                Some(consumer)
            }
        }
    }

    fn become_many(&mut self) {
        let (mut places, mut by_name) = (Table::default(), Keyed::new());
        if let Self::Few { places: few, .. } = self {
            for (at, consumer) in few.iter().enumerate() {
                let Some(consumer) = consumer.clone() else { continue };
                let id = ConsumerId::of_index(at);
                with_key(consumer.name(), |key| by_name.insert(key, &id.to_bytes(), |_| ()));
                places.put(Placed { id, consumer });
            }
        }
        *self = Self::Many { places, by_name };
    }
}

fn seek(
    places: &[Option<Shared<Consumer>>],
    by_name: &[ConsumerId],
    name: &[u8],
) -> Result<usize, usize> {
    by_name.binary_search_by(|id| {
        let consumer = places[id.index()].as_ref().expect("a name leads to its consumer");
        consumer.name().cmp(name)
    })
}

fn place(bytes: &[u8]) -> ConsumerId {
    ConsumerId::of_bytes(bytes.try_into().expect("as it was put in"))
}

/// The place behind the last one; if there is none behind it, the first that is free.
fn free_place(places: &Table<Placed>) -> ConsumerId {
    let last = places.last().map(|placed| placed.id.index());
    let behind = last.map_or(0, |last| last + 1);
    if behind < ConsumerId::NOBODY.index() {
        return ConsumerId::of_index(behind);
    }
    let taken = places.iter().map(|placed| placed.id.index());
    let free = taken.enumerate().find(|(at, id)| at != id).expect("fewer than there are places");
    ConsumerId::of_index(free.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;
    use std::collections::BTreeMap;

    fn named(name: &[u8]) -> Consumer {
        Consumer::new(name, 1, -1)
    }

    /// A name of up to six bytes from a small set, some with zero bytes.
    fn name(prng: &mut Prng) -> Vec<u8> {
        let len = prng.below(7) as usize;
        (0..len).map(|_| [0, 1, b'a', 0xff][prng.below(4) as usize]).collect()
    }

    #[test]
    fn consumers_behave_like_a_map() {
        let mut prng = Prng::new(4);
        let (mut all, mut model) = (Consumers::default(), BTreeMap::new());
        for round in 0..20_000 {
            let name = name(&mut prng);
            let kept = all.clone();
            let names = |all: &Consumers| -> Vec<_> {
                all.iter().map(|(id, c)| (c.name().to_vec(), id)).collect()
            };
            let before: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(all.find(&name), model.get(&name).copied());
            let grows = round % 4000 < 2500;
            match all.find(&name) {
                None if grows => {
                    let id = all.add(named(&name));
                    assert!(model.values().all(|other| *other != id), "a place of its own");
                    model.insert(name.clone(), id);
                    all.edit(id, |consumer| consumer.seen_ms = round).expect("it was added");
                    assert_eq!(all.get(id).map(|c| c.seen_ms), Some(round));
                }
                Some(id) if !grows => {
                    assert_eq!(all.remove(id).expect("it was there").name(), name);
                    assert!(all.get(id).is_none() && all.remove(id).is_none());
                    model.remove(&name);
                }
                _ => {}
            }
            assert_eq!(all.len(), model.len());
            if round % 50 == 0 {
                assert_eq!(names(&all), model.clone().into_iter().collect::<Vec<_>>());
                assert_eq!(names(&kept), before, "a clone stays as it was");
                let rank = prng.below(model.len() as u64 + 1) as usize;
                assert_eq!(all.at(rank), model.values().nth(rank).copied());
            }
        }
        assert!(matches!(all, Consumers::Many { .. }));
    }

    /// The memory copied when a consumer is added to a shared group does not grow with the group.
    #[test]
    fn a_change_to_a_shared_group_copies_little() {
        for consumers in [1000, 100_000] {
            let mut all = Consumers::default();
            (0..consumers).for_each(|n: u32| _ = all.add(named(&n.to_be_bytes())));
            let clone = all.clone();
            all.add(named(b"one more"));
            let (Consumers::Many { places, .. }, Consumers::Many { places: was, .. }) =
                (&all, &clone)
            else {
                panic!("many")
            };
            let copied =
                was.iter().zip(places.iter()).filter(|(a, b)| !std::ptr::eq(*a, *b)).count();
            assert!(copied <= 512, "{copied} of {consumers}");
        }
    }

    #[test]
    fn a_free_id_is_found_below_the_largest_id() {
        let mut places = Table::default();
        for id in [0, 1, 3, u32::MAX as usize - 1] {
            let (id, consumer) = (ConsumerId::of_index(id), Shared::new(named(b"c")));
            places.put(Placed { id, consumer });
        }
        assert_eq!(free_place(&places), ConsumerId::of_index(2));
    }
}
