//! Without faults the disk agrees with a naive model: files as vectors of bytes.

use super::super::DiskFaults;
use super::super::store::Handle;
use super::{CREATE, CREATE_NEW, Machine, READ_WRITE};
use crate::files::OpenHow;
use base::prng::Prng;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::Path;

const FOLDERS: [&str; 2] = ["/a", "/b"];
const OPERATIONS: usize = 300;

#[derive(Default)]
struct Naive {
    names: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    open: Vec<(Handle, usize, OpenHow)>,
}

impl Naive {
    fn find(&self, path: &str) -> Result<usize, Errno> {
        self.names.get(path).copied().ok_or(Errno::NOENT)
    }

    fn write(&mut self, file: usize, at: usize, bytes: &[u8]) {
        let file = &mut self.files[file];
        file.resize(file.len().max(at + bytes.len()), 0);
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The disk and the model side by side.
struct Pair {
    machine: Machine,
    naive: Naive,
    dice: Prng,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut machine = Machine::new(seed, DiskFaults::NONE);
        for folder in FOLDERS {
            machine.store.install_folder(Path::new(folder)).expect("room");
        }
        Self { machine, naive: Naive::default(), dice: Prng::new(seed ^ 0xd15c) }
    }

    fn path(&mut self) -> String {
        format!("{}/{}", FOLDERS[self.dice.below(2) as usize], self.dice.below(5))
    }

    fn open(&mut self) {
        let path = self.path();
        let append = self.dice.chance(1, 3);
        let truncate = self.dice.chance(1, 5);
        let base = [READ_WRITE, CREATE, CREATE_NEW][self.dice.below(3) as usize];
        let how = OpenHow { append, truncate, ..base };
        let got = self.machine.open(&path, how);
        let file = match self.naive.find(&path) {
            Ok(_) if how.create_new => return assert_eq!(got, Err(Errno::EXIST), "{path}"),
            Err(e) if !how.create && !how.create_new => return assert_eq!(got, Err(e), "{path}"),
            Ok(file) => file,
            Err(_) => {
                self.naive.files.push(Vec::new());
                self.naive.names.insert(path, self.naive.files.len() - 1);
                self.naive.files.len() - 1
            }
        };
        if truncate {
            self.naive.files[file].clear();
        }
        self.naive.open.push((got.expect("it opens"), file, how));
    }

    fn change_names(&mut self) {
        let (from, to) = (self.path(), self.path());
        if self.dice.chance(1, 3) {
            let expected = self.naive.find(&from).map(drop);
            self.naive.names.remove(&from);
            assert_eq!(self.machine.store.unlink(Path::new(&from)), expected, "{from}");
            return;
        }
        let expected = self.naive.find(&from).map(|file| {
            self.naive.names.remove(&from);
            self.naive.names.insert(to.clone(), file);
        });
        assert_eq!(self.machine.rename(&from, &to), expected, "{from} {to}");
    }

    fn use_file(&mut self) {
        if self.naive.open.is_empty() {
            return self.open();
        }
        let place = self.dice.below(self.naive.open.len() as u64) as usize;
        let (handle, file, how) = self.naive.open[place];
        let at = self.dice.below(4000) as usize;
        let store = &mut self.machine.store;
        match self.dice.below(7) {
            0 | 1 => {
                let mut bytes = vec![0; self.dice.below(2000) as usize];
                self.dice.fill(&mut bytes);
                let end = self.naive.files[file].len();
                let to = (!how.append).then_some(at as u64);
                assert_eq!(store.write(handle, to, &bytes), Ok(bytes.len()));
                if !bytes.is_empty() {
                    self.naive.write(file, if how.append { end } else { at }, &bytes);
                }
            }
            2 => {
                assert_eq!(store.truncate(handle, at as u64), Ok(()));
                self.naive.files[file].resize(at, 0);
            }
            3 => {
                let len = self.naive.files[file].len();
                let expected =
                    &self.naive.files[file][at.min(len)..(at + 700).min(len).max(at.min(len))];
                assert_eq!(store.read(handle, at as u64, 700).as_deref(), Ok(expected));
            }
            4 => {
                assert_eq!(store.close(handle), Ok(()));
                assert_eq!(store.read(handle, 0, 1), Err(Errno::BADF));
                self.naive.open.swap_remove(place);
            }
            5 => assert_eq!(store.preallocate(handle, at as u64, 10_000), Ok(())),
            _ => assert_eq!(self.machine.sync(handle), Ok(())),
        }
    }

    fn agree(&mut self) {
        for folder in FOLDERS {
            let mut names = self.machine.store.list(Path::new(folder)).expect("a folder");
            names.sort();
            let prefix = format!("{folder}/");
            let expected: Vec<&str> =
                self.naive.names.keys().filter_map(|path| path.strip_prefix(&prefix)).collect();
            assert_eq!(names, expected);
        }
        for (path, file) in &self.naive.names {
            assert_eq!(self.machine.contents(path).as_ref(), Some(&self.naive.files[*file]));
            let status = self.machine.store.status(Path::new(path));
            let status = status.map(|(len, mode, is_folder, _)| (len, mode, is_folder));
            assert_eq!(status, Ok((self.naive.files[*file].len() as u64, 0o600, false)));
        }
    }

    /// Makes everything durable.
    fn sync_all(&mut self) {
        let paths: Vec<String> = self.naive.names.keys().cloned().collect();
        for path in paths {
            let handle = self.machine.open(&path, READ_WRITE).expect("it is there");
            self.machine.sync(handle).expect("no faults");
        }
        for folder in FOLDERS {
            self.machine.sync_folder(folder).expect("no faults");
        }
    }
}

#[test]
fn agrees_with_a_naive_model_and_keeps_all_that_is_synced() {
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        for _ in 0..OPERATIONS {
            match pair.dice.below(10) {
                0..2 => pair.open(),
                2..4 => pair.change_names(),
                _ => pair.use_file(),
            }
        }
        pair.agree();
        pair.sync_all();
        pair.machine.crash();
        pair.agree();
    }
}
