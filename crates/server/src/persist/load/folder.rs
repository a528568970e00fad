//! What there is of an append-only file, for whoever loads it and whoever goes on writing it.

use crate::log;
use crate::persist::load::kept::Kept;
use driver::OpenHow;
use journal::Position;
use journal::history;
use journal::manifest::{self, Manifest};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Where an append-only file is, as the settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// `dir`.
    pub dir: PathBuf,
    /// `appenddirname`.
    pub folder: PathBuf,
    /// `appendfilename`.
    pub name: PathBuf,
}

impl Place {
    /// As the settings say.
    pub fn of(config: &config::Config) -> Self {
        Self {
            dir: config.dir.clone(),
            folder: config.appenddirname.clone(),
            name: config.appendfilename.clone(),
        }
    }

    /// The folder of the manifest and its files.
    pub fn folder(&self) -> PathBuf {
        self.dir.join(&self.folder)
    }

    /// A file in the folder.
    pub fn file(&self, name: &[u8]) -> PathBuf {
        self.folder().join(OsStr::from_bytes(name))
    }

    /// The manifest.
    pub fn manifest(&self) -> PathBuf {
        self.file(&manifest::manifest_name(self.name_bytes()))
    }

    /// The list of kept history.
    pub fn history(&self) -> PathBuf {
        self.file(&history::history_name(self.name_bytes()))
    }

    /// The single file of a server before Redis 7.
    pub fn old_file(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    /// `appendfilename` as bytes.
    pub fn name_bytes(&self) -> &[u8] {
        self.name.as_os_str().as_bytes()
    }
}

/// A file that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
}

/// What was found, and once loading has ended, what there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub place: Place,
    /// The manifest; `None` if there is no append-only file yet.
    pub manifest: Option<Manifest>,
    /// The files that are loaded, in this order: the base, if there is one, then the changes.
    pub parts: Vec<Part>,
    /// The base is still where servers before Redis 7 have their file, and there is no manifest or
    /// only that.
    pub is_old: bool,
    /// A file of the manifest which is not there. (Then nothing is loaded.)
    pub missing: Option<PathBuf>,
    /// Files which rewrites have replaced.
    pub history: Kept,
    /// Bytes of files of the manifest which are not in `parts`.
    pub other_bytes: u64,
    /// Where the stream of replication is behind all that was loaded, if the files say it.
    pub position: Option<Position>,
}

impl Found {
    /// Writes what is wrong with the files to the log.
    pub(crate) fn warn(&self) {
        if let Some(path) = &self.missing {
            log::warning(format_args!(
                "{} is not there, although {} lists it: a new base replaces what is",
                path.display(),
                self.place.manifest().display()
            ));
        }
        if let Some(why) = self.history.trouble() {
            log::warning(format_args!("{}: {why}", self.place.history().display()));
        }
    }

    /// The length of the base file; 0 without one.
    pub fn base_len(&self) -> u64 {
        let has_base = self.manifest.as_ref().is_some_and(|manifest| manifest.base.is_some());
        self.parts.first().filter(|_| has_base).map_or(0, |part| part.len)
    }

    /// The length of the last file of changes, which goes on there; 0 without one.
    pub fn last_len(&self) -> u64 {
        let has_incr = self.manifest.as_ref().is_some_and(|manifest| !manifest.incr.is_empty());
        self.parts.last().filter(|_| has_incr).map_or(0, |part| part.len)
    }

    /// Bytes of all files.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// True if there is no byte to load.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a file is opened that is only read.
pub(crate) fn to_read() -> OpenHow {
    OpenHow { read: true, ..OpenHow::default() }
}
