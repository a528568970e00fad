//! The operations on files of one backup. No I/O: it is handed bytes and the outcomes of
//! operations, and returns the operations that follow, like `Writing`, which it uses for both
//! files.
//!
//! ```text
//! create backup-dir, if it is missing
//! create the folder of the backup
//! write the snapshot, then the manifest; each is synced and renamed
//! sync backup-dir: the backup is whole
//! remove old backups (pruning.rs)
//! ```
//!
//! After a failure its files and its folder are removed. A crash leaves a folder without manifest.

use crate::persist::backup::SNAPSHOT;
use crate::persist::backup::pruning::Pruning;
use crate::persist::save::writing::{Failure, Part, Writing};
use driver::{FileError, FileOp, FileValue};
use offline::manifest;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Permissions of folders, less the umask.
const MODE: u32 = 0o755;

/// The operations of one backup.
pub(crate) struct Filing {
    root: PathBuf,
    name: String,
    keep: usize,
    stage: Stage,
    /// The file under way: the snapshot, then the manifest.
    writing: Writing,
    manifest: Vec<u8>,
    /// Length of the snapshot.
    bytes: u64,
    failure: Option<Failure>,
    pruning: Option<Pruning>,
    /// To be started.
    ops: Vec<(Part, FileOp)>,
    /// Buffers of the snapshot whose bytes are written or not wanted.
    returned: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    CreateRoot,
    CreateFolder,
    Snapshot,
    Manifest,
    SyncRoot,
    Prune,
    /// After a failure.
    RemoveManifest,
    RemoveSnapshot,
    RemoveFolder,
    Over,
}

impl Filing {
    /// Begins a backup of this name in the folder `root`, which will hold `keep` backups (0: any
    /// number).
    pub(crate) fn begin(root: &Path, name: String, keep: usize, syncs_early: bool) -> Self {
        let writing = Writing::begin(&root.join(&name), Path::new(SNAPSHOT), syncs_early);
        let mut filing = Self {
            root: root.to_owned(),
            name,
            keep,
            stage: Stage::CreateRoot,
            writing,
            manifest: Vec::new(),
            bytes: 0,
            failure: None,
            pruning: None,
            ops: Vec::new(),
            returned: Vec::new(),
        };
        let path = filing.root.clone();
        filing.start(Stage::CreateRoot, FileOp::CreateFolder { path, mode: MODE });
        filing
    }

    /// The folder of the backup.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// Backups that were removed, and why others could not be.
    pub(crate) fn pruned(&self) -> (&[PathBuf], &[Failure]) {
        self.pruning.as_ref().map_or((&[], &[]), |p| (&p.removed, &p.failures))
    }

    /// The operations that are to be started now.
    pub(crate) fn take_ops(&mut self) -> Vec<(Part, FileOp)> {
        let mut ops = std::mem::take(&mut self.ops);
        if matches!(self.stage, Stage::Snapshot | Stage::Manifest) {
            ops.append(&mut self.writing.take_ops());
        }
        ops
    }

    /// Buffers that can be filled again.
    pub(crate) fn take_returned(&mut self) -> Vec<Vec<u8>> {
        if self.stage == Stage::Snapshot {
            self.returned.append(&mut self.writing.take_returned());
        }
        std::mem::take(&mut self.returned)
    }

    /// How it ended, once it has: with the length of the snapshot, or with nothing left of it.
    pub(crate) fn outcome(&self) -> Option<Result<u64, &Failure>> {
        let is_over = self.stage == Stage::Over;
        is_over.then(|| self.failure.as_ref().map_or(Ok(self.bytes), Err))
    }

    /// True from the first failure on: no further bytes are wanted.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some() || self.writing.has_failed()
    }

    /// The next bytes of the snapshot.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if self.has_failed() {
            return self.returned.push(bytes);
        }
        self.writing.push(bytes);
        self.proceed();
    }

    /// All bytes were pushed; this is the manifest.
    pub(crate) fn end(&mut self, manifest: Vec<u8>) {
        self.manifest = manifest;
        self.writing.end();
        self.proceed();
    }

    /// Ends without a backup. One that has its manifest is not stopped.
    pub(crate) fn give_up(&mut self, why: &str) {
        match self.stage {
            Stage::CreateRoot | Stage::CreateFolder => {
                self.failure.get_or_insert(Failure::GivenUp(why.into()));
            }
            Stage::Snapshot | Stage::Manifest => {
                self.writing.give_up(why);
                self.proceed();
            }
            _ => {}
        }
    }

    /// An operation has completed.
    pub(crate) fn complete(&mut self, part: Part, outcome: Result<FileValue, FileError>) {
        match self.stage {
            Stage::Snapshot | Stage::Manifest => self.writing.complete(part, outcome),
            _ => self.complete_own(outcome),
        }
        self.proceed();
    }

    fn complete_own(&mut self, outcome: Result<FileValue, FileError>) {
        let errno = outcome.as_ref().err().map(|error| error.errno);
        match (self.stage, errno) {
            (Stage::CreateRoot, _) if self.failure.is_some() => self.stage = Stage::Over,
            (Stage::CreateRoot, None | Some(Errno::EXIST)) => {
                let path = self.path();
                self.start(Stage::CreateFolder, FileOp::CreateFolder { path, mode: MODE });
            }
            (Stage::CreateRoot, Some(errno)) => {
                self.fail("create the folder", self.root.clone(), errno);
                self.stage = Stage::Over;
            }
            // What has this name already is not ours.
            (Stage::CreateFolder, Some(errno)) => {
                self.fail("create the folder", self.path(), errno);
                self.stage = Stage::Over;
            }
            (Stage::CreateFolder, None) if self.failure.is_some() => self.remove(),
            (Stage::CreateFolder, None) => self.stage = Stage::Snapshot,
            (Stage::SyncRoot, Some(errno)) => {
                self.fail("sync the folder", self.root.clone(), errno);
                self.remove();
            }
            (Stage::SyncRoot, None) => self.prune(),
            (Stage::Prune, _) => {
                let pruning = self.pruning.as_mut().expect("it has begun");
                match pruning.complete(outcome) {
                    Some(op) => self.start(Stage::Prune, op),
                    None => self.stage = Stage::Over,
                }
            }
            // What cannot be removed has no manifest, or is not whole: a failure changes nothing.
            (Stage::RemoveManifest, _) => self.unlink(Stage::RemoveSnapshot, SNAPSHOT),
            (Stage::RemoveSnapshot, _) => {
                let path = self.path();
                self.start(Stage::RemoveFolder, FileOp::RemoveFolder { path });
            }
            (Stage::RemoveFolder, _) => self.stage = Stage::Over,
            (stage, _) => unreachable!("no operation of its own is in flight: {stage:?}"),
        }
    }

    /// Goes on when a file is written.
    fn proceed(&mut self) {
        let (Stage::Snapshot | Stage::Manifest) = self.stage else { return };
        let Some(outcome) = self.writing.outcome().map(|outcome| outcome.map_err(Clone::clone))
        else {
            return;
        };
        if self.stage == Stage::Snapshot {
            // (The buffer of the manifest came from nobody.)
            self.returned.append(&mut self.writing.take_returned());
        }
        match outcome {
            Err(failure) => {
                self.failure.get_or_insert(failure);
                self.remove();
            }
            Ok(bytes) if self.stage == Stage::Snapshot => {
                self.bytes = bytes;
                self.writing = Writing::begin(&self.path(), Path::new(manifest::NAME), false);
                self.writing.push(std::mem::take(&mut self.manifest));
                self.writing.end();
                self.stage = Stage::Manifest;
            }
            Ok(_) => {
                let folder = self.root.clone();
                self.start(Stage::SyncRoot, FileOp::SyncFolder { folder });
            }
        }
    }

    fn prune(&mut self) {
        match Pruning::begin(&self.root, &self.name, self.keep) {
            None => self.stage = Stage::Over,
            Some((pruning, op)) => {
                self.pruning = Some(pruning);
                self.start(Stage::Prune, op);
            }
        }
    }

    /// After a failure: nothing is left.
    fn remove(&mut self) {
        self.unlink(Stage::RemoveManifest, manifest::NAME);
    }

    fn unlink(&mut self, stage: Stage, name: &str) {
        self.start(stage, FileOp::Unlink { path: self.path().join(name) });
    }

    fn start(&mut self, stage: Stage, op: FileOp) {
        self.stage = stage;
        self.ops.push((Part::Stage, op));
    }

    fn fail(&mut self, what: &'static str, path: PathBuf, errno: Errno) {
        self.failure.get_or_insert(Failure::Op { what, path, errno });
    }
}

#[cfg(test)]
mod tests;
