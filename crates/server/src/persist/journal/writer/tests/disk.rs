//! A disk which keeps apart what is durable, and fails as it is told.

use driver::{FileDone, FileError, FileId, FileOp, FileValue, Inode};
use journal::History;
use journal::history::Generation;
use journal::manifest::{Manifest, UNBEGUN};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A list of history which cannot be read, and which was there before.
pub(super) const DAMAGED: &[u8] = b"damaged";

/// Paths and contents.
pub(super) type Files = Vec<(PathBuf, Vec<u8>)>;

/// What a failed operation leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing has happened. The pages of a failed sync are still to be written.
    Dirty,
    /// A half was written; the pages of a failed sync count as written, and half of them are.
    Half,
}

impl Loss {
    pub(super) const ALL: [Self; 2] = [Self::Dirty, Self::Half];
}

/// What somebody removes while the writer uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The folder with all files.
    Folder,
    /// The same, and where it stood.
    Parent,
    /// The last segment.
    Segment,
    /// Another file stands at its path.
    Replaced,
}

impl Gone {
    /// Without what the writer cannot make again.
    pub(super) const ALL: [Self; 3] = [Self::Folder, Self::Segment, Self::Replaced];
}

#[derive(Clone, Debug, Default)]
struct File {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Bytes from here on count as written back, although they are not.
    lost_from: Option<usize>,
}

impl File {
    fn sync(&mut self) {
        let lost = self.lost_from.unwrap_or(usize::MAX).min(self.current.len());
        let mut bytes = self.current.clone();
        bytes[lost..].fill(0);
        self.durable = bytes;
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.current.resize(self.current.len().max(at + bytes.len()), 0);
        self.current[at..at + bytes.len()].copy_from_slice(bytes);
        // What is written again is dirty again.
        if self.lost_from.is_some_and(|lost| at <= lost) {
            self.lost_from = None;
        }
    }
}

#[derive(Default)]
pub(super) struct Disk {
    files: Vec<File>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    open: BTreeMap<u32, usize>,
    /// Segments in the order in which they were opened first.
    pub(super) segments: Vec<PathBuf>,
    bases: BTreeMap<PathBuf, u64>,
    /// A failed sync has lost pages.
    pub(super) has_lost: bool,
    /// Operations so far.
    pub(super) operations: u64,
    /// Files which a manifest has listed as data.
    known: BTreeSet<Vec<u8>>,
    /// Something goes before the operation with this number.
    pub(super) loses_at: Option<(u64, Gone)>,
    /// Something has gone.
    pub(super) is_lost: bool,
    has_no_folder: bool,
    has_no_parent: bool,
    /// Files which could not be removed.
    unremoved: BTreeSet<PathBuf>,
}

impl Disk {
    /// A durable base, of the moment of a cut.
    pub(super) fn install(&mut self, path: &Path, cut: u64) {
        if self.has_no_folder {
            return;
        }
        self.bases.insert(path.to_owned(), cut);
        self.files.push(File::default());
        self.names.insert(path.to_owned(), self.files.len() - 1);
        self.durable_names.insert(path.to_owned(), self.files.len() - 1);
    }

    /// A durable file in the folder.
    pub(super) fn put(&mut self, name: &str, text: &[u8]) {
        let path = Path::new("/d/f").join(name);
        let bytes = text.to_vec();
        self.files.push(File { current: bytes.clone(), durable: bytes, lost_from: None });
        self.names.insert(path.clone(), self.files.len() - 1);
        self.durable_names.insert(path, self.files.len() - 1);
    }

    /// Somebody removes something.
    pub(super) fn lose(&mut self, gone: Gone) {
        self.is_lost = true;
        let Some(segment) = self.segments.last().cloned() else { return };
        match gone {
            Gone::Folder | Gone::Parent => {
                (self.has_no_folder, self.has_no_parent) = (true, gone == Gone::Parent);
                self.names.clear();
                self.durable_names.clear();
            }
            Gone::Segment => {
                self.names.remove(&segment);
                self.durable_names.remove(&segment);
            }
            Gone::Replaced => {
                self.files.push(File::default());
                self.names.insert(segment.clone(), self.files.len() - 1);
                self.durable_names.insert(segment, self.files.len() - 1);
            }
        }
    }

    pub(super) fn has_folder(&self) -> bool {
        !self.has_no_folder
    }

    /// The folder can be made again.
    pub(super) fn find_parent(&mut self) {
        self.has_no_parent = false;
    }

    /// Names in the folder.
    pub(super) fn files(&self) -> Vec<&str> {
        self.names.keys().filter_map(|path| path.file_name()?.to_str()).collect()
    }

    pub(super) fn is_there(&self, path: &Path) -> bool {
        self.names.contains_key(path)
    }

    pub(super) fn current(&self, path: &Path) -> &[u8] {
        self.names.get(path).map_or(b"", |at| &self.files[*at].current)
    }

    pub(super) fn is_durable(&self, path: &Path) -> bool {
        let file = &self.files[self.names[path]];
        self.durable_names.get(path) == self.names.get(path) && file.durable == file.current
    }

    /// What the manifest lists once the machine has crashed: the cut of the base, the segments and
    /// their contents.
    pub(super) fn crash(&self) -> Option<(u64, Files)> {
        let (path, manifest) =
            self.durable_names.iter().find(|(path, _)| path.ends_with("a.aof.manifest"))?;
        let text = &self.files[*manifest].durable;
        if text == UNBEGUN {
            return None;
        }
        let folder = path.parent().expect("a folder");
        let manifest = Manifest::parse(text).expect("a whole manifest");
        let found = manifest.incr.iter().map(|incr| {
            let path = folder.join(String::from_utf8_lossy(&incr.name).as_ref());
            let at = self.durable_names.get(&path);
            let at = at.unwrap_or_else(|| panic!("{} is listed, not there", path.display()));
            (path, self.files[*at].durable.clone())
        });
        let base = manifest.base.as_ref().map(|base| String::from_utf8_lossy(&base.name));
        let base = base.map_or(0, |name| self.bases[&folder.join(name.as_ref())]);
        Some((base, found.collect()))
    }

    /// The text of a file with this name once the machine has crashed.
    pub(super) fn durable(&self, name: &str) -> Option<&[u8]> {
        let (_, at) = self.durable_names.iter().find(|(path, _)| path.ends_with(name))?;
        Some(&self.files[*at].durable)
    }

    /// The list of kept history once the machine has crashed.
    pub(super) fn history(&self) -> History {
        let text = self.durable("a.aof.history").filter(|text| *text != DAMAGED);
        text.map_or_else(History::default, |text| History::parse(text).expect("a whole list"))
    }

    /// What a crash at this moment must leave: each file which was data, and which is there, is
    /// listed; and what the list of history names is there.
    pub(super) fn check_history(&mut self) {
        let Some(text) = self.durable("a.aof.manifest").filter(|text| *text != UNBEGUN) else {
            return;
        };
        let manifest = Manifest::parse(text).expect("a whole manifest");
        let history = self.history();
        let data: Vec<_> = manifest.loaded().map(|file| file.name.clone()).collect();
        self.known.extend(data.iter().cloned());
        let kept: Vec<_> = history.generations.iter().flat_map(Generation::files).collect();
        let is_there = |name: &[u8]| {
            let name = std::str::from_utf8(name).expect("a plain name");
            self.durable_names.keys().any(|path| path.ends_with(name))
        };
        let is_stuck = |name: &[u8]| {
            self.unremoved.iter().any(|path| path.to_string_lossy().as_bytes().ends_with(name))
        };
        for name in self.known.iter().filter(|name| is_there(name) && !is_stuck(name)) {
            let mut named = data.iter().chain(manifest.history.iter().map(|file| &file.name));
            let is_named = named.any(|named| named == name);
            let is_kept = kept.iter().any(|file| file.name == *name);
            assert!(is_named || is_kept, "nobody lists {}", name.escape_ascii());
        }
        for file in kept {
            assert!(is_there(&file.name), "{} is kept, not there", file.name.escape_ascii());
        }
    }

    /// Executes an operation.
    pub(super) fn run(&mut self, op: FileOp, loss: Option<Loss>) -> FileDone {
        if let Some((_, gone)) = self.loses_at.take_if(|(at, _)| *at == self.operations) {
            self.lose(gone);
        }
        self.operations += 1;
        let mut unwritten = Vec::new();
        let outcome = match loss {
            Some(loss) => Err(self.fail(op, loss, &mut unwritten)),
            None => self.execute(op).map_err(|errno| FileError { errno, written: 0 }),
        };
        FileDone { token: 0, outcome, unwritten }
    }

    fn fail(&mut self, op: FileOp, loss: Loss, unwritten: &mut Vec<u8>) -> FileError {
        let mut written = 0;
        match op {
            FileOp::Write { file, at, bytes } | FileOp::WriteDurably { file, at, bytes } => {
                if loss == Loss::Half {
                    written = bytes.len() / 2;
                    let part = bytes[..written].to_vec();
                    self.file(file).write(at as usize, &part);
                }
                *unwritten = bytes;
            }
            FileOp::SyncData { file } if loss == Loss::Half => {
                let file = self.file(file);
                let from = file.durable.len().min(file.current.len());
                let has_lost = from < file.current.len();
                let half = from + (file.current.len() - from) / 2;
                file.durable = file.current[..half].to_vec();
                file.lost_from = Some(half);
                self.has_lost |= has_lost;
            }
            FileOp::Close { file } => _ = self.open.remove(&file.index),
            FileOp::Unlink { path } => _ = self.unremoved.insert(path),
            _ => {}
        }
        FileError { errno: Errno::IO, written }
    }

    /// Whether what an operation needs besides its file is there.
    fn find(&self, op: &FileOp) -> Result<(), Errno> {
        let is_there = match op {
            FileOp::Open { .. } => !self.has_no_folder,
            FileOp::CreateFolder { .. } if self.has_no_parent => false,
            FileOp::CreateFolder { .. } if !self.has_no_folder => return Err(Errno::EXIST),
            FileOp::SyncFolder { folder } if folder.ends_with("f") => !self.has_no_folder,
            FileOp::SyncFolder { .. } => !self.has_no_parent,
            FileOp::Rename { from: path, .. }
            | FileOp::Unlink { path }
            | FileOp::Status { path } => self.names.contains_key(path),
            _ => true,
        };
        if is_there { Ok(()) } else { Err(Errno::NOENT) }
    }

    fn execute(&mut self, op: FileOp) -> Result<FileValue, Errno> {
        self.find(&op)?;
        match op {
            FileOp::Open { path, how } => {
                assert!(how.write && how.create && (how.truncate || how.create_new));
                if how.create_new && self.names.contains_key(&path) {
                    return Err(Errno::EXIST);
                }
                let is_segment = path.to_string_lossy().ends_with(".incr.aof");
                if is_segment && !self.segments.contains(&path) {
                    self.segments.push(path.clone());
                }
                let at = *self.names.entry(path).or_insert(self.files.len());
                if at == self.files.len() {
                    self.files.push(File::default());
                }
                self.files[at].current.clear();
                let index = self.operations as u32;
                self.open.insert(index, at);
                let inode = Inode { device: 1, number: at as u64 };
                let file = FileId { index, generation: 0 };
                return Ok(FileValue::Opened { file, len: 0, inode });
            }
            FileOp::Write { file, at, bytes } => {
                self.file(file).write(at as usize, &bytes);
                return Ok(FileValue::Written(bytes));
            }
            FileOp::WriteDurably { file, at, bytes } => {
                let file = self.file(file);
                assert_eq!(file.durable, file.current, "it does not cover what was before");
                file.write(at as usize, &bytes);
                file.sync();
                return Ok(FileValue::Written(bytes));
            }
            FileOp::SyncData { file } => self.file(file).sync(),
            FileOp::Truncate { file, to } => {
                let file = self.file(file);
                file.current.truncate(to as usize);
                file.lost_from = file.lost_from.filter(|lost| *lost < to as usize);
            }
            FileOp::Close { file } => _ = self.open.remove(&file.index).expect("it was open"),
            FileOp::Rename { from, to } => self.rename(&from, to),
            FileOp::Unlink { path } => _ = self.names.remove(&path),
            FileOp::SyncFolder { folder } if folder.ends_with("f") => {
                self.durable_names.clone_from(&self.names);
            }
            FileOp::SyncFolder { .. } => {}
            FileOp::CreateFolder { .. } => self.has_no_folder = false,
            FileOp::Status { path } => {
                let inode = Inode { device: 1, number: self.names[&path] as u64 };
                return Ok(FileValue::Status { len: 0, mode: 0, is_folder: false, inode });
            }
            other => panic!("not of the writer: {other:?}"),
        }
        Ok(FileValue::Done)
    }

    /// Names reach the disk in any order: whatever the new manifest lists must be there before.
    fn rename(&mut self, from: &Path, to: PathBuf) {
        let at = self.names.remove(from).expect("it was created");
        let file = &self.files[at];
        assert_eq!(file.durable, file.current, "renamed before it is durable");
        if to.ends_with("a.aof.history.damaged") {
            self.names.insert(to, at);
            return;
        }
        let folder = to.parent().expect("a folder").to_owned();
        let listed: Vec<_> = if to.ends_with("a.aof.history") {
            let history = History::parse(&file.durable).expect("a list");
            history.generations.iter().flat_map(Generation::files).cloned().collect()
        } else {
            Manifest::parse(&file.durable).expect("a manifest").loaded().cloned().collect()
        };
        for listed in listed {
            let path = folder.join(String::from_utf8_lossy(&listed.name).as_ref());
            let is_there = self.is_lost || self.durable_names.contains_key(&path);
            assert!(is_there, "{} may be lost", path.display());
        }
        self.names.insert(to, at);
    }

    fn file(&mut self, file: FileId) -> &mut File {
        let at = self.open[&file.index];
        &mut self.files[at]
    }
}
