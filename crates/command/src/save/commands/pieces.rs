//! The commands of strings and of collections.

use base::num::{I64_TEXT_MAX, U64_TEXT_MAX, format_i64, format_u64};
use base::{Blob, UnixMs, double};
use journal::record::{begin_command, begin_word, end_word, write_command, write_word};
use keyspace::Kind;
use rdb::{Item, Source};

use crate::parts::Stored;

/// Bytes of a long string that one step reads.
const TEXT_STEP: usize = 256 << 10;
/// Bytes of a string that one command has: what is longer is appended by more commands, because
/// none may have 2 GiB.
const TEXT_MAX: usize = 512 << 20;
/// Parts of a collection in one command, as in files of redis-server.
const BATCH_PARTS: usize = 64;
/// Bytes of parts after which a command gets no more.
const BATCH_BYTES: usize = 32 << 10;

/// A long string under way. It gives up what it has written of the text.
pub struct TextCommands {
    text: Blob,
    at: usize,
    /// Bytes freed since the last [`TextCommands::take_freed`].
    freed: usize,
    /// Bytes of a command, at most.
    most: usize,
}

impl TextCommands {
    pub fn new(text: Blob) -> Self {
        Self::with_most(text, TEXT_MAX)
    }

    pub fn with_most(text: Blob, most: usize) -> Self {
        Self { text, at: 0, freed: 0, most }
    }

    /// Appends the next bytes; true after the last step.
    pub fn step(&mut self, out: &mut Vec<u8>, key: &[u8]) -> bool {
        let len = self.text.len();
        let begun = self.at / self.most * self.most;
        let end_of_command = len.min(begun + self.most);
        if self.at == begun {
            begin_command(out, 3);
            write_word(out, if begun == 0 { b"SET" } else { b"APPEND" });
            write_word(out, key);
            begin_word(out, end_of_command - begun);
        }
        let range = self.at..end_of_command.min(self.at + TEXT_STEP);
        for run in self.text.pages_in(range.clone()) {
            out.extend_from_slice(run);
        }
        self.at = range.end;
        self.freed += self.text.release(range);
        if self.at == end_of_command {
            end_word(out);
        }
        self.at == len
    }

    /// Heap bytes that were freed since the last call, because nobody else held them.
    pub fn take_freed(&mut self) -> usize {
        std::mem::take(&mut self.freed)
    }
}

/// A collection with parts under way.
pub struct PartCommands {
    at: u64,
}

impl PartCommands {
    pub fn new() -> Self {
        Self { at: 0 }
    }

    /// Parts that are written: later steps read what is behind them.
    pub fn passed(&self) -> u64 {
        self.at
    }

    /// Appends about so many bytes; true after the last step. `value` is the same in all steps,
    /// but may have lost what was passed.
    pub fn step(
        &mut self,
        out: &mut Vec<u8>,
        key: &[u8],
        value: &Stored<'_>,
        bytes: usize,
    ) -> bool {
        let (len, end) = (value.len(), out.len().saturating_add(bytes));
        let mut batch = Batch::new(value.kind(), key);
        let mut read = 0;
        value.each_while(self.at, len.saturating_sub(self.at), |item| {
            read += 1;
            batch.add(out, item);
            if batch.is_full(out) {
                batch.end(out);
                return out.len() < end;
            }
            true
        });
        batch.end(out);
        self.at += read;
        read == 0 || self.at >= len
    }
}

/// A command with parts of a collection. How many stand in it is known at its end.
struct Batch<'k> {
    name: &'static [u8],
    words_of_part: usize,
    key: &'k [u8],
    /// Where it begins, and the parts in it so far.
    start: usize,
    parts: usize,
    /// Fields which expire, and when.
    expiring: Vec<(Vec<u8>, UnixMs)>,
    scratch: Vec<u8>,
}

impl<'k> Batch<'k> {
    fn new(kind: Kind, key: &'k [u8]) -> Self {
        let (name, words_of_part): (&[u8], _) = match kind {
            Kind::Set => (b"SADD", 1),
            Kind::Zset => (b"ZADD", 2),
            Kind::Hash => (b"HMSET", 2),
            _ => (b"RPUSH", 1),
        };
        let (expiring, scratch) = (Vec::new(), Vec::new());
        Self { name, words_of_part, key, start: 0, parts: 0, expiring, scratch }
    }

    fn add(&mut self, out: &mut Vec<u8>, item: Item<'_>) {
        if self.parts == 0 {
            self.start = out.len();
        }
        self.parts += 1;
        match item {
            Item::Element(text) => write_word(out, text),
            Item::Member(member, score) => {
                self.scratch.clear();
                double::write(&mut self.scratch, score);
                write_word(out, &self.scratch);
                write_word(out, member);
            }
            Item::Field(name, text, at) => {
                write_word(out, name);
                write_word(out, text);
                self.expiring.extend(at.map(|at| (name.to_vec(), at)));
            }
        }
    }

    fn is_full(&self, out: &[u8]) -> bool {
        self.parts >= BATCH_PARTS || out.len() - self.start >= BATCH_BYTES
    }

    /// Puts what begins the command before its parts; and behind it when fields expire.
    fn end(&mut self, out: &mut Vec<u8>) {
        if self.parts == 0 {
            return;
        }
        self.scratch.clear();
        begin_command(&mut self.scratch, 2 + self.parts * self.words_of_part);
        write_word(&mut self.scratch, self.name);
        write_word(&mut self.scratch, self.key);
        drop(out.splice(self.start..self.start, self.scratch.drain(..)));
        self.parts = 0;
        for run in self.expiring.chunk_by(|(_, at), (_, next)| at == next) {
            self.expire(out, run);
        }
        self.expiring.clear();
    }

    /// Appends when these fields expire.
    fn expire(&self, out: &mut Vec<u8>, run: &[(Vec<u8>, UnixMs)]) {
        let (time, count) = (&mut [0; I64_TEXT_MAX], &mut [0; U64_TEXT_MAX]);
        let (time, count) = (format_i64(time, run[0].1.0), format_u64(count, run.len() as u64));
        let mut words: Vec<&[u8]> = vec![b"HPEXPIREAT", self.key, time, b"FIELDS", count];
        words.extend(run.iter().map(|(name, _)| name.as_slice()));
        write_command(out, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_of_more_than_a_command_is_appended() {
        let text: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut commands = TextCommands::with_most(Blob::from(&text[..]), 700_000);
        let (mut out, mut steps) = (Vec::new(), 1);
        while !commands.step(&mut out, b"k") {
            steps += 1;
        }
        let mut expected = Vec::new();
        for (at, part) in text.chunks(700_000).enumerate() {
            let name: &[u8] = if at == 0 { b"SET" } else { b"APPEND" };
            write_command(&mut expected, [name, b"k", part]);
        }
        assert!(out == expected, "{steps}");
        assert_eq!(steps, 3 * 3);
    }
}
