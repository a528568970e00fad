//! What a crash leaves of the names. Every file contains its own number, durably, so that a test
//! knows it by its contents.

use super::super::DiskFaults;
use super::super::store::Store;
use super::{CREATE_NEW, Machine};
use base::prng::Prng;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const FOLDERS: [&str; 2] = ["/a", "/b"];
const NAMES_PER_FOLDER: u64 = 4;

/// The names as the test knows them.
struct Tracked {
    machine: Machine,
    dice: Prng,
    files: u32,
    durable: BTreeMap<String, u32>,
    current: BTreeMap<String, u32>,
    /// What a name meant since its folder was synced.
    since: BTreeMap<String, BTreeSet<Option<u32>>>,
    /// Files that were removed or replaced.
    removed: BTreeSet<u32>,
}

fn machine(seed: u64) -> Machine {
    let mut machine = Machine::new(seed, DiskFaults::NONE);
    for folder in FOLDERS {
        machine.store.install_folder(Path::new(folder)).expect("room");
    }
    machine
}

impl Tracked {
    fn new(seed: u64) -> Self {
        let (machine, dice) = (machine(seed), Prng::new(!seed));
        Self {
            machine,
            dice,
            files: 0,
            durable: BTreeMap::new(),
            current: BTreeMap::new(),
            since: BTreeMap::new(),
            removed: BTreeSet::new(),
        }
    }

    fn path(&mut self) -> String {
        let folder = FOLDERS[self.dice.below(2) as usize];
        format!("{folder}/{}", self.dice.below(NAMES_PER_FOLDER))
    }

    fn set(&mut self, path: &str, file: Option<u32>) {
        self.since.entry(path.to_owned()).or_default().insert(file);
        let before = match file {
            Some(file) => self.current.insert(path.to_owned(), file),
            None => self.current.remove(path),
        };
        self.removed.extend(before);
    }

    fn step(&mut self) {
        let (path, to) = (self.path(), self.path());
        match (self.dice.below(6), self.current.get(&path).copied()) {
            (0, _) => {
                let folder = FOLDERS[self.dice.below(2) as usize];
                self.machine.sync_folder(folder).expect("no faults");
                self.durable.retain(|path, _| !path.starts_with(folder));
                let synced = self.current.iter().filter(|(path, _)| path.starts_with(folder));
                self.durable.extend(synced.map(|(path, file)| (path.clone(), *file)));
                self.since.retain(|path, _| !path.starts_with(folder));
            }
            (1, Some(_)) => {
                self.machine.store.unlink(Path::new(&path)).expect("it is there");
                self.set(&path, None);
            }
            (2..6, Some(file)) if path != to => {
                self.machine.rename(&path, &to).expect("it is there");
                self.set(&path, None);
                self.set(&to, Some(file));
                self.removed.remove(&file);
            }
            (_, Some(_)) => (),
            (_, None) => {
                let handle = self.machine.open(&path, CREATE_NEW).expect("it is free");
                self.files += 1;
                let bytes = self.files.to_le_bytes();
                self.machine.store.write(handle, Some(0), &bytes).expect("no faults");
                self.machine.sync(handle).expect("no faults");
                self.machine.store.close(handle).expect("it is open");
                self.set(&path, Some(self.files));
            }
        }
    }

    /// The names after a crash, checked.
    fn check(&self) -> BTreeMap<String, u32> {
        let found = found(&self.machine.store);
        for (path, file) in &found {
            let was = self.since.get(path).is_some_and(|files| files.contains(&Some(*file)));
            assert!(was || self.durable.get(path) == Some(file), "{path} is {file}");
        }
        for path in self.durable.keys().filter(|path| !found.contains_key(*path)) {
            let was = self.since.get(path).is_some_and(|files| files.contains(&None));
            assert!(was, "{path} is gone");
        }
        let files: BTreeSet<u32> = found.values().copied().collect();
        assert_eq!(files.len(), found.len(), "no file has two names: {found:?}");
        for file in self.durable.values().filter(|file| !self.removed.contains(file)) {
            assert!(files.contains(file), "{file} had a durable name and was only renamed");
        }
        found
    }
}

fn found(store: &Store) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        for name in store.sorted_names(Path::new(folder)).expect("a durable folder") {
            let path = format!("{folder}/{}", name.display());
            let bytes = store.contents(Path::new(&path)).expect("a name has a file");
            found.insert(path, u32::from_le_bytes(bytes.try_into().expect("a number")));
        }
    }
    found
}

#[test]
fn every_name_is_old_or_new_and_what_was_synced_is_there() {
    let (mut old, mut new, mut between) = (0, 0, 0);
    for seed in 0..3000 {
        let mut names = Tracked::new(seed);
        for _ in 0..names.dice.below(25) {
            names.step();
        }
        names.machine.crash();
        let found = names.check();
        if names.durable != names.current {
            old += u32::from(found == names.durable);
            new += u32::from(found == names.current);
            between += u32::from(found != names.durable && found != names.current);
        }
        // What survived is durable now.
        names.machine.crash();
        assert_eq!(super::names::found(&names.machine.store), found);
    }
    assert!(old > 100 && new > 500 && between > 500, "{old} {new} {between}");
}

#[test]
fn after_a_sync_of_its_folders_every_name_is_there() {
    for seed in 0..500 {
        let mut names = Tracked::new(seed);
        for _ in 0..20 {
            names.step();
        }
        for folder in FOLDERS {
            names.machine.sync_folder(folder).expect("no faults");
        }
        names.machine.crash();
        assert_eq!(found(&names.machine.store), names.current, "seed {seed}");
    }
}

/// Names that have nothing in common reach the disk in any order.
#[test]
fn names_are_reordered() {
    let seen: BTreeSet<(bool, bool)> = (0..100)
        .map(|seed| {
            let mut machine = machine(seed);
            machine.open("/a/first", CREATE_NEW).expect("it is free");
            machine.open("/a/second", CREATE_NEW).expect("it is free");
            machine.crash();
            (machine.contents("/a/first").is_some(), machine.contents("/a/second").is_some())
        })
        .collect();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// A sync of a folder says nothing about the folder's own name.
#[test]
fn a_folder_is_lost_with_all_that_is_in_it() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..100 {
        let mut machine = machine(seed);
        machine.store.create_folder(Path::new("/a/new"), 0o700).expect("it is free");
        let file = machine.open("/a/new/file", CREATE_NEW).expect("it is free");
        machine.sync(file).expect("no faults");
        machine.sync_folder("/a/new").expect("no faults");
        machine.crash();
        match machine.store.status(Path::new("/a/new")) {
            Ok((_, mode, is_folder, _)) => {
                assert!(is_folder && mode == 0o700);
                assert!(machine.contents("/a/new/file").is_some());
                kept += 1;
            }
            Err(error) => {
                assert_eq!(error, Errno::NOENT);
                lost += 1;
            }
        }
    }
    assert!(lost > 20 && kept > 20, "{lost} {kept}");
}

#[test]
fn paths_and_refusals() {
    let mut machine = machine(0);
    let store = &mut machine.store;
    store.install(Path::new("/a/file"), b"x", 0o600).expect("room");
    store.create_folder(Path::new("/a/folder"), 0o755).expect("it is free");
    store.create_folder(Path::new("/a/folder/below"), 0o755).expect("it is free");
    for path in ["/a/file", "a/file", "/a/./file", "/b/../a/file", "/../a/file"] {
        assert_eq!(store.contents(Path::new(path)), Ok(&b"x"[..]), "{path}");
    }
    let mut rename = |from: &str, to: &str| store.rename(Path::new(from), Path::new(to));
    assert_eq!(rename("/a/none", "/a/x"), Err(Errno::NOENT));
    assert_eq!(rename("/a/file", "/none/x"), Err(Errno::NOENT));
    assert_eq!(rename("/a/file", "/a/file/x"), Err(Errno::NOTDIR));
    assert_eq!(rename("/a/file", "/a/folder"), Err(Errno::ISDIR));
    assert_eq!(rename("/a/folder", "/a/file"), Err(Errno::NOTDIR));
    assert_eq!(rename("/b", "/a/folder"), Err(Errno::NOTEMPTY));
    assert_eq!(rename("/a", "/a/folder/below/a"), Err(Errno::INVAL));
    assert_eq!(rename("/a/file", "/a/file"), Ok(()));
    assert_eq!(rename("/b", "/a/folder/below"), Ok(()));
    assert_eq!(store.unlink(Path::new("/a/folder")), Err(Errno::ISDIR));
    assert_eq!(store.create_folder(Path::new("/a/file"), 0o755), Err(Errno::EXIST));
    assert_eq!(machine.open("/a/file/x", CREATE_NEW), Err(Errno::NOTDIR));
    assert_eq!(machine.open("/a", super::CREATE), Err(Errno::ISDIR));
    assert_eq!(machine.sync_folder("/a/file"), Err(Errno::NOTDIR));
}
