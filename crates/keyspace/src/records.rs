//! Records of the changes of a command: final RESP requests which repeat them. They are collected
//! with the undo log, get one number when the changes are committed, and go when they are rolled
//! back. Nothing of this runs while no record is kept.
//!
//! Rules for whoever leaves records ([`Guard::record`]):
//! - Repeating all records in order, with keys that are due ignored ([`crate::Due::Ignore`]) and on
//!   any machine at any time, leads to the same data.
//! - A change without a record is a defect ([`Handover::unrecorded`](crate::journal::Handover)).
//! - Keys which are removed because they are due leave a DEL by themselves, ahead of what the
//!   command leaves; hidden fields an HDEL.

use crate::entry::EntryPtr;
use crate::guard::Guard;
use crate::journal::{Batch, Handover, Part, Readers, Run};
use crate::keyspace::Keyspace;
use crate::numbers::Numbers;
use base::num::{U64_TEXT_MAX, format_u64, write_i64, write_u64};
use base::out::{BlobPart, OutBuf, OutPos};
use base::{Blob, DbIndex, SeqNo};
use value::Big;
use value::keyed::Val;

/// The memory of a record is freed if it was larger.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The records of an Access.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Whether changes leave records; adopted when the section is entered.
    pub is_on: bool,
    /// Nothing under this Access leaves records: it brings back what the journal has.
    pub is_exempt: bool,
    /// Commands of changes which are not committed.
    pending: OutBuf,
    lines: Vec<Line>,
    /// Counts what commands have left, other than the removal of what is due. Who asks compares
    /// it with a mark.
    own: u32,
    /// Changes are pending that nothing can repeat, and nothing has to.
    pub needs_none: bool,
    /// A part of the changes is committed and has no number yet ([`Guard::commit_part`]).
    pub has_part: bool,
    /// Where the pending commands of that part end: a rollback leaves them.
    pub part: RecordMark,
    /// Pending bytes which not all readers get, in order: lines behind a command. With one of them
    /// the commands become a transaction, also a single one.
    parts: Vec<Part>,
    /// Numbered records, to be handed over.
    pub batch: Batch,
}

/// One pending command.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where it begins in `pending`; it ends where the next one begins.
    start: OutPos,
    db: DbIndex,
    /// The address of the entry which was due, if this is its removal; else 0.
    expired: u64,
}

/// The position in the pending records at which a command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct RecordMark {
    lines: usize,
    own: u32,
}

/// The databases before and behind the commands of a record; none if it has none.
type Sealed = (Option<DbIndex>, Option<DbIndex>);

/// Ends the process if it is dropped: a panic has come before its owner could forget it.
struct EndsProcess;

impl Drop for EndsProcess {
    #[cold]
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Writes the words of one command into a record.
pub struct RecordWriter<'r>(&'r mut OutBuf);

impl RecordWriter<'_> {
    /// The next word.
    pub fn word(&mut self, word: &[u8]) {
        self.length(word.len());
        self.0.bytes.extend_from_slice(word);
        self.0.bytes.extend_from_slice(b"\r\n");
    }

    /// The next words.
    pub fn words<'w>(&mut self, words: impl IntoIterator<Item = &'w [u8]>) {
        for word in words {
            self.word(word);
        }
    }

    /// The next word, which a big buffer holds: by reference.
    pub fn blob(&mut self, blob: &Blob) {
        self.length(blob.len());
        self.0.blobs.push(BlobPart::whole(self.0.bytes.len(), blob.clone()));
        self.0.bytes.extend_from_slice(b"\r\n");
    }

    fn length(&mut self, len: usize) {
        self.0.bytes.push(b'$');
        write_u64(&mut self.0.bytes, len as u64);
        self.0.bytes.extend_from_slice(b"\r\n");
    }
}

/// Appends a command to records.
fn write_command(out: &mut OutBuf, words: &[&[u8]]) {
    begin_command(out, words.len());
    RecordWriter(out).words(words.iter().copied());
}

fn begin_command(out: &mut OutBuf, words: usize) {
    out.bytes.push(b'*');
    write_u64(&mut out.bytes, words as u64);
    out.bytes.extend_from_slice(b"\r\n");
}

fn write_select(out: &mut OutBuf, db: DbIndex) {
    let mut text = [0; U64_TEXT_MAX];
    write_command(out, &[b"SELECT", format_u64(&mut text, u64::from(db.0))]);
}

impl Records {
    fn begin(&mut self, db: DbIndex, expired: u64, is_own: bool) -> &mut OutBuf {
        let start = self.pending.position();
        self.lines.push(Line { start, db, expired });
        self.own = self.own.wrapping_add(u32::from(is_own));
        &mut self.pending
    }

    pub fn mark(&self) -> RecordMark {
        RecordMark { lines: self.lines.len(), own: self.own }
    }

    /// The command behind the mark is rolled back: what it has left goes. Removals of keys which
    /// were due stay, but for those of `undone` entries.
    #[cold]
    pub fn truncate(&mut self, mark: RecordMark, undone: impl Fn(u64) -> bool) {
        self.own = mark.own;
        let Some(first) = self.lines.get(mark.lines) else { return };
        // (None stands behind a command which is kept: removals have no annotations.)
        self.parts.retain(|part| part.to <= first.start.bytes);
        let mut kept = OutBuf::default();
        let mut lines = Vec::new();
        let end = self.pending.position();
        for (at, line) in self.lines.iter().enumerate().skip(mark.lines) {
            if line.expired == 0 || undone(line.expired) {
                continue;
            }
            let to = self.lines.get(at + 1).map_or(end, |next| next.start);
            lines.push((kept.position(), *line));
            kept.bytes.extend_from_slice(&self.pending.bytes[line.start.bytes..to.bytes]);
        }
        let base = first.start;
        self.pending.truncate(base);
        self.lines.truncate(mark.lines);
        self.pending.append(kept);
        for (start, line) in lines {
            let start = OutPos { bytes: base.bytes + start.bytes, blobs: base.blobs };
            self.lines.push(Line { start, ..line });
        }
    }

    /// Forgets everything that is pending.
    pub fn clear_pending(&mut self) {
        self.pending.clear();
        self.lines.clear();
        self.needs_none = false;
        self.part = RecordMark::default();
        self.parts.clear();
        if self.pending.bytes.capacity() > KEPT_BYTES_MAX {
            self.pending = OutBuf::default();
        }
    }

    /// Appends the pending commands to the batch; several of them, or one with an annotation, as
    /// one transaction. Returns the databases before and behind them. Everything that allocates is
    /// done here, before the number is drawn.
    fn seal(&mut self) -> Sealed {
        self.batch.runs.reserve(1);
        let Some(first) = self.lines.first() else { return (None, None) };
        let out = &mut self.batch.out;
        let (db_in, mut db) = (first.db, first.db);
        if self.lines.len() == 1 && self.parts.is_empty() {
            append(out, &self.pending, OutPos::default(), self.pending.position());
            return (Some(db_in), Some(db));
        }
        write_command(out, &[b"MULTI"]);
        let end = self.pending.position();
        let mut parts = self.parts.iter().peekable();
        for (at, line) in self.lines.iter().enumerate() {
            if line.db != db {
                db = line.db;
                write_select(out, db);
            }
            let to = self.lines.get(at + 1).map_or(end, |next| next.start);
            let (from, moved_to) = (line.start.bytes, out.bytes.len());
            append(out, &self.pending, line.start, to);
            while let Some(part) = parts.next_if(|part| part.to <= to.bytes) {
                self.batch.parts.push(part.moved(from, moved_to));
            }
        }
        write_command(out, &[b"EXEC"]);
        (Some(db_in), Some(db))
    }

    /// Draws the number of what was sealed, and enters it. Nothing between the two allocates or
    /// panics: a number without an entry would stop the journal for ever. If it did all the same,
    /// the process ends, and loses no more than by a crash.
    fn number(&mut self, numbers: &Numbers, sealed: Sealed, cut: u32) -> SeqNo {
        debug_assert!(self.batch.runs.len() < self.batch.runs.capacity(), "seal has made room");
        let entered = EndsProcess;
        let seq = numbers.draw();
        self.enter(seq, sealed, cut);
        std::mem::forget(entered);
        seq
    }

    /// The entry of a number. See [`Records::number`].
    fn enter(&mut self, seq: SeqNo, (db_in, db_out): Sealed, cut: u32) {
        let end = self.batch.out.position();
        if let Some(run) = self.batch.runs.last_mut()
            && run.cut == 0
            && cut == 0
            && run.last().0 + 1 == seq.0
            && run.count < u32::MAX
            && run.db_out == db_in
        {
            // So a run has a command for each of its numbers, or for none.
            run.count += 1;
            run.end = end;
            run.db_out = db_out;
            return;
        }
        self.batch.runs.push(Run { first: seq, count: 1, db_in, db_out, end, cut });
    }
}

/// Copies a part of one buffer behind another; big values stay references.
fn append(out: &mut OutBuf, of: &OutBuf, from: OutPos, to: OutPos) {
    let base = out.bytes.len();
    out.bytes.extend_from_slice(&of.bytes[from.bytes..to.bytes]);
    for part in &of.blobs[from.blobs..to.blobs] {
        out.blobs.push(part.moved_to(base + part.position - from.bytes));
    }
}

impl Keyspace {
    /// The way of records to whoever writes them down.
    pub fn journal(&self) -> &Handover {
        &self.journal
    }
}

impl Guard<'_> {
    /// True if changes leave records. A caller that has to compute a record asks first.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.w.records.is_on
    }

    /// Leaves a command as a record, or as a part of one, of the changes which are not committed
    /// yet; nothing while no record is kept.
    pub fn record(&mut self, db: DbIndex, words: &[&[u8]]) {
        if self.is_recording() {
            write_command(self.w.records.begin(db, 0, true), words);
        }
    }

    /// As [`Guard::record`] for a command of `count` words, which `write` writes one by one.
    pub fn record_with(
        &mut self,
        db: DbIndex,
        count: usize,
        write: impl FnOnce(&mut RecordWriter<'_>),
    ) {
        if self.is_recording() {
            let out = self.w.records.begin(db, 0, true);
            begin_command(out, count);
            write(&mut RecordWriter(out));
        }
    }

    /// As [`Guard::record`] for a command which is a whole RESP array already.
    #[inline]
    pub fn record_raw(&mut self, db: DbIndex, request: &[u8]) {
        if self.is_recording() {
            self.w.records.begin(db, 0, true).bytes.extend_from_slice(request);
        }
    }

    /// Adds an annotation behind the last command that was left: a line which begins with `#`, with
    /// its end. It stands in a transaction with the commands, so that a file has both or none, and
    /// no other reader gets it. Nothing while no record is kept, or no command was left.
    pub fn annotate(&mut self, line: impl FnOnce(&mut Vec<u8>)) {
        let records = &mut self.w.records;
        if records.is_on && !records.lines.is_empty() {
            let bytes = &mut records.pending.bytes;
            let from = bytes.len();
            line(bytes);
            let to = bytes.len();
            records.parts.push(Part { readers: Readers::File, from, to });
        }
    }

    /// Says that the changes of the command need no record: of consumers only their times, which
    /// no request sets.
    pub fn record_nothing(&mut self) {
        if self.is_recording() {
            self.w.records.own = self.w.records.own.wrapping_add(1);
            self.w.records.needs_none = true;
        }
    }

    /// True if the command behind the mark has left a record itself.
    pub fn has_recorded_since(&self, mark: crate::Mark) -> bool {
        self.w.records.own != mark.records.own
    }

    /// True if the command behind the mark has changed data, other than by removing what was due.
    pub fn has_changed_since(&self, mark: crate::Mark) -> bool {
        self.draws_number(mark.changes)
    }

    /// The record of a key that was removed because it was due.
    #[cold]
    pub(crate) fn record_expired(&mut self, db: DbIndex, key: &[u8], entry: u64) {
        write_command(self.w.records.begin(db, entry, false), &[b"DEL", key]);
    }

    /// The record of a key that was hidden because it was due, and is replaced. A rollback takes it
    /// back.
    #[cold]
    pub(crate) fn record_removed(&mut self, db: DbIndex, key: &[u8]) {
        write_command(self.w.records.begin(db, 0, false), &[b"DEL", key]);
    }

    /// The records of hidden fields of a hash that are to be shown again.
    #[cold]
    pub(crate) fn record_shown(&mut self, db: DbIndex, entry: EntryPtr) {
        let Some(Big::Hash(hash)) = entry.big().filter(|_| self.is_recording()) else { return };
        for (field, value, at) in hash.hidden_fields() {
            let out = self.w.records.begin(db, 0, false);
            begin_command(out, 4);
            let mut writer = RecordWriter(out);
            writer.words([b"HSET", entry.key(), field]);
            match value {
                Val::Blob(blob) => writer.blob(blob),
                Val::Bytes(bytes) => writer.word(bytes),
            }
            let mut text = Vec::new();
            write_i64(&mut text, at);
            let words: [&[u8]; 6] = [b"HPEXPIREAT", entry.key(), &text, b"FIELDS", b"1", field];
            write_command(self.w.records.begin(db, 0, false), &words);
        }
    }

    /// The record of fields of a hash that are hidden from now on because they are due. To remove
    /// those that were hidden before needs none.
    #[cold]
    pub(crate) fn record_hidden(&mut self, db: DbIndex, key: &[u8], fields: &[Box<[u8]>]) {
        if fields.is_empty() {
            self.w.records.needs_none = true;
            return;
        }
        let out = self.w.records.begin(db, 0, false);
        begin_command(out, fields.len() + 2);
        let mut writer = RecordWriter(out);
        writer.word(b"HDEL");
        writer.word(key);
        writer.words(fields.iter().map(|field| &**field));
    }

    /// Under World: the next number separates what was changed before from what will be, in the
    /// order of the journal. The writer finds `cut` (not 0) there. Returns the number.
    pub fn record_cut(&mut self, cut: u32) -> SeqNo {
        assert!(self.is_world() && cut > 0, "a cut is made under World");
        self.finish();
        let dbs = self.w.records.seal();
        self.w.records.number(&self.ks.numbers, dbs, cut)
    }

    /// Under World: from now on changes leave records, or do not.
    pub fn set_recording(&mut self, on: bool) {
        assert!(self.is_world(), "readers of the journal come and go at a cut");
        self.finish();
        self.ks.journal.set_recording(on);
        self.ks.numbers.set_drawing(on);
        self.w.records.is_on = on;
        self.ks.uses.raise();
    }

    /// Draws the number of what was changed, and gives it to its records.
    pub(crate) fn number_recorded(&mut self) -> SeqNo {
        if self.w.records.lines.is_empty() && !self.w.records.needs_none {
            self.ks.journal.count_unrecorded();
            debug_assert!(false, "a change left no record");
        }
        let dbs = self.w.records.seal();
        let seq = self.w.records.number(&self.ks.numbers, dbs, 0);
        self.w.records.clear_pending();
        seq
    }

    pub(crate) fn has_pending_records(&self) -> bool {
        !self.w.records.lines.is_empty()
    }
}
