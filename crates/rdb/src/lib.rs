//! The RDB codec of values: what DUMP makes and RESTORE takes, and what a snapshot holds between
//! its keys. Pure: bytes in, bytes out. `docs/formats/rdb.md` draws the bytes.
//!
//! - [`restore`] checks a payload and reads its value as events into a [`Sink`]; [`load()`] reads
//!   one value where it stands in a file.
//! - A [`Saver`] writes a [`Source`]: [`Saver::dump`] a whole payload, [`Saver::plan`] and
//!   [`Saver::value`] a type and a value by themselves.
//! - [`Owned`] is both a sink and a source: a value in plain vectors.
//!
//! Reading believes nothing: every length is bounded by the bytes that are there, so that no
//! allocation is more than [`lzf::GROWTH_MAX`] times the payload, and whatever is wrong is an
//! [`Error`], never a panic. Whether members repeat only the sink can say; it answers
//! [`Error::Refused`].

mod collection;
mod error;
pub mod file;
pub mod intset;
pub mod listpack;
mod load;
pub mod lzf;
mod nodes;
mod owned;
mod payload;
pub mod primitive;
mod save;
mod stream;
pub mod switches;
mod text;
pub mod types;
pub mod ziplist;
pub mod zipmap;

pub use collection::{CollectionDump, CollectionRestore, StreamDump};
pub use error::Error;
pub use load::{Sink, load};
pub use nodes::{NodeLimits, Nodes};
pub use owned::{Builder, Field, Owned, Shaped};
pub use payload::{open, restore, seal};
pub use primitive::{Reader, load_string};
pub use save::{Item, Options, Plan, Saver, Shape, Source};
pub use text::{TextDump, TextPayload, TextRestore};
pub use types::{Dialect, Kind, VERSION, VERSION_FIELD_TTL, VERSION_VALKEY};

/// The longest string that is read or written, packed containers included.
pub const STRING_MAX: u64 = u32::MAX as u64;

/// The latest expiry of a field that Redis's types can hold: 48 bits.
pub const EXPIRE_MAX: i64 = (1 << 48) - 1;
