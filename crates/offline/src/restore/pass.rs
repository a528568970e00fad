//! One pass over a file: its bytes go on in blocks, until no further record counts.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;

use journal::{Damage, DamageKind, Item, Reader, Words};
use rdb::file::{FileError, ScanOptions, Scanned, Scanner};

use super::cut::Cut;
use super::note::Note;
use crate::check_rdb::BLOCK;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole file counts.
    Whole,
    /// It counts up to [`Cut::end`]; no later record does, in no later file.
    Reached,
    /// It ends within a command, an annotation or a transaction.
    Truncated(Damage),
}

/// Why a file cannot be taken.
#[derive(Debug)]
pub enum Wrong {
    /// It cannot be read.
    Read(io::Error),
    /// The copy cannot be written.
    Write(io::Error),
    /// Its commands are damaged.
    Commands(Damage),
    /// The RDB file at its beginning is damaged.
    Rdb(FileError),
    /// An annotation is wrong: at which byte, and why.
    Note(u64, String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Write(error) => write!(f, "its copy cannot be written: {error}"),
            Self::Commands(damage) => {
                write!(f, "is damaged at byte {}: {}", damage.at, damage.reason())
            }
            Self::Rdb(error) => write!(f, "is damaged {error}"),
            Self::Note(at, why) => write!(f, "is damaged at byte {at}: {why}"),
        }
    }
}

/// Reads a file of `length` bytes and gives each block to `sink`, up to the record behind which
/// nothing counts: more than [`Cut::end`] bytes may have gone on. A base may begin with an RDB
/// file, which is read to its end and checked. O(bytes), in blocks.
pub fn pass(
    source: &mut impl Read,
    length: u64,
    is_base: bool,
    cut: &mut Cut,
    sink: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<End, Wrong> {
    let mut blocks = Blocks { source: source.take(length), block: vec![0; BLOCK], filled: 0 };
    blocks.next(sink)?;
    let mut rest = 0;
    let mut start = 0;
    if is_base && is_rdb(blocks.bytes()) {
        (start, rest) = pass_rdb(&mut blocks, length, sink)?;
    }
    cut.begin_file(start);
    let mut reader = Reader::new(start);
    reader.feed(&blocks.bytes()[rest..]);
    loop {
        if let Some(end) = read(&mut reader, is_base, cut)? {
            return Ok(end);
        }
        if blocks.next(sink)? == 0 {
            return match reader.finish() {
                Ok(()) => Ok(End::Whole),
                Err(damage) if damage.kind == DamageKind::Truncated => Ok(End::Truncated(damage)),
                Err(damage) => Err(Wrong::Commands(damage)),
            };
        }
        reader.feed(blocks.bytes());
    }
}

/// Whether a file which begins with these bytes is an RDB file.
pub fn is_rdb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"REDIS") || bytes.starts_with(b"VALKEY")
}

/// The blocks of a file.
struct Blocks<R> {
    source: R,
    block: Vec<u8>,
    filled: usize,
}

impl<R: Read> Blocks<R> {
    fn bytes(&self) -> &[u8] {
        &self.block[..self.filled]
    }

    /// Reads the next block, and gives it to `sink`; 0 at the end.
    fn next(&mut self, sink: &mut impl FnMut(&[u8]) -> io::Result<()>) -> Result<usize, Wrong> {
        self.filled = 0;
        while self.filled < self.block.len() {
            match self.source.read(&mut self.block[self.filled..]) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Wrong::Read(error)),
            }
        }
        sink(self.bytes()).map_err(Wrong::Write)?;
        Ok(self.filled)
    }
}

/// Passes the RDB file at the beginning. Where it ends: in the file, and in the block at hand.
fn pass_rdb<R: Read>(
    blocks: &mut Blocks<R>,
    length: u64,
    sink: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(u64, usize), Wrong> {
    let options = ScanOptions {
        length: Some(length),
        verify: true,
        skip_unknown: true,
        ..ScanOptions::default()
    };
    let mut scanner = Scanner::new(options);
    let mut before = 0;
    scanner.feed(blocks.bytes());
    loop {
        match scanner.next().map_err(Wrong::Rdb)? {
            Scanned::Chunk(_) => {}
            Scanned::Complete(summary) => {
                return Ok((summary.bytes, (summary.bytes - before) as usize));
            }
            Scanned::More => {
                before += blocks.filled as u64;
                if blocks.next(sink)? == 0 {
                    scanner.end_of_input();
                } else {
                    scanner.feed(blocks.bytes());
                }
            }
        }
    }
}

/// What [`Cut`] needs to know of an item.
enum Met {
    Command { is_select: bool },
    Note { at: u64, note: Note },
}

/// Reads what was fed; `None` if more is needed.
fn read(reader: &mut Reader, is_base: bool, cut: &mut Cut) -> Result<Option<End>, Wrong> {
    loop {
        let met = match reader.next().map_err(Wrong::Commands)? {
            None => return Ok(None),
            Some(Item::Command(words)) => Met::Command { is_select: is_select(&words) },
            Some(Item::Annotation { at, text, .. }) => Met::Note { at, note: Note::parse(text) },
        };
        let is_inside = reader.multi().is_some();
        let flow = match met {
            Met::Command { is_select } => cut.command(is_select, is_inside, reader.at()),
            Met::Note { note: Note::Base(..), .. } if is_base && !is_inside => {
                cut.begin_base(reader.at());
                ControlFlow::Continue(())
            }
            Met::Note { at, note } => {
                cut.note(note, is_inside).map_err(|why| Wrong::Note(at, why))?
            }
        };
        if flow.is_break() {
            return Ok(Some(End::Reached));
        }
    }
}

fn is_select(words: &Words<'_>) -> bool {
    words.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"SELECT"))
}

#[cfg(test)]
mod tests;
