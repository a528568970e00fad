//! The server: composes the other crates into a process.
//!
//! One folder per idea: `boot` starts and ends the process, `worker` is the turn of a thread,
//! `execute` the way of a command, `sessions` the connections of clients and their replies,
//! `ingest` those of producers, `migrate` MIGRATE, `persist` the data on disk, `admin` the commands
//! that administer, `figures` what the server knows of itself, `web` the admin port, `settings` the
//! configuration at run time, `log` the log. `shared` is what all threads share.

pub mod admin;
pub mod boot;
pub use config;
pub mod execute;
pub mod figures;
pub mod ingest;
pub mod log;
pub mod migrate;
pub mod persist;
pub mod pubsub;
pub mod sessions;
pub mod settings;
pub mod shared;
pub mod tracking;
pub mod web;
pub mod worker;
