//! The room that composes the others.

pub mod config;
