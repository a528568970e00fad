//! The ends of a list.

use keyspace::Event;

use crate::error::Error;
use crate::events;
use crate::parse::is;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The left one.
    Front,
    /// The right one.
    Back,
}

impl End {
    /// The command that adds elements here.
    pub fn push(self) -> &'static [u8] {
        if self == Self::Front { b"LPUSH" } else { b"RPUSH" }
    }

    /// The command that takes elements from here.
    pub fn pop(self) -> &'static [u8] {
        if self == Self::Front { b"LPOP" } else { b"RPOP" }
    }

    /// What it is called that elements were added here.
    #[inline]
    pub fn pushed(self) -> Event {
        if self == Self::Front { events::LPUSH } else { events::RPUSH }
    }

    /// What it is called that elements were taken from here.
    #[inline]
    pub fn popped(self) -> Event {
        if self == Self::Front { events::LPOP } else { events::RPOP }
    }

    /// `LEFT` or `RIGHT`.
    pub fn parse(word: &[u8]) -> Result<Self, Error> {
        if is(word, "LEFT") {
            Ok(Self::Front)
        } else if is(word, "RIGHT") {
            Ok(Self::Back)
        } else {
            Err(Error::Syntax)
        }
    }
}
