//! The tests of the keyspace.
//! One program: each program builds what it calls anew.

mod defrag;
mod due;
mod events;
mod eviction;
mod eviction_hits;
mod expiry;
mod footprint;
mod forgotten;
mod further;
mod model;
mod observed;
mod reach;
mod records;
mod rollback;
mod scan;
mod snapshot;
mod strings;
mod threads;
mod typed;
mod walks;
