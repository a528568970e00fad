//! Why a file cannot be loaded.

use rdb::file::{Fault, FileError};
use rustix::io::Errno;

/// A reason to end the start, as one line, and its place in the file.
#[derive(Debug)]
pub(crate) struct LoadError {
    /// The byte of the file. Of several errors the one that stands first is reported.
    pub(crate) offset: u64,
    /// The whole line but for the path.
    pub(crate) text: String,
}

impl LoadError {
    /// An operation on the file failed.
    pub(crate) fn of_disk(offset: u64, errno: Errno) -> Self {
        let why = config::load::io_text(&errno.into());
        Self { offset, text: format!("at byte {offset}: {why}") }
    }

    /// It is no snapshot file.
    pub(crate) fn no_snapshot() -> Self {
        Self { offset: 0, text: "at byte 0: it does not begin like a snapshot file".into() }
    }

    /// The file became shorter while it was read.
    pub(crate) fn shrunk(offset: u64) -> Self {
        Self { offset, text: format!("at byte {offset}: the file became shorter meanwhile") }
    }

    /// A key which is there already.
    pub(crate) fn duplicate(offset: u64, db: u32, key: &[u8]) -> Self {
        let (db, key) = (Some(db), Some(key.to_vec()));
        FileError { offset, db, key, id: None, fault: Fault::Twice }.into()
    }

    /// A thread panicked, or could not be started.
    pub(crate) fn of_thread(why: &str) -> Self {
        Self { offset: 0, text: why.to_owned() }
    }
}

impl From<FileError> for LoadError {
    fn from(e: FileError) -> Self {
        Self { offset: e.offset, text: e.to_string() }
    }
}
