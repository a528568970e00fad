//! The contents of one file: what is durable, what readers see, and the changes between the two.
//!
//! ```text
//!             sector 0     1        2        3        4
//! durable     [  A    ][  B    ][  C |                        len 1200; survives every crash
//! changes     1: write sectors 1..3          [ B' ][ C' |     len 1400
//!  (oldest    2: write sectors 2..5               [ C''][ D ][ E |   len 2300
//!   first)    3: truncate                    [       |        len 700
//! current     [  A    ][ B' |                                 len 700; what a read returns
//! ```
//!
//! A change keeps the whole sectors as they were after it, because a page cache writes whole
//! sectors back. So a sector after a crash is as some change left it, never a mixture of bytes that
//! were never in memory together. The length belongs to the file's metadata, which reaches the disk
//! independently of the sectors: in order, but before or after them.

use super::blocks::Blocks;
use super::faults::DiskFaultCounts;
use super::survival::Survival;
use base::prng::Prng;
use std::collections::{BTreeMap, VecDeque};

/// The contents, permissions and blocks of one file.
#[derive(Debug, Default)]
pub struct Contents {
    sector_bytes: usize,
    durable: Vec<u8>,
    current: Vec<u8>,
    changes: VecDeque<Change>,
    /// Permissions, oldest first. No operation makes a change of them durable: a crash leaves any
    /// of these.
    modes: Vec<u32>,
    blocks: Blocks,
    durable_blocks: Blocks,
}

#[derive(Debug)]
struct Change {
    /// Its place among all changes of the disk.
    number: u64,
    /// Length of the file after it.
    len: usize,
    written: Option<Written>,
}

/// Whole sectors as they were after a write, with zeros behind the end of the file.
#[derive(Debug)]
struct Written {
    /// First byte of the first sector.
    from: usize,
    image: Vec<u8>,
    /// First byte that the write itself changed.
    at: usize,
}

impl Contents {
    /// An empty file.
    pub fn new(sector_bytes: usize, mode: u32) -> Self {
        Self { sector_bytes, modes: vec![mode], ..Self::default() }
    }

    /// A file that is durable as a whole.
    pub fn durable(sector_bytes: usize, mode: u32, bytes: &[u8]) -> Self {
        let mut file = Self::new(sector_bytes, mode);
        file.durable = bytes.to_vec();
        file.current = bytes.to_vec();
        file.blocks.add(0, bytes.len() as u64);
        file.durable_blocks = file.blocks.clone();
        file
    }

    /// What a read sees.
    pub fn current(&self) -> &[u8] {
        &self.current
    }

    /// Length in bytes, as `current`.
    pub fn len(&self) -> u64 {
        self.current.len() as u64
    }

    /// The permissions.
    pub fn mode(&self) -> u32 {
        *self.modes.last().expect("a file is created with permissions")
    }

    /// Sets the permissions.
    pub fn set_mode(&mut self, mode: u32) {
        self.modes.push(mode);
    }

    /// The blocks that it occupies.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Reserves the blocks of bytes `from..to`.
    pub fn reserve(&mut self, from: u64, to: u64) {
        self.blocks.add(from, to);
    }

    /// Writes at an offset. A gap between the end of the file and `at` reads as zeros.
    pub fn write(&mut self, number: u64, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = at + bytes.len();
        if self.current.len() < end {
            self.current.resize(end, 0);
        }
        self.current[at..end].copy_from_slice(bytes);
        self.blocks.add(at as u64, end as u64);
        let from = at - at % self.sector_bytes;
        let to = end.next_multiple_of(self.sector_bytes);
        let len = self.current.len();
        let mut image = self.current[from..to.min(len)].to_vec();
        image.resize(to - from, 0);
        self.changes.push_back(Change { number, len, written: Some(Written { from, image, at }) });
    }

    /// Sets the length. What is added reads as zeros.
    pub fn set_len(&mut self, number: u64, len: usize) {
        if len <= self.current.len() {
            self.blocks.truncate(len as u64);
        }
        self.current.resize(len, 0);
        self.changes.push_back(Change { number, len, written: None });
    }

    /// True if no change is left that a crash could undo.
    pub fn is_durable(&self) -> bool {
        self.changes.is_empty()
    }

    /// Makes all changes below `until` durable.
    pub fn sync(&mut self, until: u64) {
        while self.changes.front().is_some_and(|change| change.number < until) {
            let change = self.changes.pop_front().expect("the loop has seen it");
            self.durable.resize(change.len, 0);
            if let Some(Written { from, image, .. }) = change.written {
                let count = image.len().min(change.len - from);
                self.durable[from..from + count].copy_from_slice(&image[..count]);
            }
        }
        self.durable_blocks = self.blocks.clone();
    }

    /// A failed sync which marks the changes below `until` as written although only some of their
    /// sectors are. A later sync does not write them. If `evict`, the memory is also given up, and
    /// reads see what is on the disk.
    /// `in_order`: see [`super::DiskFaults`].
    pub fn lose(
        &mut self,
        until: u64,
        (evict, in_order): (bool, bool),
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) {
        let lost = self.changes.iter().take_while(|change| change.number < until).count();
        self.durable = if in_order {
            self.partly_in_order(lost, None, prng, counts)
        } else {
            self.partly_written(lost, None, prng, counts)
        };
        self.changes.drain(..lost);
        if evict && self.changes.is_empty() {
            self.current.clone_from(&self.durable);
            self.blocks.add(0, self.current.len() as u64);
        }
    }

    /// The machine loses its memory.
    pub fn crash(
        &mut self,
        (survival, in_order): (Option<Survival>, bool),
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) {
        let all = self.changes.len();
        self.durable = if in_order {
            self.partly_in_order(all, survival, prng, counts)
        } else {
            self.partly_written(all, survival, prng, counts)
        };
        self.current.clone_from(&self.durable);
        self.changes.clear();
        let mode = self.modes[prng.below(self.modes.len() as u64) as usize];
        self.modes = vec![mode];
        if prng.chance(1, 2) {
            self.blocks.clone_from(&self.durable_blocks);
        }
        self.blocks.add(0, self.current.len() as u64);
        self.durable_blocks.clone_from(&self.blocks);
    }

    /// What is on the disk if the oldest `count` changes were being written back in order: some of
    /// them, and of the next one, if it is a write, some of its first sectors.
    fn partly_in_order(
        &self,
        count: usize,
        survival: Option<Survival>,
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) -> Vec<u8> {
        let kept = survival.unwrap_or_else(|| Survival::draw(prng)).prefix(count, prng);
        let mut bytes = self.durable.clone();
        let write = |bytes: &mut Vec<u8>, len: usize, from: usize, image: &[u8]| {
            bytes.resize(len, 0);
            let count = image.len().min(len - from);
            bytes[from..from + count].copy_from_slice(&image[..count]);
        };
        for change in self.changes.iter().take(kept) {
            match &change.written {
                None => bytes.resize(change.len, 0),
                Some(written) => write(&mut bytes, change.len, written.from, &written.image),
            }
            counts.writes_kept += 1;
        }
        counts.writes_dropped += (count - kept) as u64;
        counts.lengths_dropped += (count - kept) as u64;
        if let Some(Change { len, written: Some(written), .. }) = self.changes.get(kept)
            && kept < count
            && survival != Some(Survival::None)
        {
            let sectors = prng.below((written.image.len() / self.sector_bytes) as u64) as usize;
            let part = &written.image[..sectors * self.sector_bytes];
            let end = (written.from + part.len()).min(*len).max(bytes.len());
            if sectors > 0 {
                write(&mut bytes, end, written.from, part);
                counts.writes_torn += 1;
            }
        }
        bytes
    }

    /// What is on the disk if the oldest `count` changes were being written back: any of their
    /// sectors, and any prefix of their lengths.
    fn partly_written(
        &self,
        count: usize,
        survival: Option<Survival>,
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) -> Vec<u8> {
        let lengths = survival.unwrap_or_else(|| Survival::draw(prng)).prefix(count, prng);
        let survival = survival.unwrap_or_else(|| Survival::draw(prng));
        let mut image = Image::new(self.durable.clone(), self.sector_bytes);
        for (i, change) in self.changes.iter().take(count).enumerate() {
            let has_length = i < lengths;
            match &change.written {
                None if has_length => image.set_len(change.len),
                None => (),
                Some(written) => {
                    if has_length {
                        image.extend(change.len, written);
                    }
                    image.write_back(written, survival, prng, counts);
                }
            }
        }
        counts.lengths_dropped += (count - lengths) as u64;
        image.finish(prng, counts)
    }
}

/// The sectors of a file on the disk while changes reach it.
struct Image {
    bytes: Vec<u8>,
    sector_bytes: usize,
    /// Sectors within the length of the file that were never written, and the first byte of each
    /// which is undefined.
    undefined: BTreeMap<usize, usize>,
}

impl Image {
    fn new(bytes: Vec<u8>, sector_bytes: usize) -> Self {
        Self { bytes, sector_bytes, undefined: BTreeMap::new() }
    }

    fn set_len(&mut self, len: usize) {
        self.bytes.resize(len, 0);
        let sectors = len.div_ceil(self.sector_bytes);
        self.undefined.split_off(&sectors);
    }

    /// Takes the length after a write, and not its sectors. A gap before the write is a hole, which
    /// reads as zeros.
    fn extend(&mut self, len: usize, written: &Written) {
        let before = self.bytes.len();
        self.set_len(len);
        let first = before.max(written.at);
        let mut at = first;
        while at < len {
            self.undefined.entry(at / self.sector_bytes).or_insert(at);
            at = (at / self.sector_bytes + 1) * self.sector_bytes;
        }
    }

    /// Writes the sectors that survive, as far as they are within the length.
    fn write_back(
        &mut self,
        written: &Written,
        survival: Survival,
        prng: &mut Prng,
        counts: &mut DiskFaultCounts,
    ) {
        let sectors = written.image.len() / self.sector_bytes;
        let survivors = survival.sectors(sectors, prng);
        match survivors.iter().filter(|survives| **survives).count() {
            0 => counts.writes_dropped += 1,
            n if n < sectors => counts.writes_torn += 1,
            _ => counts.writes_kept += 1,
        }
        let chunks = written.image.chunks(self.sector_bytes).zip(survivors);
        for (i, (sector, _)) in chunks.enumerate().filter(|(_, (_, survives))| *survives) {
            let from = written.from + i * self.sector_bytes;
            let to = (from + sector.len()).min(self.bytes.len());
            if from < to {
                self.bytes[from..to].copy_from_slice(&sector[..to - from]);
            }
            self.undefined.remove(&(from / self.sector_bytes));
        }
    }

    /// Fills what is undefined with zeros or with garbage.
    fn finish(mut self, prng: &mut Prng, counts: &mut DiskFaultCounts) -> Vec<u8> {
        for (sector, from) in std::mem::take(&mut self.undefined) {
            let to = ((sector + 1) * self.sector_bytes).min(self.bytes.len());
            if from >= to {
                continue;
            }
            if prng.chance(1, 2) {
                prng.fill(&mut self.bytes[from..to]);
                counts.sectors_garbage += 1;
            } else {
                counts.sectors_zero += 1;
            }
        }
        self.bytes
    }
}
