//! LCS: the longest common subsequence of two strings.
//!
//! The table of lengths is computed by rows of bits (Crochemore and others, 2001; Hyyrö, 2004): a
//! row has one bit for each byte of the shorter string, clear where the length grows by one, and
//! follows from the row above by an addition of long integers. So a step handles 64 cells, and a
//! cell takes a bit where its length would take four bytes. Where the way back through the table
//! needs a length, it counts bits.

use base::Blob;
use keyspace::Entry;
use resp::{Args, Reply};
use value::{IntText, Str};

use super::text::text_of;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};

/// Bytes that a cell of the table is taken to cost when its size is compared with
/// `proto-max-bulk-len`, as in Redis; here it costs less.
const CELL_BYTES: u64 = 4;
/// Words of rows from which on the work may take longer than others should wait for a slot.
const LONG_WORDS: usize = 1 << 17;

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]`. The keys are looked at before the
/// options are.
pub fn lcs(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx.args.from(3));
    let (a, b) = (capture(ctx, 1), capture(ctx, 2));
    let (a, b) = (a?, b?);
    let options = options?;
    let (a, b) = (&*a.to_slice(), &*b.to_slice());
    let cells = (a.len() as u64 + 1).saturating_mul(b.len() as u64 + 1);
    if cells.saturating_mul(CELL_BYTES) > ctx.settings.bulk_len_max {
        return Err(Error::LcsMemory);
    }
    let table = Table::new(a, b);
    if table.work() > LONG_WORDS
        && let Err(parked) = ctx.guard.try_mark_long()
    {
        return Ok(Done::Park(parked));
    }
    match options.answer {
        Answer::Text => {
            let (rows, len) = table.rows();
            let mut text = Vec::with_capacity(len);
            table.walk_back(&rows, len, |x, _| text.push(a[x]));
            text.reverse();
            ctx.reply.bulk(&text);
        }
        Answer::Len => ctx.reply.integer(table.len() as i64),
        Answer::Idx => {
            let (rows, len) = table.rows();
            let mut runs: Vec<Run> = Vec::new();
            table.walk_back(&rows, len, |x, y| match runs.last_mut() {
                Some(run) if run.a == x + 1 && run.b == y + 1 => {
                    *run = Run { a: x, b: y, len: run.len + 1 };
                }
                _ => runs.push(Run { a: x, b: y, len: 1 }),
            });
            runs.retain(|run| run.len as i64 >= options.match_len_min);
            write_runs(&mut ctx.reply, &runs, len, options.with_match_len);
        }
    }
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

/// The table of two strings: a row for each byte of the longer one.
struct Table<'a> {
    long: &'a [u8],
    short: &'a [u8],
    /// Whether the first string is the shorter one.
    swapped: bool,
    /// Words of a row.
    words: usize,
}

impl<'a> Table<'a> {
    fn new(a: &'a [u8], b: &'a [u8]) -> Self {
        let swapped = a.len() < b.len();
        let (long, short) = if swapped { (b, a) } else { (a, b) };
        Table { long, short, swapped, words: short.len().div_ceil(64) }
    }

    /// Words to compute.
    fn work(&self) -> usize {
        self.long.len() * self.words
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

    /// The length of the longest common subsequence.
    fn len(&self) -> usize {
        let places = self.places();
        let mut row = vec![u64::MAX; self.words];
        for &byte in self.long {
            self.step(&mut row, &places, byte);
        }
        length(&row, self.short.len())
    }

    /// All rows, and the length.
    fn rows(&self) -> (Vec<u64>, usize) {
        let places = self.places();
        let mut row = vec![u64::MAX; self.words];
        let mut rows = Vec::with_capacity(self.work());
        for &byte in self.long {
            self.step(&mut row, &places, byte);
            rows.extend_from_slice(&row);
        }
        (rows, length(&row, self.short.len()))
    }

    /// Calls `matched` with the places in the first and the second string of each common byte, last
    /// ones first. Of several subsequences it is the one that Redis chooses: where two bytes
    /// differ, back in the first string only if that keeps more than back in the second.
    fn walk_back(&self, rows: &[u64], len: usize, mut matched: impl FnMut(usize, usize)) {
        let row = |i: usize| &rows[(i - 1) * self.words..][..self.words];
        let (mut i, mut j, mut left) = (self.long.len(), self.short.len(), len);
        while left > 0 {
            if self.long[i - 1] == self.short[j - 1] {
                (i, j, left) = (i - 1, j - 1, left - 1);
                if self.swapped {
                    matched(j, i);
                } else {
                    matched(i, j);
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
        let table = Table::new(a, b);
        let (rows, len) = table.rows();
        let mut found = Vec::new();
        table.walk_back(&rows, len, |x, y| found.push((x, y)));
        assert_eq!((found.len(), table.len()), (len, len));
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
