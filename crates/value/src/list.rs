//! Big lists.

use crate::log::{Log, Record};
use crate::seq::{Item, Iter, IterBack, Seq};

/// Elements in a row. Cloning it is O(1).
#[derive(Clone, Debug, Default)]
pub struct List(Seq);

const INSERT: u8 = 0;
const REMOVE: u8 = 1;
const SET: u8 = 2;

impl List {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Elements.
    #[inline]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// The element at a position. O(log n), as all below.
    pub fn get(&self, at: u64) -> Option<Item<'_>> {
        self.0.get(at)
    }

    /// Inserts before the element at this position; the length appends.
    #[inline]
    pub fn insert(&mut self, at: u64, text: &[u8], log: &mut Log) {
        self.0.insert(at, text);
        log.push(REMOVE, &[&at.to_le_bytes()]);
    }

    /// Appends.
    #[inline]
    pub fn push_back(&mut self, text: &[u8], log: &mut Log) {
        self.insert(self.len(), text, log);
    }

    /// Prepends.
    #[inline]
    pub fn push_front(&mut self, text: &[u8], log: &mut Log) {
        self.insert(0, text, log);
    }

    /// Removes the element at this position; `old` sees it.
    #[inline]
    pub fn remove<R>(&mut self, at: u64, log: &mut Log, old: impl FnOnce(Item<'_>) -> R) -> R {
        self.0.remove(at, |item| {
            let mut scratch = crate::IntText::default();
            log.push(INSERT, &[&at.to_le_bytes(), item.bytes(&mut scratch)]);
            old(item)
        })
    }

    /// Puts another text at this position.
    pub fn set(&mut self, at: u64, text: &[u8], log: &mut Log) {
        self.0.set(at, text, |item| {
            let mut scratch = crate::IntText::default();
            log.push(SET, &[&at.to_le_bytes(), item.bytes(&mut scratch)]);
        });
    }

    /// Removes so many elements from this position on, O(pages); the caller has captured the list in the log.
    pub fn remove_range(&mut self, at: u64, count: u64) {
        self.0.remove_range(at, count);
    }

    /// The elements from this position on.
    pub fn iter_from(&self, at: u64) -> Iter<'_> {
        self.0.iter_from(at)
    }

    /// The elements before this position, downwards.
    pub fn iter_back_from(&self, at: u64) -> IterBack<'_> {
        self.0.iter_back_from(at)
    }

    /// All elements.
    pub fn iter(&self) -> Iter<'_> {
        self.0.iter()
    }

    pub(crate) fn undo(&mut self, record: &Record) {
        let at = u64::from_le_bytes(record.parts[0][..].try_into().expect("a position"));
        match record.op {
            INSERT => self.0.insert(at, &record.parts[1]),
            REMOVE => self.0.remove(at, |_| ()),
            _ => self.0.set(at, &record.parts[1], |_| ()),
        }
    }
}
