//! Cuts a file into chunks.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem::take;

use base::crc64::crc64;

use super::Meta;
use super::chunk::{Chunk, Keys};
use super::error::{Fault, FileError};
use super::walk::{Walk, Walked};
use crate::{Dialect, Error, Reader, load_string};

/// Bytes of a chunk of keys, and of a part of a long value; it ends behind them. A value is long if
/// it has as many.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of a file that an announced key is taken to have at least.
const KEY_BYTES_MIN: u64 = 8;

/// How a file is scanned.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanOptions {
    /// Bytes of the file, if they are known: nothing may reach beyond them.
    pub length: Option<u64>,
    /// Whether the checksum is verified, if there is one.
    pub verify: bool,
    /// How many databases there may be, if that is known. Selecting a further one is an error.
    pub databases: Option<u32>,
    /// Whether values of unknown modules are left out and counted, otherwise they are an error.
    pub skip_unknown: bool,
}

/// What the scanner has next.
#[derive(Debug)]
pub enum Scanned {
    /// It needs more bytes.
    More,
    /// The next part of the file.
    Chunk(Chunk),
    /// The file is complete.
    Complete(Summary),
}

/// What became of the checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checked {
    /// It is right.
    Right,
    /// The file has none: it is 0, or the version is below 5.
    Absent,
    /// It was not verified.
    #[default]
    Not,
}

/// What was in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its version.
    pub version: u16,
    /// Bytes up to its end; more may follow.
    pub bytes: u64,
    /// Keys in chunks, long ones included.
    pub keys: u64,
    /// Keys of unknown modules that were left out.
    pub skipped_keys: u64,
    /// Data of modules beside the keys that was left out.
    pub skipped_aux: u64,
    /// What became of the checksum.
    pub checked: Checked,
}

/// Takes blocks of a file, and gives its parts. Holds the bytes that are not given yet: up to two
/// chunks, a block, and one element of a value or one container.
#[derive(Debug)]
pub struct Scanner {
    pub(super) options: ScanOptions,
    pub(super) chunk_bytes: usize,
    /// Bytes of the file from `base` on.
    pub(super) bytes: Vec<u8>,
    pub(super) base: u64,
    /// All bytes before this one are scanned.
    pub(super) at: usize,
    /// The first byte that is not given yet.
    pub(super) kept: usize,
    /// Where values of whole keys end, from `kept` on.
    pub(super) ends: Vec<usize>,
    /// The database that was selected at `kept`, and the one that is now.
    kept_db: u32,
    pub(super) db: u32,
    /// A database was selected.
    pub(super) is_selected: bool,
    /// A database, and how many keys it is said to have.
    pub(super) announced: (u32, u64),
    /// Announced keys so far.
    believed: u64,
    pub(super) stage: Stage,
    pub(super) item: Item,
    pub(super) walk: Walk,
    pub(super) dialect: Dialect,
    /// The checksum of the bytes before `summed`.
    pub(super) sum: u64,
    summed: usize,
    /// Chunks that are ready.
    pub(super) ready: VecDeque<Chunk>,
    pub(super) summary: Summary,
}

/// What stands at the place of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The magic.
    Head,
    /// An opcode or a type.
    Item,
    /// What follows an opcode.
    Behind,
    /// The key behind a type.
    Key,
    /// The first byte of a value.
    Begin,
    /// A value.
    Value,
    /// A value that is left out.
    Skip,
    /// The parts of a long collection.
    Parts,
    /// So many bytes of a long string.
    Text(u64),
    /// The checksum.
    Sum,
    /// Nothing: the file is complete, or wrong.
    Complete,
    Failed,
}

/// The item at hand.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// The opcode or type.
    pub code: u8,
    /// The place behind it, and of the value.
    pub start: usize,
    pub value: usize,
    /// What was said about the key.
    pub meta: Meta,
    /// The name of the key of a value that is long or left out, whose place is gone.
    pub name: Vec<u8>,
}

/// What a step of the scanner did.
pub(super) enum Step {
    /// Nothing: the bytes end.
    More,
    /// It moved.
    Moved,
    /// The file is complete.
    Complete,
}

impl Scanner {
    /// The scanner of a file, in chunks of about 256 KiB.
    pub fn new(options: ScanOptions) -> Self {
        Self::with_chunks(options, CHUNK_BYTES)
    }

    /// The scanner of a file, in chunks of about so many bytes. A value of more comes in parts.
    pub fn with_chunks(options: ScanOptions, chunk_bytes: usize) -> Self {
        Self {
            options,
            chunk_bytes,
            bytes: Vec::new(),
            base: 0,
            at: 0,
            kept: 0,
            ends: Vec::new(),
            kept_db: 0,
            db: 0,
            is_selected: false,
            announced: (0, 0),
            believed: 0,
            stage: Stage::Head,
            item: Item::default(),
            walk: Walk::text(),
            dialect: Dialect::Redis,
            sum: 0,
            summed: 0,
            ready: VecDeque::new(),
            summary: Summary::default(),
        }
    }

    /// Takes the next block, of any size. Call it when [`Scanner::next`] said
    /// [`Scanned::More`].
    pub fn feed(&mut self, block: &[u8]) {
        self.sum_up();
        // Moved seldom, so that small blocks do not move the same bytes again and again.
        if self.kept >= self.bytes.len() / 2 {
            let by = take(&mut self.kept);
            self.bytes.drain(..by);
            self.base += by as u64;
            self.at -= by;
            self.summed -= by;
            // (Places of what was given already are not needed any more.)
            self.item.start = self.item.start.saturating_sub(by);
            self.item.value = self.item.value.saturating_sub(by);
        }
        self.bytes.extend_from_slice(block);
    }

    /// Says that no more bytes come, where the length of the file was not known.
    pub fn end_of_input(&mut self) {
        self.options.length = Some(self.base + self.bytes.len() as u64);
    }

    /// The next part of the file, O(its bytes).
    ///
    /// # Errors
    /// The file is wrong here; nothing more can be read.
    #[expect(clippy::should_implement_trait, reason = "its end is not that of an iterator")]
    pub fn next(&mut self) -> Result<Scanned, FileError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Scanned::Chunk(chunk));
            }
            match self.step() {
                Ok(Step::Moved) => {}
                Ok(Step::Complete) => return Ok(Scanned::Complete(self.summary)),
                Ok(Step::More) if self.further() > 0 => return Ok(Scanned::More),
                Ok(Step::More) => return Err(self.fail(Fault::Ends)),
                Err(fault) => return Err(self.fail(fault)),
            }
        }
    }

    /// Bytes of the file that were scanned.
    pub fn at(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Heap bytes of what was fed and not given yet.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// The version, once it is read.
    pub fn version(&self) -> Option<u16> {
        (self.summary.version > 0).then_some(self.summary.version)
    }

    /// How many bytes of the file may still come.
    pub(super) fn further(&self) -> u64 {
        let fed = self.base + self.bytes.len() as u64;
        self.options.length.map_or(u64::MAX, |length| length.saturating_sub(fed))
    }

    /// Adds the scanned bytes to the checksum.
    pub(super) fn sum_up(&mut self) {
        if self.options.verify && self.stage != Stage::Complete {
            self.sum = crc64(self.sum, &self.bytes[self.summed..self.at]);
        }
        self.summed = self.at;
    }

    /// What is wrong at this place.
    fn fail(&mut self, fault: Fault) -> FileError {
        let stage = std::mem::replace(&mut self.stage, Stage::Failed);
        let key = match stage {
            Stage::Begin | Stage::Value => self.name().ok(),
            Stage::Skip | Stage::Parts | Stage::Text(_) => Some(take(&mut self.item.name)),
            _ => None,
        };
        let has_type = key.is_some() || stage == Stage::Key;
        let has_db = self.is_selected || has_type;
        FileError {
            offset: self.at(),
            db: has_db.then_some(self.db),
            key,
            id: has_type.then_some(self.item.code),
            fault,
        }
    }

    /// The name of the key of the value at hand.
    pub(super) fn name(&self) -> Result<Vec<u8>, Fault> {
        let mut reader = Reader::new(&self.bytes[self.item.start..self.item.value]);
        load_string(&mut reader).map(Cow::into_owned).map_err(Fault::Value)
    }

    fn step(&mut self) -> Result<Step, Fault> {
        match self.stage {
            Stage::Head => self.head(),
            Stage::Item => self.item(),
            Stage::Behind => self.behind(),
            Stage::Key => Ok(match self.walk(usize::MAX)? {
                Walked::Complete => {
                    self.item.value = self.at;
                    self.stage = Stage::Begin;
                    Step::Moved
                }
                _ => Step::More,
            }),
            Stage::Begin => self.begin(),
            Stage::Value => self.value(),
            Stage::Skip => self.skip(),
            Stage::Parts => self.parts(),
            Stage::Text(left) => Ok(self.text(left)),
            Stage::Sum => self.sum(),
            Stage::Complete => Ok(Step::Complete),
            Stage::Failed => Err(Fault::Ends),
        }
    }

    /// Walks on, and stops between two parts from `goal` on.
    pub(super) fn walk(&mut self, goal: usize) -> Result<Walked, Fault> {
        let further = self.further();
        self.walk.run(&self.bytes, &mut self.at, goal, further).map_err(fault)
    }

    /// Reads at this place. `None` if the bytes end there.
    pub(super) fn read<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Fault> {
        let mut reader = Reader::new(&self.bytes[self.at..]);
        match read(&mut reader) {
            Ok(it) => {
                self.at = self.bytes.len() - reader.rest().len();
                Ok(Some(it))
            }
            Err(Error::Short) if self.further() > 0 => Ok(None),
            Err(error) => Err(fault(error)),
        }
    }

    /// Gives the whole keys so far if they are enough for a chunk.
    pub(super) fn cut_if_long(&mut self) {
        if self.at - self.kept >= self.chunk_bytes {
            self.give_keys();
            self.kept = self.at;
        }
    }

    /// The selected database is said to have so many keys, which is not believed beyond what the
    /// rest of the file can hold. All databases together have no more than the file can hold.
    pub(super) fn announce(&mut self, keys: u64) {
        let keys_in = |bytes: u64| bytes / KEY_BYTES_MIN;
        let most = self.options.length.map_or(0, |length| {
            let in_rest = keys_in(length.saturating_sub(self.at()));
            in_rest.min(keys_in(length).saturating_sub(self.believed))
        });
        self.announced = (self.db, keys.min(most));
        self.believed += self.announced.1;
    }

    /// Gives the whole keys so far.
    pub(super) fn give_keys(&mut self) {
        if let Some(&len) = self.ends.last() {
            let capacity = self.ends.len();
            let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(capacity));
            let bytes = self.bytes[self.kept..self.kept + len].to_vec();
            let offset = self.base + self.kept as u64;
            let (db, dialect) = (self.kept_db, self.dialect);
            let announced = if self.announced.0 == db { self.announced.1 } else { 0 };
            let keys = Keys { bytes, ends, offset, db, announced, dialect };
            self.ready.push_back(Chunk::Keys(keys));
        }
        self.kept_db = self.db;
    }
}

/// What is wrong, if bytes that are missing will never come.
fn fault(error: Error) -> Fault {
    if error == Error::Short { Fault::Beyond } else { Fault::Value(error) }
}
