//! The laboratory.

pub mod target;
