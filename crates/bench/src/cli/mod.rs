//! The subcommands.

pub mod serve;
