//! Tables of rows of one size, in the order of their ids: pending entries, and consumers by place.

use super::id::StreamId;
use crate::tree::{End, Leaf, Separator, Tree, Walk, Way};
use std::cmp::Ordering;

/// Bytes of a page, at most.
const PAGE_BYTES: usize = 4096;

/// A record with an id.
pub trait Row: Clone {
    /// What it is found by.
    fn id(&self) -> StreamId;
}

impl Row for StreamId {
    fn id(&self) -> StreamId {
        *self
    }
}

/// The leaf of a tree of records.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    rows: Vec<T>,
    /// The last row was inserted at the end.
    grew: bool,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), grew: false }
    }
}

impl<T: Row> Rows<T> {
    const MAX: usize = PAGE_BYTES / size_of::<T>();

    fn seek(&self, id: StreamId) -> Result<usize, usize> {
        if self.rows.last().is_none_or(|last| last.id() < id) {
            return Err(self.rows.len());
        }
        self.rows.binary_search_by_key(&id, Row::id)
    }
}

impl<T: Row> Leaf for Rows<T> {
    type Key<'a> = StreamId;

    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.rows.len() > Self::MAX
    }

    #[inline]
    fn is_under(&self) -> bool {
        self.rows.len() < Self::MAX / 4
    }

    fn split(&mut self) -> Self {
        let at = if self.grew { self.rows.len() - 1 } else { self.rows.len() / 2 };
        let rows = self.rows.split_off(at);
        self.rows.shrink_to_fit();
        Self { rows, grew: self.grew }
    }

    fn absorb(&mut self, right: &Self) -> bool {
        let fits = self.rows.len() + right.rows.len() <= Self::MAX * 3 / 4;
        if fits {
            self.rows.extend_from_slice(&right.rows);
        }
        fits
    }

    fn separator(&self, _: &Self) -> Separator {
        self.rows[0].id().separator()
    }

    #[inline]
    fn number(key: StreamId) -> u64 {
        key.ms
    }

    fn compare(key: StreamId, separator: &End) -> Ordering {
        key.against(separator)
    }
}

/// Records by their ids. Cloning is O(1), what changes or finds one O(log n).
#[derive(Clone)]
pub struct Table<T: Row>(Tree<Rows<T>>);

impl<T: Row> Default for Table<T> {
    fn default() -> Self {
        Self(Tree::default())
    }
}

impl<T: Row> Table<T> {
    /// Records.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Heap bytes, O(1).
    pub fn memory(&self) -> usize {
        self.0.memory()
    }

    /// Nodes, O(1).
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// The record of this id.
    pub fn get(&self, id: StreamId) -> Option<&T> {
        let rows = self.0.find_key(id);
        rows.seek(id).ok().map(|at| &rows.rows[at])
    }

    /// Puts a record in; returns the one of the same id that it replaces.
    pub fn put(&mut self, row: T) -> Option<T> {
        let id = row.id();
        self.0.edit(Way::Key(id), |rows, _| match rows.seek(id) {
            Ok(at) => Some(std::mem::replace(&mut rows.rows[at], row)),
            Err(at) => {
                rows.grew = at == rows.rows.len();
                rows.rows.insert(at, row);
                None
            }
        })
    }

    /// Changes the record of an id, but not its id.
    pub fn edit<R>(&mut self, id: StreamId, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.get(id)?;
        self.0.edit(Way::Key(id), |rows, _| rows.seek(id).ok().map(|at| f(&mut rows.rows[at])))
    }

    /// Takes the record of an id out.
    pub fn take(&mut self, id: StreamId) -> Option<T> {
        self.get(id)?;
        self.0.edit(Way::Key(id), |rows, _| {
            rows.grew = false;
            rows.seek(id).ok().map(|at| rows.rows.remove(at))
        })
    }

    /// The records from this id on.
    pub fn iter_from(&self, id: StreamId) -> RowsIter<'_, T> {
        let walk = self.0.walk(Way::Key(id));
        let at = walk.leaf().seek(id).unwrap_or_else(|at| at);
        RowsIter { walk, at }
    }

    /// All records.
    pub fn iter(&self) -> RowsIter<'_, T> {
        self.iter_from(StreamId::MIN)
    }

    /// The last record.
    pub fn last(&self) -> Option<&T> {
        self.0.len().checked_sub(1).and_then(|rank| {
            let (rows, before) = self.0.find(Way::Rank(rank));
            rows.rows.get((rank - before) as usize)
        })
    }
}

impl<T: Row> std::fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Records upwards.
#[derive(Clone)]
pub struct RowsIter<'a, T: Row> {
    walk: Walk<'a, Rows<T>>,
    at: usize,
}

impl<'a, T: Row> Iterator for RowsIter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(row) = self.walk.leaf().rows.get(self.at) {
                self.at += 1;
                return Some(row);
            }
            if !self.walk.forward() {
                return None;
            }
            self.at = 0;
        }
    }
}
