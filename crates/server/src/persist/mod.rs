//! The data on disk: snapshot files.

pub mod load;
pub(crate) mod save;
