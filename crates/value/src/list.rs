//! Lists.
//!
//! ```text
//! small   | element | element | ...
//! big     a sequence of elements, and what they would weigh in a listpack: thresholds count that
//! ```

use crate::packed::Elem;
use crate::records::{Record, Records};
use crate::seq::Seq;
pub use crate::seq::{FAR_MIN, Item, Iter, IterBack, NewItem};
use crate::string::IntText;

/// Elements in a row. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct List {
    seq: Seq,
    /// Bytes of all elements as listpack entries ([`listpack_entry`]), or [`UNKNOWN`].
    weight: u64,
}

// Operations of undo records: each is the inverse of the change that is logged, with its parts.

/// Position, text; a far element is the blob of the record.
const INSERT: u8 = 0;
/// Position.
const REMOVE: u8 = 1;
/// Position, text; a far element is the blob of the record.
const SET: u8 = 2;
/// Length, weight.
const TRUNCATE: u8 = 3;

/// Elements were removed in bulk, and those that are left were too many to be weighed.
const UNKNOWN: u64 = u64::MAX;
/// So many elements are weighed at once, at most.
const WEIGHED_MAX: u64 = 1 << 14;

/// Bytes that an element takes in a listpack, Redis's form of small collections: what its
/// thresholds count. (As the format is described by its author: encoding, data, and their length
/// backwards.)
#[inline]
pub fn listpack_entry(item: Item<'_>) -> u64 {
    let len = match item {
        Item::Near(Elem::Int(value)) => match value {
            0..=127 => 1,
            -4096..=4095 => 2,
            -0x8000..=0x7FFF => 3,
            -0x0080_0000..=0x007F_FFFF => 4,
            -0x8000_0000..=0x7FFF_FFFF => 5,
            _ => 9,
        },
        Item::Near(Elem::Bytes(bytes)) => listpack_text(bytes.len()),
        Item::Far(blob) => listpack_text(blob.len()),
    };
    let backwards = match len {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        2_097_152..=268_435_455 => 4,
        _ => 5,
    };
    len + backwards
}

#[inline]
fn listpack_text(len: usize) -> u64 {
    let head = match len {
        0..=63 => 1,
        64..=4095 => 2,
        _ => 5,
    };
    head + len as u64
}

impl List {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Elements.
    #[inline]
    pub fn len(&self) -> u64 {
        self.seq.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.seq.is_empty()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.seq.memory()
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.seq.nodes()
    }

    /// Bytes of all elements as listpack entries; `None` where they are too many to be counted now.
    /// O(1) but for a list that has shrunk by much at once.
    #[inline]
    pub fn weight(&mut self) -> Option<u64> {
        if self.weight == UNKNOWN && self.len() <= WEIGHED_MAX {
            self.weight = self.iter().map(listpack_entry).sum();
        }
        (self.weight != UNKNOWN).then_some(self.weight)
    }

    #[inline]
    fn weigh(&mut self, by: impl FnOnce(u64) -> u64) {
        if self.weight != UNKNOWN {
            self.weight = by(self.weight);
        }
    }

    /// The element at a position. O(log n), as all below.
    pub fn get(&self, at: u64) -> Option<Item<'_>> {
        self.seq.get(at)
    }

    /// Inserts before the element at this position; the length appends.
    #[inline]
    pub fn insert(&mut self, at: u64, text: &[u8], log: &mut Records) {
        self.insert_new(at, NewItem::of(text), log);
    }

    /// As [`List::insert`], for an element that may have a buffer of its own.
    #[inline]
    pub fn insert_new(&mut self, at: u64, new: NewItem<'_>, log: &mut Records) {
        self.put(at, new);
        log.push(REMOVE, &[&at.to_le_bytes()]);
    }

    #[inline]
    fn put(&mut self, at: u64, new: NewItem<'_>) {
        let weight = listpack_entry(new.item());
        self.weigh(|all| all + weight);
        self.seq.insert(at, new);
    }

    /// Appends.
    #[inline]
    pub fn push_back(&mut self, text: &[u8], log: &mut Records) {
        self.insert(self.len(), text, log);
    }

    /// Prepends.
    #[inline]
    pub fn push_front(&mut self, text: &[u8], log: &mut Records) {
        self.insert(0, text, log);
    }

    /// Appends elements; one operation in the log.
    pub fn extend<'t>(&mut self, elements: impl Iterator<Item = NewItem<'t>>, log: &mut Records) {
        log.push(TRUNCATE, &[&self.len().to_le_bytes(), &self.weight.to_le_bytes()]);
        elements.for_each(|new| self.build(new));
    }

    /// Appends without a log, to a list that is no key's yet.
    pub fn build(&mut self, new: NewItem<'_>) {
        self.put(self.len(), new);
    }

    /// Removes the element at this position; `old` sees it.
    #[inline]
    pub fn remove<R>(&mut self, at: u64, log: &mut Records, old: impl FnOnce(Item<'_>) -> R) -> R {
        self.remove_unlogged(at, |item| {
            log_old(log, INSERT, at, item);
            old(item)
        })
    }

    /// Removes without a log.
    #[inline]
    fn remove_unlogged<R>(&mut self, at: u64, old: impl FnOnce(Item<'_>) -> R) -> R {
        let (result, weight) = self.seq.remove(at, |item| (old(item), listpack_entry(item)));
        self.weigh(|all| all - weight);
        result
    }

    /// Puts another element at this position.
    pub fn set(&mut self, at: u64, new: NewItem<'_>, log: &mut Records) {
        self.change(at, new, |item| log_old(log, SET, at, item));
    }

    fn change(&mut self, at: u64, new: NewItem<'_>, old: impl FnOnce(Item<'_>)) {
        let weight = listpack_entry(new.item());
        let before = self.seq.set(at, new, |item| {
            old(item);
            listpack_entry(item)
        });
        self.weigh(|all| all + weight - before);
    }

    /// Removes `count` elements from this position on; the caller has captured the list in the log.
    /// Whole pages are removed by reference: O(log n), and half of the pages are read at most.
    pub fn remove_range(&mut self, at: u64, count: u64) {
        self.weight = UNKNOWN;
        self.seq.remove_range(at, count);
    }

    /// As [`crate::Big::release_if_shared`].
    pub(crate) fn release_if_shared(&mut self) -> bool {
        self.seq.release_if_shared()
    }

    /// As [`crate::Big::release_before`].
    pub(crate) fn release_before(&mut self, at: u64) -> usize {
        self.seq.release_before(at)
    }

    /// True if both are clones of one list, unchanged since. O(1).
    pub fn is_same(&self, other: &Self) -> bool {
        self.seq.is_same(&other.seq)
    }

    /// The elements from this position on.
    pub fn iter_from(&self, at: u64) -> Iter<'_> {
        self.seq.iter_from(at)
    }

    /// The elements before this position, downwards.
    pub fn iter_back_from(&self, at: u64) -> IterBack<'_> {
        self.seq.iter_back_from(at)
    }

    /// All elements.
    pub fn iter(&self) -> Iter<'_> {
        self.seq.iter()
    }

    /// Applies a record of the undo log.
    pub(crate) fn undo(&mut self, record: Record) {
        let number =
            |at: usize| u64::from_le_bytes(record.parts[at][..].try_into().expect("a number"));
        let at = number(0);
        if record.op == TRUNCATE {
            let weight = number(1);
            self.remove_range(at, self.len() - at);
            self.weight = weight;
            return;
        }
        let new = match (record.blob, record.parts.get(1)) {
            (Some(blob), _) => NewItem::Far(blob),
            (None, Some(text)) => NewItem::of(text),
            (None, None) => return self.remove_unlogged(at, |_| ()), // undoes an insertion
        };
        match record.op {
            INSERT => self.put(at, new),
            _ => self.change(at, new, |_| ()),
        }
    }
}

/// Logs an element that is removed or replaced: a far one by reference.
#[inline]
fn log_old(log: &mut Records, op: u8, at: u64, item: Item<'_>) {
    let at = at.to_le_bytes();
    match item {
        Item::Near(Elem::Bytes(bytes)) => log.push(op, &[&at, bytes]),
        Item::Near(Elem::Int(value)) => log.push(op, &[&at, IntText::new(value).as_bytes()]),
        Item::Far(blob) => log.push_blob(op, &[&at], blob.clone()),
    }
}
