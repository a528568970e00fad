//! Tests of the disk below the driver: operations take effect at once, in the order of the calls.

mod contents;
mod faults;
mod model;
mod names;

use super::DiskFaults;
use super::store::{Handle, Process, Store};
use super::survival::Fate;
use crate::files::OpenHow;
use rustix::io::Errno;
use std::path::Path;

/// For reading and writing.
const READ_WRITE: OpenHow = OpenHow {
    read: true,
    write: true,
    append: false,
    create: false,
    create_new: false,
    truncate: false,
    mode: 0o600,
};
const CREATE: OpenHow = OpenHow { create: true, ..READ_WRITE };
const CREATE_NEW: OpenHow = OpenHow { create_new: true, ..READ_WRITE };
const FOLDER: OpenHow = OpenHow { write: false, ..READ_WRITE };
const SECTOR: usize = 512;

/// A disk and one process on it.
struct Machine {
    store: Store,
    process: Process,
}

impl Machine {
    fn new(seed: u64, faults: DiskFaults) -> Self {
        let mut store = Store::new(seed, SECTOR, faults);
        let process = store.add_process();
        Self { store, process }
    }

    fn open(&mut self, path: &str, how: OpenHow) -> Result<Handle, Errno> {
        self.store.open(self.process, Path::new(path), how, false)
    }

    /// Makes everything durable that was changed in this file.
    fn sync(&mut self, handle: Handle) -> Result<(), Errno> {
        let until = self.store.changes_end();
        self.store.sync(handle, until)
    }

    fn sync_folder(&mut self, path: &str) -> Result<(), Errno> {
        let handle = self.store.open(self.process, Path::new(path), FOLDER, true)?;
        self.sync(handle)?;
        self.store.close(handle)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.store.rename(Path::new(from), Path::new(to))
    }

    fn contents(&self, path: &str) -> Option<Vec<u8>> {
        self.store.contents(Path::new(path)).ok().map(<[u8]>::to_vec)
    }

    /// A crash and a new process.
    fn crash(&mut self) {
        self.store.crash(Fate::default());
        self.process = self.store.add_process();
    }
}
