//! The room that composes the others: configuration, boot, workers, sessions, administration.

pub mod admin;
pub mod boot;
pub mod client_card;
pub mod client_memory;
pub use config;
pub mod ingest_ports;
pub mod io_backend;
pub mod live;
pub mod local_time;
pub mod log;
pub mod message;
pub mod migrate;
pub mod monitors;
pub mod print;
pub mod process;
pub mod producers;
pub mod rates;
pub mod session;
pub mod settings;
pub mod shared;
pub mod watches;
pub mod web;
pub mod worker;
