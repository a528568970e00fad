//! Why a file cannot be loaded.

use journal::Damage;
use rdb::file::{Fault, FileError, Shown};
use resp::Args;
use rustix::io::Errno;

/// A reason to end the start, as one line, and its place in the file.
#[derive(Debug)]
pub(crate) struct LoadError {
    /// The byte of the file. Of several errors the one that stands first is reported.
    pub(crate) offset: u64,
    /// The whole line but for the path.
    pub(crate) text: String,
    /// The bytes of a file of commands are wrong: `check-aof` may repair it.
    pub(crate) is_damage: bool,
}

impl LoadError {
    pub(crate) fn new(offset: u64, text: String) -> Self {
        Self { offset, text, is_damage: false }
    }

    /// An operation on the file failed.
    pub(crate) fn of_disk(offset: u64, errno: Errno) -> Self {
        let why = config::load::io_text(&errno.into());
        Self::new(offset, format!("at byte {offset}: {why}"))
    }

    /// It is no snapshot file.
    pub(crate) fn no_snapshot() -> Self {
        Self::new(0, "at byte 0: it does not begin like a snapshot file".into())
    }

    /// The file became shorter while it was read.
    pub(crate) fn shrunk(offset: u64) -> Self {
        Self::at(offset, "the file became shorter meanwhile")
    }

    /// A key which is there already.
    pub(crate) fn duplicate(offset: u64, db: u32, key: &[u8]) -> Self {
        let (db, key) = (Some(db), Some(key.to_vec()));
        FileError { offset, db, key, id: None, fault: Fault::Twice }.into()
    }

    /// What stands at this byte of a file of commands is wrong.
    pub(crate) fn at(offset: u64, why: &str) -> Self {
        Self::new(offset, format!("at byte {offset}: {why}"))
    }

    /// It is no file of commands, from some byte on.
    pub(crate) fn damaged(damage: &Damage) -> Self {
        Self { offset: damage.at, text: damage.to_string(), is_damage: true }
    }

    /// A command that this version does not have.
    pub(crate) fn unknown(offset: u64, args: Args<'_>) -> Self {
        let (name, id) = (args.get(0), command::lookup(args.get(0)));
        // Of a container it is the subcommand that is unknown.
        let sub = args.try_get(1).filter(|_| id.is_some());
        let sub = sub.map_or(String::new(), |sub| format!(" {}", Shown(sub)));
        Self::at(offset, &format!("unknown command '{}{sub}'", Shown(name)))
    }

    /// A command with too few or too many words.
    pub(crate) fn arity(offset: u64, name: &str, words: usize) -> Self {
        Self::at(offset, &format!("'{name}' with {words} words, itself counted"))
    }

    /// A thread panicked, or could not be started.
    pub(crate) fn of_thread(why: &str) -> Self {
        Self::new(0, why.to_owned())
    }
}

impl From<FileError> for LoadError {
    fn from(e: FileError) -> Self {
        Self::new(e.offset, e.to_string())
    }
}
