//! The keyspace: 16,384 slots with a lock and a table each, entries, expiry, watched keys, and the
//! one door through which everything changes.
//!
//! A worker owns an [`Access`]; there may be further ones ([`Access::further`]). It goes inside its
//! section for a batch ([`Access::enter`]), locks what a command needs ([`Access::lock_one`],
//! [`Access::lock`], [`Access::world`], [`Access::free`]), and works through the [`Guard`].
//! `docs/LOCKS.md` has the order of locks, `docs/design/0001-table.md` the table.

mod access;
mod bucket;
mod capture;
mod chain;
mod change;
mod directory;
mod due;
mod due_set;
mod entry;
mod entry_mut;
mod event;
mod expire;
mod fence;
mod freeze;
mod further;
mod gate;
mod growth;
mod guard;
mod keyspace;
mod lock;
mod may;
mod memory;
#[cfg(all(test, shuttle))]
mod models;
mod numbers;
mod occupancy;
mod parking;
mod payload;
mod range;
mod reach;
mod reclaim;
mod rollback;
mod scan;
mod shape;
mod slab;
mod slot;
mod slots;
mod stand;
mod stats;
mod survey;
mod table;
mod turn;
mod undo;
mod uses;
mod view;
mod wait;
mod watch;
mod workspace;
mod world;

pub use access::Access;
pub use capture::{Census, Counted};

pub use due::Due;
pub use entry_mut::EntryMut;
pub use event::{Event, EventClass, KeyEvent};
pub use expire::{ExpireReport, StaleShare};
pub use fence::Fences;
pub use further::NoRoom;
pub use guard::Guard;
pub use keyspace::{Key, Keyspace, Options, PrefetchTarget};
pub use may::Intent;
pub use numbers::Numbers;
pub use parking::{Parked, Waker};
pub use payload::INLINE_MAX;
pub use reclaim::{Captured, Parts, ReclaimOnDrop, Reclaimer};
pub use shape::TableShape;
pub use slab::EntryPages;
pub use slot::BYTES_PER_EXPIRY;
pub use stats::{Contention, ExpiryStats, Memory};
pub use survey::Walk;
pub use turn::{ThawTurn, Turn};
pub use undo::{Mark, Note};
pub use uses::Uses;
pub use value::keyed::WARM_MAX;
pub use value::{Big, Encoding, Kind};
pub use view::Entry;
pub use wait::{KeyList, Ready, Ticket};
pub use watch::WatchCell;
