//! Backups over folders in memory, in which each operation fails once, or which are given up before
//! each operation.

use super::*;
use driver::{FileId, Inode};
use std::collections::{BTreeMap, BTreeSet};

const FILE: FileId = FileId { index: 0, generation: 3 };
const ROOT: &str = "/b";
const NEW: &str = "sheafdb-20261123T000000Z";
const MANIFEST: &[u8] = b"{}";

/// Folders, and files with their contents. One file is open at a time.
#[derive(Default)]
struct Disk {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    open: Option<PathBuf>,
    /// Operations so far.
    count: usize,
}

impl Disk {
    fn with_backups(names: &[&str]) -> Self {
        let mut disk = Disk::default();
        disk.folders.insert(ROOT.into());
        for name in names {
            let path = Path::new(ROOT).join(name);
            disk.files.insert(path.join(SNAPSHOT), Vec::new());
            disk.files.insert(path.join(manifest::NAME), MANIFEST.to_vec());
            disk.folders.insert(path);
        }
        disk
    }

    fn names(&self, folder: &Path) -> Vec<std::ffi::OsString> {
        let all = self.folders.iter().chain(self.files.keys());
        let inside = all.filter(|path| path.parent() == Some(folder));
        inside.map(|path| path.file_name().expect("a name").to_owned()).collect()
    }

    fn run(&mut self, op: FileOp) -> Result<FileValue, Errno> {
        let done = |is_done: bool, errno| if is_done { Ok(FileValue::Done) } else { Err(errno) };
        match op {
            FileOp::CreateFolder { path, .. } => done(self.folders.insert(path), Errno::EXIST),
            FileOp::RemoveFolder { path } => {
                if !self.names(&path).is_empty() {
                    return Err(Errno::NOTEMPTY);
                }
                done(self.folders.remove(&path), Errno::NOENT)
            }
            FileOp::List { folder } => {
                let is_folder = self.folders.contains(&folder);
                is_folder.then(|| FileValue::Names(self.names(&folder))).ok_or(Errno::NOTDIR)
            }
            FileOp::Unlink { path } => done(self.files.remove(&path).is_some(), Errno::NOENT),
            FileOp::Open { path, .. } => {
                let is_there = self.folders.contains(path.parent().expect("a folder"));
                assert!(is_there && self.files.insert(path.clone(), Vec::new()).is_none());
                self.open = Some(path);
                Ok(FileValue::Opened { file: FILE, len: 0, inode: Inode::default() })
            }
            FileOp::Write { bytes, .. } => {
                let file = self.open.as_ref().and_then(|path| self.files.get_mut(path));
                file.expect("it is open").extend_from_slice(&bytes);
                Ok(FileValue::Written(bytes))
            }
            FileOp::Rename { from, to } => {
                let file = self.files.remove(&from).expect("it is there");
                self.files.insert(to, file);
                Ok(FileValue::Done)
            }
            FileOp::SyncData { .. } | FileOp::Close { .. } | FileOp::SyncFolder { .. } => {
                Ok(FileValue::Done)
            }
            other => unreachable!("a backup has no such operation: {other:?}"),
        }
    }

    /// Backups with a manifest.
    fn whole(&self) -> Vec<String> {
        let manifests = self.files.keys().filter(|path| path.ends_with(manifest::NAME));
        let folder = |path: &PathBuf| {
            let folder = path.parent().and_then(Path::file_name).expect("a folder");
            folder.to_string_lossy().into_owned()
        };
        manifests.map(folder).collect()
    }
}

/// Runs a backup. One operation fails, or it is given up before one.
fn run(
    disk: &mut Disk,
    keep: usize,
    fails: Option<usize>,
    given_up: Option<usize>,
) -> (Result<u64, Failure>, Filing) {
    let mut filing = Filing::begin(Path::new(ROOT), NEW.to_owned(), keep, true);
    let mut parts = [vec![b'a'; 100], vec![b'b'; 50]].to_vec();
    let (mut pushed, mut returned, mut lost) = (0, 0, 0);
    let mut in_flight = Vec::new();
    let mut is_ended = false;
    loop {
        in_flight.extend(filing.take_ops());
        returned += filing.take_returned().len();
        if let Some(outcome) = filing.outcome() {
            assert!(in_flight.is_empty(), "nothing is in flight at the end");
            assert!(returned + lost <= pushed, "the manifest is no buffer of the pipe");
            assert!(outcome.is_err() || (returned, pushed) == (2, 2));
            return (outcome.map_err(Clone::clone), filing);
        }
        if given_up == Some(disk.count) {
            disk.count += 1;
            filing.give_up("enough");
            continue;
        }
        if let Some(part) = parts.pop() {
            filing.push(part);
            pushed += 1;
            continue;
        }
        if !is_ended && !filing.has_failed() {
            is_ended = true;
            filing.end(MANIFEST.to_vec());
            continue;
        }
        let (which, op) = in_flight.remove(0);
        let is_write = matches!(&op, FileOp::Write { bytes, .. } if bytes != MANIFEST);
        let outcome = if fails == Some(disk.count) {
            lost += usize::from(is_write);
            Err(Errno::NOSPC)
        } else {
            disk.run(op)
        };
        disk.count += 1;
        filing.complete(which, outcome.map_err(Into::into));
    }
}

#[test]
fn a_backup_is_made_in_a_folder_that_is_missing() {
    let mut disk = Disk::default();
    let (outcome, filing) = run(&mut disk, 7, None, None);
    assert_eq!(outcome, Ok(150));
    assert_eq!(disk.whole(), [NEW]);
    let file = |name| disk.files[&filing.path().join(name)].clone();
    assert_eq!((file(SNAPSHOT).len(), file(manifest::NAME)), (150, MANIFEST.to_vec()));
    assert_eq!(disk.files.len(), 2, "no temporary file is left");
}

/// Whatever fails, or whenever it is given up: either the backup is whole, or nothing is left of
/// it. Others stay.
#[test]
fn a_failure_leaves_nothing() {
    const OLD: &str = "sheafdb-20261122T000000Z";
    let mut count = Disk::with_backups(&[OLD]);
    run(&mut count, 2, None, None).0.expect("nothing fails");
    assert!(count.count > 12, "{} operations", count.count);
    for at in 0..count.count {
        for (fails, given_up) in [(Some(at), None), (None, Some(at))] {
            let mut disk = Disk::with_backups(&[OLD]);
            let (outcome, filing) = run(&mut disk, 2, fails, given_up);
            if outcome.is_ok() {
                assert_eq!(disk.whole(), [OLD, NEW], "{fails:?} {given_up:?}");
            } else {
                assert_eq!(disk.whole(), [OLD], "{fails:?} {given_up:?}");
                assert!(!disk.folders.contains(&filing.path()), "{fails:?} {given_up:?}");
                assert_eq!(disk.files.len(), 2, "{fails:?} {given_up:?}");
            }
        }
    }
}

/// A backup which has this name already is not touched.
#[test]
fn a_name_that_is_taken_is_a_failure() {
    let mut disk = Disk::with_backups(&[NEW]);
    let before = disk.files.clone();
    let (outcome, _) = run(&mut disk, 7, None, None);
    assert!(matches!(outcome, Err(Failure::Op { errno: Errno::EXIST, .. })), "{outcome:?}");
    assert_eq!(disk.files, before);
}

#[test]
fn the_oldest_backups_are_removed() {
    let days = |range: std::ops::Range<u8>| {
        range.map(|day| format!("sheafdb-202611{day:02}T000000Z")).collect::<Vec<_>>()
    };
    let names = days(10..16);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (keep, left) in [(0, 10..16), (1, 16..16), (3, 14..16), (7, 10..16), (9, 10..16)] {
        let mut disk = Disk::with_backups(&names);
        let (outcome, filing) = run(&mut disk, keep, None, None);
        assert_eq!(outcome, Ok(150));
        let mut expected = days(left);
        assert_eq!(filing.pruned().0.len(), 6 - expected.len(), "{keep}");
        expected.push(NEW.to_owned());
        assert_eq!(disk.whole(), expected, "{keep}");
        assert_eq!(disk.folders.len(), 1 + expected.len(), "{keep}");
    }
}

/// Other names, a backup with another file in it, one without manifest, and files.
#[test]
fn what_is_not_ours_stays() {
    let pinned = "sheafdb-20261101T000000Z";
    let mut disk = Disk::with_backups(&["monday", pinned, "sheafdb-20261102T000000Z"]);
    let partial = Path::new(ROOT).join("sheafdb-20261103T000000Z");
    disk.files.insert(partial.join(SNAPSHOT), Vec::new());
    disk.folders.insert(partial.clone());
    disk.files.insert(Path::new(ROOT).join(pinned).join("KEEP"), Vec::new());
    disk.files.insert(Path::new(ROOT).join("sheafdb-20261104T000000Z"), Vec::new());
    let (outcome, filing) = run(&mut disk, 1, None, None);
    assert_eq!(outcome, Ok(150));
    assert_eq!(filing.pruned().0, [Path::new(ROOT).join("sheafdb-20261102T000000Z")]);
    assert_eq!(disk.whole(), ["monday", pinned, NEW]);
    assert!(disk.folders.contains(&partial) && disk.files.len() == 2 + 3 + 1 + 1 + 2);
}

/// A backup that cannot be removed is reported, and the others are removed.
#[test]
fn a_backup_that_cannot_be_removed_is_reported() {
    let old = ["sheafdb-20261120T000000Z", "sheafdb-20261121T000000Z"];
    let total = {
        let mut disk = Disk::with_backups(&old);
        run(&mut disk, 1, None, None).0.expect("nothing fails");
        disk.count
    };
    // The last operation removes the folder of the oldest one.
    let mut disk = Disk::with_backups(&old);
    let (outcome, filing) = run(&mut disk, 1, Some(total - 1), None);
    assert_eq!(outcome, Ok(150));
    assert_eq!(filing.pruned().0.len(), 1);
    assert!(matches!(filing.pruned().1, [Failure::Op { errno: Errno::NOSPC, .. }]));
}
