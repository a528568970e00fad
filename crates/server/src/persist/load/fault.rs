//! Why a file cannot be loaded.

use rdb::file::FileError;
use rustix::io::Errno;

/// Bytes of a key which are shown at most.
const KEY_SHOWN: usize = 128;

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
        Self::of_key(offset, db, key, "the key occurs twice")
    }

    /// A key of a database which the server does not have.
    pub(crate) fn no_database(offset: u64, db: u32, key: &[u8], databases: u16) -> Self {
        let why = format!("there are only {databases} databases; raise 'databases'");
        Self::of_key(offset, db, key, &why)
    }

    fn of_key(offset: u64, db: u32, key: &[u8], why: &str) -> Self {
        let shown = key[..key.len().min(KEY_SHOWN)].escape_ascii();
        let dots = if key.len() > KEY_SHOWN { "..." } else { "" };
        Self {
            offset,
            text: format!("at byte {offset}, database {db}, key '{shown}{dots}': {why}"),
        }
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
