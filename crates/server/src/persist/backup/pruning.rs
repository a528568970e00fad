//! Which old backups are removed, and the operations for it. No I/O.
//!
//! Removed is what has a name that this server gives, and holds a manifest, a snapshot and nothing
//! else. What has no manifest, or another file beside it, is somebody's business and stays. The
//! manifest is removed first, so that a crash leaves nothing that looks whole.

use crate::persist::backup::{SNAPSHOT, is_name};
use crate::persist::save::writing::Failure;
use driver::{FileError, FileOp, FileValue};
use offline::manifest;
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Removes the oldest backups of a folder, one operation at a time.
pub(crate) struct Pruning {
    root: PathBuf,
    /// The backup that was just made.
    newest: String,
    /// So many of the others are kept.
    left: usize,
    /// Backups to be looked at; the newest is last.
    names: Vec<String>,
    stage: Stage,
    /// What was removed.
    pub removed: Vec<PathBuf>,
    /// What could not be.
    pub failures: Vec<Failure>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    ListRoot,
    List,
    /// A folder that is not empty is not removed, and the error tells it from a symbolic link.
    Probe,
    RemoveManifest,
    RemoveSnapshot,
    RemoveFolder,
}

impl Pruning {
    /// Keeps `keep` backups of the folder `root`; `newest` is one of them. Returns the first
    /// operation, too; `None` if all are kept.
    pub(crate) fn begin(root: &Path, newest: &str, keep: usize) -> Option<(Self, FileOp)> {
        let pruning = Self {
            root: root.to_owned(),
            newest: newest.to_owned(),
            left: keep.checked_sub(1)?,
            names: Vec::new(),
            stage: Stage::ListRoot,
            removed: Vec::new(),
            failures: Vec::new(),
        };
        Some((pruning, FileOp::List { folder: root.to_owned() }))
    }

    /// An operation has completed. Returns the next one; `None` at the end.
    pub(crate) fn complete(&mut self, outcome: Result<FileValue, FileError>) -> Option<FileOp> {
        match (self.stage, outcome.map_err(|error| error.errno)) {
            (Stage::ListRoot, Ok(FileValue::Names(all))) => {
                let names = all.into_iter().filter_map(|name| name.into_string().ok());
                self.names = names.filter(|n| is_name(n) && *n != self.newest).collect();
                self.names.sort();
                self.list_next()
            }
            (Stage::ListRoot, Err(errno)) => {
                self.fail("list", self.root.clone(), errno);
                None
            }
            (Stage::List, Ok(FileValue::Names(names))) if is_backup(&names) => {
                if self.left > 0 {
                    self.left -= 1;
                    return self.skip();
                }
                self.stage = Stage::Probe;
                Some(FileOp::RemoveFolder { path: self.path()? })
            }
            (Stage::Probe, Err(Errno::NOTEMPTY | Errno::EXIST)) => {
                self.unlink(Stage::RemoveManifest, manifest::NAME)
            }
            // It is no backup of ours, or cannot be read.
            (Stage::Probe | Stage::List, _) => self.skip(),
            (Stage::RemoveManifest, Ok(_)) => self.unlink(Stage::RemoveSnapshot, SNAPSHOT),
            (Stage::RemoveSnapshot, Ok(_)) => {
                self.stage = Stage::RemoveFolder;
                Some(FileOp::RemoveFolder { path: self.path()? })
            }
            (Stage::RemoveFolder, Ok(_)) => {
                self.removed.extend(self.path());
                self.skip()
            }
            (_, Err(errno)) => {
                let path = self.path()?;
                self.fail("remove", path, errno);
                self.skip()
            }
            (_, Ok(value)) => unreachable!("no operation here returns {value:?}"),
        }
    }

    /// The backup that is looked at.
    fn path(&self) -> Option<PathBuf> {
        Some(self.root.join(self.names.last()?))
    }

    fn list_next(&mut self) -> Option<FileOp> {
        self.stage = Stage::List;
        Some(FileOp::List { folder: self.path()? })
    }

    fn skip(&mut self) -> Option<FileOp> {
        self.names.pop();
        self.list_next()
    }

    fn unlink(&mut self, stage: Stage, name: &str) -> Option<FileOp> {
        self.stage = stage;
        Some(FileOp::Unlink { path: self.path()?.join(name) })
    }

    fn fail(&mut self, what: &'static str, path: PathBuf, errno: Errno) {
        self.failures.push(Failure::Op { what, path, errno });
    }
}

/// Whether a folder with these names is a whole backup, and nothing else.
fn is_backup(names: &[OsString]) -> bool {
    names.len() == 2
        && [manifest::NAME, SNAPSHOT].iter().all(|n| names.iter().any(|name| name == n))
}
