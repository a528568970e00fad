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
//! the offset in the stream of replication (`#OFFSET:4711`): of all that is written, that stream has
//! everything but annotations, those within records included ([`keyspace::journal::Part`]).

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
            db = run.db_out.or(run.db_in).or(db);
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
        let is_of_run = |part: &&Part| part.from >= begin.bytes && part.to <= end.bytes;
        let kept: u64 = parts[self.part..].iter().filter(is_of_run).map(kept_from_replicas).sum();
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
mod tests {
    use super::*;
    use base::Blob;
    use base::out::BlobPart;
    use keyspace::journal::Readers;

    const MAX: usize = 1 << 20;

    fn id(digit: char) -> ReplId {
        ReplId::parse(digit.to_string().repeat(40).as_bytes()).expect("40 digits")
    }

    fn new(next: u64) -> Merger {
        Merger::new(SeqNo(next), Position { id: id('a'), offset: 100 })
    }

    /// The annotations with which a file begins.
    fn head(number: u64, ms: i64, offset: u64) -> String {
        format!("#NUM:{number}:{ms} #OFFSET:{offset}:{} ", id('a'))
    }

    /// A batch of runs: the numbers, the database and the text of each.
    fn batch(runs: &[(u64, u32, u16, &str)]) -> Batch {
        let mut batch = Batch::default();
        for &(first, count, db, text) in runs {
            batch.out.bytes.extend_from_slice(text.as_bytes());
            let db = (!text.is_empty()).then(|| DbIndex::new(db));
            let (end, first) = (batch.out.position(), SeqNo(first));
            batch.runs.push(Run { first, count, db_in: db, db_out: db, end, cut: 0 });
        }
        batch
    }

    fn merged(merger: &mut Merger) -> (Merged, String) {
        merged_at(merger, 5)
    }

    fn merged_at(merger: &mut Merger, unix_ms: i64) -> (Merged, String) {
        let mut out = Vec::new();
        let merged = merger.merge(&mut out, MAX, unix_ms);
        (merged, String::from_utf8(out).expect("text").replace("\r\n", " "))
    }

    #[test]
    fn runs_are_written_in_the_order_of_their_numbers() {
        let mut merger = new(7);
        merger.push(batch(&[(9, 2, 0, "c"), (12, 1, 0, "e")]));
        assert!(!merger.is_ready(), "7 is not there");
        assert_eq!(merged(&mut merger), (Merged::All, String::new()));
        merger.push(batch(&[(7, 2, 0, "ab"), (11, 1, 3, "d")]));
        assert!(merger.is_ready());
        let text = head(7, 5, 100) + "*2 $6 SELECT $1 0 abc*2 $6 SELECT $1 3 d*2 $6 SELECT $1 0 e";
        assert_eq!(merged(&mut merger), (Merged::All, text));
        assert_eq!((merger.last(), merger.bytes()), (SeqNo(12), 0));
        assert_eq!(merger.offset(), 100 + 3 * 23 + 5);
        assert_eq!(merger.take_done().count(), 2);
        merger.push(batch(&[(14, 1, 0, "g")]));
        assert_eq!(merged(&mut merger).1, "", "13 was not handed over");
        merger.push(batch(&[(13, 1, 0, "")]));
        let text = "#NUM:14:5 #OFFSET:174 g";
        assert_eq!(merged(&mut merger).1, text, "behind a number without a command");
    }

    #[test]
    fn a_cut_ends_what_is_written_and_a_new_file_selects_again() {
        let mut merger = new(1);
        let mut with_cut = batch(&[(1, 1, 0, "a"), (2, 1, 0, ""), (3, 1, 0, "b")]);
        with_cut.runs[1].cut = 5;
        merger.push(with_cut);
        let first = head(1, 5, 100) + "*2 $6 SELECT $1 0 a";
        assert_eq!(merged(&mut merger), (Merged::Cut(5), first));
        merger.begin_file();
        let second = head(3, 5, 124) + "*2 $6 SELECT $1 0 b";
        assert_eq!(merged(&mut merger), (Merged::All, second));
    }

    #[test]
    fn an_annotation_stands_in_each_millisecond_and_where_numbers_are_left_out() {
        let mut merger = new(1);
        let mut write = |runs: &[(u64, u32, u16, &str)], unix_ms| {
            merger.push(batch(runs));
            merged_at(&mut merger, unix_ms).1
        };
        let first = head(1, 7, 100) + "*2 $6 SELECT $1 0 a";
        assert_eq!(write(&[(1, 1, 0, "a")], 7), first);
        assert_eq!(write(&[(2, 3, 0, "bcd"), (5, 1, 0, "e")], 7), "bcde", "the same millisecond");
        assert_eq!(write(&[(6, 1, 0, "f")], 6), "f", "a clock which was set back");
        assert_eq!(write(&[(7, 2, 0, "")], 9), "", "nothing has this time");
        assert_eq!(write(&[(9, 1, 0, "g")], 7), "#NUM:9:7 #OFFSET:129 g");
        let later = write(&[(10, 1, 0, "h"), (11, 1, 0, "i")], 8);
        assert_eq!(later, "#NUM:10:8 #OFFSET:130 hi");
        merger.begin_file();
        merger.push(batch(&[(12, 1, 0, "j")]));
        let text = head(12, 8, 132) + "*2 $6 SELECT $1 0 j";
        assert_eq!(merged_at(&mut merger, 3).1, text, "times never fall");
        merger.rename(id('b'));
        merger.push(batch(&[(13, 1, 0, "k")]));
        let text = format!("#NUM:13:8 #OFFSET:156:{} k", id('b'));
        assert_eq!(merged_at(&mut merger, 8).1, text);
    }

    /// A batch whose run has a line for the file alone, `len` bytes from this byte on.
    fn with_part(number: u64, text: &str, from: usize, len: usize) -> Batch {
        let mut batch = batch(&[(number, 1, 0, text)]);
        batch.parts.push(Part { readers: Readers::File, from, to: from + len });
        batch
    }

    #[test]
    fn what_is_for_the_file_alone_has_no_place_in_the_stream() {
        let mut merger = new(1);
        let mut one = with_part(1, "<#line>", 1, 5);
        one.out.bytes.extend_from_slice(b"<##><>");
        one.parts.push(Part { readers: Readers::File, from: 8, to: 10 });
        let mut end = one.out.position();
        one.runs.push(Run { first: SeqNo(3), end, ..one.runs[0] });
        end.bytes -= 2;
        one.runs[1].end = end;
        one.runs.push(Run { first: SeqNo(4), end: one.out.position(), ..one.runs[0] });
        merger.push(one);
        merger.push(batch(&[(2, 1, 0, "x")]));
        let before: Vec<_> = (1..=5).map(|n| merger.position_at(SeqNo(n))).collect();
        let offsets = [100, 125, 126, 128, 130].map(|offset| Position { id: id('a'), offset });
        assert_eq!(before, offsets.map(Some));
        assert_eq!(merger.position_at(SeqNo(6)), None, "5 was not taken over");
        let text = head(1, 5, 100) + "*2 $6 SELECT $1 0 <#line>x<##><>";
        assert_eq!(merged(&mut merger), (Merged::All, text));
        assert_eq!((merger.offset(), merger.position_at(SeqNo(5))), (130, Some(offsets[4])));
    }

    /// The position of a number is the same before and while what is ahead of it is written.
    #[test]
    fn a_position_does_not_depend_on_how_much_is_written() {
        let mut random = base::prng::Prng::new(5);
        for _ in 0..200 {
            let mut merger = new(1);
            let mut number = 1;
            let mut batches: Vec<Batch> = (0..3).map(|_| Batch::default()).collect();
            for _ in 0..random.below(12) {
                let batch = &mut batches[random.below(3) as usize];
                let (count, db) = (1 + random.below(3) as u32, random.below(2) as u16);
                let has_command = random.below(5) > 0;
                if has_command {
                    batch.out.bytes.extend(vec![b'*'; 1 + random.below(50) as usize]);
                    let from = batch.out.bytes.len();
                    if random.below(3) == 0 {
                        batch.out.bytes.extend_from_slice(b"#line");
                        let part = Part { readers: Readers::File, from, to: from + 5 };
                        batch.parts.push(part);
                    }
                    if random.below(3) == 0 {
                        let value = vec![7; 100_000];
                        let part = BlobPart::whole(batch.out.bytes.len(), value.as_slice().into());
                        batch.out.blobs.push(part);
                    }
                    batch.out.bytes.extend_from_slice(b"\r\n");
                }
                let db_in = has_command.then(|| DbIndex::new(db));
                let (end, first) = (batch.out.position(), SeqNo(number));
                batch.runs.push(Run { first, count, db_in, db_out: db_in, end, cut: 0 });
                number += u64::from(count);
            }
            batches.into_iter().for_each(|batch| merger.push(batch));
            let expected = merger.position_at(SeqNo(number)).expect("all is there");
            let (mut out, mut last) = (Vec::new(), Merged::Full);
            while last == Merged::Full {
                let max = out.len() + 1 + random.below(60_000) as usize;
                last = merger.merge(&mut out, max, random.below(3) as i64);
                assert_eq!(merger.position_at(SeqNo(number)), Some(expected));
            }
            assert_eq!(merger.offset(), expected.offset);
        }
    }

    #[test]
    fn a_big_value_is_copied_in_parts() {
        let value: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        let mut one = batch(&[(1, 1, 0, "<>")]);
        one.out.blobs.push(BlobPart::whole(1, Blob::from(value.as_slice())));
        one.runs[0].end = one.out.position();
        let mut merger = new(1);
        merger.push(one);
        let (mut all, mut calls) = (Vec::new(), 0);
        loop {
            let mut out = Vec::new();
            let merged = merger.merge(&mut out, 70_000, 5);
            assert!(out.len() < 140_000, "bounded");
            all.extend(out);
            calls += 1;
            if merged == Merged::All {
                break;
            }
            assert_eq!(merger.last(), SeqNo(0), "not whole yet");
        }
        let begin = all.iter().position(|b| *b == b'<').expect("behind SELECT");
        assert_eq!(all[begin + 1..all.len() - 1], value);
        assert!(calls > 2 && merger.last() == SeqNo(1) && merger.bytes() == 0, "{calls} calls");
    }
}
