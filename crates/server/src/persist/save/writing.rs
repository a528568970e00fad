//! The operations on files of one save. No I/O: it is handed bytes and the outcomes of operations,
//! and returns the operations that follow.
//!
//! ```text
//! unlink what has the name of the temporary file
//! open it (O_EXCL)
//! write, as bytes come: several writes at a time, each at its offset; now and then sync
//! when all is written: sync, close
//! rename it over the old file
//! sync the folder
//! ```
//!
//! A crash leaves the old file or the new one, and perhaps the temporary file, which a later start
//! removes (`boot::process::remove_leftovers`). After a failure the operations in flight are
//! awaited; then the temporary file is closed and removed, and the old file stays.

use crate::boot::process;
use driver::{FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes behind which a file that is synced early is synced again.
const SYNC_EVERY: u64 = 4 << 20;
/// Permissions of the file, less the umask.
const MODE: u32 = 0o644;

/// Which operation has completed. At most one of each kind is in flight, but several writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The one that the stage is about.
    Stage,
    /// A write.
    Write,
    /// A sync before all is written.
    EarlySync,
}

/// Why a save failed. `Display` is for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An operation on a file failed.
    Op {
        /// What was tried, to follow "cannot".
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        errno: Errno,
    },
    /// It was given up for this reason.
    GivenUp(Box<str>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Op { what, path, errno } => {
                let why = config::load::io_text(&(*errno).into());
                write!(f, "cannot {what} '{}': {why}", path.display())
            }
            Failure::GivenUp(why) => f.write_str(why),
        }
    }
}

/// The operations of one save.
pub(crate) struct Writing {
    folder: PathBuf,
    file: PathBuf,
    /// The temporary file.
    beside: PathBuf,
    syncs_early: bool,
    stage: Stage,
    /// Bytes that are not being written yet.
    queue: VecDeque<Vec<u8>>,
    has_all: bool,
    /// Where the next write goes.
    at: u64,
    /// Writes in flight.
    writes: usize,
    /// Bytes since the last early sync began, and whether one is in flight.
    unsynced: u64,
    is_syncing: bool,
    /// The first failure.
    failure: Option<Failure>,
    /// To be started.
    ops: Vec<(Part, FileOp)>,
    /// Buffers whose bytes are written or not wanted.
    returned: Vec<Vec<u8>>,
}

/// How far it is. In all stages but `Write` and `Over` one operation is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    RemoveLeftover,
    Create,
    Write(FileId),
    Sync(FileId),
    Close,
    Rename,
    SyncFolder,
    /// After a failure: the temporary file is closed and removed.
    CloseFailed,
    RemoveFailed,
    Over,
}

impl Writing {
    /// Begins to write a file of this name; the temporary file beside it is this process's own.
    pub(crate) fn begin(folder: &Path, name: &Path, syncs_early: bool) -> Self {
        let mut writing = Self {
            folder: folder.to_owned(),
            file: folder.join(name),
            beside: folder.join(process::temporary_name(driver::process_id())),
            syncs_early,
            stage: Stage::RemoveLeftover,
            queue: VecDeque::new(),
            has_all: false,
            at: 0,
            writes: 0,
            unsynced: 0,
            is_syncing: false,
            failure: None,
            ops: Vec::new(),
            returned: Vec::new(),
        };
        let path = writing.beside.clone();
        writing.start(Stage::RemoveLeftover, FileOp::Unlink { path });
        writing
    }

    /// The operations that are to be started now.
    pub(crate) fn take_ops(&mut self) -> Vec<(Part, FileOp)> {
        std::mem::take(&mut self.ops)
    }

    /// Buffers that can be filled again.
    pub(crate) fn take_returned(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.returned)
    }

    /// The file that is written.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// How it ended, once it has: with the length of the new file, or with the old file in place.
    pub(crate) fn outcome(&self) -> Option<Result<u64, &Failure>> {
        let is_over = self.stage == Stage::Over;
        is_over.then(|| self.failure.as_ref().map_or(Ok(self.at), Err))
    }

    /// True from the first failure on: no further bytes are wanted.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The next bytes of the file.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if self.has_failed() {
            return self.returned.push(bytes);
        }
        debug_assert!(!self.has_all, "nothing comes behind the end");
        self.queue.push_back(bytes);
        self.proceed();
    }

    /// All bytes were pushed.
    pub(crate) fn end(&mut self) {
        self.has_all = true;
        self.proceed();
    }

    /// Ends without a new file. A save that is being renamed already is not stopped.
    pub(crate) fn give_up(&mut self, why: &str) {
        if !matches!(self.stage, Stage::Close | Stage::Rename | Stage::SyncFolder | Stage::Over) {
            self.fail(Failure::GivenUp(why.into()));
            self.proceed();
        }
    }

    /// An operation has completed.
    pub(crate) fn complete(&mut self, part: Part, outcome: Result<FileValue, FileError>) {
        match (part, outcome.map_err(|e| e.errno)) {
            (Part::Write, outcome) => {
                self.writes -= 1;
                match outcome {
                    Ok(FileValue::Written(bytes)) => self.returned.push(bytes),
                    Ok(other) => unreachable!("a write returns its bytes: {other:?}"),
                    Err(errno) => self.fail_at("write", errno),
                }
            }
            (Part::EarlySync, outcome) => {
                self.is_syncing = false;
                if let Err(errno) = outcome {
                    self.fail_at("sync", errno);
                }
            }
            (Part::Stage, outcome) => self.complete_stage(outcome),
        }
        self.proceed();
    }

    fn complete_stage(&mut self, outcome: Result<FileValue, Errno>) {
        match (self.stage, outcome) {
            (Stage::RemoveLeftover, _) if self.has_failed() => self.stage = Stage::Over,
            // A file that has the name already is a leftover or an attack: it is never written to.
            (Stage::RemoveLeftover, Ok(_) | Err(Errno::NOENT)) => {
                let how =
                    OpenHow { write: true, create_new: true, mode: MODE, ..OpenHow::default() };
                self.start(Stage::Create, FileOp::Open { path: self.beside.clone(), how });
            }
            (Stage::RemoveLeftover, Err(errno)) => self.end_failed("remove", errno),
            (Stage::Create, Ok(FileValue::Opened { file, .. })) => self.stage = Stage::Write(file),
            (Stage::Create, Err(errno)) => self.end_failed("create", errno),
            (Stage::Sync(file), outcome) => {
                if let Err(errno) = outcome {
                    self.fail_at("sync", errno);
                }
                self.close(file);
            }
            (Stage::Close, _) => {
                let (from, to) = (self.beside.clone(), self.file.clone());
                self.start(Stage::Rename, FileOp::Rename { from, to });
            }
            (Stage::Rename, Ok(_)) => {
                let folder = self.folder.clone();
                self.start(Stage::SyncFolder, FileOp::SyncFolder { folder });
            }
            (Stage::Rename, Err(errno)) => {
                let path = self.file.clone();
                self.fail(Failure::Op { what: "replace", path, errno });
                self.remove();
            }
            (Stage::SyncFolder, outcome) => {
                if let Err(errno) = outcome {
                    let path = self.folder.clone();
                    self.fail(Failure::Op { what: "sync the folder", path, errno });
                }
                self.stage = Stage::Over;
            }
            (Stage::CloseFailed, _) => self.remove(),
            // A partial file is useless; a failure to remove it changes nothing.
            (Stage::RemoveFailed, _) => self.stage = Stage::Over,
            (stage, outcome) => unreachable!("not what {stage:?} returns: {outcome:?}"),
        }
    }

    /// Starts what can be started while the file is open.
    fn proceed(&mut self) {
        let Stage::Write(file) = self.stage else { return };
        if self.has_failed() {
            self.returned.extend(self.queue.drain(..));
            if self.writes == 0 && !self.is_syncing {
                self.close(file);
            }
            return;
        }
        while let Some(bytes) = self.queue.pop_front() {
            let len = bytes.len() as u64;
            self.ops.push((Part::Write, FileOp::Write { file, at: self.at, bytes }));
            (self.at, self.unsynced, self.writes) =
                (self.at + len, self.unsynced + len, self.writes + 1);
        }
        if self.has_all && self.writes == 0 && !self.is_syncing {
            self.start(Stage::Sync(file), FileOp::SyncData { file });
        } else if self.syncs_early && !self.is_syncing && self.unsynced >= SYNC_EVERY {
            (self.unsynced, self.is_syncing) = (0, true);
            self.ops.push((Part::EarlySync, FileOp::SyncData { file }));
        }
    }

    /// Closes the file: to rename it, or to remove it after a failure.
    fn close(&mut self, file: FileId) {
        let next = if self.has_failed() { Stage::CloseFailed } else { Stage::Close };
        self.start(next, FileOp::Close { file });
    }

    fn remove(&mut self) {
        self.start(Stage::RemoveFailed, FileOp::Unlink { path: self.beside.clone() });
    }

    fn start(&mut self, stage: Stage, op: FileOp) {
        self.stage = stage;
        self.ops.push((Part::Stage, op));
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn fail_at(&mut self, what: &'static str, errno: Errno) {
        self.fail(Failure::Op { what, path: self.beside.clone(), errno });
    }

    /// There is no temporary file to be removed.
    fn end_failed(&mut self, what: &'static str, errno: Errno) {
        self.fail_at(what, errno);
        self.returned.extend(self.queue.drain(..));
        self.stage = Stage::Over;
    }
}

#[cfg(test)]
mod tests;
