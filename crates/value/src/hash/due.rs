//! When the fields of a hash expire.

use crate::keyed::{Key, Keyed};

/// When fields expire: only a hash that has such fields carries it.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    /// The time of a field, as eight bytes, in the order of the fields' hashes.
    pub fields: Keyed,
    /// The fields in the order of their times.
    pub times: Keyed,
    /// The fields that are due at this time are hidden.
    pub until: i64,
    /// So many: the first ones of `times`.
    pub hidden: u64,
}

impl Due {
    /// The time of a field, hidden or not.
    pub fn expiry(&self, field: &[u8]) -> Option<i64> {
        let time = self.fields.get(Key::hashed(field))?;
        Some(i64::from_be_bytes(time.short().try_into().expect("a time has 8 bytes")))
    }

    /// Fields that were due by `now`.
    pub fn count(&self, now: i64) -> u64 {
        let Some(behind) = now.checked_add(1) else { return self.times.len() };
        self.times.rank(Key { head: head_of(behind), tail: &tail_of(behind, b"") }).0
    }

    /// The field that expires next, and when.
    pub fn first(&self) -> Option<(i64, &[u8])> {
        let key = self.times.iter().next()?.key;
        let (low, field) = key.tail.split_first_chunk().expect("the rest of a time");
        Some((i64::from(key.head) << 32 | i64::from(u32::from_be_bytes(*low)), field))
    }
}

/// A time is not negative: in the order of its bytes.
pub(super) fn head_of(at: i64) -> u32 {
    (at >> 32) as u32
}

pub(super) fn tail_of(at: i64, field: &[u8]) -> Vec<u8> {
    let mut tail = Vec::with_capacity(4 + field.len());
    tail.extend_from_slice(&(at as u32).to_be_bytes());
    tail.extend_from_slice(field);
    tail
}
