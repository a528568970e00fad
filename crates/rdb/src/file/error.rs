//! What can be wrong with a file, and where.

use std::fmt;

use crate::Error;

/// What is wrong with a file. One line of text names the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The byte of the file where it was seen: of a value, its first one.
    pub offset: u64,
    /// The database, if one was selected before or it is about a key.
    pub db: Option<u32>,
    /// The key, if it is that of a key and could be read.
    pub key: Option<Vec<u8>>,
    /// The type of the value, if it is one of a key.
    pub id: Option<u8>,
    /// What it is.
    pub fault: Fault,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not begin as a file of Redis or Valkey does.
    Magic,
    /// Its version is not known here; as it stands in the file.
    Version(String),
    /// It ends before the end which it should have.
    Ends,
    /// Something reaches beyond the end of the file.
    Beyond,
    /// An opcode that no version has, or which cannot be read.
    Opcode(u8),
    /// A type that is not known; nobody knows where its value ends.
    UnknownType(u8),
    /// A value, or data beside the keys, of this module.
    Module(String),
    /// A key or a value is wrong.
    Value(Error),
    /// The key was there already.
    Twice,
    /// An expiry, an idle time or a frequency without a key behind it.
    NoKey,
    /// A database is selected beyond the number which is allowed.
    Databases(u32),
    /// The checksum in the file, and that of the bytes.
    Checksum {
        /// What the file says.
        written: u64,
        /// What its bytes have.
        counted: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("this is no RDB file"),
            Self::Version(text) => write!(f, "version '{text}' is not known"),
            Self::Ends => f.write_str("the file ends here"),
            Self::Beyond => f.write_str("something reaches beyond the end of the file"),
            Self::Opcode(code) => write!(f, "opcode {code} is not known"),
            Self::UnknownType(id) => write!(f, "type {id} is not known"),
            Self::Module(name) => write!(f, "it belongs to the module type '{name}'"),
            Self::Value(error) => error.fmt(f),
            Self::Twice => f.write_str("the key occurs twice"),
            Self::NoKey => f.write_str("no key follows an expiry or idle time"),
            Self::Databases(count) => {
                write!(f, "there are only {count} databases; raise 'databases'")
            }
            Self::Checksum { written, counted } => {
                write!(f, "the checksum is {written:016x}, but the bytes have {counted:016x}")
            }
        }
    }
}

impl FileError {
    /// True if the value is a collection without elements, which is otherwise whole. Old servers
    /// have written such; Redis leaves them out when it loads a file.
    pub fn is_empty(&self) -> bool {
        self.fault == Fault::Value(Error::Empty)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if let Some(db) = self.db {
            write!(f, ", database {db}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key '{}'", Shown(key))?;
        }
        if let Some(id) = self.id {
            write!(f, ", type {id}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for FileError {}

/// Bytes of a text that are shown, at most.
const SHOWN_MAX: usize = 128;

/// The beginning of a text of a file, with bytes that cannot be printed as escapes.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_MAX)];
        write!(f, "{}", shown.escape_ascii())?;
        if shown.len() < self.0.len() { f.write_str("...") } else { Ok(()) }
    }
}

/// A value needs a newer version than the file has: a hash with fields that expire. Nothing was
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedsVersion {
    /// The version of the file.
    pub version: u16,
    /// The version that the value needs.
    pub needs: u16,
}

impl fmt::Display for NeedsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, needs } = self;
        write!(f, "a hash has fields that expire, which version {version} cannot hold; ")?;
        write!(f, "{needs} can")
    }
}

impl std::error::Error for NeedsVersion {}
