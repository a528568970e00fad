//! The data of a model: a map from keys to values, in shards with a lock each.
//!
//! A command locks the shards of all its keys, ascending, before it changes anything, so MSET and
//! DEL of many keys are seen whole or not at all. A model whose data belongs to one thread has one
//! shard.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shards of data that many threads share.
pub const SHARED: usize = 256;
/// Shards of data that one thread owns.
pub const OWNED: usize = 1;

type Shard = HashMap<Box<[u8]>, Vec<u8>>;

/// Keys and values.
#[derive(Debug)]
pub struct Table {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
}

/// Why a value cannot be incremented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoIncrement {
    /// It is no integer of 64 bits.
    NotAnInteger,
    /// It is the largest.
    Overflow,
}

impl Table {
    /// An empty table with so many shards.
    pub fn new(shards: usize) -> Self {
        let shards = (0..shards.max(1)).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new() }
    }

    /// Shows the value of a key.
    pub fn get<T>(&self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> T) -> T {
        show(self.lock(self.shard_of(key)).get(key).map(Vec::as_slice))
    }

    /// Sets a key.
    pub fn set(&self, key: &[u8], value: &[u8]) {
        put(&mut self.lock(self.shard_of(key)), key, value);
    }

    /// Sets many keys at once; a key that comes twice keeps its last value.
    pub fn set_all<'a>(&self, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) {
        let mut locked = self.lock_all(pairs.clone().map(|(key, _)| key));
        for (key, value) in pairs {
            put(locked.of(self.shard_of(key)), key, value);
        }
    }

    /// Removes keys at once; how many there were.
    pub fn remove_all<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> usize {
        let mut locked = self.lock_all(keys.clone());
        keys.filter(|key| locked.of(self.shard_of(key)).remove(*key).is_some()).count()
    }

    /// How many of these keys there are; a key that comes twice counts twice.
    pub fn count<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> usize {
        let mut locked = self.lock_all(keys.clone());
        keys.filter(|key| locked.of(self.shard_of(key)).contains_key(*key)).count()
    }

    /// Adds one to an integer, 0 if there is none; returns the sum.
    pub fn increment(&self, key: &[u8]) -> Result<i64, NoIncrement> {
        let mut shard = self.lock(self.shard_of(key));
        let before = match shard.get(key) {
            Some(text) => base::num::parse_i64(text).ok_or(NoIncrement::NotAnInteger)?,
            None => 0,
        };
        let after = before.checked_add(1).ok_or(NoIncrement::Overflow)?;
        put(&mut shard, key, after.to_string().as_bytes());
        Ok(after)
    }

    /// Keys. Shards are counted one after the other.
    pub fn keys(&self) -> usize {
        (0..self.shards.len()).map(|index| self.lock(index).len()).sum()
    }

    /// Removes everything at once.
    pub fn clear(&self) {
        let mut all: Vec<_> = (0..self.shards.len()).map(|index| self.lock(index)).collect();
        for shard in &mut all {
            shard.clear();
        }
    }

    fn shard_of(&self, key: &[u8]) -> usize {
        match self.shards.len() {
            1 => 0,
            many => self.hasher.hash_one(key) as usize % many,
        }
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        // A map is whole after each of its operations, also where a thread panicked between two.
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_all<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Locked<'_> {
        let mut wanted: Vec<usize> = keys.map(|key| self.shard_of(key)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Locked(wanted.into_iter().map(|index| (index, self.lock(index))).collect())
    }
}

/// Locked shards, ascending.
struct Locked<'a>(Vec<(usize, MutexGuard<'a, Shard>)>);

impl Locked<'_> {
    fn of(&mut self, index: usize) -> &mut Shard {
        let at = self.0.binary_search_by_key(&index, |(index, _)| *index);
        &mut self.0[at.expect("the shards of all keys are locked")].1
    }
}

fn put(shard: &mut Shard, key: &[u8], value: &[u8]) {
    match shard.get_mut(key) {
        Some(place) => {
            place.clear();
            place.extend_from_slice(value);
        }
        None => drop(shard.insert(key.into(), value.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    fn value(table: &Table, key: &str) -> Option<Vec<u8>> {
        table.get(key.as_bytes(), |value| value.map(<[u8]>::to_vec))
    }

    #[test]
    fn keys_are_set_counted_and_removed() {
        for shards in [OWNED, SHARED] {
            let table = Table::new(shards);
            let pairs: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")];
            table.set_all(pairs.into_iter());
            assert_eq!((value(&table, "a"), table.keys()), (Some(b"3".to_vec()), 2));
            let keys: [&[u8]; 3] = [b"a", b"a", b"none"];
            assert_eq!(table.count(keys.into_iter()), 2);
            assert_eq!(table.remove_all(keys.into_iter()), 1);
            assert_eq!((value(&table, "a"), table.keys()), (None, 1));
            table.clear();
            assert_eq!(table.keys(), 0);
        }
    }

    #[test]
    fn a_refused_increment_returns_its_reason() {
        let table = Table::new(SHARED);
        assert_eq!(table.increment(b"n"), Ok(1));
        table.set(b"n", b"9223372036854775807");
        assert_eq!(table.increment(b"n"), Err(NoIncrement::Overflow));
        table.set(b"n", b"1.5");
        assert_eq!(table.increment(b"n"), Err(NoIncrement::NotAnInteger));
        assert_eq!(value(&table, "n"), Some(b"1.5".to_vec()));
    }

    #[test]
    fn many_keys_change_atomically() {
        let table = Table::new(SHARED);
        let names: Vec<String> = (0..64).map(|n| format!("key:{n}")).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for order in [false, true] {
                let (table, names, done) = (&table, &names, &done);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let value = format!("{order}{round}");
                        let pairs = names.iter().map(|name| (name.as_bytes(), value.as_bytes()));
                        if order { table.set_all(pairs) } else { table.set_all(pairs.rev()) }
                    }
                    done.store(true, Ordering::SeqCst);
                });
            }
            while !done.load(Ordering::SeqCst) {
                let seen = table.remove_all(names.iter().map(String::as_bytes));
                assert!(seen == 0 || seen == names.len(), "{seen} of {}", names.len());
            }
        });
    }
}
