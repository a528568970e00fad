//! The data on disk: snapshot files.

pub(crate) mod save;
