//! The command line: one file per subcommand, with its arguments and what it prints.

pub mod collections;
pub mod compare;
pub mod ingest;
pub mod lab;
pub mod load;
pub mod serve;
