//! Batches of all sections become one stream of commands, in the order of their numbers.
//!
//! ```text
//! batch of worker 0   [ 7 8 ][ 11 ]          heap: the next run of each batch, by number
//! batch of worker 1   [ 9 10 ][ 12..15 ]
//!
//! next = 7:  7 8 | 9 10 | 11 | 12..15        written as whole runs
//! next = 16: nothing has it: it waits until somebody hands it over
//! ```
//!
//! Numbers have no gaps, so what is written is complete up to its last number whatever the workers
//! are doing. What is written at a time is bounded: a big value is copied in parts.
//!
//! Between records stand annotations (`#NUM:7:1700000000123`): the number of the record behind it,
//! and a time at which it and those behind it had been made. There is one at the beginning of a
//! file, one in each millisecond, and one behind numbers which have no command. Behind it stands
//! the offset in the stream of replication (`#OFFSET:4711`). The stream has all that is written
//! but annotations, those within records included ([`keyspace::journal::Part`]).

use base::DbIndex;
use base::SeqNo;
use base::num::{U64_TEXT_MAX, format_u64};
use base::out::OutPos;
use journal::stream::annotate;
use journal::{Moment, Position, ReplId};
use keyspace::journal::{Batch, Part, Run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Merges batches.
#[derive(Debug)]
pub(crate) struct Merger {
    /// The number that comes next.
    next: u64,
    /// The database that is selected behind what was written.
    db: Option<DbIndex>,
    /// The next run of each batch: its first number, and where the batch is kept.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    batches: Vec<Option<Source>>,
    free: Vec<usize>,
    /// Batches all of whose runs are written.
    done: Vec<Batch>,
    /// Bytes of the batches that are kept.
    bytes: usize,
    /// The time of the last annotation, milliseconds since 1970.
    annotated_ms: i64,
    /// The number of the record which needs none in that millisecond; 0 at the beginning of a file.
    annotated_next: u64,
    /// Bytes of the stream of replication, up to the last run that was written whole.
    offset: u64,
    /// Bytes behind that which are written: of the run at hand.
    of_run: u64,
    id: ReplId,
    /// The next annotation has the id.
    says_id: bool,
}

/// A batch, and how far it is written.
#[derive(Debug)]
struct Source {
    batch: Batch,
    /// The run that is next.
    run: usize,
    /// What of the batch is written: bytes, and big buffers.
    at: OutPos,
    /// Bytes of the next big buffer that are written.
    of_blob: usize,
    /// The part that is next of those which not all readers get.
    part: usize,
}

/// What one call has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// Everything that is in order.
    All,
    /// As much as fits; there is more.
    Full,
    /// Everything up to this cut.
    Cut(u32),
}

impl Merger {
    /// The first number will be `next`, and its record will stand at this position.
    pub(crate) fn new(next: SeqNo, position: Position) -> Self {
        Self {
            next: next.0,
            db: None,
            heads: BinaryHeap::new(),
            batches: Vec::new(),
            free: Vec::new(),
            done: Vec::new(),
            bytes: 0,
            annotated_ms: 0,
            annotated_next: 0,
            offset: position.offset,
            of_run: 0,
            id: position.id,
            says_id: true,
        }
    }

    /// The last number that was written whole.
    pub(crate) fn last(&self) -> SeqNo {
        SeqNo(self.next - 1)
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A new file begins: its first command is preceded by an annotation and a SELECT.
    pub(crate) fn begin_file(&mut self) {
        self.db = None;
        self.annotated_next = 0;
        self.says_id = true;
    }

    /// The stream of replication has another id from the next record on.
    pub(crate) fn rename(&mut self, id: ReplId) {
        self.id = id;
        self.annotated_next = 0;
        self.says_id = true;
    }

    /// Bytes of the stream of replication, up to the last number that was written whole.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The position behind everything that is numbered lower, which must have been taken over:
    /// `None` if it was not. O(runs which are not written).
    pub(crate) fn position_at(&self, number: SeqNo) -> Option<Position> {
        let (mut offset, mut next, mut db) = (self.offset + self.of_run, self.next, self.db);
        let mut heads = self.heads.clone();
        // The next run of each batch.
        let mut runs: Vec<usize> =
            self.batches.iter().map(|source| source.as_ref().map_or(0, |s| s.run)).collect();
        while next < number.0 {
            let Reverse((_, index)) = heads.pop().filter(|Reverse((first, _))| *first == next)?;
            let source = self.batches[index].as_ref().expect("its run is in the heap");
            let at = runs[index];
            let run = source.batch.runs[at];
            offset += source.left_of(at);
            if let Some(selected) = run.db_in.filter(|_| at != source.run || source.is_at_run()) {
                offset += if db == Some(selected) { 0 } else { select_len(selected) };
            }
            db = run.db_out.or(run.db_in).or(db).filter(|_| run.cut == 0);
            next += u64::from(run.count);
            runs[index] += 1;
            if let Some(following) = source.batch.runs.get(at + 1) {
                heads.push(Reverse((following.first.0, index)));
            }
        }
        Some(Position { id: self.id, offset })
    }

    /// Takes a batch over.
    pub(crate) fn push(&mut self, batch: Batch) {
        let Some(first) = batch.runs.first().map(|run| run.first.0) else { return };
        debug_assert!(first >= self.next, "a number is used once");
        self.bytes += batch.len();
        let source = Source { batch, run: 0, at: OutPos::default(), of_blob: 0, part: 0 };
        let index = self.free.pop().unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() - 1
        });
        self.batches[index] = Some(source);
        self.heads.push(Reverse((first, index)));
    }

    /// Batches whose memory can be used again.
    pub(crate) fn take_done(&mut self) -> impl Iterator<Item = Batch> + '_ {
        self.done.drain(..)
    }

    /// True if the next call writes something.
    pub(crate) fn is_ready(&self) -> bool {
        self.heads.peek().is_some_and(|Reverse((first, _))| *first == self.next)
    }

    /// True if a part of a record is written, and the rest of it is not.
    pub(crate) fn is_in_record(&self) -> bool {
        let head = self.heads.peek().map(|Reverse((_, index))| *index);
        let source = head.and_then(|index| self.batches[index].as_ref());
        source.is_some_and(|source| !source.is_at_run())
    }

    /// Appends what is in order to `out`, until that has about `bytes_max` bytes. Everything was
    /// made at this time or before it.
    pub(crate) fn merge(&mut self, out: &mut Vec<u8>, bytes_max: usize, unix_ms: i64) -> Merged {
        while let Some(&Reverse((first, index))) = self.heads.peek()
            && first == self.next
        {
            if out.len() >= bytes_max {
                return Merged::Full;
            }
            let source = self.batches[index].as_mut().expect("its run is in the heap");
            let run = source.batch.runs[source.run];
            if let Some(db) = run.db_in.filter(|_| source.is_at_run()) {
                if unix_ms > self.annotated_ms || self.annotated_next != first {
                    self.annotated_ms = unix_ms.max(self.annotated_ms);
                    Moment { number: first, unix_ms: self.annotated_ms }.annotate(out);
                    let says_id = std::mem::take(&mut self.says_id);
                    annotate(out, self.offset, says_id.then_some(self.id));
                }
                self.annotated_next = first + u64::from(run.count);
                if self.db != Some(db) {
                    self.of_run = select(out, db);
                    self.db = Some(db);
                }
            }
            let before = out.len();
            let is_whole = source.copy(&run, out, bytes_max);
            let copied = out.len() - before;
            self.bytes -= copied;
            self.of_run += copied as u64;
            if !is_whole {
                return Merged::Full;
            }
            self.offset += std::mem::take(&mut self.of_run) - source.pass_parts(&run);
            self.db = run.db_out.or(self.db);
            self.end_run(index, run);
            if run.cut > 0 {
                self.db = None; // what follows stands in another file
                return Merged::Cut(run.cut);
            }
        }
        Merged::All
    }

    fn end_run(&mut self, index: usize, run: Run) {
        self.heads.pop();
        self.next += u64::from(run.count);
        let source = self.batches[index].as_mut().expect("it was just copied");
        source.run += 1;
        if let Some(next) = source.batch.runs.get(source.run) {
            self.heads.push(Reverse((next.first.0, index)));
        } else if let Some(source) = self.batches[index].take() {
            self.done.push(source.batch);
            self.free.push(index);
        }
    }
}

impl Source {
    /// Nothing of the next run is written.
    fn is_at_run(&self) -> bool {
        let begin = match self.run.checked_sub(1) {
            Some(before) => self.batch.runs[before].end,
            None => OutPos::default(),
        };
        self.at == begin && self.of_blob == 0
    }

    /// Bytes of the stream of replication which are not written of this run, which is the one at
    /// hand or a later one.
    fn left_of(&self, run: usize) -> u64 {
        let Batch { out, runs, parts } = &self.batch;
        let begin = run.checked_sub(1).map_or(OutPos::default(), |before| runs[before].end);
        let is_at_hand = run == self.run;
        let (from, end) = (if is_at_hand { self.at } else { begin }, runs[run].end);
        let written = if is_at_hand { self.of_blob } else { 0 };
        let first = parts.partition_point(|part| part.from < begin.bytes);
        let of_run = parts[first..].iter().take_while(|part| part.to <= end.bytes);
        let kept: u64 = of_run.map(kept_from_replicas).sum();
        (out.len_between(from, end) - written) as u64 - kept
    }

    /// The run is written whole: bytes of it which the stream of replication does not have.
    #[inline]
    fn pass_parts(&mut self, run: &Run) -> u64 {
        let mut bytes = 0;
        while let Some(part) = self.batch.parts.get(self.part)
            && part.to <= run.end.bytes
        {
            bytes += kept_from_replicas(part);
            self.part += 1;
        }
        bytes
    }

    /// Copies the rest of a run; false if it ended early because `out` is full.
    fn copy(&mut self, run: &Run, out: &mut Vec<u8>, bytes_max: usize) -> bool {
        let buffer = &self.batch.out;
        while self.at.blobs < run.end.blobs {
            let part = &buffer.blobs[self.at.blobs];
            out.extend_from_slice(&buffer.bytes[self.at.bytes..part.position]);
            self.at.bytes = part.position;
            for page in part.pages_from(self.of_blob) {
                let fits = page.len().min(bytes_max.saturating_sub(out.len()));
                out.extend_from_slice(&page[..fits]);
                self.of_blob += fits;
                if fits < page.len() {
                    return false;
                }
            }
            (self.at.blobs, self.of_blob) = (self.at.blobs + 1, 0);
        }
        out.extend_from_slice(&buffer.bytes[self.at.bytes..run.end.bytes]);
        self.at = run.end;
        true
    }
}

fn kept_from_replicas(part: &Part) -> u64 {
    if part.readers.has_replicas() { 0 } else { (part.to - part.from) as u64 }
}

/// Appends the command, and returns its length.
fn select(out: &mut Vec<u8>, db: DbIndex) -> u64 {
    let before = out.len();
    let mut text = [0; U64_TEXT_MAX];
    let db = format_u64(&mut text, u64::from(db.0));
    let mut length = [0; U64_TEXT_MAX];
    out.extend_from_slice(b"*2\r\n$6\r\nSELECT\r\n$");
    out.extend_from_slice(format_u64(&mut length, db.len() as u64));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(db);
    out.extend_from_slice(b"\r\n");
    (out.len() - before) as u64
}

fn select_len(db: DbIndex) -> u64 {
    select(&mut Vec::new(), db)
}

#[cfg(test)]
mod tests;
