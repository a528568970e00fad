//! Work on the folder of the append-only file, as a list of steps: one operation at a time, each
//! tried again until it succeeds.

use crate::persist::load::folder::Place;
use driver::{FileId, FileOp, FileValue, Inode, OpenHow};
use journal::history;
use journal::manifest::{self, UNBEGUN};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Permissions of files and folders, less the umask.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// One step.
#[derive(Debug)]
enum Step {
    CreateFolder(PathBuf),
    /// The segment: a new file, behind the removal of what stood there. No manifest names it yet.
    Open(PathBuf),
    /// What was written to a segment that is about to be closed.
    Sync(FileId),
    Close(FileId),
    /// After a failure: the segment is cut to its durable length, and that is made durable.
    Truncate(FileId, u64),
    SyncCut(FileId),
    /// A manifest, or the list of kept history, is written beside the old one, then renamed over
    /// it.
    CreateList(Box<NewList>),
    WriteList(Box<NewList>, FileId),
    SyncList(Box<NewList>, FileId),
    CloseList(Box<NewList>, FileId),
    RenameList(Box<NewList>),
    /// A damaged list of kept history goes where nobody reads it.
    SetAside(PathBuf, PathBuf),
    /// If it is set, the folder can be loaded from here on, and holds all data.
    SyncFolder(PathBuf, bool),
    /// A file that no manifest names any more.
    Remove(PathBuf),
    /// The list of kept history, before its files are removed.
    RemoveList(PathBuf),
}

impl Step {
    /// It finds nothing only if the folder is not there. (A list that cannot be renamed is made
    /// again, which tells.)
    fn needs_folder(&self) -> bool {
        matches!(
            self,
            Self::CreateFolder(_) | Self::Open(_) | Self::CreateList(_) | Self::SyncFolder(..)
        )
    }
}

#[derive(Debug)]
struct NewList {
    beside: PathBuf,
    path: PathBuf,
    text: Vec<u8>,
    /// What fails if it cannot be written.
    what: &'static str,
}

const MANIFEST: &str = "write the manifest of the append-only file";
const HISTORY: &str = "write the list of kept history of the append-only file";

/// What a step has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Nothing that others must know.
    Nothing,
    /// The folder was not there.
    Created,
    /// The segment is open.
    Opened(FileId, Inode),
    /// The segment is synced.
    Synced,
    /// The segment is cut to its durable length.
    Cut,
    /// The folder holds all data.
    Complete,
}

/// Why a step has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// What, to follow "cannot".
    pub what: &'static str,
    /// The system's error.
    pub errno: Errno,
    /// There is no folder any more.
    pub is_gone: bool,
}

/// Steps, the first of which may be in flight.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    steps: VecDeque<Step>,
    in_flight: bool,
}

impl Steps {
    /// True if there is nothing left to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// An operation is under way.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// A segment is being created: it may not be there, at least not behind a crash. `is_listed`:
    /// its manifest follows.
    pub(crate) fn is_creating(&self, is_listed: bool) -> bool {
        let is_synced_next = matches!(self.steps.front(), Some(Step::SyncFolder(_, false)))
            && (self.steps.len() > 1 || !is_listed);
        is_synced_next || self.steps.iter().any(|step| matches!(step, Step::Open(_)))
    }

    /// The first step is the rename of a manifest, or of the list of kept history.
    pub(crate) fn is_renaming(&self) -> bool {
        matches!(self.steps.front(), Some(Step::RenameList(_)))
    }

    /// Creates the folder if it is not there.
    pub(crate) fn create_folder(&mut self, folder: &Path) {
        self.steps.push_back(Step::CreateFolder(folder.to_owned()));
        if let Some(parent) = folder.parent() {
            self.steps.push_back(Step::SyncFolder(parent.to_owned(), false));
        }
    }

    /// Makes the folder ready for its first files: until the manifest lists them, whoever finds
    /// them knows that they are not complete.
    pub(crate) fn prepare(&mut self, place: &Place) {
        let folder = place.folder();
        self.create_folder(&folder);
        self.manifest(&folder, place.name_bytes(), UNBEGUN.to_vec(), false);
    }

    /// Makes the names in the folder durable.
    pub(crate) fn sync_folder(&mut self, folder: &Path) {
        self.steps.push_back(Step::SyncFolder(folder.to_owned(), false));
    }

    /// Opens an empty segment. A file of an earlier server that stands there is not truncated: a
    /// crash could undo that, and bring records back which are in a base by now.
    pub(crate) fn open(&mut self, path: PathBuf) {
        self.steps.push_back(Step::Remove(path.clone()));
        self.steps.push_back(Step::Open(path));
    }

    /// Syncs a segment.
    pub(crate) fn sync(&mut self, file: FileId) {
        self.steps.push_back(Step::Sync(file));
    }

    /// Closes a segment.
    pub(crate) fn close(&mut self, file: FileId) {
        self.steps.push_back(Step::Close(file));
    }

    /// Cuts a segment to a length.
    pub(crate) fn cut_to(&mut self, file: FileId, len: u64) {
        self.steps.push_back(Step::Truncate(file, len));
        self.steps.push_back(Step::SyncCut(file));
    }

    /// Replaces the manifest; `completes`: by one that lists all data, for the first time.
    pub(crate) fn manifest(&mut self, folder: &Path, name: &[u8], text: Vec<u8>, completes: bool) {
        self.replace(folder, &manifest::manifest_name(name), text, MANIFEST);
        self.steps.push_back(Step::SyncFolder(folder.to_owned(), completes));
    }

    /// Replaces the list of kept history.
    pub(crate) fn list(&mut self, folder: &Path, name: &[u8], text: Vec<u8>) {
        self.replace(folder, &history::history_name(name), text, HISTORY);
        self.sync_folder(folder);
    }

    /// Moves a damaged list of kept history away.
    pub(crate) fn set_list_aside(&mut self, folder: &Path, name: &[u8]) {
        let name = history::history_name(name);
        let aside = [&name[..], b".damaged"].concat();
        self.steps.push_back(Step::SetAside(within(folder, &name), within(folder, &aside)));
    }

    /// Removes the list of kept history.
    pub(crate) fn remove_list(&mut self, folder: &Path, name: &[u8]) {
        self.steps.push_back(Step::RemoveList(within(folder, &history::history_name(name))));
        self.sync_folder(folder);
    }

    fn replace(&mut self, folder: &Path, name: &[u8], text: Vec<u8>, what: &'static str) {
        let beside = within(folder, &[b"temp-", name].concat());
        let new = NewList { beside, path: within(folder, name), text, what };
        self.steps.push_back(Step::CreateList(Box::new(new)));
    }

    /// Removes a file; that it cannot be removed is no failure.
    pub(crate) fn remove(&mut self, path: PathBuf) {
        self.steps.push_back(Step::Remove(path));
    }

    /// The operation of the first step, unless it is in flight.
    pub(crate) fn start(&mut self) -> Option<FileOp> {
        if self.in_flight {
            return None;
        }
        let empty = OpenHow {
            write: true,
            create: true,
            truncate: true,
            mode: FILE_MODE,
            ..OpenHow::default()
        };
        let op = match self.steps.front()? {
            Step::CreateFolder(path) => {
                FileOp::CreateFolder { path: path.clone(), mode: FOLDER_MODE }
            }
            Step::Open(path) => {
                let how = OpenHow { create_new: true, truncate: false, ..empty };
                FileOp::Open { path: path.clone(), how }
            }
            Step::Close(file) | Step::CloseList(_, file) => FileOp::Close { file: *file },
            Step::Truncate(file, to) => FileOp::Truncate { file: *file, to: *to },
            Step::Sync(file) | Step::SyncCut(file) | Step::SyncList(_, file) => {
                FileOp::SyncData { file: *file }
            }
            Step::CreateList(new) => FileOp::Open { path: new.beside.clone(), how: empty },
            Step::WriteList(new, file) => {
                FileOp::Write { file: *file, at: 0, bytes: new.text.clone() }
            }
            Step::RenameList(new) => {
                FileOp::Rename { from: new.beside.clone(), to: new.path.clone() }
            }
            Step::SyncFolder(folder, _) => FileOp::SyncFolder { folder: folder.clone() },
            Step::SetAside(from, to) => FileOp::Rename { from: from.clone(), to: to.clone() },
            Step::Remove(path) | Step::RemoveList(path) => FileOp::Unlink { path: path.clone() },
        };
        self.in_flight = true;
        Some(op)
    }

    /// Gives up what is left; nothing is in flight. Returns a file which is open, and which the
    /// steps would have closed.
    pub(crate) fn give_up(&mut self) -> Option<FileId> {
        std::mem::take(&mut self.steps).iter().find_map(|step| match step {
            Step::Close(file)
            | Step::WriteList(_, file)
            | Step::SyncList(_, file)
            | Step::CloseList(_, file) => Some(*file),
            _ => None,
        })
    }

    /// The operation has completed. A failure leaves the step to be tried again.
    ///
    /// # Errors
    /// What failed, and why.
    pub(crate) fn complete(&mut self, outcome: Result<FileValue, Errno>) -> Result<Done, Failed> {
        self.in_flight = false;
        let step = self.steps.pop_front().expect("it was in flight");
        match (step, outcome) {
            (Step::CreateFolder(_), Ok(_)) => Ok(Done::Created),
            (Step::Open(_), Ok(FileValue::Opened { file, inode, .. })) => {
                Ok(Done::Opened(file, inode))
            }
            (Step::Sync(_), Ok(_)) => Ok(Done::Synced),
            (Step::SyncCut(_), Ok(_)) => Ok(Done::Cut),
            (Step::SyncFolder(_, true), Ok(_)) => Ok(Done::Complete),
            (Step::CreateList(new), Ok(FileValue::Opened { file, .. })) => {
                Ok(self.follow(Step::WriteList(new, file)))
            }
            (Step::WriteList(new, file), Ok(_)) => Ok(self.follow(Step::SyncList(new, file))),
            (Step::SyncList(new, file), Ok(_)) => Ok(self.follow(Step::CloseList(new, file))),
            (Step::CloseList(new, _), _) => Ok(self.follow(Step::RenameList(new))),
            // (A list may have gone the first time.)
            (Step::CreateFolder(_), Err(Errno::EXIST))
            | (Step::SetAside(..) | Step::RemoveList(_), Err(Errno::NOENT))
            | (Step::Close(_) | Step::Remove(_), _)
            | (_, Ok(_)) => Ok(Done::Nothing),
            (step, Err(errno)) => {
                let is_gone = is_gone(errno) && step.needs_folder();
                Err(Failed { what: self.again(step), errno, is_gone })
            }
        }
    }

    /// A step has this one behind it.
    fn follow(&mut self, step: Step) -> Done {
        self.steps.push_front(step);
        Done::Nothing
    }

    /// Puts a step that failed back, a manifest or a list from its beginning. Returns what failed.
    fn again(&mut self, step: Step) -> &'static str {
        let what = match &step {
            Step::CreateFolder(_) => "create the folder of the append-only file",
            Step::Open(_) => "create a segment of the append-only file",
            Step::Sync(_) => "sync the append-only file",
            Step::Truncate(..) | Step::SyncCut(_) => "cut the append-only file",
            Step::SyncFolder(..) => "sync the folder of the append-only file",
            Step::Close(_) | Step::Remove(_) => unreachable!("these do not fail"),
            Step::SetAside(..) | Step::RemoveList(_) => HISTORY,
            Step::CreateList(new)
            | Step::WriteList(new, _)
            | Step::SyncList(new, _)
            | Step::CloseList(new, _)
            | Step::RenameList(new) => new.what,
        };
        match step {
            Step::SyncCut(file) => self.steps.push_front(Step::SyncCut(file)),
            Step::WriteList(new, file) | Step::SyncList(new, file) => {
                self.steps.push_front(Step::CreateList(new));
                self.steps.push_front(Step::Close(file));
            }
            Step::RenameList(new) => self.steps.push_front(Step::CreateList(new)),
            Step::Open(path) => {
                self.steps.push_front(Step::Open(path.clone()));
                self.steps.push_front(Step::Remove(path)); // it may have failed
            }
            step => self.steps.push_front(step),
        }
        what
    }
}

/// Says that there is nothing, not that it cannot be reached.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::STALE)
}

/// A file in the folder.
fn within(folder: &Path, name: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(name))
}
