//! What can be wrong with a payload.

use std::fmt;

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The trailer is too short, has an unknown version, or a wrong checksum.
    Envelope,
    /// The bytes end inside the value.
    Short,
    /// A type that is not known, or not one of this dialect.
    Type(u8),
    /// A collection without elements, which no server writes.
    Empty,
    /// The bytes contradict themselves.
    Corrupt,
    /// The sink refused it: a member or field came twice.
    Refused,
}

impl Error {
    /// What RESTORE replies.
    pub const fn reply(self) -> &'static str {
        match self {
            Self::Envelope => "ERR DUMP payload version or checksum are wrong",
            _ => "ERR Bad data format",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Envelope => f.write_str("wrong version or checksum"),
            Self::Short => f.write_str("the bytes end inside the value"),
            Self::Type(id) => write!(f, "no value has type {id}"),
            Self::Empty => f.write_str("a collection without elements"),
            Self::Corrupt => f.write_str("the bytes contradict themselves"),
            Self::Refused => f.write_str("a member or field comes twice"),
        }
    }
}

impl std::error::Error for Error {}
