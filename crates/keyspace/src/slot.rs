//! A slot: one cache line with all that a command on database 0 needs, and a pointer to parts that
//! most slots never have.
//!
//! ```text
//!   0       4          8        12                        48         56        64
//!   +-------+----------+--------+-------------------------+----------+---------+
//!   | lock  | buckets  | count  | directory, 9 x u32      | last seq | cold    |
//!   +-------+----------+--------+-------------------------+----------+---------+
//!   lock.rs |<------ table of physical database 0 ------->|               |
//!                      (table.rs)                                          v
//!                                             Cold, made on first use:
//!                                               tables   of the other databases
//!                                               watches  how many watches and waiting clients
//!                                               parts    expiry index, watches, waiters
//! ```
//!
//! `last seq` is the number of the last change.
#![allow(unsafe_code)]

use crate::due_set::DueSet;
use crate::lock::SlotLock;
use crate::table::{HeldTable, Table};
use crate::wait::Waiters;
use crate::watch::Watchers;
use base::sync::hint::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::cell::RefCell;
use std::ptr;

/// One slot of the keyspace, alone on its cache line.
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub lock: SlotLock,
    /// The table of physical database 0.
    table: Table,
    last_seq: AtomicU64,
    cold: AtomicPtr<Cold>,
}

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<Slot>() == 64);

// SAFETY: the lock word and the table head are atomics. The part behind `cold` that is not atomic
// (the `RefCell`) is reached only through [`Held`], which only the holder of the slot may have.
unsafe impl Sync for Slot {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Slot {}

/// The parts that are made on first use. Not freed while the keyspace lives, so that a prefetch may
/// follow the pointer.
pub(crate) struct Cold {
    tables: AtomicPtr<OtherTable>,
    /// The number of watches and tickets of the slot, and [`MOVERS`]: read before the parts are
    /// borrowed.
    pub watches: AtomicU32,
    parts: RefCell<Parts>,
}

/// A bit of [`Cold::watches`]: a ticket of the slot has a destination key.
const MOVERS: u32 = 1 << 31;

/// Heap bytes of one record of the expiry index, approximately: two words in nodes that are two
/// thirds full.
pub const BYTES_PER_EXPIRY: u64 = 24;

/// The parts that only the holder of the slot touches.
#[derive(Default)]
pub(crate) struct Parts {
    /// The expiry index, a set per physical database that has one.
    pub due: Vec<(u16, DueSet)>,
    /// Hashes by the time at which their next field expires, likewise.
    pub fields: Vec<(u16, DueSet)>,
    /// Watched keys.
    pub watchers: Watchers,
    /// Tickets of blocked sessions, by key.
    pub waiters: Waiters,
}

/// The table of another physical database, in a list that only grows.
struct OtherTable {
    physical: u16,
    table: Table,
    next: *mut OtherTable,
}

impl Slot {
    /// A fresh slot, where zeroed memory is not one already.
    #[cfg(shuttle)]
    pub fn new() -> Self {
        Self {
            lock: SlotLock::new(),
            table: Table::default(),
            last_seq: AtomicU64::new(0),
            cold: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The table of a physical database, if it was ever used. Without the slot's lock: what it
    /// shows may only be prefetched.
    #[inline(always)]
    pub fn table_unheld(&self, physical: u16) -> Option<&Table> {
        if physical == 0 { Some(&self.table) } else { self.other_table(physical) }
    }

    fn other_table(&self, physical: u16) -> Option<&Table> {
        let mut next = self.cold()?.tables.load(Ordering::Acquire);
        loop {
            // SAFETY: a list node is published with Release after it was written, never changed but
            // for its atomics, and freed only with the slot.
            let other = unsafe { next.as_ref() }?;
            if other.physical == physical {
                return Some(&other.table);
            }
            next = other.next;
        }
    }

    /// The cold parts, if any were made.
    #[inline(always)]
    pub fn cold(&self) -> Option<&Cold> {
        // SAFETY: published with Release after it was written, freed only with the slot.
        unsafe { self.cold.load(Ordering::Acquire).as_ref() }
    }

    fn cold_or_new(&self) -> &Cold {
        if self.cold().is_none() {
            let cold = Box::new(Cold {
                tables: AtomicPtr::new(ptr::null_mut()),
                watches: AtomicU32::new(0),
                parts: RefCell::default(),
            });
            self.cold.store(Box::into_raw(cold), Ordering::Release);
        }
        self.cold().expect("it was just made")
    }

    /// True if a session watches or waits for a key of the slot.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.cold().is_some_and(|cold| cold.watches.load(Ordering::Relaxed) != 0)
    }

    /// True if a ticket of the slot has a destination key.
    #[inline(always)]
    pub fn has_movers(&self) -> bool {
        self.cold().is_some_and(|cold| cold.watches.load(Ordering::Relaxed) & MOVERS != 0)
    }

    #[inline(always)]
    pub fn last_seq(&self) -> u64 {
        self.last_seq.load(Ordering::Relaxed)
    }
}

/// The proof that its user holds a slot: it is inside its section and has the slot's lock, or holds
/// World, or owns the whole keyspace. Tables, entries and the cold parts are reached through it.
/// [`crate::Guard`] makes it where it checks the lock (`Guard::owned`).
#[derive(Clone, Copy)]
pub(crate) struct Held<'a>(&'a Slot);

impl std::ops::Deref for Held<'_> {
    type Target = Slot;

    #[inline(always)]
    fn deref(&self) -> &Slot {
        self.0
    }
}

impl<'a> Held<'a> {
    /// # Safety
    /// 1. The caller holds the slot: it is inside its section and has the slot's lock, or it holds
    ///    World.
    /// 2. The proof, and whatever is reached through it, is used only while that holds.
    #[inline(always)]
    pub unsafe fn new(slot: &'a Slot) -> Self {
        Self(slot)
    }

    /// The proof of a caller that owns the slot.
    pub fn of_mut(slot: &'a mut Slot) -> Self {
        Self(slot)
    }

    /// The table of a physical database, if it was ever used.
    #[inline(always)]
    pub fn table(self, physical: u16) -> Option<HeldTable<'a>> {
        // SAFETY: 1. The slot is held, as this proves. 2. As `Held::new`'s point 2.
        self.0.table_unheld(physical).map(|table| unsafe { HeldTable::new(table) })
    }

    /// The table of a physical database, made if it does not exist.
    #[inline(always)]
    pub fn table_or_new(self, physical: u16) -> HeldTable<'a> {
        let table = if physical == 0 { &self.0.table } else { self.other_table_or_new(physical) };
        // SAFETY: 1. The slot is held, as this proves. 2. As `Held::new`'s point 2.
        unsafe { HeldTable::new(table) }
    }

    #[cold]
    fn other_table_or_new(self, physical: u16) -> &'a Table {
        if let Some(table) = self.0.other_table(physical) {
            return table;
        }
        let tables = &self.0.cold_or_new().tables;
        let next = tables.load(Ordering::Relaxed);
        let other = Box::new(OtherTable { physical, table: Table::default(), next });
        tables.store(Box::into_raw(other), Ordering::Release);
        self.0.other_table(physical).expect("it was just added")
    }

    /// Every table with its physical database.
    pub fn tables(self) -> impl Iterator<Item = (u16, HeldTable<'a>)> {
        let first = self.cold().map_or(ptr::null_mut(), |c| c.tables.load(Ordering::Acquire));
        let mut next = first;
        let tables = std::iter::once((0, &self.0.table)).chain(std::iter::from_fn(move || {
            // SAFETY: as in `other_table`.
            let other = unsafe { next.as_ref() }?;
            next = other.next;
            Some((other.physical, &other.table))
        }));
        // SAFETY: 1. The slot is held, as this proves. 2. As `Held::new`'s point 2.
        tables.map(|(physical, table)| (physical, unsafe { HeldTable::new(table) }))
    }

    /// Runs `f` on the cold parts, made if they do not exist.
    pub fn with_parts<R>(self, f: impl FnOnce(Self, &mut Parts) -> R) -> R {
        f(self, &mut self.0.cold_or_new().parts.borrow_mut())
    }

    /// As [`Held::with_parts`], if the slot has cold parts.
    pub fn with_parts_if_any<R>(self, f: impl FnOnce(Self, &mut Parts) -> R) -> Option<R> {
        Some(f(self, &mut self.0.cold()?.parts.borrow_mut()))
    }

    /// Updates [`Cold::watches`].
    pub fn count_watches(self, parts: &Parts) {
        let n = (parts.watchers.len() + parts.waiters.len()) as u32;
        let movers = if parts.waiters.has_movers() { MOVERS } else { 0 };
        self.0.cold_or_new().watches.store(n | movers, Ordering::Relaxed);
    }

    pub fn set_last_seq(self, seq: u64) {
        self.last_seq.store(seq, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let cold = self.cold.load(Ordering::Acquire);
        if cold.is_null() {
            return;
        }
        // SAFETY: made by `Box::into_raw` and owned by this slot, which nobody refers to any more.
        let cold = unsafe { Box::from_raw(cold) };
        let mut next = cold.tables.load(Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: as above; each node is in one list once.
            let other = unsafe { Box::from_raw(next) };
            next = other.next;
        }
    }
}
