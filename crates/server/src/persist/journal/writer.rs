//! The writer of the append-only file. No I/O: it is handed batches and the outcomes of operations
//! on files, and returns the operations that follow.
//!
//! ```text
//! batches ---> Merger ---> gathered ---> pieces: being written | written ---> durable, freed
//!                             |              one write at a time     one sync at a time
//!                             `-- a cut: the old segment is synced and closed, a new one opened
//! ```
//!
//! - Bytes stay in memory until they are durable (unless nobody syncs: `appendfsync no`).
//! - After a failed write or sync, what the file holds behind its durable length is unknown. It is
//!   cut to that length, which is synced, before anything is written again, at the same place. So
//!   no record stands in a file twice.
//! - A segment without its name is lost, and so is all that was in its folder (`lost.rs`).
//! - Work on the folder (segments, the manifest) is a list of steps, one in flight at a time. A
//!   step that fails is tried again. There are two lists. While there are steps on the segment,
//!   nothing is written to it. The steps by which a base takes over do not touch it, and run beside
//!   it: the files of before are whole until the manifest leaves them out.

mod cut;
mod lost;

use crate::persist::journal::ages::Ages;
use crate::persist::journal::merge::{Merged, Merger};
use crate::persist::journal::pause::Pause;
use crate::persist::journal::pieces::Pieces;
use crate::persist::journal::steps::{Done, Steps};
use crate::persist::load::folder::{Found, Place};
use crate::persist::load::kept::Kept;
use base::{MonoNs, SeqNo};
use config::Retention;
use driver::{FileDone, FileError, FileId, FileOp, FileValue, Inode};
use journal::manifest::{BaseFormat, FileInfo, Manifest};
use journal::{Extent, Position, ReplId};
use keyspace::journal::Batch;
use rustix::io::Errno;
use std::path::PathBuf;

/// What is written at a time, about.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes which are written and not durable, behind which a sync begins before its second is over.
/// Until then they are in memory, too: this bounds the buffers of a server under load.
const UNSYNCED_BYTES: usize = 8 << 20;
/// The system's page cache is relieved of so many durable bytes at a time.
const FORGOTTEN_BYTES: u64 = 1 << 20;
/// How often `everysec` syncs.
const SYNC_EVERY_NS: u64 = 1_000_000_000;
/// How old, with `everysec`, the oldest change may become which is not durable: then writes wait.
pub(crate) const LATE_NS: u64 = 3 * SYNC_EVERY_NS;
/// How long behind a failure the next attempt is made.
const RETRY_NS: u64 = 1_000_000_000;
/// What has failed, to follow "cannot": ends with the next sync that succeeds.
const SYNC: &str = "sync the append-only file";

/// When what was written is made durable (`appendfsync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// Before a reply leaves.
    Always,
    /// Once a second.
    EverySecond,
    /// When the system likes.
    No,
}

/// Which operation has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A step on the segment.
    Step,
    /// A step by which a base takes over.
    Takeover,
    /// The write.
    Write,
    /// The sync.
    Sync,
}

/// The settings which the writer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// `appendfsync`.
    pub fsync: Fsync,
    /// `aof-timestamp-enabled`.
    pub timestamps: bool,
    /// `no-appendfsync-on-rewrite` is set, and a rewrite or another save is under way.
    pub spares_syncs: bool,
    /// `aof-history`.
    pub keep: Retention,
}

impl Terms {
    /// A change is to be synced within a second.
    fn is_timed(self) -> bool {
        self.fsync == Fsync::EverySecond && !self.spares_syncs
    }
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What failed, to follow "cannot".
    pub what: &'static str,
    /// The system's error.
    pub errno: Errno,
}

/// The file that is appended to.
#[derive(Clone, Copy, Debug)]
struct Segment {
    file: FileId,
    /// Which one it is, to be compared with what stands at its path.
    inode: Inode,
    /// Where the next bytes go.
    end: u64,
    /// Its durable length; with `appendfsync no`, the length that is forgotten.
    durable: u64,
    /// The length up to which it was synced.
    synced: u64,
    /// Up to here it need not be in the page cache.
    forgotten: u64,
    /// It was synced as a whole: nothing is left of what stood in the file before it was opened.
    is_clean: bool,
}

impl Segment {
    /// A file which was just opened, and is empty.
    fn new(file: FileId, inode: Inode) -> Self {
        let (end, durable, synced, forgotten) = (0, 0, 0, 0);
        Self { file, inode, end, durable, synced, forgotten, is_clean: false }
    }
}

/// A rewrite that was begun at a cut, and what became of its base.
#[derive(Clone, Debug)]
struct Rewrite {
    format: BaseFormat,
    /// How far the changes reach which its base holds.
    extent: Extent,
    /// Its cut, of all cuts.
    cut: u64,
    /// The number at which the journal was cut, once the writer has come there.
    last: SeqNo,
    /// The segment behind the cut, once it is open.
    incr: Option<FileInfo>,
    /// The base is complete.
    is_done: bool,
}

/// What was lost, until there is a new base.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// What was durable, and synced, until then as far as anybody knew.
    durable: SeqNo,
    synced: SeqNo,
    trouble: Trouble,
    /// Nothing of the old files is in use any more.
    is_abandoned: bool,
    /// When that is to be.
    at: MonoNs,
}

/// The writer of one folder.
pub(crate) struct Writer {
    place: Place,
    folder: PathBuf,
    name: Vec<u8>,
    manifest: Manifest,
    /// Files which rewrites have replaced, and which are kept.
    history: Kept,
    merger: Merger,
    segment: Option<Segment>,
    segment_path: PathBuf,
    /// The file of the look in flight.
    looking: Option<FileId>,
    /// The files are not there any more.
    lost: Option<Lost>,
    /// What must be done before the segment is written to.
    steps: Steps,
    /// What makes a complete base count, and removes what it replaces.
    takeover: Steps,
    takeover_trouble: Option<Trouble>,
    takeover_again_at: MonoNs,
    /// The files which its steps remove.
    removed: Vec<FileInfo>,
    rewrite: Option<Rewrite>,
    /// Behind rewrites which have failed.
    pause: Pause,
    /// A cut was reached: what is before it is written, and synced, before anything behind it.
    at_cut: bool,
    /// Cuts so far, and how many of them have changed the segment.
    cuts_begun: u64,
    cuts_ended: u64,
    /// The manifest of a rewrite that is complete is being written.
    ends_rewrite: bool,
    /// `aof-history` did not even allow what the last rewrite has replaced.
    pub is_history_too_small: bool,
    /// The folder holds all data: it can be loaded.
    is_complete: bool,
    gathered: Vec<u8>,
    /// The last number that is whole with what was gathered.
    gathered_last: SeqNo,
    pieces: Pieces,
    is_writing: bool,
    /// The write in flight makes durable what it writes.
    writes_durably: bool,
    write_began: MonoNs,
    /// When the steps in flight began.
    step_began: MonoNs,
    takeover_began: MonoNs,
    /// What the sync in flight makes durable: a length and a number.
    syncing: Option<(u64, SeqNo)>,
    sync_began: MonoNs,
    ages: Ages,
    /// Syncs that succeeded, durable writes included.
    pub syncs: u64,
    /// How long the last one took.
    pub last_sync_ns: u64,
    /// What the segment holds behind its durable length is unknown.
    is_dirty: bool,
    trouble: Option<Trouble>,
    retry_at: MonoNs,
    durable: SeqNo,
    /// Everything up to this number was synced. Less than `durable` while nobody syncs.
    synced: SeqNo,
    /// Where the rewrite was cut whose manifest is being written.
    base_last: SeqNo,
    /// Bytes of the base and of all segments but the last, as far as they count for a rewrite.
    pub base_bytes: u64,
    pub before_bytes: u64,
    /// Bytes of files which the next base replaces and which do not count for a rewrite: that of
    /// the base before, and those which were there when the file was turned on.
    replaced_bytes: u64,
    stamped_s: i64,
    ops: Vec<(Part, FileOp)>,
}

impl Writer {
    /// A writer of the folder that was found, `next` being the next number, whose record stands at
    /// this position. Nothing is written before [`Writer::resume`] or a cut.
    pub(crate) fn new(found: Found, next: SeqNo, position: Position) -> Self {
        let (base_bytes, all) = (found.base_len(), found.len());
        Self {
            folder: found.place.folder(),
            name: found.place.name_bytes().to_vec(),
            place: found.place,
            manifest: found.manifest.unwrap_or_default(),
            history: found.history,
            merger: Merger::new(next, position),
            segment: None,
            segment_path: PathBuf::new(),
            looking: None,
            lost: None,
            steps: Steps::default(),
            takeover: Steps::default(),
            takeover_trouble: None,
            removed: Vec::new(),
            takeover_again_at: MonoNs(0),
            rewrite: None,
            pause: Pause::default(),
            at_cut: false,
            cuts_begun: 0,
            cuts_ended: 0,
            ends_rewrite: false,
            is_history_too_small: false,
            is_complete: false,
            gathered: Vec::new(),
            gathered_last: SeqNo(next.0 - 1),
            pieces: Pieces::default(),
            is_writing: false,
            writes_durably: false,
            write_began: MonoNs(0),
            step_began: MonoNs(0),
            takeover_began: MonoNs(0),
            syncing: None,
            sync_began: MonoNs(0),
            ages: Ages::default(),
            syncs: 0,
            last_sync_ns: 0,
            is_dirty: false,
            trouble: None,
            retry_at: MonoNs(0),
            durable: SeqNo(next.0 - 1),
            synced: SeqNo(next.0 - 1),
            base_last: SeqNo(0),
            base_bytes,
            before_bytes: all - base_bytes,
            replaced_bytes: found.other_bytes,
            stamped_s: 0,
            ops: Vec::new(),
        }
    }

    /// The stream of replication, as far as it is merged.
    pub(crate) fn offset(&self) -> u64 {
        self.merger.offset()
    }

    /// The stream of replication has another id from the next record on.
    pub(crate) fn rename(&mut self, id: ReplId) {
        self.merger.rename(id);
    }

    /// Goes on with the folder that was loaded: a new segment behind those of the manifest.
    pub(crate) fn resume(&mut self) {
        self.is_complete = true;
        self.begin_segment();
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.folder.join(std::ffi::OsStr::from_bytes(name))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// True once the folder holds all data.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes a batch over.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.merger.push(batch);
    }

    /// Batches whose memory can be used again.
    pub(crate) fn take_done(&mut self) -> impl Iterator<Item = Batch> + '_ {
        self.merger.take_done()
    }

    /// The operations that are to be started now.
    pub(crate) fn take_ops(&mut self) -> Vec<(Part, FileOp)> {
        std::mem::take(&mut self.ops)
    }

    /// Bytes in memory.
    pub(crate) fn backlog(&self) -> usize {
        self.merger.bytes() + self.gathered.len() + self.pieces.bytes()
    }

    /// Bytes of memory for them, spare buffers included.
    pub(crate) fn memory(&self) -> usize {
        self.merger.bytes() + self.gathered.capacity() + self.pieces.memory()
    }

    /// Bytes which are not written yet.
    pub(crate) fn unwritten(&self) -> usize {
        self.backlog() - self.pieces.written_bytes()
    }

    /// Bytes of all files of the folder.
    pub(crate) fn size(&self) -> u64 {
        self.base_bytes + self.before_bytes + self.segment.map_or(0, |segment| segment.end)
    }

    /// Bytes of the files of kept history.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.history.bytes()
    }

    /// Nothing is in flight, and nothing waits to be written, or synced if there are syncs.
    pub(crate) fn is_idle(&self) -> bool {
        // A base that cannot take over is not waited for: the files of before hold everything.
        let takes_over = !self.takeover.is_empty() && self.takeover_trouble.is_none();
        let has_steps = !self.steps.is_empty() || takes_over;
        let is_still = !self.is_writing && self.syncing.is_none() && !has_steps;
        let is_synced = self.segment.is_none_or(|segment| segment.synced >= segment.end);
        let is_written = self.unwritten() == 0 && self.pieces.is_empty();
        is_still && is_synced && is_written && !self.merger.is_ready() && self.lost.is_none()
    }

    /// An operation is under way.
    pub(crate) fn is_in_flight(&self) -> bool {
        let has_step = self.steps.is_in_flight() || self.takeover.is_in_flight();
        self.is_writing || self.syncing.is_some() || has_step || self.looking.is_some()
    }

    /// What an operation in flight counts as: a durable write as a sync.
    pub(crate) fn counts_as(&self, part: Part) -> Part {
        if part == Part::Write && self.writes_durably { Part::Sync } else { part }
    }

    /// How long the operation of this part is under way; of the steps, only a rename counts.
    pub(crate) fn took_ns(&self, part: Part, now: MonoNs) -> u64 {
        match part {
            Part::Write => now.since(self.write_began),
            Part::Sync => now.since(self.sync_began),
            Part::Step if self.steps.is_renaming() => now.since(self.step_began),
            Part::Takeover if self.takeover.is_renaming() => now.since(self.takeover_began),
            Part::Step | Part::Takeover => 0,
        }
    }

    /// Since when the first of the operations in flight is under way.
    pub(crate) fn in_flight_since(&self) -> Option<MonoNs> {
        let write = self.is_writing.then_some(self.write_began);
        let sync = self.syncing.map(|_| self.sync_began);
        let step = self.steps.is_in_flight().then_some(self.step_began);
        [write, sync, step].into_iter().flatten().min()
    }

    /// A sync is under way.
    pub(crate) fn is_syncing(&self) -> bool {
        self.syncing.is_some() || (self.is_writing && self.writes_durably)
    }

    /// What was written while nobody synced is not in memory any more, and was not synced.
    fn has_forgotten(&self, segment: Segment) -> bool {
        self.pieces.is_empty() && segment.synced < segment.end
    }

    /// When something is to be done although nothing completes.
    pub(crate) fn next_wake(&self, terms: Terms, now: MonoNs) -> Option<MonoNs> {
        if let Some(at) = self.abandons_at() {
            return (!self.is_in_flight()).then_some(at);
        }
        let is_paused = self.takeover_trouble.is_some() && !self.takeover.is_in_flight();
        let takeover = is_paused.then_some(self.takeover_again_at);
        [takeover, self.segment_wake(terms, now)].into_iter().flatten().min()
    }

    /// The same, of the segment.
    fn segment_wake(&self, terms: Terms, now: MonoNs) -> Option<MonoNs> {
        if self.trouble.is_some() {
            let in_flight = self.is_writing || self.syncing.is_some() || self.steps.is_in_flight();
            return (!in_flight).then_some(self.retry_at);
        }
        // What is in flight wakes the worker when it completes. That is also so of a write which a
        // sync at a cut, or at the end, waits for although its time has come.
        let waits = terms.is_timed() && self.syncing.is_none() && self.steps.is_empty();
        let has_forgotten = self.segment.is_some_and(|segment| self.has_forgotten(segment));
        let at = self.sync_began.plus(SYNC_EVERY_NS);
        let is_held = self.is_writing && at <= now;
        (waits && !is_held && (has_forgotten || self.pieces.last_written().is_some())).then_some(at)
    }

    /// Starts what can be started. Everything durable is wanted at once if `is_ending`.
    pub(crate) fn proceed(&mut self, terms: Terms, now: MonoNs, unix_ms: i64, is_ending: bool) {
        if !self.abandon(now) {
            return;
        }
        self.run_takeover(now);
        if !self.steps.is_in_flight() {
            self.step_began = now;
        }
        if !self.is_writing {
            self.write_began = now;
        }
        self.ages.look(self.backlog(), now, terms.is_timed());
        if self.trouble.is_some() {
            if now < self.retry_at || self.is_writing || self.syncing.is_some() {
                return;
            }
            self.retry_at = now.plus(RETRY_NS);
            if self.is_dirty
                && self.steps.is_empty()
                && let Some(segment) = self.segment
            {
                self.steps.cut_to(segment.file, segment.durable);
            }
        }
        if !self.run_steps() || self.is_dirty {
            return;
        }
        let is_written = self.unwritten() == 0 && self.pieces.is_empty();
        if is_written || self.segment.is_none() {
            self.trouble = None;
        }
        self.end_cut(terms.keep, unix_ms);
        self.run_takeover(now);
        self.gather(terms, unix_ms);
        self.write(terms, now);
        self.sync(terms, now, is_ending);
        self.reach_cut();
        self.run_steps();
    }

    /// Starts the next step. True if there is none.
    fn run_steps(&mut self) -> bool {
        if self.steps.is_empty() {
            return true;
        }
        if !self.is_writing
            && self.syncing.is_none()
            && let Some(op) = self.steps.start()
        {
            self.ops.push((Part::Step, op));
        }
        false
    }

    /// Merges what is in order.
    fn gather(&mut self, terms: Terms, unix_ms: i64) {
        let unix_s = unix_ms / 1000;
        if self.segment.is_none() && self.rewrite.is_none() {
            return;
        }
        while !self.at_cut && self.merger.is_ready() && self.gathered.len() < WRITE_BYTES {
            let is_whole = !self.merger.is_in_record();
            let before = (self.gathered.len(), self.stamped_s);
            if terms.timestamps && is_whole && self.stamped_s != unix_s {
                self.stamped_s = unix_s;
                self.gathered.extend_from_slice(format!("#TS:{unix_s}\r\n").as_bytes());
            }
            let stamped = self.gathered.len();
            let merged = self.merger.merge(&mut self.gathered, WRITE_BYTES, unix_ms);
            if self.gathered.len() == stamped {
                // Numbers without a command, such as that of a cut, have no time.
                self.gathered.truncate(before.0);
                self.stamped_s = before.1;
            }
            if self.segment.is_none() {
                self.gathered.clear(); // the base of the rewrite has it
            }
            self.gathered_last = self.merger.last();
            match merged {
                Merged::Cut(_) => {
                    self.at_cut = true;
                    self.check_position();
                }
                Merged::Full => break,
                Merged::All => {}
            }
        }
    }

    /// Starts a write, if none is in flight. With `always` those who wait share the next sync.
    fn write(&mut self, terms: Terms, now: MonoNs) {
        let Some(segment) = &mut self.segment else { return };
        let must_wait = terms.fsync == Fsync::Always && self.syncing.is_some();
        if self.is_writing || must_wait {
            return;
        }
        if self.pieces.next_mut().is_none() {
            if self.gathered.is_empty() {
                // Numbers without a command, such as that of a cut.
                match self.pieces.back_mut() {
                    Some(before) => before.last = self.gathered_last,
                    None => self.pass(self.gathered_last),
                }
                return;
            }
            let bytes = std::mem::replace(&mut self.gathered, self.pieces.buffer());
            let at = segment.end;
            segment.end += bytes.len() as u64;
            self.pieces.push(bytes, at, self.gathered_last);
        }
        let piece = self.pieces.next_mut().expect("there is one now");
        // One operation instead of two: the worker would be woken between them. It makes durable
        // only what it writes, so nothing before it may be missing.
        self.writes_durably =
            terms.fsync == Fsync::Always && segment.is_clean && segment.synced == piece.at;
        let (file, at, bytes) = (segment.file, piece.at, std::mem::take(&mut piece.bytes));
        self.is_writing = true;
        self.ops.push(if self.writes_durably {
            self.sync_began = now;
            (Part::Write, FileOp::WriteDurably { file, at, bytes })
        } else {
            (Part::Write, FileOp::Write { file, at, bytes })
        });
    }

    /// Starts a sync, if it is time.
    fn sync(&mut self, terms: Terms, now: MonoNs, is_ending: bool) {
        let Some(segment) = self.segment else { return };
        if self.syncing.is_some() {
            return;
        }
        let written = self.written();
        let is_wanted = is_ending || terms.fsync != Fsync::No;
        let is_forgotten = is_wanted && self.has_forgotten(segment);
        let forgotten = is_forgotten.then_some((segment.end, self.durable));
        let Some((end, last)) = written.or(forgotten) else { return };
        let bytes = self.pieces.written_bytes();
        let is_due = match terms.fsync {
            _ if is_ending || self.at_cut => !self.is_writing,
            Fsync::Always => !self.is_writing,
            Fsync::EverySecond if terms.spares_syncs => bytes >= UNSYNCED_BYTES,
            Fsync::EverySecond => {
                bytes >= UNSYNCED_BYTES || now >= self.sync_began.plus(SYNC_EVERY_NS)
            }
            Fsync::No => false,
        };
        if is_due {
            self.syncing = Some((end, last));
            self.sync_began = now;
            self.ops.push((Part::Sync, FileOp::SyncData { file: segment.file }));
        }
    }

    /// An operation has completed.
    pub(crate) fn complete(&mut self, part: Part, done: FileDone, now: MonoNs) {
        match part {
            Part::Step => self.complete_step(done, now),
            Part::Takeover => self.complete_takeover(done, now),
            Part::Write => self.complete_write(done, now),
            Part::Sync => self.complete_sync(done.outcome.err(), now),
        }
    }

    fn complete_step(&mut self, done: FileDone, now: MonoNs) {
        match self.steps.complete(done.outcome.map_err(|e| e.errno)) {
            Ok(Done::Nothing) => self.retry_at = now,
            Ok(Done::Created) => {
                self.retry_at = now;
                self.on_new_folder(now);
            }
            Ok(Done::Opened(file, inode)) => {
                self.segment = Some(Segment::new(file, inode));
            }
            Ok(Done::Synced) => {
                self.retry_at = now;
                self.synced = self.synced.max(self.durable);
            }
            Ok(Done::Complete) => unreachable!("a base has taken over"),
            Ok(Done::Cut) => {
                self.is_dirty = false;
                self.retry_at = now;
                if let Some(segment) = &mut self.segment {
                    segment.synced = segment.durable;
                    segment.is_clean = true;
                }
                self.pieces.forget_writes();
            }
            Err(failed) if failed.is_gone => {
                self.lose(failed.what, failed.errno, now.plus(RETRY_NS));
            }
            Err(failed) => self.fail(failed.what, failed.errno, now),
        }
    }

    fn complete_write(&mut self, done: FileDone, now: MonoNs) {
        self.is_writing = false;
        match done.outcome {
            Ok(FileValue::Written(bytes)) => {
                self.pieces.end_write(bytes);
                if !self.is_dirty {
                    // It works: what follows need not wait. The trouble is over when nothing waits
                    // any more; before that it might come back at the same place.
                    self.retry_at = now;
                    let waits = self.unwritten() > 0;
                    self.trouble = self.trouble.filter(|t| t.what == SYNC || waits);
                }
                if let Some((end, last)) = self.written().filter(|_| self.writes_durably)
                    && !self.is_dirty
                {
                    self.end_sync(end, last, now);
                }
            }
            Ok(other) => unreachable!("a write returns its bytes: {other:?}"),
            Err(error) => {
                let piece = self.pieces.next_mut().expect("it was being written");
                piece.bytes = done.unwritten;
                self.is_dirty = true;
                self.fail("write to the append-only file", error.errno, now);
            }
        }
    }

    fn complete_sync(&mut self, failure: Option<FileError>, now: MonoNs) {
        let (end, last) = self.syncing.take().expect("it was in flight");
        if let Some(error) = failure {
            self.is_dirty = true;
            return self.fail(SYNC, error.errno, now);
        }
        // A write which has failed meanwhile began at `end` or behind it: this part is durable.
        self.end_sync(end, last, now);
        if !self.is_dirty {
            self.retry_at = now;
        }
    }

    /// The segment is synced up to `end`.
    fn end_sync(&mut self, end: u64, last: SeqNo, now: MonoNs) {
        self.last_sync_ns = now.since(self.sync_began);
        self.syncs += 1;
        if let Some(segment) = &mut self.segment {
            segment.synced = end;
            segment.is_clean = true;
        }
        self.make_durable(end, last);
        self.synced = last;
    }

    /// With `everysec`: when a change will have waited for too long, if it is not synced by then.
    pub(crate) fn late_at(&self, terms: Terms) -> Option<MonoNs> {
        self.ages.oldest().filter(|_| terms.is_timed()).map(|since| since.plus(LATE_NS))
    }

    /// Nobody reads the segment before the next start: takes what is durable of it out of the page
    /// cache. So the next writes find pages which were just freed, and what others have in the
    /// cache stays there. Nobody waits for the operation.
    pub(crate) fn take_advice(&mut self) -> Option<FileOp> {
        let segment = self.segment.as_mut()?;
        let is_worth_it = segment.synced >= segment.forgotten + FORGOTTEN_BYTES;
        is_worth_it.then(|| {
            segment.forgotten = segment.synced;
            FileOp::Forget { file: segment.file, to: segment.synced }
        })
    }

    /// Without syncs, what is written is as durable as it gets.
    pub(crate) fn forget_written(&mut self) {
        if let Some((end, last)) = self.written()
            && !self.is_dirty
            && self.syncing.is_none()
        {
            self.make_durable(end, last);
        }
    }

    /// Where what is written and not durable ends, and its last number.
    fn written(&self) -> Option<(u64, SeqNo)> {
        self.pieces.last_written().map(|piece| (piece.end(), piece.last))
    }

    fn make_durable(&mut self, end: u64, last: SeqNo) {
        let segment = self.segment.as_mut().expect("it was written to");
        segment.durable = end;
        self.durable = last;
        let before = self.pieces.bytes();
        self.pieces.drop_durable(end);
        self.ages.end(before - self.pieces.bytes());
    }

    /// Everything up to this number is as durable as what is before it: there is no byte between.
    fn pass(&mut self, last: SeqNo) {
        if self.synced == self.durable {
            self.synced = last;
        }
        self.durable = last;
    }

    fn fail(&mut self, what: &'static str, errno: Errno, now: MonoNs) {
        self.trouble = Some(Trouble { what, errno });
        self.retry_at = now.plus(RETRY_NS);
    }

    /// What the folder holds, for whoever begins again.
    pub(crate) fn found(&self) -> Found {
        let (place, mut manifest) = (self.place.clone(), self.manifest.clone());
        // A segment which could not be begun is no part of what is there, nor of its history.
        let last = manifest.incr.last().map(|file| self.path(&file.name));
        let is_listed = self.is_complete && self.lost.is_none();
        if self.steps.is_creating(is_listed) && last.as_ref() == Some(&self.segment_path) {
            manifest.incr.pop();
        }
        let manifest = Some(manifest);
        let (history, other_bytes) = (self.history.clone(), self.size() + self.replaced_bytes);
        Found { place, manifest, history, other_bytes, ..Found::default() }
    }

    /// Closes the segment: the journal ends, or the server.
    pub(crate) fn close(&mut self) -> Option<FileOp> {
        self.segment.take().map(|segment| FileOp::Close { file: segment.file })
    }
}

#[cfg(test)]
mod tests;
