//! How full the tables of a database are, for DEBUG HTSTATS.

use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::memory::BUCKET_BYTES;
use crate::parking::Parked;
use base::DbIndex;

/// The sum over all tables of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableShape {
    /// Entries, expired or not.
    pub entries: u64,
    /// The number of buckets with 0, 1, 2 ... entries at home.
    pub by_fill: Vec<u64>,
}

impl TableShape {
    fn count(&mut self, fill: usize) {
        if self.by_fill.len() <= fill {
            self.by_fill.resize(fill + 1, 0);
        }
        self.by_fill[fill] += 1;
        self.entries += fill as u64;
    }

    /// Buckets, empty ones among them.
    pub fn buckets(&self) -> u64 {
        self.by_fill.iter().sum()
    }
}

impl Guard<'_> {
    /// Visits every bucket of a database; O(n), one slot at a time. The guard covers no slot or all
    /// slots.
    ///
    /// # Errors
    /// [`Parked::Slot`] behind a long holder; never for a guard over everything.
    pub fn table_shape(&mut self, db: DbIndex) -> Result<TableShape, Parked> {
        let physical = self.ks.physical(db);
        let mut shape = TableShape::default();
        let mut from = 0;
        while let Some(slot) = self.ks.next_occupied(physical, from) {
            from = slot.index() + 1;
            self.step_into(slot)?;
            if let Some(table) = self.owned(slot).table(physical).filter(|t| t.buckets() > 0) {
                let mut point = Some(0);
                while let Some(at) = point {
                    let mut fill = 0;
                    point = table.visit(&self.ks.mem, at, |_| fill += 1);
                    shape.count(fill);
                }
            }
            self.step_out();
        }
        Ok(shape)
    }

    /// Bytes of the entries of a database, of their values outside, and of the buckets of tables
    /// with keys, counted one by one: what [`crate::Keyspace::db_bytes`] keeps count of. O(n), one
    /// slot at a time. The guard covers no slot or all slots.
    ///
    /// # Errors
    /// As [`Guard::table_shape`].
    pub fn measure_bytes(&mut self, db: DbIndex) -> Result<u64, Parked> {
        let physical = self.ks.physical(db);
        let mut bytes = 0;
        let mut from = 0;
        while let Some(slot) = self.ks.next_occupied(physical, from) {
            from = slot.index() + 1;
            self.step_into(slot)?;
            if let Some(table) = self.owned(slot).table(physical).filter(|t| t.len() > 0) {
                let mut point = Some(0);
                while let Some(at) = point {
                    let add = |entry: EntryPtr| bytes += entry.memory() as u64;
                    point = table.visit(&self.ks.mem, at, add);
                }
                bytes += table.taken(&self.ks.mem) * BUCKET_BYTES as u64;
            }
            self.step_out();
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Access, Event, Intent, Keyspace, Options, TableShape};
    use base::sync::Arc;
    use base::{DbIndex, UnixMs};
    use value::NewStr;

    const DB: DbIndex = DbIndex(0);
    const NOW: UnixMs = UnixMs(1);

    fn shape(access: &mut Access) -> TableShape {
        access.free(NOW).table_shape(DB).expect("no other lock is held")
    }

    fn remove(access: &mut Access, numbers: std::ops::Range<u32>) {
        for n in numbers {
            let text = format!("{{a}}{n}");
            let ks = access.keyspace().clone();
            let key = ks.key(text.as_bytes());
            access.lock_one(key.slot, NOW, Intent::Write).expect("free").remove(
                Event::SILENT,
                DB,
                &key,
            );
        }
    }

    #[test]
    fn tables_shrink_unless_shrinking_is_disabled() {
        let ks = Arc::new(Keyspace::new(&Options { databases: 1, hash_secret: 1, workers: 1 }));
        let mut access = Access::new(Arc::clone(&ks), 0);
        assert!(access.enter());
        assert_eq!(shape(&mut access), TableShape::default());
        for n in 0..2_000 {
            let text = format!("{{a}}{n}");
            let key = ks.key(text.as_bytes());
            let mut guard = access.lock_one(key.slot, NOW, Intent::Write).expect("free");
            guard.insert(Event::SILENT, DB, &key, NewStr::Int(n), None);
        }
        let full = shape(&mut access);
        assert_eq!(full.entries, 2_000);
        let measured = access.free(NOW).measure_bytes(DB).expect("no other lock is held");
        assert_eq!(ks.db_bytes(DB), measured);
        assert!(full.buckets() > 200 && full.by_fill.len() > 2, "{full:?}");
        ks.set_shrinking(false);
        remove(&mut access, 0..1_000);
        let kept = shape(&mut access);
        assert_eq!((kept.entries, kept.buckets()), (1_000, full.buckets()));
        ks.set_shrinking(true);
        remove(&mut access, 1_000..1_900);
        let shrunk = shape(&mut access);
        assert_eq!(shrunk.entries, 100);
        let measured = access.free(NOW).measure_bytes(DB).expect("no other lock is held");
        assert_eq!(ks.db_bytes(DB), measured);
        assert!(shrunk.buckets() < full.buckets() / 2, "{shrunk:?}");
    }
}
