//! The keyspace: all keys of all databases, in 16,384 slots with a lock each.
//!
//! ```text
//! Keyspace (keyspace.rs)                              shared by all workers
//!   slots[16384] (slot.rs)      lock, table of database 0, cold parts
//!     table (table.rs)          directory -> bucket -> entry
//!     cold parts                tables of other databases, expiry index, watches, waiters
//!   memory of buckets (memory.rs) and of entries (slab.rs)
//!   World gate (gate.rs), parked sessions (parking.rs), fences (fence.rs), reclaimer (reclaim.rs)
//!
//! Access (access.rs)                                  one for each worker, and further ones
//!   enter()                     begins the worker's section, for a batch of commands
//!   lock_one | lock | grow      locks the slots of a command     -> Guard
//!   world | free                all slots | one at a time        -> Guard
//!
//! Guard (guard.rs)                                    the locks of one command
//!   read, peek, entry_mut       reading (guard.rs, view.rs)
//!   insert, remove, EntryMut    changing: each change passes change.rs, which logs its undo
//!   finish | rollback           commits the changes | takes them back (undo.rs, rollback.rs)
//!   next_ready, next_event      what a commit has to report: served waiters, keyspace events
//! ```
//!
//! `docs/LOCKS.md` gives the order of locks, `docs/design/0001-table.md` the reasons behind the
//! table.

mod access;
mod bucket;
mod capture;
mod chain;
mod change;
mod commit;
mod defrag;
mod directory;
mod due;
mod due_set;
mod entry;
mod entry_mut;
mod event;
mod evict;
mod expire;
mod fence;
mod freeze;
mod further;
mod gate;
mod growth;
mod guard;
pub mod journal;
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
mod records;
mod relocate;
mod reserve;
mod rollback;
mod scan;
mod shape;
mod slab;
mod slot;
mod slots;
pub mod snapshot;
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

pub use defrag::{Defrag, DefragNext, DefragReport};
pub use due::Due;
pub use entry_mut::EntryMut;
pub use event::{Event, EventClass, EventClasses, EventSink, KeyEvent};
pub use evict::{EVICTIONS_MAX, Evictable, Eviction, Order};
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
pub use records::RecordWriter;
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
