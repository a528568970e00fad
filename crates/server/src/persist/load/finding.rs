//! Finding what there is of an append-only file: which operations on files follow each other. No
//! I/O: it is handed the outcome of each operation and returns the next one.
//!
//! ```text
//! names of the folder        none: as if it were empty
//! manifest of no files       a server was killed when it made the first ones: as if it were empty
//! manifest is there          read it; the length of each file that it lists
//!                            (its base may still be the old single file, beside the folder)
//! no manifest                the old single file, if it is there, becomes the base;
//!                            parts of an append-only file in the folder are refused: they are data
//!                            which nobody would load, and a new file would replace
//! list of kept history       read it; the length of each file that it lists. Nothing about it is
//!                            refused: the data does not need it
//! ```
//!
//! CONFIG SET appendonly yes loads nothing: the data in memory counts. Then files which are missing
//! are no reason to refuse.

use crate::persist::load::folder::{Found, Part, Place, to_read};
use crate::persist::load::kept::Kept;
use driver::{FileError, FileId, FileOp, FileValue};
use journal::manifest::{Manifest, UNBEGUN};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of a manifest that is read.
const MANIFEST_MAX: usize = 16 << 20;
/// How names of parts end.
const ENDS: [&[u8]; 3] = [b".base.rdb", b".base.aof", b".incr.aof"];

/// The search under way: one operation is in flight.
pub(crate) struct Finding {
    found: Found,
    /// Names of files in the folder which are parts of an append-only file.
    strays: Vec<OsString>,
    /// There is a list of kept history, which was not read yet.
    has_list: bool,
    /// That is being read, not the manifest.
    is_at_list: bool,
    /// How many of its files were looked at.
    kept_files: usize,
    /// What is found will be loaded.
    loads: bool,
    step: Step,
}

/// The operation in flight.
enum Step {
    List,
    Open,
    Read(FileId),
    Close(Result<Vec<u8>, Errno>),
    /// The length of the next file of the manifest.
    Length,
    /// The length of the next file of kept history.
    KeptLength,
    /// Whether the base of the manifest is still the old single file.
    Unmoved,
    /// Whether there is an old single file.
    Old,
    /// Whether a file that no manifest lists has any bytes.
    Stray(OsString),
}

/// What follows an operation.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next operation.
    Op(FileOp),
    /// The search is over.
    Found(Box<Found>),
    /// It cannot be loaded: the file, and why.
    Refused(PathBuf, String),
}

type Outcome = Result<FileValue, FileError>;

impl Finding {
    /// The first operation. What is found will be loaded, or it is replaced by what is in memory.
    pub(crate) fn begin(place: Place, loads: bool) -> (Self, FileOp) {
        let folder = place.folder();
        let found = Found { place, ..Found::default() };
        let finding = Self {
            found,
            strays: Vec::new(),
            has_list: false,
            is_at_list: false,
            kept_files: 0,
            loads,
            step: Step::List,
        };
        (finding, FileOp::List { folder })
    }

    /// The operation in flight has completed.
    pub(crate) fn advance(&mut self, outcome: Outcome) -> Next {
        let outcome = outcome.map_err(|e| e.errno);
        match std::mem::replace(&mut self.step, Step::List) {
            Step::List => self.on_names(outcome),
            Step::Open => match outcome {
                Ok(FileValue::Opened { file, .. }) => {
                    let bytes = MANIFEST_MAX + 1;
                    self.op(Step::Read(file), FileOp::Read { file, at: 0, bytes })
                }
                Ok(other) => unreachable!("an open returns a file: {other:?}"),
                Err(errno) => self.on_text(Err(errno)),
            },
            Step::Read(file) => {
                let text = outcome.map(|value| match value {
                    FileValue::Bytes(bytes) => bytes,
                    other => unreachable!("a read returns bytes: {other:?}"),
                });
                self.op(Step::Close(text), FileOp::Close { file })
            }
            Step::Close(text) => self.on_text(text),
            Step::Length => self.on_length(outcome),
            Step::KeptLength => self.on_kept_length(outcome),
            Step::Unmoved => self.on_unmoved(outcome),
            Step::Old => self.on_old(outcome),
            Step::Stray(name) => match length(outcome) {
                Ok(0) | Err(_) => self.next_stray(),
                Ok(_) => self.refuse_stray(&name),
            },
        }
    }

    fn op(&mut self, step: Step, op: FileOp) -> Next {
        self.step = step;
        Next::Op(op)
    }

    fn on_names(&mut self, outcome: Result<FileValue, Errno>) -> Next {
        let folder = self.found.place.folder();
        let names = match outcome {
            Ok(FileValue::Names(names)) => names,
            Ok(other) => unreachable!("a list returns names: {other:?}"),
            Err(Errno::NOENT) => Vec::new(),
            Err(errno) => return Next::Refused(folder, io_text(errno)),
        };
        let list = self.found.place.history();
        self.has_list = names.iter().any(|name| Some(name.as_os_str()) == list.file_name());
        let manifest = self.found.place.manifest();
        if names.iter().any(|name| Some(name.as_os_str()) == manifest.file_name()) {
            let how = to_read();
            return self.op(Step::Open, FileOp::Open { path: manifest, how });
        }
        let prefix = [self.found.place.name_bytes(), b"."].concat();
        let is_part = |name: &OsString| {
            let name = name.as_bytes();
            name.starts_with(&prefix) && ENDS.iter().any(|end| name.ends_with(end))
        };
        self.strays = names.into_iter().filter(is_part).collect();
        self.next_stray()
    }

    /// Files without bytes are no data: a server may have been killed when it made the first one.
    fn next_stray(&mut self) -> Next {
        let Some(name) = self.strays.pop() else {
            let path = self.found.place.old_file();
            return self.op(Step::Old, FileOp::Status { path });
        };
        let path = self.found.place.file(name.as_bytes());
        self.op(Step::Stray(name), FileOp::Status { path })
    }

    fn refuse_stray(&self, name: &OsString) -> Next {
        let manifest = self.found.place.manifest();
        let why = format!(
            "it is not there, but the folder has {}: restore the manifest, or move the files away",
            Path::new(name).display()
        );
        Next::Refused(manifest, why)
    }

    fn on_text(&mut self, text: Result<Vec<u8>, Errno>) -> Next {
        if self.is_at_list { self.on_list(text) } else { self.on_manifest(text) }
    }

    fn on_manifest(&mut self, text: Result<Vec<u8>, Errno>) -> Next {
        let path = self.found.place.manifest();
        let text = match text {
            Ok(text) if text.len() > MANIFEST_MAX => {
                let why = format!("a manifest has {MANIFEST_MAX} bytes at most");
                return Next::Refused(path, why);
            }
            Ok(text) => text,
            Err(errno) => return Next::Refused(path, io_text(errno)),
        };
        if text == UNBEGUN {
            return self.next_stray();
        }
        match Manifest::parse(&text) {
            Ok(manifest) => {
                self.found.manifest = Some(manifest);
                self.next_length()
            }
            Err(error) => Next::Refused(path, error.to_string()),
        }
    }

    /// The path of the next file of the manifest whose length is not known.
    fn next_path(&self) -> Option<PathBuf> {
        let manifest = self.found.manifest.as_ref()?;
        let file = manifest.loaded().nth(self.found.parts.len())?;
        Some(self.found.place.file(&file.name))
    }

    fn next_length(&mut self) -> Next {
        match self.next_path() {
            Some(path) => self.op(Step::Length, FileOp::Status { path }),
            None => self.end(),
        }
    }

    fn on_length(&mut self, outcome: Result<FileValue, Errno>) -> Next {
        let path = self.next_path().expect("its length was asked for");
        match length(outcome) {
            Ok(len) => {
                self.found.parts.push(Part { path, len });
                self.next_length()
            }
            Err(Errno::NOENT) if self.may_be_unmoved() => {
                let path = self.found.place.old_file();
                self.op(Step::Unmoved, FileOp::Status { path })
            }
            Err(errno) => self.missing(path, errno),
        }
    }

    /// A file of the manifest cannot be looked at. Nothing is refused for one that is not there if
    /// nothing will be loaded.
    fn missing(&mut self, path: PathBuf, errno: Errno) -> Next {
        if errno == Errno::NOENT && !self.loads {
            self.found.missing = Some(path);
            return self.end();
        }
        let manifest = self.found.place.manifest();
        Next::Refused(path, format!("{} lists it: {}", manifest.display(), io_text(errno)))
    }

    /// True if the missing file is a base with the name of the old single file: a server was killed
    /// before it moved that.
    fn may_be_unmoved(&self) -> bool {
        let base = self.found.manifest.as_ref().and_then(|manifest| manifest.base.as_ref());
        let is_its_name = base.is_some_and(|base| base.name == self.found.place.name_bytes());
        is_its_name && self.found.parts.is_empty()
    }

    fn on_unmoved(&mut self, outcome: Result<FileValue, Errno>) -> Next {
        match length(outcome) {
            Ok(len) => {
                self.found.is_old = true;
                self.found.parts.push(Part { path: self.found.place.old_file(), len });
                self.next_length()
            }
            Err(errno) => {
                let path = self.next_path().expect("it is missing");
                self.missing(path, errno)
            }
        }
    }

    fn on_old(&mut self, outcome: Result<FileValue, Errno>) -> Next {
        let path = self.found.place.old_file();
        match length(outcome) {
            Ok(len) => {
                self.found.is_old = true;
                self.found.parts.push(Part { path, len });
                let name = self.found.place.name_bytes();
                self.found.manifest = Some(Manifest::of_old_file(name));
                self.end()
            }
            Err(Errno::NOENT) => self.end(),
            Err(errno) => Next::Refused(path, io_text(errno)),
        }
    }

    /// The files of the data are known: what is left is the list of kept history.
    fn end(&mut self) -> Next {
        if std::mem::take(&mut self.has_list) {
            self.is_at_list = true;
            let path = self.found.place.history();
            return self.op(Step::Open, FileOp::Open { path, how: to_read() });
        }
        self.next_kept()
    }

    fn on_list(&mut self, text: Result<Vec<u8>, Errno>) -> Next {
        self.found.history = match text {
            Ok(text) if text.len() > MANIFEST_MAX => {
                Kept::damaged(format!("a list has {MANIFEST_MAX} bytes at most"))
            }
            Ok(text) => Kept::of_list(&text, self.found.manifest.as_ref()),
            Err(errno) => Kept::damaged(io_text(errno)),
        };
        self.next_kept()
    }

    fn next_kept(&mut self) -> Next {
        if let Some((_, file)) = self.found.history.file(self.kept_files) {
            let path = self.found.place.file(&file.name);
            return self.op(Step::KeptLength, FileOp::Status { path });
        }
        Next::Found(Box::new(std::mem::take(&mut self.found)))
    }
}

impl Finding {
    fn on_kept_length(&mut self, outcome: Result<FileValue, Errno>) -> Next {
        let (generation, _) = self.found.history.file(self.kept_files).expect("it was asked for");
        self.found.history.set_length(generation, length(outcome).ok());
        self.kept_files += 1;
        self.next_kept()
    }
}

/// The length of a file.
fn length(outcome: Result<FileValue, Errno>) -> Result<u64, Errno> {
    match outcome? {
        FileValue::Status { is_folder: true, .. } => Err(Errno::ISDIR),
        FileValue::Status { len, .. } => Ok(len),
        other => unreachable!("not what a status returns: {other:?}"),
    }
}

fn io_text(errno: Errno) -> String {
    config::load::io_text(&errno.into())
}

#[cfg(test)]
mod tests;
