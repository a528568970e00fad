//! Writes a file.

use base::crc64::crc64;
use base::{Blob, DbIndex};

use super::error::NeedsVersion;
use super::long_write::{LongText, LongValue};
use super::{Meta, opcode};
use crate::primitive::put_length;
use crate::save::{Plan, Saver, Source};
use crate::{Options, VERSION_VALKEY};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether strings are compressed (`rdbcompression`).
    pub compress: bool,
    /// Whether the file ends with its checksum (`rdbchecksum`), otherwise with 0.
    pub checksum: bool,
    /// 10; 11, 12 or 80 to hold the active times of consumers; 12 or 80 to hold hashes with fields
    /// that expire.
    pub version: u16,
}

/// Appends to a buffer, which the caller takes away from time to time.
///
/// The order is [`FileWriter::begin`], functions, then databases with their values, and
/// [`FileWriter::end`].
#[derive(Debug)]
pub struct FileWriter {
    options: FileOptions,
    pub(super) saver: Saver,
    pub(super) out: Vec<u8>,
    /// Bytes that were taken, and their checksum.
    taken: u64,
    sum: u64,
    /// The database that is selected.
    db: Option<DbIndex>,
}

impl FileWriter {
    /// A writer which appends to `buffer`, which is empty.
    pub fn new(options: FileOptions, buffer: Vec<u8>) -> Self {
        let FileOptions { compress, version, .. } = options;
        Self {
            options,
            saver: Saver::new(Options { compress, version }),
            out: buffer,
            taken: 0,
            sum: 0,
            db: None,
        }
    }

    /// Magic, version and aux fields (`redis-ver`, `redis-bits`, `ctime`, `used-mem`, ...), which
    /// readers ignore if they do not know them.
    pub fn begin(&mut self, aux: &[(&str, &[u8])]) {
        let version = self.options.version;
        let magic = if version == VERSION_VALKEY {
            format!("VALKEY{version:03}")
        } else {
            format!("REDIS{version:04}")
        };
        self.out.extend_from_slice(magic.as_bytes());
        for (name, text) in aux {
            self.aux(name, text);
        }
    }

    /// A further aux field, before the first database.
    pub fn aux(&mut self, name: &str, text: &[u8]) {
        self.out.push(opcode::AUX);
        self.saver.string(name.as_bytes(), &mut self.out);
        self.saver.string(text, &mut self.out);
    }

    /// A library of functions: its whole code. Before the first database.
    pub fn function(&mut self, library: &[u8]) {
        self.out.push(opcode::FUNCTION);
        self.saver.string(library, &mut self.out);
    }

    /// Selects a database, unless it is selected; then its counts of keys and of keys that expire,
    /// if they are given. Databases may come in any order and more than once.
    pub fn database(&mut self, db: DbIndex, counts: Option<(u64, u64)>) {
        if self.db != Some(db) {
            self.db = Some(db);
            self.out.push(opcode::DATABASE);
            put_length(&mut self.out, u64::from(db.0));
        }
        if let Some((keys, expires)) = counts {
            self.out.push(opcode::RESIZE);
            put_length(&mut self.out, keys);
            put_length(&mut self.out, expires);
        }
    }

    /// A key with its value, whole: for small values. O(size of the value).
    ///
    /// # Errors
    /// The version of the file cannot hold it; nothing is written.
    pub fn value(
        &mut self,
        key: &[u8],
        meta: &Meta,
        source: &impl Source,
    ) -> Result<(), NeedsVersion> {
        let plan = self.saver.plan(source);
        self.key(key, meta, &plan)?;
        self.saver.value(&plan, source, &mut self.out);
        Ok(())
    }

    /// A key with a long string, of more than 20 bytes and no integer. The steps of the result
    /// write the string; nothing else is written before the last one.
    pub fn begin_text(&mut self, key: &[u8], meta: &Meta, text: Blob) -> LongText {
        LongText::new(self, key, meta, text)
    }

    /// A key with any other value. The steps of the result write it; nothing else is written
    /// before the last one.
    ///
    /// # Errors
    /// The version of the file cannot hold it; nothing is written.
    pub fn begin_long(
        &mut self,
        key: &[u8],
        meta: &Meta,
        source: &impl Source,
    ) -> Result<LongValue, NeedsVersion> {
        LongValue::new(self, key, meta, source)
    }

    /// Whether strings are compressed.
    pub(super) fn compresses(&self) -> bool {
        self.options.compress
    }

    /// What stands before a value.
    pub(super) fn key(&mut self, key: &[u8], meta: &Meta, plan: &Plan) -> Result<(), NeedsVersion> {
        let (version, needs) = (self.options.version, plan.version());
        if needs > version {
            return Err(NeedsVersion { version, needs });
        }
        let out = &mut self.out;
        if let Some(at) = meta.expiry {
            out.push(opcode::EXPIRE_MS);
            out.extend_from_slice(&at.0.to_le_bytes());
        }
        if let Some(seconds) = meta.idle_seconds {
            out.push(opcode::IDLE);
            put_length(out, seconds);
        }
        if let Some(frequency) = meta.frequency {
            out.extend_from_slice(&[opcode::FREQUENCY, frequency]);
        }
        out.push(plan.id());
        self.saver.string(key, out);
        Ok(())
    }

    /// The end of the file, and the checksum of all of it.
    pub fn end(&mut self) {
        self.out.push(opcode::END);
        let sum = if self.options.checksum { crc64(self.sum, &self.out) } else { 0 };
        self.out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Bytes that were not taken yet.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// True if all bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Bytes of the file so far.
    pub fn total(&self) -> u64 {
        self.taken + self.out.len() as u64
    }

    /// Takes the bytes so far and goes on in `empty`, which is an empty buffer. The checksum is
    /// computed here: 15 GB/s, or 2 without carry-less multiplication.
    pub fn take(&mut self, empty: Vec<u8>) -> Vec<u8> {
        debug_assert!(empty.is_empty(), "the next buffer is empty");
        if self.options.checksum {
            self.sum = crc64(self.sum, &self.out);
        }
        self.taken += self.out.len() as u64;
        std::mem::replace(&mut self.out, empty)
    }
}
