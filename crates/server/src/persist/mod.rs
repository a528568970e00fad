//! The data on disk: snapshot files.

pub mod load;
pub(crate) mod reload;
pub(crate) mod save;
