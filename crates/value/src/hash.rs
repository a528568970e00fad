//! Big hashes.

use crate::keyed::{Iter, Key, Keyed, Val};
use crate::log::{Log, Record};
use base::Blob;

/// Fields in the order of their hash, with their values. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct Hash {
    fields: Keyed,
}

const SET: u8 = 0;
const REMOVED: u8 = 1;

impl Hash {
    /// An empty hash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fields.
    #[inline]
    pub fn len(&self) -> u64 {
        self.fields.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.fields.memory()
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.fields.nodes()
    }

    /// The value of a field. O(log n), as all below.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Val<'_>> {
        self.fields.get(Key::hashed(field))
    }

    /// Sets a field; true if it was not there.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8], log: &mut Log) -> bool {
        self.fields.insert(Key::hashed(field), value, |old| logged(field, old, log))
    }

    /// As [`Hash::set`], of a value in its final buffer.
    pub fn set_blob(&mut self, field: &[u8], value: Blob, log: &mut Log) -> bool {
        self.fields.insert_blob(Key::hashed(field), value, |old| logged(field, old, log))
    }

    /// Removes a field; false if it was not there.
    pub fn remove(&mut self, field: &[u8], log: &mut Log) -> bool {
        let removed = |old: &[u8]| log.push(SET, &[field, old]);
        self.fields.remove(Key::hashed(field), removed).is_some()
    }

    /// The field at a rank in hash order.
    pub fn at(&self, rank: u64) -> Option<(&[u8], Val<'_>)> {
        self.fields.at(rank).map(|item| (item.key.tail, item.value))
    }

    /// The fields in hash order.
    pub fn iter(&self) -> Fields<'_> {
        Fields(self.fields.iter())
    }

    /// The fields whose hash is at least this.
    pub fn iter_from(&self, hash: u32) -> Fields<'_> {
        Fields(self.fields.from_key(Key { head: hash, tail: b"" }))
    }

    pub(crate) fn undo(&mut self, record: &Record) {
        let key = Key::hashed(&record.parts[0]);
        if record.op == SET {
            self.fields.insert(key, &record.parts[1], |_| ());
        } else {
            self.fields.remove(key, |_| ());
        }
    }
}

/// Logs what undoes a write, and says whether the field is new.
fn logged(field: &[u8], old: Option<&[u8]>, log: &mut Log) -> bool {
    match old {
        Some(old) => log.push(SET, &[field, old]),
        None => log.push(REMOVED, &[field]),
    }
    old.is_none()
}

/// Fields of a hash with their values.
#[derive(Clone)]
pub struct Fields<'a>(Iter<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Val<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|item| (item.key.tail, item.value))
    }
}
