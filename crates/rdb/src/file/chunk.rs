//! What a scanner gives.

use std::borrow::Cow;

use super::Meta;
use super::error::FileError;
use crate::{Dialect, Sink};

/// A part of a file.
#[derive(Debug)]
pub enum Chunk {
    /// An aux field: its name and its text. Unknown ones are ignored.
    Aux(Vec<u8>, Vec<u8>),
    /// The code of a library of functions.
    Function(Vec<u8>),
    /// How many keys the database has, and how many of them expire: a hint which may be wrong.
    Resize {
        /// The database.
        db: u32,
        /// All keys.
        keys: u64,
        /// Those that expire.
        expires: u64,
    },
    /// Whole keys.
    Keys(Keys),
    /// A part of a long value.
    Long(LongChunk),
}

/// Whole keys with their values: about 256 KiB, more if a value is longer.
#[derive(Debug)]
pub struct Keys {
    pub(super) bytes: Vec<u8>,
    /// Where each value ends in the bytes.
    pub(super) ends: Vec<usize>,
    /// The place of the first byte in the file.
    pub(super) offset: u64,
    /// The database that is selected before the first byte.
    pub(super) db: Option<u32>,
    pub(super) dialect: Dialect,
}

impl Keys {
    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none, which never is.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes in the file.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The place in the file behind the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// The keys in their order. Ends after an error.
    pub fn iter(&self) -> KeysIter<'_> {
        todo!()
    }
}

/// The keys of a chunk.
#[derive(Debug)]
pub struct KeysIter<'k> {
    keys: &'k Keys,
}

impl<'k> Iterator for KeysIter<'k> {
    type Item = Result<Key<'k>, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!("{}", self.keys.len())
    }
}

/// A key with its value as it stands in the file.
#[derive(Clone, Debug)]
pub struct Key<'k> {
    /// Its database.
    pub db: u32,
    /// Its name.
    pub name: Cow<'k, [u8]>,
    /// Expiry, idle time, frequency.
    pub meta: Meta,
    /// The type of its value.
    pub id: u8,
    /// Whose types these are.
    pub dialect: Dialect,
    /// The bytes of its value.
    pub value: &'k [u8],
    /// The place of the value in the file.
    pub offset: u64,
}

impl Key<'_> {
    /// Reads the value into `sink`.
    ///
    /// # Errors
    /// It is wrong, the sink refused it, or it ends before its bytes do.
    pub fn load(&self, _sink: &mut impl Sink) -> Result<(), FileError> {
        todo!()
    }
}

/// A part of a long value. They come in the order of the variants, `Part` any number of times, and
/// nothing else comes between them.
#[derive(Debug)]
pub enum LongChunk {
    /// What it is the value of.
    Begin(LongKey),
    /// The next bytes, which [`LongReader::part`](super::LongReader::part) takes.
    Part(Vec<u8>),
    /// It is complete.
    End,
}

/// A key whose value comes in parts.
#[derive(Clone, Debug)]
pub struct LongKey {
    /// Its database.
    pub db: u32,
    /// Its name.
    pub name: Vec<u8>,
    /// Expiry, idle time, frequency.
    pub meta: Meta,
    /// The type of its value.
    pub id: u8,
    /// Whose types these are.
    pub dialect: Dialect,
    /// The place of the value in the file.
    pub offset: u64,
    /// Of a string: how many bytes it has, and how many those that follow, if they are compressed.
    pub(super) text: Option<(usize, Option<u64>)>,
}
