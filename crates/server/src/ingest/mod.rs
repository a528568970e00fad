//! Ingest: connections of producers, which are no sessions. `ports` has the listeners and what they
//! count, `connection` the state of a connection, `events` what happens to it. The classic
//! protocol's way to a sink is in `classic`, protocol 2 in `v2`; `pour` writes messages of both
//! into a key. `kept` has the numbers of producers which files keep, `fsynced` the acknowledgements
//! which wait for the disk.

pub(crate) mod acks;
pub(crate) mod classic;
pub(crate) mod connection;
pub(crate) mod events;
pub(crate) mod fsynced;
pub mod kept;
pub mod marks;
pub(crate) mod memory_waiters;
pub mod ports;
pub mod pour;
pub mod producers;
pub(crate) mod sink_writer;
pub(crate) mod syncing;
pub(crate) mod v2;
