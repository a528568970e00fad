//! The records of the expiry index of one database in one slot.

use std::collections::{BTreeMap, BTreeSet};

/// When, in milliseconds, and the key's hash.
pub(crate) type Record = (i64, u64);

/// An ordered set in which keys of one hash and one time have one record, which stays as long as
/// one of them does.
#[derive(Debug, Default)]
pub(crate) struct DueSet {
    records: BTreeSet<Record>,
    /// Of records that several keys share, how many there are beyond the first; nearly always
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

    /// Keys that have a record.
    pub fn len(&self) -> usize {
        self.records.len() + self.shared.values().sum::<u32>() as usize
    }

    /// Records of this time or earlier, of which at most `max` are counted.
    pub fn count_by(&self, at: i64, max: usize) -> usize {
        self.records.range(..=(at, u64::MAX)).take(max).count()
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
    fn a_record_stays_as_long_as_a_key_that_shares_it() {
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
