//! Room for keys that are announced: a file says how many keys follow.
//!
//! A table which grows key by key moves each entry about once, with a cache miss or two. One that
//! has its buckets before its first key moves none.

use crate::guard::Guard;
use crate::stats::set;
use base::{DbIndex, SLOTS, SlotId};

/// Keys of one slot for which room is made at most. More keys of a slot grow their table as they
/// arrive.
const SLOT_KEYS_MAX: u64 = 1 << 20;

impl Guard<'_> {
    /// Makes room in the table of one covered slot for its share of `keys` announced keys of a
    /// database, if it has no key and no room yet. A wrong announcement costs addresses of bucket
    /// memory, and no more. O(1), but O(keys / slots) for the first key of a slot.
    #[inline]
    pub fn reserve(&mut self, db: DbIndex, slot: SlotId, keys: u64) {
        let share = (keys / SLOTS as u64).min(SLOT_KEYS_MAX) as u32;
        let table = self.owned(slot).table_or_new(self.ks.physical(db));
        if share > 0 && table.buckets() == 0 {
            table.reserve(&mut self.workspace(), share);
            // (Of the database from its first key on.)
            set(&self.ks.stats(self.w.index).buckets, self.w.pages.buckets);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::{Access, Event, Intent, Keyspace, Options};
    use base::UnixMs;
    use base::sync::Arc;
    use value::NewStr;

    const NOW: UnixMs = UnixMs(1_000_000);
    /// Keys of one slot that are announced.
    const SHARE: u64 = 300;

    /// Puts keys of one slot, with or without room for them.
    fn filled(keys: u64, announced: u64) -> (Access, SlotId) {
        let options = Options { databases: 2, hash_secret: 3, workers: 1 };
        let mut access = Access::new(Arc::new(Keyspace::new(&options)), 0);
        assert!(access.enter());
        let keyspace = Arc::clone(access.keyspace());
        let slot = keyspace.key(b"{x}").slot;
        for at in 0..keys {
            let name = format!("{{x}}{at}");
            let key = keyspace.key(name.as_bytes());
            let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
            for db in [DbIndex(0), DbIndex(1)] {
                guard.reserve(db, slot, announced);
                assert!(!guard.contains(db, &key), "key {at}");
                guard.insert(Event::SILENT, db, &key, NewStr::Int(at as i64), None);
            }
            guard.finish();
        }
        (access, slot)
    }

    fn buckets(access: &mut Access, slot: SlotId) -> u32 {
        let guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
        guard.owned(slot).table(0).expect("it has keys").buckets()
    }

    /// The first key makes the room, in each database, and a table has then as many buckets as one
    /// that grew. All keys are found, whether they fit or are more, and removing them shrinks it.
    #[test]
    fn a_table_has_its_room_before_its_keys() {
        let grown = {
            let (mut access, slot) = filled(SHARE, 0);
            buckets(&mut access, slot)
        };
        let (mut access, slot) = filled(1, SHARE * SLOTS as u64);
        assert_eq!(buckets(&mut access, slot), grown - 1, "the last one comes with the last keys");
        for keys in [SHARE, 3 * SHARE] {
            let (mut access, slot) = filled(keys, SHARE * SLOTS as u64);
            let keyspace = Arc::clone(access.keyspace());
            assert_eq!((keyspace.db_len(DbIndex(0)), keyspace.db_len(DbIndex(1))), (keys, keys));
            for at in 0..keys {
                let name = format!("{{x}}{at}");
                let key = keyspace.key(name.as_bytes());
                let mut guard = access.lock_one(slot, NOW, Intent::Write).expect("free");
                assert!(guard.remove(Event::SILENT, DbIndex(0), &key), "key {at} of {keys}");
            }
            assert_eq!(buckets(&mut access, slot), 1);
        }
    }

    /// Nothing is reserved for less than a bucket, and a lie costs one slot's bound at most.
    #[test]
    fn announcements_are_bounded() {
        let (mut access, slot) = filled(1, SLOTS as u64);
        assert_eq!(buckets(&mut access, slot), 1);
        let (mut access, slot) = filled(1, u64::MAX);
        assert_eq!(u64::from(buckets(&mut access, slot)), SLOT_KEYS_MAX * 4 / 27);
    }
}
