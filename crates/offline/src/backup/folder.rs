//! A backup in a folder.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::copy::pass;
use super::manifest::{self, Manifest};
use super::request::Snapshot;
use super::{Failure, about};

/// An empty folder for a backup.
pub struct Folder {
    path: PathBuf,
    /// It was made here.
    is_new: bool,
    /// The files which were made here, and which a failure removes.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder if it is not there. One that holds anything is refused: it may be a backup.
    pub fn claim(path: &Path) -> Result<Self, Failure> {
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(about(path, &error)),
        };
        let mut entries = fs::read_dir(path).map_err(|error| about(path, &error))?;
        if let Some(entry) = entries.next() {
            let name = entry.map_err(|error| about(path, &error))?.file_name();
            let (path, name) = (path.display(), Path::new(&name).display());
            return Err(format!("{path}: holds {name}; a backup needs an empty or new folder"));
        }
        Ok(Self { path: path.to_owned(), is_new, made: Vec::new() })
    }

    /// Copies the snapshot, and then writes the manifest. Each has another name until all of it is
    /// on the disk.
    pub fn fill(mut self, mut snapshot: Snapshot) -> Result<Manifest, Failure> {
        let name = snapshot.server.file_name.clone();
        let Snapshot { file, length, permissions, .. } = &mut snapshot;
        let copied = self
            .store(&name, permissions, |out| pass(file, *length, |block| out.write_all(block)))?;
        let manifest = Manifest::new(snapshot.server.about(), &name, copied);
        self.store(manifest::NAME, &snapshot.permissions, |out| {
            out.write_all(&manifest.text()).map_err(|error| format!("{}: {error}", manifest::NAME))
        })?;
        // The name of the folder itself.
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if self.is_new {
            sync(parent.unwrap_or(Path::new(".")))?;
        }
        self.is_new = false;
        self.made.clear();
        Ok(manifest)
    }

    /// Writes a file under another name, and renames it when it is on the disk.
    fn store<T>(
        &mut self,
        name: &str,
        permissions: &Permissions,
        write: impl FnOnce(&mut File) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (partial, path) = (self.path.join(format!("{name}.partial")), self.path.join(name));
        let wrong = |error: io::Error| about(&partial, &error);
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&partial).map_err(wrong)?;
        self.made.push(partial.clone());
        file.set_permissions(permissions.clone()).map_err(wrong)?;
        let written = write(&mut file)?;
        file.sync_all().map_err(wrong)?;
        fs::rename(&partial, &path).map_err(wrong)?;
        self.made.push(path);
        sync(&self.path)?;
        Ok(written)
    }
}

/// A backup that failed leaves nothing.
impl Drop for Folder {
    fn drop(&mut self) {
        // (The manifest first, if it is there. What cannot be removed has none.)
        for path in self.made.drain(..).rev() {
            let _ = fs::remove_file(path);
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn sync(folder: &Path) -> Result<(), Failure> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| about(folder, &error))
}
