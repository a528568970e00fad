//! Files of keys, as Redis and Valkey write and read them. `docs/formats/rdb.md` draws the bytes.
//!
//! - A [`FileWriter`] appends to a buffer which its caller takes away: small values whole, long
//!   ones in bounded steps ([`LongText`], [`LongValue`]).
//! - A [`Scanner`] takes blocks of a file and gives [`Chunk`]s: whole keys as owned bytes, which
//!   another thread reads ([`Keys`]), and long values in parts ([`LongReader`]).
//!
//! Nothing here does I/O. Reading believes nothing: memory grows with the bytes which are there,
//! never with a length which they claim, and every [`FileError`] names its place.

mod chunk;
mod error;
mod long_read;
mod long_write;
mod scan_items;
mod scan_values;
mod scanner;
mod walk;
mod writer;

pub use chunk::{Chunk, Key, Keys, KeysIter, LongChunk, LongKey};
pub use error::{Fault, FileError, NeedsVersion, Shown};
pub use long_read::LongReader;
pub use long_write::{LongSource, LongText, LongValue};
pub use scanner::{Checked, ScanOptions, Scanned, Scanner, Summary};
pub use writer::{FileOptions, FileWriter};

use base::UnixMs;

/// Opcodes: what stands in a file where a type could.
pub(crate) mod opcode {
    /// All below are types, or not known.
    pub const LEAST: u8 = 242;
    /// Slots being imported (Valkey 9).
    pub const SLOT_IMPORT: u8 = 243;
    /// How many keys a slot has: three lengths.
    pub const SLOT_INFO: u8 = 244;
    /// A library of functions.
    pub const FUNCTION: u8 = 245;
    /// Data of a module beside its keys.
    pub const MODULE_AUX: u8 = 247;
    /// The next key was not used for so many seconds.
    pub const IDLE: u8 = 248;
    /// How often the next key is used: one byte.
    pub const FREQUENCY: u8 = 249;
    /// A name and a text.
    pub const AUX: u8 = 250;
    /// How many keys the database has, and how many of them expire.
    pub const RESIZE: u8 = 251;
    /// When the next key expires, in milliseconds.
    pub const EXPIRE_MS: u8 = 252;
    /// When the next key expires, in seconds.
    pub const EXPIRE_S: u8 = 253;
    /// The database of the keys which follow.
    pub const DATABASE: u8 = 254;
    /// The end, and the checksum.
    pub const END: u8 = 255;
}

/// What a file says about a key besides its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When it expires.
    pub expiry: Option<UnixMs>,
    /// For how many seconds it was not used (policies `*-lru`).
    pub idle_seconds: Option<u64>,
    /// How often it is used, on a logarithmic scale (policies `*-lfu`).
    pub frequency: Option<u8>,
}
