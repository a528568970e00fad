//! The room that composes the others.

pub mod config;
pub mod local_time;
pub mod log;
pub mod process;
