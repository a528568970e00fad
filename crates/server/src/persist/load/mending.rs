//! What is done to the files of an append-only file behind their loading: a truncated end is cut
//! off, an old single file is moved into the folder. No I/O: it is handed the outcome of each
//! operation and returns the next one.
//!
//! The manifest of a moved file is durable before the file is moved. So whenever the server is
//! killed, the next start finds the file: it looks for the base in both places.

use crate::persist::load::folder::Found;
use driver::{FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Permissions of a new folder and of a new manifest.
const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// Bytes at the end of the last file which are written again before they are synced: more than a
/// writer leaves unsynced.
const TAIL_BYTES: u64 = 64 << 20;
/// Bytes of it at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Operations which follow each other: one is in flight.
pub(crate) struct Mending {
    steps: VecDeque<Step>,
    /// The file that is open.
    file: Option<FileId>,
    /// From where to where it is being written again.
    rewriting: Option<(u64, u64)>,
    /// What the operation in flight is about, for the error.
    about: PathBuf,
    /// It may fail so.
    allowed: Option<Errno>,
    /// What has failed, while the file is closed.
    failed: Option<(PathBuf, Errno)>,
}

/// An operation.
enum Step {
    /// On a path; and how it may fail.
    Path(PathBuf, FileOp, Option<Errno>),
    /// On the file that is open.
    File(fn(FileId, u64, Vec<u8>) -> FileOp, u64, Vec<u8>),
    /// What stands there in the file that is open, up to an end, is read and written again.
    Rewrite(u64, u64),
}

/// What follows an operation.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next operation.
    Op(FileOp),
    /// All is done.
    Done,
    /// A file, and why nothing can be done to it.
    Failed(PathBuf, Errno),
}

impl Mending {
    /// Nothing to do yet.
    pub(crate) fn new() -> Self {
        let (steps, about) = (VecDeque::new(), PathBuf::new());
        Self { steps, file: None, rewriting: None, about, allowed: None, failed: None }
    }

    /// Cuts a file off behind so many bytes, and makes the rest durable.
    pub(crate) fn truncate(&mut self, path: &Path, to: u64) {
        self.open(path, OpenHow { read: true, write: true, ..OpenHow::default() });
        self.on_file(|file, to, _| FileOp::Truncate { file, to }, to, Vec::new());
        self.rewrite_tail(to);
        self.sync_and_close();
    }

    /// Makes a file of this length durable which a killed server may have written to. What was read
    /// from it is shown to clients, and what is appended to the next file follows it.
    pub(crate) fn sync(&mut self, path: &Path, len: u64) {
        self.open(path, OpenHow { read: true, write: true, ..OpenHow::default() });
        self.rewrite_tail(len);
        self.sync_and_close();
    }

    /// A sync of the killed server may have failed. Then the system can still show bytes which are
    /// not on the disk, and writes them no more by itself: they are written again.
    fn rewrite_tail(&mut self, len: u64) {
        self.steps.push_back(Step::Rewrite(len.saturating_sub(TAIL_BYTES), len));
    }

    /// Moves an old single file into the folder, as the base of a manifest.
    pub(crate) fn move_old(&mut self, found: &Found) {
        let (place, folder) = (&found.place, found.place.folder());
        let Some(manifest) = &found.manifest else { return };
        let mode = FOLDER_MODE;
        let create = FileOp::CreateFolder { path: folder.clone(), mode };
        self.on_path(&folder, create, Some(Errno::EXIST));
        self.sync_folder(&place.dir);
        let path = place.manifest();
        let mut name = b"temp-".to_vec();
        name.extend(journal::manifest::manifest_name(place.name_bytes()));
        let beside = place.file(&name);
        let mode = FILE_MODE;
        self.open(
            &beside,
            OpenHow { write: true, create: true, truncate: true, mode, ..OpenHow::default() },
        );
        self.on_file(|file, at, bytes| FileOp::Write { file, at, bytes }, 0, manifest.text());
        self.sync_and_close();
        self.rename(&beside, &path);
        self.sync_folder(&folder);
        self.rename(&place.old_file(), &place.file(place.name_bytes()));
        self.sync_folder(&folder);
        self.sync_folder(&place.dir);
    }

    fn on_path(&mut self, about: &Path, op: FileOp, allowed: Option<Errno>) {
        self.steps.push_back(Step::Path(about.to_owned(), op, allowed));
    }

    fn on_file(&mut self, op: fn(FileId, u64, Vec<u8>) -> FileOp, at: u64, bytes: Vec<u8>) {
        self.steps.push_back(Step::File(op, at, bytes));
    }

    fn open(&mut self, path: &Path, how: OpenHow) {
        self.on_path(path, FileOp::Open { path: path.to_owned(), how }, None);
    }

    fn sync_and_close(&mut self) {
        self.on_file(|file, _, _| FileOp::SyncData { file }, 0, Vec::new());
        self.on_file(|file, _, _| FileOp::Close { file }, 0, Vec::new());
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let op = FileOp::Rename { from: from.to_owned(), to: to.to_owned() };
        self.on_path(to, op, None);
    }

    fn sync_folder(&mut self, folder: &Path) {
        self.on_path(folder, FileOp::SyncFolder { folder: folder.to_owned() }, None);
    }

    /// The first operation, or [`Next::Done`].
    pub(crate) fn begin(&mut self) -> Next {
        self.next()
    }

    /// The operation in flight has completed.
    pub(crate) fn advance(&mut self, outcome: &Result<FileValue, FileError>) -> Next {
        if let Some((about, errno)) = self.failed.take() {
            return Next::Failed(about, errno);
        }
        match outcome {
            Ok(FileValue::Opened { file, .. }) => self.file = Some(*file),
            Ok(FileValue::Bytes(bytes)) => {
                if let Some(op) = self.write_again(bytes) {
                    return Next::Op(op);
                }
            }
            Ok(_) => {}
            Err(e) if self.allowed == Some(e.errno) => {}
            Err(e) => return self.fail(e.errno),
        }
        self.next()
    }

    /// Writes what was read to where it stands, and plans the rest.
    fn write_again(&mut self, bytes: &[u8]) -> Option<FileOp> {
        let (at, to) = self.rewriting.take()?;
        let end = at + bytes.len() as u64;
        if bytes.is_empty() {
            return None; // the file has become shorter
        }
        if end < to {
            self.steps.push_front(Step::Rewrite(end, to));
        }
        let file = self.file.expect("it was read");
        Some(FileOp::Write { file, at, bytes: bytes.to_vec() })
    }

    fn fail(&mut self, errno: Errno) -> Next {
        let about = std::mem::take(&mut self.about);
        match self.file.take() {
            Some(file) => {
                self.failed = Some((about, errno));
                Next::Op(FileOp::Close { file })
            }
            None => Next::Failed(about, errno),
        }
    }

    fn next(&mut self) -> Next {
        match self.steps.pop_front() {
            None => Next::Done,
            Some(Step::Path(about, op, allowed)) => {
                (self.about, self.allowed) = (about, allowed);
                Next::Op(op)
            }
            Some(Step::Rewrite(at, to)) if at >= to => self.next(),
            Some(Step::Rewrite(at, to)) => {
                let file = self.file.expect("it was opened before");
                self.allowed = None;
                self.rewriting = Some((at, to));
                let bytes = (to - at).min(PIECE_BYTES) as usize;
                Next::Op(FileOp::Read { file, at, bytes })
            }
            Some(Step::File(op, at, bytes)) => {
                let file = self.file.expect("it was opened before");
                self.allowed = None;
                let op = op(file, at, bytes);
                if matches!(op, FileOp::Close { .. }) {
                    self.file = None;
                }
                Next::Op(op)
            }
        }
    }
}

#[cfg(test)]
mod tests;
