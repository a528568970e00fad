//! The data on disk: snapshot files, and backups.

pub mod backup;
pub(crate) mod delay;
pub mod journal;
pub mod load;
pub(crate) mod reload;
pub(crate) mod save;
