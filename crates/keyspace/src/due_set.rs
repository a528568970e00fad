//! The expiry index of one database in one slot: an ordered set of (time, hash of the key).

use std::collections::{BTreeMap, BTreeSet};

/// A time in milliseconds since the epoch, and the hash of a key that is due then.
pub(crate) type Record = (i64, u64);

/// An ordered set of records. Keys with the same hash and time share a record, which is counted.
#[derive(Debug, Default)]
pub(crate) struct DueSet {
    records: BTreeSet<Record>,
    /// For records that several keys share: how many there are beyond the first. Almost always
    /// empty.
    shared: BTreeMap<Record, u32>,
}

impl DueSet {
    /// Adds the record of a key.
    pub fn insert(&mut self, record: Record) {
        if !self.records.insert(record) {
            *self.shared.entry(record).or_default() += 1;
        }
    }

    /// Removes the record of a key.
    pub fn remove(&mut self, record: Record) {
        match self.shared.get_mut(&record) {
            None => _ = self.records.remove(&record),
            Some(1) => _ = self.shared.remove(&record),
            Some(others) => *others -= 1,
        }
    }

    /// How many keys have a record.
    pub fn len(&self) -> usize {
        self.records.len() + self.shared.values().sum::<u32>() as usize
    }

    /// How many records have this time or an earlier one; counts no further than `max`.
    pub fn count_by(&self, at: i64, max: usize) -> usize {
        self.records.range(..=(at, u64::MAX)).take(max).count()
    }

    /// The hashes of up to `max` records, in the order of their times, from the `first`th on.
    pub fn hashes(&self, first: usize, max: usize) -> Vec<u64> {
        self.records.iter().skip(first).take(max).map(|(_, hash)| *hash).collect()
    }

    /// The earliest record.
    pub fn first(&self) -> Option<Record> {
        self.records.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_stays_until_its_last_key_is_removed() {
        let mut set = DueSet::default();
        for _ in 0..3 {
            set.insert((5, 1));
        }
        set.insert((7, 1));
        assert_eq!([4, 5, 7].map(|at| set.count_by(at, 9)), [0, 1, 2]);
        assert_eq!(set.count_by(7, 1), 1);
        let mut keys = 4;
        for _ in 0..3 {
            assert_eq!(set.len(), keys);
            assert_eq!(set.first(), Some((5, 1)));
            keys -= 1;
            set.remove((5, 1));
        }
        assert_eq!(set.first(), Some((7, 1)));
        set.remove((7, 1));
        assert_eq!(set.first(), None);
    }
}
