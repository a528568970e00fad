//! How many entries a group has read, and how many are ahead of it.

use super::consumer::Consumer;
use super::group::Group;
use super::id::StreamId;
use super::pending::Pending;
use super::root::Stream;
use std::cmp::Ordering;

impl Stream {
    /// Whether an entry may have been deleted from this id on.
    fn has_gaps(&self, from: StreamId) -> bool {
        !self.is_empty()
            && self.max_deleted != StreamId::MIN
            && from <= self.max_deleted
            && self.first_id() <= self.max_deleted
    }

    /// How many entries were ever added up to this id; `None` where deletions make it unknown.
    pub fn added_up_to(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.is_empty() && id <= self.last {
            return Some(self.added);
        }
        match id.cmp(&self.last) {
            Ordering::Equal => return Some(self.added),
            Ordering::Greater => return None,
            Ordering::Less => {}
        }
        let first = self.first_id();
        let before = self.added.checked_sub(self.len())?;
        if self.max_deleted != StreamId::MIN && self.max_deleted >= first || id > first {
            return None;
        }
        Some(before + u64::from(id == first))
    }

    /// The count of entries read by a group after it is delivered this one.
    pub fn read_with(&self, read: Option<u64>, id: StreamId) -> Option<u64> {
        match read {
            // The highest number stands for an unknown one, in files and in the undo log.
            Some(read) if !self.has_gaps(id) => {
                read.checked_add(1).filter(|read| *read != u64::MAX)
            }
            read if self.added == 0 => read,
            _ => self.added_up_to(id),
        }
    }

    /// How many entries follow the last one that was delivered to a group. They are counted, so the
    /// number is right whatever was trimmed, deleted or set. Redis computes it from counters: 7.2
    /// has no number once an entry ahead was deleted, and counts entries that were trimmed unread;
    /// 8.6 and Valkey 9.1 do so less often. O(log n).
    pub fn lag(&self, group: &Group) -> u64 {
        group.last.next().map_or(0, |next| self.len() - self.rank(next))
    }
}

/// The same marks, entries and groups.
impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.marks() == other.marks()
            && self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(a, b)| a.id == b.id && a.fields().eq(b.fields()))
            && self.groups().len() == other.groups().len()
            && self.groups().zip(other.groups()).all(|(a, b)| a.0 == b.0 && a.1.is_equal(b.1))
    }
}

impl Group {
    fn is_equal(&self, other: &Self) -> bool {
        let rows = |group: &Self| -> Vec<_> {
            let row =
                |row: &Pending| (row.id, row.at_ms, row.count, group.owner_name(row).to_vec());
            group.pending_from(StreamId::MIN).map(row).collect()
        };
        let consumer = |(_, c): (_, &Consumer)| (c.name().to_vec(), c.seen_ms, c.active_ms);
        (self.last, self.read) == (other.last, other.read)
            && rows(self) == rows(other)
            && self.consumers().map(consumer).eq(other.consumers().map(consumer))
    }
}
