//! A snapshot on its way into a file of commands, as `aof-use-rdb-preamble no` wants it.
//!
//! ```text
//! #BASE:17:1700000000123                 the records which the file holds
//! FUNCTION LOAD                          libraries
//! SELECT, MULTI, PERSIST, #PRODUCER, EXEC   numbers of producers, while no key is there
//! SELECT                                 the commands of each key (pieces.rs, stream.rs)
//! PEXPIREAT                              behind them, if it has an expiry
//! ```

mod pieces;
mod stream;

use base::num::{I64_TEXT_MAX, format_i64};
use base::{DbIndex, UnixMs};
use journal::Extent;
use journal::producer::{Field, quoted_name, write_line};
use journal::record::{write_command, write_exec, write_multi, write_select};
use keyspace::Entry;
use keyspace::snapshot::{Root, Sink};
use rdb::file::NeedsVersion;
use std::collections::VecDeque;
use value::Encoding;

use super::saved::SavedFile;
use crate::parts::Stored;
use pieces::{PartCommands, TextCommands};
use stream::StreamCommands;

/// Bytes that a step writes, about.
const STEP_BYTES: usize = 64 << 10;

/// Writes entries of a snapshot as commands which make them again. Small ones are written at once;
/// long ones wait for [`SavedFile::step`], because the walker may hold a lock.
pub struct CommandFile {
    out: Vec<u8>,
    /// Bytes that were taken.
    taken: u64,
    /// The database which is selected.
    db: Option<DbIndex>,
    long: VecDeque<Long>,
    /// Keys that are written, or wait to be.
    keys: u64,
    /// Bytes freed since the last [`SavedFile::take_freed`].
    freed: u64,
}

/// A long value that waits, or is under way.
struct Long {
    db: DbIndex,
    key: Vec<u8>,
    expiry: Option<UnixMs>,
    encoding: Encoding,
    root: Root,
    under_way: Option<UnderWay>,
}

enum UnderWay {
    Text(TextCommands),
    Parts(PartCommands),
    Stream(StreamCommands),
}

impl CommandFile {
    /// A file which holds the records up to `base`, and these libraries of functions.
    pub fn begin(base: Option<Extent>, functions: &[impl AsRef<[u8]>]) -> Self {
        let mut out = Vec::new();
        if let Some(base) = base {
            base.annotate_base(&mut out);
        }
        for library in functions {
            write_command(&mut out, [&b"FUNCTION"[..], b"LOAD", library.as_ref()]);
        }
        Self { out, taken: 0, db: None, long: VecDeque::new(), keys: 0, freed: 0 }
    }

    fn select(&mut self, db: DbIndex) {
        if self.db.replace(db) != Some(db) {
            write_select(&mut self.out, db.0);
        }
    }
}

impl SavedFile for CommandFile {
    /// An annotation belongs to the command before it. PERSIST changes nothing, because the key is
    /// not there yet.
    fn producer(&mut self, field: &Field<'_>) {
        self.select(DbIndex(field.db));
        write_multi(&mut self.out);
        write_command(&mut self.out, [&b"PERSIST"[..], field.key]);
        write_line(&mut self.out, field.kind, field.number, &quoted_name(field.producer));
        write_exec(&mut self.out);
    }

    fn len(&self) -> usize {
        self.out.len()
    }

    fn total(&self) -> u64 {
        self.taken + self.out.len() as u64
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn take(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.taken += self.out.len() as u64;
        std::mem::replace(&mut self.out, empty)
    }

    fn end(&mut self) {
        debug_assert!(self.long.is_empty(), "long values come before the end");
    }

    fn failure(&self) -> Option<NeedsVersion> {
        None
    }

    fn step(&mut self) -> bool {
        let Some(mut long) = self.long.pop_front() else { return false };
        if long.under_way.is_none() {
            self.select(long.db);
        }
        let is_over = long.step(&mut self.out);
        self.freed += long.give_up() as u64;
        if is_over {
            expire(&mut self.out, &long.key, long.expiry);
        } else {
            self.long.push_front(long);
        }
        true
    }

    fn take_freed(&mut self) -> u64 {
        std::mem::take(&mut self.freed)
    }
}

impl Sink for CommandFile {
    fn small(&mut self, db: DbIndex, entry: Entry<'_>) {
        self.select(db);
        self.keys += 1;
        write(&mut self.out, entry.key(), &Stored::of(entry));
        expire(&mut self.out, entry.key(), entry.expiry());
    }

    fn large(&mut self, db: DbIndex, entry: Entry<'_>, value: Root) {
        self.keys += 1;
        self.long.push_back(Long {
            db,
            key: entry.key().to_vec(),
            expiry: entry.expiry(),
            encoding: entry.encoding(),
            root: value,
            under_way: None,
        });
    }
}

/// Appends the commands of a whole value, which is no long string.
fn write(out: &mut Vec<u8>, key: &[u8], value: &Stored<'_>) {
    match rdb::Source::kind(value) {
        keyspace::Kind::String => value.each_from(0, 1, |item| {
            if let rdb::Item::Element(text) = item {
                write_command(out, [&b"SET"[..], key, text]);
            }
        }),
        keyspace::Kind::Stream => {
            let stream = rdb::Source::stream(value).expect("it is a stream");
            let mut commands = StreamCommands::new();
            while !commands.step(out, key, stream, usize::MAX) {}
        }
        _ => {
            let mut commands = PartCommands::new();
            while !commands.step(out, key, value, usize::MAX) {}
        }
    }
}

/// Appends when a key expires, if it does.
fn expire(out: &mut Vec<u8>, key: &[u8], expiry: Option<UnixMs>) {
    if let Some(at) = expiry {
        let text = &mut [0; I64_TEXT_MAX];
        write_command(out, [&b"PEXPIREAT"[..], key, format_i64(text, at.0)]);
    }
}

impl Long {
    /// True when all of the value is written.
    fn step(&mut self, out: &mut Vec<u8>) -> bool {
        let (key, encoding) = (&self.key[..], self.encoding);
        let under_way = match (&mut self.under_way, &mut self.root) {
            (Some(under_way), _) => under_way,
            // The only reference goes to who gives up what is written.
            (begun, Root::String(text)) => {
                begun.insert(UnderWay::Text(TextCommands::new(std::mem::take(text))))
            }
            (begun, Root::Collection(value)) => {
                begun.insert(match rdb::Source::kind(&Stored::captured(value, encoding)) {
                    keyspace::Kind::Stream => UnderWay::Stream(StreamCommands::new()),
                    _ => UnderWay::Parts(PartCommands::new()),
                })
            }
        };
        match (under_way, &self.root) {
            (UnderWay::Text(text), _) => text.step(out, key),
            (UnderWay::Parts(parts), Root::Collection(value)) => {
                parts.step(out, key, &Stored::captured(value, encoding), STEP_BYTES)
            }
            (UnderWay::Stream(stream), Root::Collection(value)) => {
                let stored = Stored::captured(value, encoding);
                let value = rdb::Source::stream(&stored).expect("it is a stream in all steps");
                stream.step(out, key, value, STEP_BYTES)
            }
            _ => unreachable!("it has begun, by its kind"),
        }
    }

    /// Gives up what is written: a writer which changes the same value copies it no more. Returns
    /// the heap bytes that this frees.
    fn give_up(&mut self) -> usize {
        match (&mut self.root, &mut self.under_way) {
            (Root::Collection(value), Some(UnderWay::Parts(parts))) => {
                value.value_mut().release_before(parts.passed())
            }
            (_, Some(UnderWay::Text(text))) => text.take_freed(),
            _ => 0,
        }
    }
}
