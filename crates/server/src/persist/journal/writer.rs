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
//! - Work on the folder (segments, the manifest) is a list of steps, one in flight at a time. While
//!   there is one, nothing is written to the segment. A step that fails is tried again.

use crate::persist::journal::merge::{Merged, Merger};
use crate::persist::journal::pieces::Pieces;
use crate::persist::journal::steps::{Done, Steps};
use crate::persist::load::folder::{Found, Place};
use crate::persist::load::kept::{Kept, Replaced};
use base::{MonoNs, SeqNo};
use config::Retention;
use driver::{FileDone, FileError, FileId, FileOp, FileValue};
use journal::Moment;
use journal::manifest::{BaseFormat, FileInfo, Manifest};
use keyspace::journal::Batch;
use rustix::io::Errno;
use std::path::PathBuf;

/// What is written at a time, about.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes which are written and not durable, behind which a sync begins before its second is over.
/// Until then they are in memory, too: this bounds the buffers of a server under load.
const UNSYNCED_BYTES: usize = 8 << 20;
/// So many durable bytes at least are taken out of the page cache at a time.
const FORGOTTEN_BYTES: u64 = 1 << 20;
/// How often `everysec` syncs.
const SYNC_EVERY_NS: u64 = 1_000_000_000;
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
    /// A step.
    Step,
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

/// A rewrite that was begun at a cut, and what became of its base.
#[derive(Clone, Debug)]
struct Rewrite {
    format: BaseFormat,
    /// The moment of its base.
    moment: Moment,
    /// Its cut, of all cuts.
    cut: u64,
    /// The number at which the journal was cut, once the writer has come there.
    last: SeqNo,
    /// The segment behind the cut, once it is open.
    incr: Option<FileInfo>,
    /// The base is complete.
    is_done: bool,
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
    steps: Steps,
    rewrite: Option<Rewrite>,
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
    /// When the step in flight began.
    step_began: MonoNs,
    /// What the sync in flight makes durable: a length and a number.
    syncing: Option<(u64, SeqNo)>,
    sync_began: MonoNs,
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
    /// A writer of the folder that was found, `next` being the next number. Nothing is written
    /// before [`Writer::open_last`] or a cut.
    pub(crate) fn new(found: Found, next: SeqNo) -> Self {
        let (base_bytes, all) = (found.base_len(), found.len());
        Self {
            folder: found.place.folder(),
            name: found.place.name_bytes().to_vec(),
            place: found.place,
            manifest: found.manifest.unwrap_or_default(),
            history: found.history,
            merger: Merger::new(next),
            segment: None,
            steps: Steps::default(),
            rewrite: None,
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
            syncing: None,
            sync_began: MonoNs(0),
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

    /// Goes on with the folder that was loaded: a new segment behind those of the manifest.
    pub(crate) fn resume(&mut self) {
        self.is_complete = true;
        self.begin_segment();
    }

    /// A new segment is opened and, if the folder can be loaded, added to the manifest.
    fn begin_segment(&mut self) {
        let incr = self.manifest.next_incr(&self.name);
        self.steps.create_folder(&self.folder);
        self.steps.open(self.path(&incr.name));
        // The name must be there when a manifest lists it.
        self.steps.sync_folder(&self.folder);
        if let Some(rewrite) = &mut self.rewrite
            && rewrite.incr.is_none()
            && rewrite.cut == self.cuts_ended
        {
            rewrite.incr = Some(incr);
            rewrite.last = self.durable;
        }
        if self.is_complete {
            self.steps.manifest(&self.folder, &self.name, self.manifest.text(), false);
        }
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.folder.join(std::ffi::OsStr::from_bytes(name))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// The base of the rewrite whose moment is about to be taken: a file of this name in the
    /// folder. The cut follows.
    pub(crate) fn begin_rewrite(&mut self, format: BaseFormat, moment: Moment) -> FileInfo {
        let base = self.manifest.clone().next_base(&self.name, format);
        self.cuts_begun += 1;
        let (cut, last, incr) = (self.cuts_begun, SeqNo(0), None);
        self.rewrite = Some(Rewrite { format, moment, cut, last, incr, is_done: false });
        base
    }

    /// The base of the rewrite is complete, with so many bytes, or there will be none.
    pub(crate) fn end_rewrite(&mut self, bytes: Option<u64>) {
        match (&mut self.rewrite, bytes) {
            (Some(rewrite), Some(bytes)) => {
                rewrite.is_done = true;
                self.replaced_bytes += std::mem::replace(&mut self.base_bytes, bytes);
            }
            _ => self.rewrite = None,
        }
    }

    /// True while a rewrite is under way, the change of the manifest at its end included.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewrite.is_some() || self.ends_rewrite
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

    /// Everything up to this number is durable.
    pub(crate) fn durable(&self) -> SeqNo {
        self.durable
    }

    /// Everything up to this number was synced, with or without the promise of `appendfsync`.
    pub(crate) fn synced(&self) -> SeqNo {
        self.synced
    }

    /// What is wrong with the disk, if something is.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Bytes in memory.
    pub(crate) fn backlog(&self) -> usize {
        self.merger.bytes() + self.gathered.len() + self.pieces.bytes()
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
        let is_still = !self.is_writing && self.syncing.is_none() && self.steps.is_empty();
        let is_synced = self.segment.is_none_or(|segment| segment.synced >= segment.end);
        let is_written = self.unwritten() == 0 && self.pieces.is_empty();
        is_still && is_synced && is_written && !self.merger.is_ready()
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
            Part::Step => 0,
        }
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
        if self.trouble.is_some() {
            let in_flight = self.is_writing || self.syncing.is_some() || self.steps.is_in_flight();
            return (!in_flight).then_some(self.retry_at);
        }
        // What is in flight wakes the worker when it completes. That is also so of a write which a
        // sync at a cut, or at the end, waits for although its time has come.
        let is_timed = terms.fsync == Fsync::EverySecond && !terms.spares_syncs;
        let waits = is_timed && self.syncing.is_none() && self.steps.is_empty();
        let has_forgotten = self.segment.is_some_and(|segment| self.has_forgotten(segment));
        let at = self.sync_began.plus(SYNC_EVERY_NS);
        let is_held = self.is_writing && at <= now;
        (waits && !is_held && (has_forgotten || self.pieces.last_written().is_some())).then_some(at)
    }

    /// Starts what can be started. Everything durable is wanted at once if `is_ending`.
    pub(crate) fn proceed(&mut self, terms: Terms, now: MonoNs, unix_ms: i64, is_ending: bool) {
        if !self.steps.is_in_flight() {
            self.step_began = now;
        }
        if !self.is_writing {
            self.write_began = now;
        }
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
        if self.trouble.is_some() && self.unwritten() == 0 && self.pieces.is_empty() {
            self.trouble = None;
        }
        self.ends_rewrite = false;
        self.end_cut(terms.keep, unix_ms);
        if !self.steps.is_empty() {
            self.run_steps();
            return;
        }
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
            self.gathered_last = self.merger.last();
            match merged {
                Merged::Cut(_) => self.at_cut = true,
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

    /// A cut: everything before it is durable, so the segment is closed and the next one opened.
    fn reach_cut(&mut self) {
        let is_still = !self.is_writing && self.syncing.is_none() && self.pieces.is_empty();
        if !self.at_cut || !is_still || !self.gathered.is_empty() || !self.steps.is_empty() {
            return;
        }
        if let Some(segment) = self.segment.take() {
            self.before_bytes += segment.end;
            if segment.synced < segment.end {
                // With `appendfsync no`. A file ahead of the last one must not lose its end.
                self.steps.sync(segment.file);
            }
            self.steps.close(segment.file);
        }
        self.at_cut = false;
        self.cuts_ended += 1;
        self.pass(self.gathered_last);
        self.merger.begin_file();
        self.stamped_s = 0;
        self.begin_segment();
    }

    /// The base of a rewrite and the segment behind its cut are there: they take the place of what
    /// was before, which is kept or removed.
    fn end_cut(&mut self, keep: Retention, unix_ms: i64) {
        let is_over = |rewrite: &Rewrite| rewrite.is_done && rewrite.incr.is_some();
        if !self.at_cut
            && self.segment.is_some()
            && let Some(rewrite) = self.rewrite.take_if(|rewrite| is_over(rewrite))
        {
            let incr = rewrite.incr.expect("it was just tested");
            let older = self.manifest.incr.iter().filter(|file| file.seq < incr.seq);
            let replaced = Replaced {
                base: self.manifest.base.clone(),
                incr: older.cloned().collect(),
                bytes: std::mem::take(&mut self.replaced_bytes) + self.before_bytes,
            };
            self.before_bytes = 0;
            let left_over = self.manifest.history.len();
            self.manifest.next_base(&self.name, rewrite.format);
            self.manifest.retire(incr.seq);
            if keep != Retention::Nothing {
                self.keep(replaced, left_over, rewrite.moment);
            }
            self.ends_rewrite = true;
            self.base_last = rewrite.last;
            self.replace_files(keep, unix_ms);
        }
    }

    /// Adds what a base has replaced to the history. The list names it before the manifest leaves
    /// it out: so a crash leaves no file which nobody knows.
    fn keep(&mut self, mut replaced: Replaced, left_over: usize, until: Moment) {
        // Changes of which the beginning is missing are of no use.
        let Some(base) = replaced.base.take() else { return };
        self.manifest.history.truncate(left_over);
        self.history.add(base, replaced, until);
        if self.history.take_damage() {
            self.steps.set_list_aside(&self.folder, &self.name);
        }
        if let Some(text) = self.history.text() {
            self.steps.list(&self.folder, &self.name, text);
        }
    }

    /// Writes the manifest, and removes files: those which it names for that, and those which are
    /// not kept any more. It names them before the list leaves them out.
    fn replace_files(&mut self, keep: Retention, now_ms: i64) {
        let had_files = self.history.bytes() > 0;
        let expelled = self.history.expel(keep, now_ms);
        self.is_history_too_small =
            had_files && self.history.bytes() == 0 && keep != Retention::Nothing;
        let is_shorter =
            !expelled.is_empty() || keep == Retention::Nothing && self.history.is_listed();
        self.manifest.history.extend(expelled);
        self.steps.manifest(&self.folder, &self.name, self.manifest.text(), true);
        if is_shorter {
            if let Some(text) = self.history.text() {
                self.steps.list(&self.folder, &self.name, text);
            } else {
                self.history.forget_list();
                self.steps.remove_list(&self.folder, &self.name);
            }
        }
        self.remove_retired();
    }

    /// Removes the files which the manifest names for that, then takes them out of it.
    fn remove_retired(&mut self) {
        let gone = std::mem::take(&mut self.manifest.history);
        for file in &gone {
            self.steps.remove(self.path(&file.name));
        }
        if !gone.is_empty() {
            self.steps.manifest(&self.folder, &self.name, self.manifest.text(), false);
        }
    }

    /// An operation has completed.
    pub(crate) fn complete(&mut self, part: Part, done: FileDone, now: MonoNs) {
        match part {
            Part::Step => self.complete_step(done, now),
            Part::Write => self.complete_write(done, now),
            Part::Sync => self.complete_sync(done.outcome.err(), now),
        }
    }

    fn complete_step(&mut self, done: FileDone, now: MonoNs) {
        match self.steps.complete(done.outcome.map_err(|e| e.errno)) {
            Ok(Done::Nothing) => self.retry_at = now,
            Ok(Done::Opened(file)) => {
                let (end, durable, synced, forgotten) = (0, 0, 0, 0);
                let is_clean = false;
                self.segment = Some(Segment { file, end, durable, synced, forgotten, is_clean });
            }
            Ok(Done::Synced) => {
                self.retry_at = now;
                self.synced = self.synced.max(self.durable);
            }
            Ok(Done::Complete) => {
                self.is_complete = true;
                self.synced = self.synced.max(self.base_last);
            }
            Ok(Done::Cut) => {
                self.is_dirty = false;
                self.retry_at = now;
                if let Some(segment) = &mut self.segment {
                    segment.synced = segment.durable;
                    segment.is_clean = true;
                }
                self.pieces.forget_writes();
            }
            Err((what, errno)) => self.fail(what, errno, now),
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
        self.pieces.drop_durable(end);
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
        let (place, manifest) = (self.place.clone(), Some(self.manifest.clone()));
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
