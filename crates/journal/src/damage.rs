//! What can be wrong with a file of commands, and where.

use std::fmt;

use crate::reader::{ANNOTATION_MAX, ARGUMENTS_MAX, COMMAND_MAX};

/// Why the commands of a file cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The byte of the file where it was seen: the beginning of the length, argument or annotation
    /// that cannot be read.
    pub at: u64,
    /// What it is.
    pub kind: DamageKind,
    /// The file is whole up to this byte: see [`crate::Reader::valid_up_to`].
    pub valid_up_to: u64,
    /// Where the MULTI begins whose EXEC was not read.
    pub multi: Option<u64>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends within a command, an annotation or a transaction. This is what a server leaves
    /// which is interrupted while it writes.
    Truncated,
    /// This byte begins neither a command nor an annotation.
    NoCommand(u8),
    /// This byte does not begin an argument.
    NoArgument(u8),
    /// A length is no number with "\r\n" behind it.
    Length,
    /// No "\r\n" follows an argument.
    LineEnd,
    /// A command with this number of arguments: none, or more than [`ARGUMENTS_MAX`].
    ArgumentCount(u64),
    /// A command has more bytes than [`COMMAND_MAX`].
    CommandTooLong,
    /// An annotation has more bytes than [`ANNOTATION_MAX`].
    AnnotationTooLong,
    /// MULTI within a transaction.
    NestedMulti,
    /// EXEC outside of a transaction.
    StrayExec,
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |byte: &u8| byte.escape_ascii().to_string();
        match self {
            Self::Truncated => f.write_str("the file ends within a command or annotation"),
            Self::NoCommand(byte) => {
                write!(f, "a command begins with '*', but here is '{}'", shown(byte))
            }
            Self::NoArgument(byte) => {
                write!(f, "an argument begins with '$', but here is '{}'", shown(byte))
            }
            Self::Length => f.write_str("a length is not a number followed by \\r\\n"),
            Self::LineEnd => f.write_str("an argument is not followed by \\r\\n"),
            Self::ArgumentCount(0) => f.write_str("a command has no arguments"),
            Self::ArgumentCount(count) => {
                write!(f, "a command with {count} arguments; at most {ARGUMENTS_MAX} are possible")
            }
            Self::CommandTooLong => write!(f, "a command is longer than {COMMAND_MAX} bytes"),
            Self::AnnotationTooLong => {
                write!(f, "an annotation is longer than {ANNOTATION_MAX} bytes")
            }
            Self::NestedMulti => f.write_str("MULTI inside a transaction"),
            Self::StrayExec => f.write_str("EXEC without MULTI"),
        }
    }
}

impl Damage {
    /// What is wrong, without its place.
    pub fn reason(&self) -> String {
        match (self.kind, self.multi) {
            (DamageKind::Truncated, Some(multi)) => {
                format!("the file ends within the transaction whose MULTI is at byte {multi}")
            }
            (kind, _) => kind.to_string(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.reason())
    }
}

impl std::error::Error for Damage {}
