//! Where a save writes to: the snapshot file of the server, or a backup.

use crate::persist::backup::filing::Filing;
use crate::persist::save::writing::{Failure, Part, Writing};
use driver::{FileError, FileOp, FileValue};

/// The operations on files of a save.
pub(crate) enum Output {
    /// One file.
    File(Box<Writing>),
    /// A backup.
    Backup(Box<Filing>),
}

impl Output {
    /// The operations that are to be started now.
    pub(crate) fn take_ops(&mut self) -> Vec<(Part, FileOp)> {
        match self {
            Output::File(writing) => writing.take_ops(),
            Output::Backup(filing) => filing.take_ops(),
        }
    }

    /// Buffers that can be filled again.
    pub(crate) fn take_returned(&mut self) -> Vec<Vec<u8>> {
        match self {
            Output::File(writing) => writing.take_returned(),
            Output::Backup(filing) => filing.take_returned(),
        }
    }

    /// How it ended, once it has: with the length of the snapshot.
    pub(crate) fn outcome(&self) -> Option<Result<u64, &Failure>> {
        match self {
            Output::File(writing) => writing.outcome(),
            Output::Backup(filing) => filing.outcome(),
        }
    }

    /// True from the first failure on: no further bytes are wanted.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Output::File(writing) => writing.has_failed(),
            Output::Backup(filing) => filing.has_failed(),
        }
    }

    /// The next bytes of the snapshot.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        match self {
            Output::File(writing) => writing.push(bytes),
            Output::Backup(filing) => filing.push(bytes),
        }
    }

    /// All bytes were pushed. A backup has a manifest.
    pub(crate) fn end(&mut self, manifest: Option<Vec<u8>>) {
        match self {
            Output::File(writing) => writing.end(),
            Output::Backup(filing) => filing.end(manifest.expect("a backup has a manifest")),
        }
    }

    /// Ends without a new file, unless it has its name already.
    pub(crate) fn give_up(&mut self, why: &str) {
        match self {
            Output::File(writing) => writing.give_up(why),
            Output::Backup(filing) => filing.give_up(why),
        }
    }

    /// An operation has completed.
    pub(crate) fn complete(&mut self, part: Part, outcome: Result<FileValue, FileError>) {
        match self {
            Output::File(writing) => writing.complete(part, outcome),
            Output::Backup(filing) => filing.complete(part, outcome),
        }
    }
}
