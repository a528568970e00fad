//! An entry of an ordered map.

use crate::member_hash::hash32;
use base::Blob;

/// A key: its first four bytes as a big-endian number, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The first four bytes.
    pub head: u32,
    /// All others.
    pub tail: &'a [u8],
}

impl<'a> Key<'a> {
    /// The key of a member in hash order.
    #[inline]
    pub fn hashed(member: &'a [u8]) -> Self {
        Self { head: hash32(member), tail: member }
    }
}

/// A stored value.
#[derive(Clone, Copy, Debug)]
pub enum Val<'a> {
    /// In its page.
    Bytes(&'a [u8]),
    /// In an allocation of its own: a reference to it can be sent without a copy.
    Blob(&'a Blob),
}

impl<'a> Val<'a> {
    /// Its bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Blob(blob) => blob.as_slice(),
        }
    }
}

/// A key with its value.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key.
    pub key: Key<'a>,
    /// The value.
    pub value: Val<'a>,
}
