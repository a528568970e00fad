//! A simulated disk: what was written is kept apart from what was made durable.
//!
//! A [`SimDisk`] is the disk of one machine. It outlives the processes (drivers) that use it, and a
//! [crash](SimDisk::crash) of its machine. It stands under the same driver and the same engine of
//! file operations as the real back ends.
//!
//! ```text
//! Driver::file    queue.rs: in flight             store.rs: memory of the machine      the disk
//!                 due at a drawn time
//! Write ----->  [ op op op ] --- takes effect --> contents.rs  current --- SyncData --> durable
//! Rename ---->        |                           names.rs     current -- SyncFolder -> durable
//!                     |                                |                                   |
//! crash:       each happens or not        each change survives, is torn              survives
//!                                         or is lost, in any order
//! ```
//!
//! # What a crash leaves
//!
//! The model grants what the manual pages promise, and of the habits of ext4 and xfs only what
//! every journaling file system has in common:
//!
//! - After `SyncData`, contents and length of a file are durable; not its name and not its
//!   permissions. [fsync(2)]: fdatasync "does not flush modified metadata unless that metadata is
//!   needed in order to allow a subsequent data retrieval to be correctly handled"; fsync "does not
//!   necessarily ensure that the entry in the directory containing the file has also reached disk".
//! - After `SyncFolder`, the names in a folder are durable; not the contents of its files, and not
//!   the folder's own name in the folder above.
//! - A rename is atomic: a crash leaves the old or the new state ([rename(2)], and the journal).
//! - Changes that share a name reach the disk in order, and so do the lengths of one file (the
//!   journal).
//! - A sector is written whole or not at all ([`SimDisk::with_sectors`]).
//!
//! It does not grant what ext4 or xfs mostly do and other file systems do not ([Pillai 2014]):
//!
//! - Changes of different names reach the disk in the order in which they were made.
//! - Data reach the disk before the length that includes them (`data=ordered`). The sectors may
//!   hold zeros, or garbage as with `data=writeback`.
//! - Writes to one file, or its appends, reach the disk in order.
//! - A file that replaces another one by rename is written back first (`auto_da_alloc` of ext4).
//! - A sync of a new file makes its name durable.
//! - What was written is durable after some time: here it stays at stake until a sync.
//! - Reserved space survives without a sync of the file.
//!
//! A `SyncData` that failed with EIO has done one of three things, as found among PostgreSQL's
//! authors in 2018 ("fsyncgate") and by [Rebello 2020]: it left the pages dirty; it marked them
//! clean, so that the next sync succeeds without having written them; or it also evicted them, so
//! that reads see the old contents.
//!
//! Not modelled: links, owners and access rights, times, rotten bits, and a disk that loses what it
//! acknowledged to a flush.
//!
//! [fsync(2)]: https://man7.org/linux/man-pages/man2/fsync.2.html
//! [rename(2)]: https://man7.org/linux/man-pages/man2/rename.2.html
//! [Pillai 2014]: https://www.usenix.org/conference/osdi14/technical-sessions/presentation/pillai
//! [Rebello 2020]: https://www.usenix.org/conference/atc20/presentation/rebello

mod blocks;
mod contents;
mod faults;
mod names;
mod queue;
mod store;
mod survival;
#[cfg(test)]
mod tests;

pub use blocks::BLOCK_BYTES;
pub use faults::{DiskFaultCounts, DiskFaults};
pub use store::FILE_BYTES_MAX;
pub use survival::{Fate, Survival};

use crate::files::raw::{RawDone, RawOp, RawValue};
use base::MonoNs;
use base::sync::Arc;
use base::sync::outside::{Mutex, MutexGuard};
use queue::Queue;
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::Path;
use store::{Handle, Process, Store};

/// The sector of most disks.
const SECTOR_BYTES: usize = 512;

/// The disk of one simulated machine. Clones are handles to the same one. All that it draws comes
/// from one seed.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<Queue>>);

impl SimDisk {
    /// An empty disk with sectors of 512 bytes.
    pub fn new(seed: u64, faults: DiskFaults) -> Self {
        Self::with_sectors(seed, faults, SECTOR_BYTES)
    }

    /// An empty disk. `sector_bytes` is a power of two up to 4096.
    pub fn with_sectors(seed: u64, faults: DiskFaults, sector_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue::new(Store::new(seed, sector_bytes, faults)))))
    }

    /// The machine loses power, or its kernel fails: what is not durable survives, is torn or is
    /// lost, as drawn. Processes that used the disk end: drop their drivers, no operation of theirs
    /// takes effect or completes any more. O(bytes of the files).
    pub fn crash(&self) {
        self.crash_with(Fate::default());
    }

    /// As [`SimDisk::crash`], with what is kept and lost as the caller says.
    pub fn crash_with(&self, fate: Fate) {
        let spent = self.queue().crash(fate);
        drop(spent);
    }

    /// So many further operations complete; the next ones stay in flight until the machine crashes,
    /// or until the next call. So a crash, or a hang, can be placed at each step of what a process
    /// does.
    pub fn stop_after(&self, operations: u64) {
        self.queue().stop_after(operations);
    }

    /// True if an operation waits on a disk that has [stopped](SimDisk::stop_after).
    pub fn has_stopped(&self) -> bool {
        self.queue().has_stopped()
    }

    /// Replaces the faults.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.queue().store.faults = faults;
    }

    /// How often each fault has happened.
    pub fn counts(&self) -> DiskFaultCounts {
        self.queue().store.counts
    }

    /// Puts a durable file at a path and creates the folders above it, for the set-up of a machine.
    /// Everything else on the disk becomes durable, too.
    pub fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        self.queue().store.install(path, bytes, mode)
    }

    /// Creates a durable folder and those above it. See [`SimDisk::install`].
    pub fn install_folder(&self, path: &Path) -> Result<(), Errno> {
        self.queue().store.install_folder(path)
    }

    /// The contents of a file as a process would read them.
    pub fn contents(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        self.queue().store.contents(path).map(<[u8]>::to_vec)
    }

    /// The names in a folder, ascending.
    pub fn names(&self, folder: &Path) -> Result<Vec<OsString>, Errno> {
        self.queue().store.sorted_names(folder)
    }

    /// Bytes of the blocks in use.
    pub fn used_bytes(&self) -> u64 {
        self.queue().store.used_bytes()
    }

    /// Files which processes have open.
    pub fn open_files(&self) -> usize {
        self.queue().store.open_files()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().expect("the simulated disk does not panic while it is held")
    }
}

/// One process's use of a disk. Dropping it ends the process: its operations in flight happen or
/// not.
#[derive(Debug)]
pub(super) struct DiskUser {
    disk: SimDisk,
    process: Process,
}

impl DiskUser {
    pub fn new(disk: SimDisk) -> Self {
        let process = disk.queue().add_process();
        Self { disk, process }
    }

    /// Where the completions of this process come from.
    pub fn source(&self) -> DiskSource {
        DiskSource { disk: self.disk.clone(), process: self.process }
    }

    pub fn submit(&self, now: MonoNs, number: u32, op: RawOp<SimFile>) {
        let spent = self.disk.queue().submit(now, self.process, number, op);
        drop(spent);
    }

    /// Performs what is due and takes the completions of this process.
    pub fn take_done(&self, now: MonoNs, into: &mut Vec<RawDone<SimFile>>) {
        let mut queue = self.disk.queue();
        let spent = queue.run(now);
        let done = queue.take_done(self.process);
        drop(queue);
        drop(spent);
        into.extend(done.into_iter().map(|done| self.with_file(done)));
    }

    fn with_file(&self, done: RawDone<Handle>) -> RawDone<SimFile> {
        let RawDone { number, buffer, result } = done;
        let result = result.map(|value| match value {
            RawValue::Done => RawValue::Done,
            RawValue::File(handle) => {
                let file = OpenFile { disk: self.disk.clone(), handle };
                RawValue::File(SimFile(Arc::new(file)))
            }
            RawValue::Count(count) => RawValue::Count(count),
            RawValue::Names(names) => RawValue::Names(names),
            RawValue::Status { len, mode, is_folder, inode } => {
                RawValue::Status { len, mode, is_folder, inode }
            }
        });
        RawDone { number, buffer, result }
    }
}

impl Drop for DiskUser {
    fn drop(&mut self) {
        let spent = self.disk.queue().end_process(self.process);
        drop(spent);
    }
}

/// What the simulated world asks about the operations of one process.
#[derive(Clone, Debug)]
pub(super) struct DiskSource {
    disk: SimDisk,
    process: Process,
}

impl DiskSource {
    /// Ends the process: its operations in flight happen or not.
    #[cfg(sim)]
    pub fn end(&self) {
        let spent = self.disk.queue().end_process(self.process);
        drop(spent);
    }

    /// True if an operation has completed at `now`.
    pub fn has_done(&self, now: MonoNs) -> bool {
        self.disk.queue().has_done(self.process, now)
    }

    /// When the next operation completes that has not completed at `now`, of any process.
    pub fn next_arrival(&self, now: MonoNs) -> Option<u64> {
        self.disk.queue().next_arrival(now)
    }
}

/// An open file or folder of a simulated disk. It is closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct SimFile(Arc<OpenFile>);

impl SimFile {
    fn handle(&self) -> Handle {
        self.0.handle
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: SimDisk,
    handle: Handle,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // It fails if the file was closed, or its process or machine has ended.
        let _ = self.disk.queue().store.close(self.handle);
    }
}
