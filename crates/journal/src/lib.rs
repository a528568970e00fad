//! The append-only file: commands in the order in which they changed the data. Pure: bytes in,
//! bytes out. `docs/formats/aof.md` draws the bytes.
//!
//! - A [`Reader`] takes blocks of a file of commands and gives the commands.
//! - A [`Manifest`] lists the files which together are the data, and names the next ones.
//! - A [`History`] lists the files which rewrites have replaced, and which are kept.
//! - [`record`] writes commands, [`Moment`] the numbers and times of records.
//! - A [`Position`] is a place in the stream of replication, which [`Follow`] follows.
//! - [`producer`] writes and reads the numbers of producers, which stand beside their messages.
//!
//! Reading believes nothing: a length which the file claims is no reason to allocate, and whatever
//! is wrong is a [`Damage`] with its place, never a panic.

mod damage;
pub mod history;
pub mod manifest;
pub mod moment;
pub mod producer;
pub mod reader;
pub mod record;
pub mod stream;

pub use damage::{Damage, DamageKind};
pub use history::History;
pub use manifest::{Manifest, ManifestError};
pub use moment::{Moment, Numbering};
pub use reader::{Item, Reader, Words};
pub use stream::{Extent, Follow, Position, ReplId};
