//! The new folder.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use journal::Manifest;
use journal::manifest::{BaseFormat, FileInfo, FileKind, base_name, incr_name};

use super::listing::{FOLDER, NAME, Place};
use crate::aof_file::shown;

/// A data directory under way. It is removed again unless [`Target::complete`] was reached.
pub struct Target {
    dir: PathBuf,
    /// The directory was made here.
    is_new: bool,
    place: Place,
    manifest: Manifest,
    made: Vec<PathBuf>,
}

/// What is wrong with a path.
pub fn about(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

impl Target {
    /// Makes the directory if it is not there, and in it the folder of an append-only file which is
    /// called as the settings say. A directory which holds anything is refused.
    pub fn claim(dir: &Path, folder: Option<&OsStr>, name: &[u8]) -> Result<Self, String> {
        let is_new = match DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(about(dir, &error)),
        };
        let mut entries = fs::read_dir(dir).map_err(|error| about(dir, &error))?;
        if let Some(entry) = entries.next() {
            let name = entry.map_err(|error| about(dir, &error))?.file_name();
            let (path, name) = (dir.display(), Path::new(&name).display());
            return Err(format!("{path} holds {name}; a new or empty folder is needed"));
        }
        let below = dir.join(folder.unwrap_or(OsStr::new(FOLDER)));
        let place = Place { folder: below.clone(), name: name.to_vec() };
        let (dir, manifest) = (dir.to_owned(), Manifest::default());
        let target = Self { dir, is_new, place, manifest, made: Vec::new() };
        let made = DirBuilder::new().mode(0o700).create(&below);
        made.map_err(|error| about(&below, &error))?;
        Ok(target)
    }

    /// Makes the file which holds the next part, as readable as `source` is.
    pub fn add(&mut self, kind: FileKind, is_rdb: bool, source: &File) -> Result<File, String> {
        let name = &self.place.name;
        let info = if kind == FileKind::Base {
            let format = if is_rdb { BaseFormat::Rdb } else { BaseFormat::Commands };
            FileInfo::new(base_name(name, 1, format), 1, kind)
        } else {
            let seq = self.manifest.incr.len() as u64 + 1;
            FileInfo::new(incr_name(name, seq), seq, FileKind::Incr)
        };
        let path = self.place.file(&info.name);
        let mode = source.metadata().map_err(|error| about(&path, &error))?.permissions().mode();
        let file = self.create(&path, mode & 0o777 | 0o600)?;
        match kind {
            FileKind::Base => self.manifest.base = Some(info),
            _ => self.manifest.incr.push(info),
        }
        Ok(file)
    }

    fn create(&mut self, path: &Path, mode: u32) -> Result<File, String> {
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let file = file.map_err(|error| about(path, &error))?;
        self.made.push(path.to_owned());
        Ok(file)
    }

    /// Writes the manifest, with all files on the disk before it.
    pub fn complete(mut self) -> Result<(), String> {
        let path = self.place.manifest();
        sync(&self.place.folder)?;
        let partial = path.with_extension("manifest.partial");
        let mut file = self.create(&partial, 0o600)?;
        let written = file.write_all(&self.manifest.text()).and_then(|()| file.sync_all());
        written.map_err(|error| about(&partial, &error))?;
        fs::rename(&partial, &path).map_err(|error| about(&path, &error))?;
        self.made.push(path);
        sync(&self.place.folder)?;
        sync(&self.dir)?;
        let parent = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        if self.is_new {
            sync(parent.unwrap_or(Path::new(".")))?;
        }
        self.made.clear();
        self.is_new = false;
        self.place.folder.clear();
        Ok(())
    }
}

/// What failed leaves nothing behind.
impl Drop for Target {
    fn drop(&mut self) {
        for path in self.made.drain(..).rev() {
            let _ = fs::remove_file(path);
        }
        if !self.place.folder.as_os_str().is_empty() {
            let _ = fs::remove_dir(&self.place.folder);
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

fn sync(folder: &Path) -> Result<(), String> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| about(folder, &error))
}

/// How a server is started on the directory.
pub fn start_line(dir: &Path, folder: Option<&OsStr>, name: &[u8]) -> String {
    let mut line = format!("sheafdb --dir {} --appendonly yes", word(dir.as_os_str()));
    if let Some(folder) = folder.filter(|folder| *folder != FOLDER) {
        let _ = write!(line, " --appenddirname {}", word(folder));
    }
    if name != NAME.as_bytes() {
        let _ = write!(line, " --appendfilename {}", word(OsStr::from_bytes(name)));
    }
    line
}

/// A word of a shell.
fn word(text: &OsStr) -> String {
    let text = shown(text.as_bytes());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
