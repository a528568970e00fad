//! The operations of a disk: each takes effect at once and as a whole, or meets a fault.

use super::blocks::BLOCK_BYTES;
use super::contents::Contents;
use super::faults::{DiskFaultCounts, DiskFaults};
use super::names::{Names, Node, ROOT};
use super::survival::Fate;
use crate::files::OpenHow;
use base::prng::Prng;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The longest file. The simulation holds all of it in memory.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// An open file or folder. Never reused, so that a handle from before a crash is stale for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub u64);

/// A process that uses the disk: one driver. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(u64);

#[derive(Clone, Copy, Debug)]
struct Open {
    process: Process,
    node: Node,
    how: OpenHow,
}

/// Length, permissions, whether it is a folder, and its number.
pub type Status = (u64, u32, bool, u64);

/// What a disk stores, and the handles to it.
#[derive(Debug)]
pub struct Store {
    pub faults: DiskFaults,
    pub counts: DiskFaultCounts,
    pub prng: Prng,
    sector_bytes: usize,
    names: Names,
    files: BTreeMap<Node, Contents>,
    handles: BTreeMap<Handle, Open>,
    /// The number of the next change, node, handle or process.
    next: u64,
}

impl Store {
    pub fn new(seed: u64, sector_bytes: usize, faults: DiskFaults) -> Self {
        assert!(sector_bytes.is_power_of_two() && sector_bytes as u64 <= BLOCK_BYTES);
        Self {
            faults,
            counts: DiskFaultCounts::default(),
            prng: Prng::new(seed),
            sector_bytes,
            names: Names::new(),
            files: BTreeMap::new(),
            handles: BTreeMap::new(),
            next: ROOT.0 + 1,
        }
    }

    /// A number above those of all changes so far: what a sync that begins here covers.
    pub fn changes_end(&self) -> u64 {
        self.next
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.prng.chance(1, one_in)
    }

    /// A number from 0 to `most`.
    pub fn draw_up_to(&mut self, most: u64) -> u64 {
        if most == 0 { 0 } else { self.prng.below(most + 1) }
    }

    /// Puts `items` into an order that is drawn.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.prng.below(i as u64 + 1) as usize);
        }
    }

    pub fn add_process(&mut self) -> Process {
        Process(self.number())
    }

    /// Closes the files of a process.
    pub fn end_process(&mut self, process: Process) {
        self.handles.retain(|_, open| open.process != process);
        self.collect();
    }

    // ---- names

    pub fn open(
        &mut self,
        process: Process,
        path: &Path,
        how: OpenHow,
        is_folder: bool,
    ) -> Result<Handle, Errno> {
        self.fail_names()?;
        let node = match self.names.find(path) {
            Ok(_) if how.create_new => return Err(Errno::EXIST),
            Ok(node) => self.open_existing(node, how, is_folder)?,
            Err(Errno::NOENT) if how.create || how.create_new => {
                let key = self.names.place(path)?;
                let (number, node) = (self.number(), Node(self.number()));
                self.files.insert(node, Contents::new(self.sector_bytes, how.mode & 0o7777));
                self.names.link(number, key, node);
                node
            }
            Err(error) => return Err(error),
        };
        let handle = Handle(self.number());
        self.handles.insert(handle, Open { process, node, how });
        Ok(handle)
    }

    fn open_existing(&mut self, node: Node, how: OpenHow, is_folder: bool) -> Result<Node, Errno> {
        let writes = how.write || how.append || how.truncate;
        match (self.names.is_folder(node), is_folder) {
            (false, true) => return Err(Errno::NOTDIR),
            (true, _) if writes || how.create => return Err(Errno::ISDIR),
            _ => (),
        }
        if how.truncate {
            let number = self.number();
            self.files.get_mut(&node).ok_or(Errno::ISDIR)?.set_len(number, 0);
        }
        Ok(node)
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> Result<(), Errno> {
        self.fail_names()?;
        let (from, to) = (self.names.place(from)?, self.names.place(to)?);
        let number = self.number();
        self.names.rename(number, from, to)?;
        self.collect();
        Ok(())
    }

    pub fn unlink(&mut self, path: &Path) -> Result<(), Errno> {
        self.fail_names()?;
        let (key, number) = (self.names.place(path)?, self.number());
        self.names.unlink(number, key)?;
        self.collect();
        Ok(())
    }

    pub fn remove_folder(&mut self, path: &Path) -> Result<(), Errno> {
        self.fail_names()?;
        let (key, number) = (self.names.place(path)?, self.number());
        self.names.remove_folder(number, key)?;
        self.collect();
        Ok(())
    }

    pub fn create_folder(&mut self, path: &Path, mode: u32) -> Result<(), Errno> {
        self.fail_names()?;
        if self.names.find(path).is_ok() {
            return Err(Errno::EXIST);
        }
        let key = self.names.place(path)?;
        let (number, node) = (self.number(), Node(self.number()));
        self.names.link_folder(number, key, node, mode & 0o7777);
        Ok(())
    }

    /// The names in a folder, in an order that is drawn.
    pub fn list(&mut self, path: &Path) -> Result<Vec<OsString>, Errno> {
        self.fail_names()?;
        let mut names = self.names.list(self.names.find(path)?)?;
        self.shuffle(&mut names);
        Ok(names)
    }

    pub fn status(&mut self, path: &Path) -> Result<Status, Errno> {
        self.fail_names()?;
        self.status_of(self.names.find(path)?)
    }

    fn status_of(&self, node: Node) -> Result<Status, Errno> {
        match (self.names.folder_mode(node), self.files.get(&node)) {
            (Some(mode), _) => Ok((BLOCK_BYTES, mode, true, node.0)),
            (None, Some(file)) => Ok((file.len(), file.mode(), false, node.0)),
            (None, None) => Err(Errno::NOENT),
        }
    }

    // ---- open files

    pub fn measure(&self, handle: Handle) -> Result<Status, Errno> {
        self.status_of(self.handles.get(&handle).ok_or(Errno::BADF)?.node)
    }

    /// Up to `room` bytes from `at`; none at the end.
    pub fn read(&mut self, handle: Handle, at: u64, room: usize) -> Result<Vec<u8>, Errno> {
        let open = self.handles.get(&handle).filter(|open| open.how.read).ok_or(Errno::BADF)?;
        let node = open.node;
        if !self.files.contains_key(&node) {
            return Err(Errno::ISDIR);
        }
        if self.happens(self.faults.read_error_one_in) {
            self.counts.read_errors += 1;
            return Err(Errno::IO);
        }
        let part = self.happens(self.faults.short_read_one_in);
        let bytes = self.files[&node].current();
        let from = bytes.len().min(usize::try_from(at).unwrap_or(usize::MAX));
        let mut count = (bytes.len() - from).min(room);
        if part && count > 1 {
            count = 1 + self.prng.below(count as u64 - 1) as usize;
            self.counts.short_reads += 1;
        }
        Ok(self.files[&node].current()[from..from + count].to_vec())
    }

    /// Writes at an offset, or at the end; returns how many bytes it has written, at least one.
    pub fn write(&mut self, handle: Handle, at: Option<u64>, bytes: &[u8]) -> Result<usize, Errno> {
        let (node, how) = self.writable(handle)?;
        let end = self.files[&node].len();
        let at = if how.append { end } else { at.ok_or(Errno::INVAL)? };
        let room = FILE_BYTES_MAX.saturating_sub(at).min(bytes.len() as u64) as usize;
        if room < bytes.len() {
            return Err(Errno::FBIG);
        }
        let mut count = self.fitting(node, at, bytes.len());
        if count < bytes.len() {
            self.counts.full += u64::from(count == 0);
            self.counts.short_writes += u64::from(count > 0);
        }
        if count == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC);
        }
        let fails = self.happens(self.faults.write_error_one_in);
        if fails {
            count = self.prng.below(count as u64 + 1) as usize;
        } else if count > 1 && self.happens(self.faults.short_write_one_in) {
            count = 1 + self.prng.below(count as u64 - 1) as usize;
            self.counts.short_writes += 1;
        }
        let number = self.number();
        self.file(node).write(number, at as usize, &bytes[..count]);
        if fails {
            self.counts.write_errors += 1;
            return Err(Errno::IO);
        }
        Ok(count)
    }

    /// A write and a sync of what it writes. What the file had before and is not durable is not
    /// either now, and neither is this write then: the strictest disk which keeps the promise of
    /// `RWF_DSYNC` to whoever relies on no more.
    pub fn write_durably(
        &mut self,
        handle: Handle,
        at: Option<u64>,
        bytes: &[u8],
    ) -> Result<usize, Errno> {
        let (node, _) = self.writable(handle)?;
        let is_alone = self.files[&node].is_durable();
        let count = self.write(handle, at, bytes)?;
        if is_alone {
            self.sync(handle, self.changes_end())?;
        }
        Ok(count)
    }

    pub fn truncate(&mut self, handle: Handle, to: u64) -> Result<(), Errno> {
        // ftruncate(2) says EINVAL of a file which is not open for writing.
        self.handles.get(&handle).ok_or(Errno::BADF)?;
        let (node, _) = self.writable(handle).map_err(|_| Errno::INVAL)?;
        if to > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        self.fail_write()?;
        let number = self.number();
        self.file(node).set_len(number, to as usize);
        Ok(())
    }

    pub fn preallocate(&mut self, handle: Handle, from: u64, bytes: u64) -> Result<(), Errno> {
        let (node, _) = self.writable(handle)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let to = from.checked_add(bytes).filter(|to| *to <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        self.fail_write()?;
        if self.files[&node].blocks().missing(from, to).count() as u64 > self.free_blocks() {
            self.counts.full += 1;
            return Err(Errno::NOSPC);
        }
        self.file(node).reserve(from, to);
        Ok(())
    }

    /// Makes durable what was changed below `until`: of a file its contents and length, of a folder
    /// its names.
    pub fn sync(&mut self, handle: Handle, until: u64) -> Result<(), Errno> {
        let node = self.handles.get(&handle).ok_or(Errno::BADF)?.node;
        let fails = self.happens(self.faults.sync_error_one_in);
        let in_order = self.faults.in_order;
        let Some(file) = self.files.get_mut(&node) else {
            if fails {
                self.counts.folder_syncs_failed += 1;
                return Err(Errno::IO);
            }
            self.names.sync(node, until);
            self.collect();
            return Ok(());
        };
        if !fails {
            file.sync(until);
            return Ok(());
        }
        match self.prng.below(3) {
            0 => self.counts.syncs_kept += 1,
            1 => {
                self.counts.syncs_lost += 1;
                file.lose(until, (false, in_order), &mut self.prng, &mut self.counts);
            }
            _ => {
                self.counts.syncs_evicted += 1;
                file.lose(until, (true, in_order), &mut self.prng, &mut self.counts);
            }
        }
        Err(Errno::IO)
    }

    pub fn set_mode(&mut self, handle: Handle, mode: u32) -> Result<(), Errno> {
        let node = self.handles.get(&handle).ok_or(Errno::BADF)?.node;
        self.files.get_mut(&node).ok_or(Errno::ISDIR)?.set_mode(mode & 0o7777);
        Ok(())
    }

    pub fn close(&mut self, handle: Handle) -> Result<(), Errno> {
        self.handles.remove(&handle).ok_or(Errno::BADF)?;
        self.collect();
        Ok(())
    }

    // ---- the machine

    /// The machine loses its memory and every handle.
    pub fn crash(&mut self, fate: Fate) {
        self.counts.crashes += 1;
        self.handles.clear();
        self.names.crash(fate.names, &mut self.prng, &mut self.counts);
        self.collect();
        for file in self.files.values_mut() {
            let fate = (fate.contents, self.faults.in_order);
            file.crash(fate, &mut self.prng, &mut self.counts);
        }
    }

    /// Puts a durable file at a path and creates the folders above it: how a machine is set up.
    pub fn install(&mut self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        self.install_folder(path.parent().unwrap_or(Path::new("/")))?;
        let (key, number, node) = (self.names.place(path)?, self.number(), Node(self.number()));
        self.files.insert(node, Contents::durable(self.sector_bytes, mode, bytes));
        self.names.link(number, key, node);
        self.names.sync_all();
        self.collect();
        Ok(())
    }

    /// Creates a durable folder and those above it.
    pub fn install_folder(&mut self, path: &Path) -> Result<(), Errno> {
        let mut folders: Vec<&Path> = path.ancestors().collect();
        folders.reverse();
        for folder in folders {
            if self.names.find(folder) == Err(Errno::NOENT) {
                let (key, number) = (self.names.place(folder)?, self.number());
                let node = Node(self.number());
                self.names.link_folder(number, key, node, 0o755);
            }
        }
        self.names.sync_all();
        Ok(())
    }

    /// The contents of a file as a reader sees them.
    pub fn contents(&self, path: &Path) -> Result<&[u8], Errno> {
        let node = self.names.find(path)?;
        Ok(self.files.get(&node).ok_or(Errno::ISDIR)?.current())
    }

    /// The names in a folder, ascending.
    pub fn sorted_names(&self, path: &Path) -> Result<Vec<OsString>, Errno> {
        self.names.list(self.names.find(path)?)
    }

    /// Handles which are not closed.
    pub fn open_files(&self) -> usize {
        self.handles.len()
    }

    /// Bytes of the blocks in use.
    pub fn used_bytes(&self) -> u64 {
        let mut live = self.names.live();
        live.extend(self.handles.values().map(|open| open.node));
        let files = live.iter().filter_map(|node| self.files.get(node));
        files.map(|file| file.blocks().count() * BLOCK_BYTES).sum()
    }

    fn free_blocks(&self) -> u64 {
        self.faults.capacity_bytes.saturating_sub(self.used_bytes()) / BLOCK_BYTES
    }

    /// How many of `count` bytes at `at` the disk has space for.
    fn fitting(&self, node: Node, at: u64, count: usize) -> usize {
        let end = at + count as u64;
        if self.faults.capacity_bytes == u64::MAX {
            return count;
        }
        let mut missing = self.files[&node].blocks().missing(at, end);
        match missing.nth(self.free_blocks() as usize) {
            Some(block) => (block * BLOCK_BYTES).saturating_sub(at) as usize,
            None => count,
        }
    }

    fn writable(&self, handle: Handle) -> Result<(Node, OpenHow), Errno> {
        let open = self.handles.get(&handle).ok_or(Errno::BADF)?;
        if open.how.write && self.files.contains_key(&open.node) {
            return Ok((open.node, open.how));
        }
        Err(Errno::BADF)
    }

    fn file(&mut self, node: Node) -> &mut Contents {
        self.files.get_mut(&node).expect("a handle keeps its file")
    }

    fn fail_names(&mut self) -> Result<(), Errno> {
        if self.happens(self.faults.name_error_one_in) {
            self.counts.name_errors += 1;
            return Err(Errno::IO);
        }
        Ok(())
    }

    fn fail_write(&mut self) -> Result<(), Errno> {
        if self.happens(self.faults.write_error_one_in) {
            self.counts.write_errors += 1;
            return Err(Errno::IO);
        }
        Ok(())
    }

    /// Forgets the files that neither a name, nor a crash, nor a handle reaches.
    fn collect(&mut self) {
        let kept = self.names.collect();
        let open: Vec<Node> = self.handles.values().map(|open| open.node).collect();
        self.files.retain(|node, _| kept.contains(node) || open.contains(node));
    }
}
