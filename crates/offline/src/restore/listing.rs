//! Which files there are: those of the manifest, and those which the list of history keeps.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use journal::Manifest;
use journal::manifest::{FileInfo, FileKind, manifest_name};

use super::Stop;
use crate::aof_file::open;

/// Bytes of a list of files, at most.
const LIST_BYTES_MAX: u64 = 16 << 20;
/// The folder of an append-only file, unless a setting says otherwise.
pub const FOLDER: &str = "appendonlydir";
/// How its files are called, unless a setting says otherwise.
pub const NAME: &str = "appendonly.aof";

/// Where an append-only file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder which holds its files.
    pub folder: PathBuf,
    /// What its files are called after: `appendfilename`.
    pub name: Vec<u8>,
}

impl Place {
    /// Finds the append-only file of a data directory, or of the folder itself. `folder` and `name`
    /// are what the settings `appenddirname` and `appendfilename` say, if the user has given them.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn find(dir: &Path, folder: Option<&OsStr>, name: Option<&[u8]>) -> Result<Self, String> {
        if !dir.is_dir() {
            return Err(format!("{} is no folder", dir.display()));
        }
        let below = dir.join(folder.unwrap_or(OsStr::new(FOLDER)));
        let folders = [below.as_path(), dir];
        let usual = name.unwrap_or(NAME.as_bytes());
        for folder in folders {
            let place = Self { folder: folder.to_owned(), name: usual.to_vec() };
            if place.manifest().is_file() {
                return Ok(place);
            }
        }
        if name.is_none() {
            for folder in folders {
                let mut names = manifests(folder);
                match (names.pop(), names.is_empty()) {
                    (Some(name), true) => return Ok(Self { folder: folder.to_owned(), name }),
                    (Some(_), false) => {
                        let text = "holds several manifests; choose one with --appendfilename";
                        return Err(format!("{} {text}", folder.display()));
                    }
                    (None, _) => {}
                }
            }
        }
        let file = Self { folder: below, name: usual.to_vec() }.manifest();
        let hint = "is this the data directory of a server with appendonly yes?";
        Err(format!("there is no append-only file: {} is missing ({hint})", file.display()))
    }

    /// Its manifest.
    pub fn manifest(&self) -> PathBuf {
        self.file(&manifest_name(&self.name))
    }

    /// The list of its history.
    pub fn history(&self) -> PathBuf {
        self.file(&[&self.name, &b".history"[..]].concat())
    }

    /// One of its files.
    pub fn file(&self, name: &[u8]) -> PathBuf {
        self.folder.join(OsStr::from_bytes(name))
    }

    /// Its files, oldest first: BASE files and the INCR files behind each. The second value is how
    /// many of them at the end are those of the manifest.
    pub fn list(&self) -> Result<(Vec<FileInfo>, usize), Stop> {
        let (path, history) = (self.manifest(), self.history());
        let text = read(&path)?.ok_or_else(|| Stop::Gone(path.clone()))?;
        let kept = read(&history)?.unwrap_or_default();
        // A rewrite in between would hide the files which were listed nowhere meanwhile.
        if read(&path)?.as_ref() != Some(&text) {
            return Err(Stop::Gone(path));
        }
        let wrong = |path: &Path, error| Stop::Failed(format!("{}: {error}", path.display()));
        let manifest = Manifest::parse(&text).map_err(|error| wrong(&path, error))?;
        let mut files = parse_history(&kept).map_err(|error| wrong(&history, error))?;
        files.retain(|file| manifest.loaded().all(|listed| listed.name != file.name));
        let current = manifest.loaded().count();
        files.extend(manifest.loaded().cloned());
        Ok((files, current))
    }
}

/// What the manifests of a folder are called after.
fn manifests(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| Some(name.as_bytes().strip_suffix(b".manifest")?.to_vec())).collect()
}

/// Reads a list of files; `None` if it is not there.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Stop> {
    let wrong = |error: io::Error| Stop::Failed(format!("{}: {error}", path.display()));
    let file: File = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(wrong)?.1,
    };
    let mut text = Vec::new();
    file.take(LIST_BYTES_MAX + 1).read_to_end(&mut text).map_err(wrong)?;
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(wrong(io::Error::other("it is too long for a list of files")));
    }
    Ok(Some(text))
}

/// Reads a list of history: lines of a manifest, with any number of BASE files.
fn parse_history(text: &[u8]) -> Result<Vec<FileInfo>, journal::ManifestError> {
    let mut files = Vec::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if line.starts_with(b"#") {
            continue;
        }
        let parsed = Manifest::parse(line)
            .map_err(|error| journal::ManifestError { line: index + 1, ..error })?;
        // (A file which is to be removed is no part of any data.)
        files.extend(parsed.loaded().cloned());
    }
    Ok(files)
}

/// A base and the changes behind it, up to the next base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// The base; none where the data begins with nothing.
    pub base: Option<FileInfo>,
    /// The changes, oldest first.
    pub incr: Vec<FileInfo>,
}

/// Splits the files at their bases. There is at least one generation if there is a file.
pub fn generations(files: Vec<FileInfo>) -> Vec<Generation> {
    let mut all: Vec<Generation> = Vec::new();
    for file in files {
        match (file.kind, all.last_mut()) {
            (FileKind::Base, _) => {
                all.push(Generation { base: Some(file), incr: Vec::new() });
            }
            (_, Some(last)) => last.incr.push(file),
            (_, None) => all.push(Generation { base: None, incr: vec![file] }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("listing-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Place { folder, name: b"a.aof".to_vec() }
    }

    fn names(files: &[FileInfo]) -> Vec<String> {
        files.iter().map(|file| String::from_utf8_lossy(&file.name).into_owned()).collect()
    }

    const MANIFEST: &str = "file b2 seq 2 type b\nfile i2 seq 2 type i\nfile i3 seq 3 type i\n";

    #[test]
    fn history_comes_before_the_manifest_and_a_file_in_both_counts_once() {
        let place = place("both");
        fs::write(place.manifest(), MANIFEST).expect("a file");
        assert_eq!(names(&place.list().expect("files").0), ["b2", "i2", "i3"]);
        let history = "file b1 seq 1 type b\nfile i1 seq 1 type i\n\
                       file b2 seq 2 type b\nfile i2 seq 2 type i\n";
        fs::write(place.history(), history).expect("a file");
        let (files, current) = place.list().expect("files");
        assert_eq!((names(&files).join(" "), current), ("b1 i1 b2 i2 i3".into(), 3));
        let split = generations(files);
        assert_eq!(split.len(), 2);
        assert_eq!(names(&split[1].incr), ["i2", "i3"]);
        fs::remove_dir_all(&place.folder).expect("a folder");
    }

    #[test]
    fn lists_which_are_none_are_refused() {
        let place = place("wrong");
        assert!(matches!(place.list(), Err(Stop::Gone(_))));
        fs::write(place.manifest(), "file b2 seq 2 type b").expect("a file");
        assert!(matches!(place.list(), Err(Stop::Failed(_))));
        fs::write(place.manifest(), MANIFEST).expect("a file");
        for text in ["x\n", "\n", "file ../x seq 1 type b\n", "file a seq 1 type b"] {
            fs::write(place.history(), format!("file b1 seq 1 type b\n{text}")).expect("a file");
            let Err(Stop::Failed(why)) = place.list() else { panic!("{text}") };
            assert!(why.contains(".history: line 2"), "{why}");
        }
        fs::remove_dir_all(&place.folder).expect("a folder");
    }

    #[test]
    fn a_place_is_found_by_its_manifest() {
        let Place { folder: root, .. } = place("place");
        let below = root.join(FOLDER);
        fs::create_dir(&below).expect("a folder");
        let find = |dir: &Path| Place::find(dir, None, None);
        assert!(find(&root).expect_err("there is none").contains("appendonly.aof.manifest"));
        assert!(find(&root.join("none")).expect_err("there is none").contains("no folder"));
        fs::write(below.join("other.manifest"), "").expect("a file");
        let other = Place { folder: below.clone(), name: b"other".to_vec() };
        assert_eq!(find(&root), Ok(other.clone()));
        assert_eq!(find(&below), Ok(other));
        fs::write(below.join("third.manifest"), "").expect("a file");
        assert!(find(&root).expect_err("there are two").contains("several"));
        let third = Place { folder: below.clone(), name: b"third".to_vec() };
        assert_eq!(Place::find(&root, None, Some(b"third")), Ok(third));
        fs::write(below.join("appendonly.aof.manifest"), "").expect("a file");
        assert_eq!(find(&root).expect("the usual one").name, NAME.as_bytes());
        fs::remove_dir_all(&root).expect("a folder");
    }
}
