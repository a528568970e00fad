//! A stream: its entries, its marks and its groups.

use super::consumer::ConsumerId;
use super::group::Group;
use super::groups::{Groups, Named};
use super::id::StreamId;
use super::page::{Limits, Page};
use super::pending::Pending;
use crate::records::{Record, Records};
use crate::tree::{Tree, Way};
use base::shared::{COUNT_BYTES, Shared};
use std::ops::Range;

/// A stream. Cloning it is O(1).
#[derive(Clone, Default)]
pub struct Stream {
    pub(super) entries: Tree<Page>,
    /// The highest id that was ever used.
    pub(super) last: StreamId,
    /// The highest id that was deleted by name.
    pub(super) max_deleted: StreamId,
    /// Entries that were ever added.
    pub(super) added: u64,
    groups: Option<Shared<Groups>>,
}

/// What a stream counts, besides its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The highest id that was ever used.
    pub last: StreamId,
    /// The highest id that was deleted by name; 0-0 if none was.
    pub max_deleted: StreamId,
    /// Entries that were ever added. A file or RESTORE may set any number; it wraps, as in Redis.
    pub added: u64,
}

// Operations of undo records: each is the inverse of the change that is logged, with its parts.

/// The last id before the entry.
const REMOVE_LAST: u8 = 0;
/// Name of the group, its last id, its count of entries read.
const SET_GROUP: u8 = 1;
/// Name of the group, id; and time, count and consumer if the entry was pending.
const SET_PENDING: u8 = 2;
/// Name of the group, consumer, both times.
const SET_TIMES: u8 = 3;
/// The last id, and the count of entries ever added.
pub(super) const TRUNCATE: u8 = 4;
/// Name of the group.
const REMOVE_GROUP: u8 = 5;

impl Stream {
    /// An empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.entries.len()
    }

    /// True if there is none. (Such a stream is still there.)
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Heap bytes, O(1).
    #[inline]
    pub fn memory(&self) -> usize {
        let groups = self.groups.as_ref();
        self.entries.memory()
            + groups.map_or(0, |groups| groups.weight().bytes + size_of::<Groups>() + COUNT_BYTES)
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.entries.nodes() + self.groups.as_ref().map_or(0, |groups| groups.weight().nodes)
    }

    /// True if both are clones of one stream, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        let address = |groups: &Option<Shared<Groups>>| groups.as_ref().map(Shared::address);
        self.entries.is_same(&other.entries)
            && self.marks() == other.marks()
            && address(&self.groups) == address(&other.groups)
    }

    /// True if both have the groups of one stream, unchanged since. O(1).
    pub fn has_groups_of(&self, other: &Self) -> bool {
        let address = |groups: &Option<Shared<Groups>>| groups.as_ref().map(Shared::address);
        address(&self.groups) == address(&other.groups)
    }

    /// True if entries were appended, and nothing else changed, since `was` was cloned. O(log n).
    pub fn has_grown_from(&self, was: &Self) -> bool {
        let gone = |stream: &Self| stream.added.wrapping_sub(stream.len());
        self.last >= was.last
            && gone(self) == gone(was)
            && self.max_deleted == was.max_deleted
            && (was.is_empty() || self.first_id() == was.first_id())
    }

    /// Takes the groups of another stream instead of its own. The caller has captured the stream.
    pub fn replace_groups(&mut self, other: Self) {
        self.groups = other.groups;
    }

    /// The same entries and marks. O(1).
    #[must_use]
    pub fn without_groups(&self) -> Self {
        Self { entries: self.entries.clone(), groups: None, ..*self }
    }

    /// Its marks.
    #[inline]
    pub fn marks(&self) -> Marks {
        Marks { last: self.last, max_deleted: self.max_deleted, added: self.added }
    }

    /// Sets its marks.
    pub fn set_marks(&mut self, marks: Marks) {
        let Marks { last, max_deleted, added } = marks;
        (self.last, self.max_deleted, self.added) = (last, max_deleted, added);
    }

    /// Appends an entry, whose id is higher than the last one; `size` is the sum of the lengths of
    /// fields and values. O(log n).
    #[inline]
    pub fn add<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        size: u64,
        limits: Limits,
        log: &mut Records,
    ) {
        debug_assert!(id > self.last);
        log.push(REMOVE_LAST, &[&self.last.to_bytes()]);
        self.entries.edit(Way::Last, |page, _| page.append(id, fields, size, limits));
        self.last = id;
        self.added = self.added.wrapping_add(1);
    }

    /// Appends a page of entries, which are higher than all here; for a stream that is no key's
    /// yet.
    pub fn add_page(&mut self, page: Page) {
        self.entries.edit(Way::Last, |last, _| last.follow(page));
    }

    /// Removes an entry; false if it is not there. The caller has captured the stream. O(log n).
    pub fn delete(&mut self, id: StreamId) -> bool {
        if !self.contains(id) {
            return false;
        }
        self.entries.edit(Way::Key(id), |page, _| page.delete(id));
        self.max_deleted = self.max_deleted.max(id);
        true
    }

    /// Removes the entries of these ranks, which does not count as deletion. The caller has
    /// captured the stream. O(log n), and the pages of the smaller part are read.
    pub fn trim(&mut self, ranks: Range<u64>) {
        self.entries.cut(ranks.start, ranks.end - ranks.start);
    }

    /// Groups, by name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        let groups = self.groups.as_ref();
        let mut all = groups.map(|groups| groups.iter());
        let count = groups.map_or(0, |groups| groups.len());
        (0..count).map(move |_| all.as_mut().and_then(Iterator::next).expect("as many"))
    }

    /// The place of a group. O(log n).
    pub fn find_group(&self, name: &[u8]) -> Option<usize> {
        self.groups.as_ref()?.find(name)
    }

    /// The group at a place.
    ///
    /// # Panics
    /// If there is none.
    pub fn group(&self, at: usize) -> &Group {
        &self.named(at).group
    }

    /// The group at a place, if there is one, and its name.
    pub fn group_at(&self, at: usize) -> Option<(&[u8], &Group)> {
        self.groups.as_ref()?.at(at).map(|named| (&*named.name, &named.group))
    }

    #[inline]
    fn named(&self, at: usize) -> &Named {
        self.groups.as_ref().and_then(|groups| groups.at(at)).expect("a stream with groups")
    }

    /// Adds a group; false if it is there. The caller has captured the stream.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let is_new = self.find_group(name).is_none();
        if is_new {
            self.groups
                .get_or_insert_with(Shared::default)
                .make_mut(Groups::copied_bytes)
                .insert(name, group);
        }
        is_new
    }

    /// As [`Stream::add_group`], with what undoes it in the log: the other groups are not copied,
    /// however many there are.
    pub fn create_group(&mut self, name: &[u8], group: Group, log: &mut Records) -> bool {
        let is_new = self.find_group(name).is_none();
        if is_new {
            log.push(REMOVE_GROUP, &[name]);
            self.add_group(name, group);
        }
        is_new
    }

    /// Removes a group. The caller has captured the stream.
    pub fn remove_group(&mut self, at: usize) {
        let groups = self.groups.as_mut().expect("a stream with groups");
        groups.make_mut(Groups::copied_bytes).remove(at);
        if groups.len() == 0 {
            self.groups = None;
        }
    }

    /// Changes a group. The caller has captured the stream, or logs what undoes it.
    pub fn edit_group<R>(&mut self, at: usize, f: impl FnOnce(&mut Group) -> R) -> R {
        self.groups
            .as_mut()
            .expect("a stream with groups")
            .make_mut(Groups::copied_bytes)
            .edit(at, f)
    }

    fn group_name(&self, at: usize) -> &[u8] {
        &self.named(at).name
    }

    /// Moves a group on: its last id and count of entries read.
    pub fn advance(&mut self, at: usize, last: StreamId, read: Option<u64>, log: &mut Records) {
        let group = self.group(at);
        let was = group.read.unwrap_or(u64::MAX).to_le_bytes();
        log.push(SET_GROUP, &[self.group_name(at), &group.last.to_bytes(), &was]);
        self.edit_group(at, |group| (group.last, group.read) = (last, read));
    }

    /// Makes an entry pending in a group, or changes it.
    pub fn deliver(&mut self, at: usize, row: Pending, log: &mut Records) {
        let old = self.group(at).get(row.id);
        self.log_pending(at, row.id, old, log);
        self.edit_group(at, |group| group.put(row));
    }

    /// Makes an entry pending no longer; false if it was not.
    pub fn acknowledge(&mut self, at: usize, id: StreamId, log: &mut Records) -> bool {
        let old = self.group(at).get(id);
        if old.is_some() {
            self.log_pending(at, id, old, log);
            self.edit_group(at, |group| group.take(id));
        }
        old.is_some()
    }

    fn log_pending(&self, at: usize, id: StreamId, old: Option<Pending>, log: &mut Records) {
        let name = self.group_name(at);
        match old {
            None => log.push(SET_PENDING, &[name, &id.to_bytes()]),
            Some(old) => {
                let place = old.consumer.to_bytes();
                let (at_ms, count) = (old.at_ms.to_le_bytes(), old.count.to_le_bytes());
                log.push(SET_PENDING, &[name, &id.to_bytes(), &at_ms, &count, &place]);
            }
        }
    }

    /// Sets when a consumer last tried to get something, and when it last got something.
    pub fn set_consumer_times(
        &mut self,
        at: usize,
        id: ConsumerId,
        seen_ms: i64,
        active_ms: i64,
        log: &mut Records,
    ) {
        let was = self.group(at).consumer(id);
        let times = [was.seen_ms.to_le_bytes(), was.active_ms.to_le_bytes()];
        log.push(SET_TIMES, &[self.group_name(at), &id.to_bytes(), &times[0], &times[1]]);
        self.edit_group(at, |group| group.set_times(id, seen_ms, active_ms));
    }

    /// Applies a record of the undo log.
    pub(crate) fn undo(&mut self, record: &Record) {
        let part = |at: usize| u64::from_le_bytes(array(&record.parts[at]));
        let id = |at: usize| StreamId::of_bytes(array(&record.parts[at]));
        if record.op == REMOVE_LAST {
            self.entries.edit(Way::Last, |page, _| page.undo_append());
            self.last = id(0);
            self.added = self.added.wrapping_sub(1);
            return;
        }
        if record.op == TRUNCATE {
            return self.undo_pour(id(0), part(1));
        }
        let at = self.find_group(&record.parts[0]).expect("the group was there");
        match record.op {
            REMOVE_GROUP => self.remove_group(at),
            SET_GROUP => self.edit_group(at, |group| {
                group.last = id(1);
                group.read = Some(part(2)).filter(|read| *read != u64::MAX);
            }),
            SET_PENDING if record.parts.len() == 2 => {
                self.edit_group(at, |group| group.take(id(1)));
            }
            SET_PENDING => {
                let consumer = ConsumerId::of_bytes(array(&record.parts[4]));
                let row = Pending { id: id(1), at_ms: part(2) as i64, count: part(3), consumer };
                self.edit_group(at, |group| group.put(row));
            }
            _ => {
                let consumer = ConsumerId::of_bytes(array(&record.parts[1]));
                let (seen, active) = (part(2) as i64, part(3) as i64);
                self.edit_group(at, |group| group.set_times(consumer, seen, active));
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as it was logged")
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("len", &self.len())
            .field("marks", &self.marks())
            .finish_non_exhaustive()
    }
}
