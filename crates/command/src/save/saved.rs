//! What the walker of a snapshot needs of a file.

use journal::producer::Field;
use keyspace::snapshot::Sink;
use rdb::file::NeedsVersion;

/// A file of a snapshot on its way, in one of the formats.
pub trait SavedFile: Sink {
    /// Writes the number of a producer, before the first entry.
    fn producer(&mut self, field: &Field<'_>);

    /// Bytes that wait to be taken.
    fn len(&self) -> usize;

    /// True if none do.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the file so far.
    fn total(&self) -> u64;

    /// Keys so far.
    fn keys(&self) -> u64;

    /// Takes the bytes so far and goes on in an empty buffer.
    fn take(&mut self, empty: Vec<u8>) -> Vec<u8>;

    /// The end of the file. Nothing long may wait.
    fn end(&mut self);

    /// Why an entry could not be written: the file is useless.
    fn failure(&self) -> Option<NeedsVersion>;

    /// Writes a part of the long values that wait; false if none does. Needs no lock.
    fn step(&mut self) -> bool;

    /// Heap bytes freed since the last call: of long values, what is written and nobody else held.
    fn take_freed(&mut self) -> u64;
}
