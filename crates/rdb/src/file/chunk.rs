//! What a scanner gives.

use std::borrow::Cow;

use base::UnixMs;

use super::error::{Fault, FileError};
use super::{Meta, opcode};
use crate::text::TextHead;
use crate::{Dialect, Error, Reader, Sink, load, load_string};

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
    pub(super) db: u32,
    pub(super) announced: u64,
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

    /// How many keys the file announced for this database, 0 if it did not: a hint which may be
    /// wrong, but not more than the bytes of the file could hold.
    pub fn announced(&self, db: u32) -> u64 {
        if db == self.db { self.announced } else { 0 }
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
        KeysIter { keys: self, next: 0, at: 0, db: self.db }
    }
}

impl<'k> IntoIterator for &'k Keys {
    type Item = Result<Key<'k>, FileError>;
    type IntoIter = KeysIter<'k>;

    fn into_iter(self) -> KeysIter<'k> {
        self.iter()
    }
}

/// The keys of a chunk.
#[derive(Debug)]
pub struct KeysIter<'k> {
    keys: &'k Keys,
    /// The next key, and where it begins.
    next: usize,
    at: usize,
    db: u32,
}

impl<'k> Iterator for KeysIter<'k> {
    type Item = Result<Key<'k>, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = *self.keys.ends.get(self.next)?;
        self.next += 1;
        let start = std::mem::replace(&mut self.at, end);
        let mut reader = Reader::new(&self.keys.bytes[start..end]);
        let key = self.read(&mut reader, end);
        if key.is_err() {
            self.next = self.keys.ends.len();
        }
        Some(key.map_err(|error| FileError {
            offset: self.keys.offset + (end - reader.rest().len()) as u64,
            db: Some(self.db),
            key: None,
            id: None,
            fault: Fault::Value(error),
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.keys.ends.len() - self.next))
    }
}

impl<'k> KeysIter<'k> {
    /// Reads the opcodes before a key, its type and its name.
    fn read(&mut self, reader: &mut Reader<'k>, end: usize) -> Result<Key<'k>, Error> {
        let mut meta = Meta::default();
        let id = loop {
            let code = reader.byte()?;
            match code {
                opcode::DATABASE => self.db = database(reader)?,
                opcode::SLOT_INFO => {
                    for _ in 0..3 {
                        reader.length()?;
                    }
                }
                opcode::AUX => {
                    load_string(reader)?;
                    load_string(reader)?;
                }
                code if meta.read(code, reader)? => {}
                id => break id,
            }
        };
        let name = load_string(reader)?;
        let value = reader.rest();
        let offset = self.keys.offset + (end - value.len()) as u64;
        Ok(Key { db: self.db, name, meta, id, dialect: self.keys.dialect, value, offset })
    }
}

/// The number of a database.
pub(super) fn database(reader: &mut Reader<'_>) -> Result<u32, Error> {
    u32::try_from(reader.length()?).map_err(|_| Error::Corrupt)
}

impl Meta {
    /// Reads what stands behind an opcode; false if it is none of these.
    pub(super) fn read(&mut self, code: u8, reader: &mut Reader<'_>) -> Result<bool, Error> {
        match code {
            opcode::EXPIRE_MS => {
                // -1 means that it does not expire; other times before 1970 are times.
                let at = i64::from_le_bytes(reader.array()?);
                self.expiry = (at != -1).then_some(UnixMs(at));
            }
            opcode::EXPIRE_S => {
                let seconds = i32::from_le_bytes(reader.array()?);
                self.expiry = Some(UnixMs(i64::from(seconds) * 1000));
            }
            opcode::IDLE => self.idle_seconds = Some(reader.length()?),
            opcode::FREQUENCY => self.frequency = Some(reader.byte()?),
            _ => return Ok(false),
        }
        Ok(true)
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
    pub fn load(&self, sink: &mut impl Sink) -> Result<(), FileError> {
        let mut reader = Reader::new(self.value);
        match load(self.id, self.dialect, &mut reader, sink) {
            Ok(()) if reader.rest().is_empty() => Ok(()),
            Ok(()) => Err(self.error(Error::Corrupt)),
            Err(error) => Err(self.error(error)),
        }
    }

    /// That its value is wrong.
    pub fn error(&self, error: Error) -> FileError {
        FileError {
            offset: self.offset,
            db: Some(self.db),
            key: Some(self.name.to_vec()),
            id: Some(self.id),
            fault: Fault::Value(error),
        }
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
    /// Of a string: how many bytes follow, and to how many they expand.
    pub(super) text: Option<TextHead>,
}
