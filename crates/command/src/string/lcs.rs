//! LCS: the longest common subsequence of two strings.
//!
//! The table of lengths is computed by rows of bits (Crochemore and others, 2001; Hyyrö, 2004): a
//! row has one bit for each byte of the shorter string, clear where the length grows by one, and
//! follows from the row above by an addition of long integers. So a step handles 64 cells, and a
//! cell takes a bit where its length would take four bytes. Where the way back through the table
//! needs a length, it counts bits.
//!
//! Long work is done in steps, on references to the strings.

use base::Blob;
use keyspace::{Entry, Parts, ReclaimOnDrop};
use resp::{Args, Reply};
use value::{IntText, Str};

use super::text::text_of;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};

/// Bytes that a cell of the table is taken to cost when its size is compared with
/// `proto-max-bulk-len`, as in Redis; here it costs less.
const CELL_BYTES: u64 = 4;
/// Words of rows that are computed at once. More are computed in steps of as many.
const STEP_WORDS: usize = 1 << 15;
/// What one place on the way back costs, in words of rows that are read meanwhile.
const PLACE_WORDS: usize = 16;

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]`. The keys are looked at before the
/// options are.
pub fn lcs(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx.args.from(3));
    let (a, b) = (capture(ctx, 1), capture(ctx, 2));
    let (a, b) = (a?, b?);
    let options = options?;
    let cells = (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1);
    if cells.saturating_mul(CELL_BYTES) > ctx.settings.bulk_len_max {
        return Err(Error::LcsMemory);
    }
    let mut search = Search::new(Table::new(a, b), options);
    if search.table.work() > STEP_WORDS {
        let search = ctx.guard.keyspace().reclaim_on_drop(search);
        return Ok(Done::Steps(Box::new(search)));
    }
    while !search.step() {}
    search.reply(&mut ctx.reply);
    Ok(Done::Replied)
}

/// What LCS replies.
enum Answer {
    Text,
    Len,
    Idx,
}

struct Options {
    answer: Answer,
    match_len_min: i64,
    with_match_len: bool,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        let mut options = Options { answer: Answer::Text, match_len_min: 0, with_match_len: false };
        let (mut len, mut idx) = (false, false);
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if is(word, "IDX") {
                idx = true;
            } else if is(word, "LEN") {
                len = true;
            } else if is(word, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if is(word, "MINMATCHLEN") {
                options.match_len_min = integer(words.next().ok_or(Error::Syntax)?)?;
            } else {
                return Err(Error::Syntax);
            }
        }
        options.answer = match (len, idx) {
            (false, false) => Answer::Text,
            (true, false) => Answer::Len,
            (false, true) => Answer::Idx,
            (true, true) => return Err(Error::LcsLenIdx),
        };
        Ok(options)
    }
}

/// The string of the key in argument `i`, empty if there is none; a big one by reference.
fn capture(ctx: &mut Ctx<'_, '_>, i: usize) -> Result<Blob, Error> {
    let key = ctx.key(i);
    let entry: Option<Entry<'_>> = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(entry) = entry else { return Ok(Blob::default()) };
    Ok(match text_of(&entry).map_err(|_| Error::LcsNotString)? {
        Str::Blob(blob) => blob.clone(),
        short => Blob::new(short.bytes(&mut IntText::default()).to_vec()),
    })
}

/// Bytes that both strings have in a row, from these places on.
#[derive(Clone, Copy)]
struct Run {
    a: usize,
    b: usize,
    len: usize,
}

fn write_runs(reply: &mut Reply<'_>, runs: &[Run], len: usize, with_match_len: bool) {
    let range = |reply: &mut Reply<'_>, start: usize, len: usize| {
        reply.array(2);
        reply.integer(start as i64);
        reply.integer((start + len - 1) as i64);
    };
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(runs.len());
    for run in runs {
        reply.array(if with_match_len { 3 } else { 2 });
        range(reply, run.a, run.len);
        range(reply, run.b, run.len);
        if with_match_len {
            reply.integer(run.len as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(len as i64);
}

/// The work of one command.
struct Search {
    table: Table,
    options: Options,
    /// The row that was computed last.
    row: Vec<u64>,
    /// For each byte value the row of bits where it stands in the shorter string.
    places: Vec<u64>,
    /// Bytes of the longer string whose rows are computed.
    done: usize,
    /// All rows so far, if there is a way back.
    rows: Vec<u64>,
    len: usize,
    /// Where the way back is.
    back: Option<Place>,
    text: Vec<u8>,
    runs: Vec<Run>,
}

impl Parts for Search {
    fn memory(&self) -> usize {
        self.rows.capacity() * 8 + self.table.long.len()
    }
}

impl Search {
    fn new(table: Table, options: Options) -> Self {
        let has_way_back = !matches!(options.answer, Answer::Len);
        Search {
            row: vec![u64::MAX; table.words],
            places: table.places(),
            done: 0,
            rows: Vec::with_capacity(if has_way_back { table.work() } else { 0 }),
            len: 0,
            back: None,
            text: Vec::new(),
            runs: Vec::new(),
            table,
            options,
        }
    }

    /// Computes some rows, or goes some places back; true if that was the end.
    fn step(&mut self) -> bool {
        let has_way_back = !matches!(self.options.answer, Answer::Len);
        let Some(mut place) = self.back else {
            self.compute_rows(has_way_back);
            if self.done < self.table.long.len() {
                return false;
            }
            self.len = length(&self.row, self.table.short.len());
            self.back = Some(self.table.end(self.len));
            return !has_way_back;
        };
        let (text, runs) = (&mut self.text, &mut self.runs);
        let is_text = matches!(self.options.answer, Answer::Text);
        let count = STEP_WORDS / (self.table.words + PLACE_WORDS) + 1;
        self.table.walk_back(&self.rows, &mut place, count, |x, y, byte| {
            if is_text {
                return text.push(byte);
            }
            match runs.last_mut() {
                Some(run) if run.a == x + 1 && run.b == y + 1 => {
                    *run = Run { a: x, b: y, len: run.len + 1 };
                }
                _ => runs.push(Run { a: x, b: y, len: 1 }),
            }
        });
        self.back = Some(place);
        place.left == 0
    }

    fn compute_rows(&mut self, are_kept: bool) {
        let table = &self.table;
        // Nothing is in common with an empty string.
        if table.words == 0 {
            self.done = table.long.len();
            return;
        }
        let count = (STEP_WORDS / table.words).max(1);
        let end = table.long.len().min(self.done + count);
        let (row, rows, places) = (&mut self.row, &mut self.rows, &self.places);
        for &byte in table.long.pages_in(self.done..end).flatten() {
            table.step(row, places, byte);
            if are_kept {
                rows.extend_from_slice(row);
            }
        }
        self.done = end;
    }

    fn reply(&mut self, reply: &mut Reply<'_>) {
        match self.options.answer {
            Answer::Text => {
                self.text.reverse();
                reply.bulk(&self.text);
            }
            Answer::Len => reply.integer(self.len as i64),
            Answer::Idx => {
                self.runs.retain(|run| run.len as i64 >= self.options.match_len_min);
                write_runs(reply, &self.runs, self.len, self.options.with_match_len);
            }
        }
    }
}

impl Resumable for ReclaimOnDrop<Search> {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let is_complete = Search::step(self);
        if is_complete {
            self.reply(&mut ctx.reply);
        }
        Ok(Progress::complete_if(is_complete))
    }

    fn memory(&self) -> usize {
        self.rows.len() * 8
    }
}

/// A place on the way back through the table: bytes of the longer and of the shorter string before
/// it, and how many of them are common.
#[derive(Clone, Copy)]
struct Place {
    i: usize,
    j: usize,
    left: usize,
}

/// The table of two strings: a row for each byte of the longer one.
struct Table {
    long: Blob,
    short: Vec<u8>,
    /// Whether the first string is the shorter one.
    swapped: bool,
    /// Words of a row.
    words: usize,
}

impl Table {
    fn new(a: Blob, b: Blob) -> Self {
        let swapped = a.len() < b.len();
        let (long, short) = if swapped { (b, a) } else { (a, b) };
        let short = Str::Blob(&short).to_vec();
        Table { long, swapped, words: short.len().div_ceil(64), short }
    }

    /// Words to compute.
    fn work(&self) -> usize {
        self.long.len() * self.words
    }

    /// The end of the table.
    fn end(&self, len: usize) -> Place {
        Place { i: self.long.len(), j: self.short.len(), left: len }
    }

    /// For each byte value the row of bits where it stands in the shorter string.
    fn places(&self) -> Vec<u64> {
        let mut places = vec![0; 256 * self.words];
        for (at, &byte) in self.short.iter().enumerate() {
            places[usize::from(byte) * self.words + at / 64] |= 1 << (at % 64);
        }
        places
    }

    /// Turns a row into the next one, that of `byte`.
    fn step(&self, row: &mut [u64], places: &[u64], byte: u8) {
        let places = &places[usize::from(byte) * self.words..][..self.words];
        let mut carry = false;
        for (word, &places) in row.iter_mut().zip(places) {
            let (sum, over) = word.overflowing_add(*word & places);
            let (sum, over_too) = sum.overflowing_add(u64::from(carry));
            carry = over | over_too;
            *word = sum | (*word & !places);
        }
    }

    /// Goes up to `count` places back. Calls `matched` with each common byte, and where it stands
    /// in the first and the second string, last ones first. Of several subsequences it is the one
    /// that Redis chooses: where two bytes differ, back in the first string only if that keeps more
    /// than back in the second.
    fn walk_back(
        &self,
        rows: &[u64],
        place: &mut Place,
        count: usize,
        mut matched: impl FnMut(usize, usize, u8),
    ) {
        let row = |i: usize| &rows[(i - 1) * self.words..][..self.words];
        let whole = self.long.contiguous();
        let long = |i: usize| match whole {
            Some(bytes) => bytes[i],
            None => self.long.byte(i).expect("a place in the string"),
        };
        let Place { mut i, mut j, mut left } = *place;
        for _ in 0..count {
            if left == 0 {
                break;
            }
            let common = self.short[j - 1];
            if long(i - 1) == common {
                (i, j, left) = (i - 1, j - 1, left - 1);
                if self.swapped {
                    matched(j, i, common);
                } else {
                    matched(i, j, common);
                }
                continue;
            }
            let above = if i == 1 { 0 } else { length(row(i - 1), j) };
            let before = left - length_step(row(i), j - 1);
            let upwards = if self.swapped { before <= above } else { above > before };
            if upwards {
                (i, left) = (i - 1, above);
            } else {
                (j, left) = (j - 1, before);
            }
        }
        *place = Place { i, j, left };
    }
}

/// How much the length grows at a place of a row.
fn length_step(row: &[u64], at: usize) -> usize {
    usize::from(row[at / 64] >> (at % 64) & 1 == 0)
}

/// The length at the end of the first `places` of a row.
fn length(row: &[u64], places: usize) -> usize {
    let (whole, rest) = (places / 64, places % 64);
    let full: u32 = row[..whole].iter().map(|word| word.count_zeros()).sum();
    let last = if rest == 0 { 0 } else { (!row[whole] << (64 - rest)).count_ones() };
    (full + last) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    /// The common bytes by the textbook table, with the backward walk which the comment above
    /// describes.
    fn plain(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for x in 1..=a.len() {
            for y in 1..=b.len() {
                table[x][y] = if a[x - 1] == b[y - 1] {
                    table[x - 1][y - 1] + 1
                } else {
                    table[x - 1][y].max(table[x][y - 1])
                };
            }
        }
        let (mut x, mut y, mut found) = (a.len(), b.len(), Vec::new());
        while x > 0 && y > 0 {
            if a[x - 1] == b[y - 1] {
                (x, y) = (x - 1, y - 1);
                found.push((x, y));
            } else if table[x - 1][y] > table[x][y - 1] {
                x -= 1;
            } else {
                y -= 1;
            }
        }
        found
    }

    fn by_bits(a: &[u8], b: &[u8]) -> Vec<(usize, usize)> {
        let options = |answer| Options { answer, match_len_min: 0, with_match_len: false };
        let search = |answer| {
            let mut search = Search::new(Table::new(a.into(), b.into()), options(answer));
            while !search.step() {}
            search
        };
        let (len, text) = (search(Answer::Len).len, search(Answer::Text));
        let runs = search(Answer::Idx).runs;
        let of_run = |run: &Run| {
            let Run { a, b, len } = *run;
            (0..len).rev().map(move |n| (a + n, b + n))
        };
        let found: Vec<(usize, usize)> = runs.iter().flat_map(of_run).collect();
        assert_eq!((found.len(), text.len), (len, len));
        assert_eq!(text.text, found.iter().map(|(x, _)| a[*x]).collect::<Vec<_>>());
        found
    }

    #[test]
    fn the_bit_vector_algorithm_agrees_with_the_textbook() {
        let mut random = Prng::new(11);
        for round in 0..3000 {
            let bytes = 1 + random.below(4) as u8;
            let mut text = |len_max| {
                let len = random.below(len_max);
                (0..len).map(|_| b'a' + random.below(u64::from(bytes)) as u8).collect::<Vec<_>>()
            };
            let long = if round % 10 == 0 { 300 } else { 70 };
            let (a, b) = (text(long), text(140));
            assert_eq!(by_bits(&a, &b), plain(&a, &b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn rows_can_end_at_any_bit_of_a_word() {
        for len in 0..200 {
            let a = vec![b'x'; len];
            for other in [len.saturating_sub(1), len, len + 1, 64, 128] {
                let b = vec![b'x'; other];
                assert_eq!(by_bits(&a, &b).len(), len.min(other));
            }
        }
    }
}
