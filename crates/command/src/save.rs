//! A snapshot on its way into a file: what the walker finds, as bytes of an RDB file, or as
//! commands (`commands.rs`).

mod commands;
mod saved;

use crate::parts::Stored;
use base::{DbIndex, UnixMs};
use journal::producer::{AUX_NAME, Field};
use keyspace::snapshot::{AtCut, Root, Sink};
use keyspace::{Entry, Uses};
use rdb::Item;
use rdb::file::{FileWriter, LongSource, LongText, LongValue, Meta, NeedsVersion};
use std::collections::VecDeque;
use value::{Encoding, Str};

pub use commands::CommandFile;
pub use rdb::file::FileOptions;
pub use saved::SavedFile;

/// Bytes of a long string that one step reads.
const TEXT_STEP: usize = 256 << 10;
/// A shorter string may be stored as a number, so it is written whole.
const SHORT_TEXT_MAX: usize = 20;

/// What a file says about how keys are used: what the eviction policy looks at, as in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing.
    Nothing,
    /// For how long they were not used.
    Idle,
    /// How often they are used.
    Frequency(Uses),
}

/// Writes entries of a snapshot. Small ones are written at once; long ones wait for
/// [`SavedFile::step`], because the walker may hold a lock.
pub struct SnapshotFile {
    writer: FileWriter,
    recorded: Recorded,
    now: UnixMs,
    /// Databases whose counts are not written yet.
    counts: Vec<AtCut>,
    long: VecDeque<Long>,
    /// Keys that are written, or wait to be.
    keys: u64,
    /// Bytes freed since the last [`SavedFile::take_freed`].
    freed: u64,
    failure: Option<NeedsVersion>,
}

/// A long value that waits, or is under way.
struct Long {
    db: DbIndex,
    key: Vec<u8>,
    meta: Meta,
    encoding: Encoding,
    root: Root,
    under_way: Option<UnderWay>,
}

enum UnderWay {
    Text(LongText),
    Value(LongValue),
}

impl SnapshotFile {
    /// A file of this moment. `aux` are the fields at its beginning, `functions` the libraries.
    pub fn begin(
        options: FileOptions,
        (databases, now): (&[AtCut], UnixMs),
        recorded: Recorded,
        aux: &[(&str, &[u8])],
        functions: &[impl AsRef<[u8]>],
    ) -> Self {
        let mut writer = FileWriter::new(options, Vec::new());
        writer.begin(aux);
        for library in functions {
            writer.function(library.as_ref());
        }
        let (counts, long) = (databases.to_vec(), VecDeque::new());
        Self { writer, recorded, now, counts, long, keys: 0, freed: 0, failure: None }
    }

    fn meta(&self, entry: Entry<'_>) -> Meta {
        let (mut idle_seconds, mut frequency) = (None, None);
        match self.recorded {
            Recorded::Nothing => {}
            Recorded::Idle => idle_seconds = Some(entry.idle_seconds(self.now)),
            Recorded::Frequency(uses) => frequency = entry.frequency(uses, self.now),
        }
        Meta { expiry: entry.expiry(), idle_seconds, frequency }
    }
}

impl SavedFile for SnapshotFile {
    fn producer(&mut self, field: &Field<'_>) {
        self.writer.aux(AUX_NAME, &field.text());
    }

    fn len(&self) -> usize {
        self.writer.len()
    }

    fn total(&self) -> u64 {
        self.writer.total()
    }

    fn keys(&self) -> u64 {
        self.keys
    }

    fn take(&mut self, empty: Vec<u8>) -> Vec<u8> {
        self.writer.take(empty)
    }

    fn end(&mut self) {
        debug_assert!(self.long.is_empty(), "long values come before the end");
        self.writer.end();
    }

    fn failure(&self) -> Option<NeedsVersion> {
        self.failure
    }

    fn step(&mut self) -> bool {
        let Some(long) = self.long.front_mut() else { return false };
        let stepped = long.step(&mut self.writer, &mut self.counts);
        self.freed += long.give_up() as u64;
        match stepped {
            Ok(false) => return true,
            Ok(true) => {}
            Err(failure) => self.failure = Some(failure),
        }
        self.long.pop_front();
        true
    }

    fn take_freed(&mut self) -> u64 {
        std::mem::take(&mut self.freed)
    }
}

impl Sink for SnapshotFile {
    fn small(&mut self, db: DbIndex, entry: Entry<'_>) {
        let meta = self.meta(entry);
        select(&mut self.writer, &mut self.counts, db);
        self.keys += 1;
        if let Err(failure) = self.writer.value(entry.key(), &meta, &Stored::of(entry)) {
            self.failure = Some(failure);
        }
    }

    fn large(&mut self, db: DbIndex, entry: Entry<'_>, value: Root) {
        self.keys += 1;
        self.long.push_back(Long {
            db,
            key: entry.key().to_vec(),
            meta: self.meta(entry),
            encoding: entry.encoding(),
            root: value,
            under_way: None,
        });
    }
}

/// Selects a database; before its first key come its counts.
fn select(writer: &mut FileWriter, counts: &mut Vec<AtCut>, db: DbIndex) {
    let at = counts.iter().position(|counts| counts.db == db);
    let counts = at.map(|at| counts.swap_remove(at));
    writer.database(db, counts.map(|counts| (counts.keys, counts.expires)));
}

impl Long {
    /// True when all of it is written.
    fn step(
        &mut self,
        writer: &mut FileWriter,
        counts: &mut Vec<AtCut>,
    ) -> Result<bool, NeedsVersion> {
        if self.under_way.is_none() {
            select(writer, counts, self.db);
            self.under_way = match &mut self.root {
                Root::String(text) if text.len() <= SHORT_TEXT_MAX => {
                    writer.value(&self.key, &self.meta, &Stored::text(Str::Blob(text)))?;
                    return Ok(true);
                }
                // The only reference goes to who gives up what is written.
                Root::String(text) => {
                    let text = std::mem::take(text);
                    Some(UnderWay::Text(writer.begin_text(&self.key, &self.meta, text)))
                }
                Root::Collection(value) => {
                    let source = Stored::captured(value, self.encoding);
                    Some(UnderWay::Value(writer.begin_long(&self.key, &self.meta, &source)?))
                }
            };
        }
        Ok(match (&mut self.under_way, &self.root) {
            (Some(UnderWay::Text(text)), _) => text.step(writer, TEXT_STEP),
            (Some(UnderWay::Value(long)), Root::Collection(value)) => {
                long.step(writer, &Stored::captured(value, self.encoding))
            }
            _ => unreachable!("it has begun, by its kind"),
        })
    }

    /// Gives up what is written: a writer which changes the same value copies it no more. Returns
    /// the heap bytes that this frees.
    fn give_up(&mut self) -> usize {
        match (&mut self.root, &mut self.under_way) {
            (Root::Collection(value), Some(UnderWay::Value(long))) => {
                value.value_mut().release_before(long.passed())
            }
            (_, Some(UnderWay::Text(text))) => text.take_freed(),
            _ => 0,
        }
    }
}

impl LongSource for Stored<'_> {
    fn each_from(&self, from: u64, item: &mut dyn FnMut(Item<'_>) -> bool) {
        self.each_while(from, u64::MAX, item);
    }
}
