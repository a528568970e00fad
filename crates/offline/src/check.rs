//! Reads all of a file of keys as a server would, and keeps nothing but counts.

use std::time::SystemTime;

use base::UnixMs;
use journal::{Position, stream};
use rdb::file::{
    Chunk, FileError, Keys, LongChunk, LongReader, ScanOptions, Scanned, Scanner, Shown, Summary,
};

use crate::repeats::Hashes;
use crate::report::Report;
use crate::sink::Checker;

/// A check under way: takes the blocks of a file in order.
pub struct Check {
    scanner: Scanner,
    checker: Checker,
    /// Keys as a server would have them, if they are compared.
    pub keys: Option<Hashes>,
    /// What was counted so far.
    pub report: Report,
    now: UnixMs,
    /// A long value, and its bytes so far.
    long: Option<(LongReader, u64)>,
    /// Collections without elements.
    pub empty: u64,
    /// When the file shows the data, seconds since 1970, if it says that (`ctime`).
    pub created_s: Option<i64>,
    /// Its fields about the stream of replication: the id, and the offset.
    stream: (Vec<u8>, Vec<u8>),
    /// Lines about what was met, with the offset, for who prints them. He takes them away.
    pub lines: Vec<(u64, String)>,
}

impl Check {
    /// Of a file which is scanned with these options.
    pub fn new(options: ScanOptions) -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            scanner: Scanner::new(options),
            checker: Checker::new(),
            keys: None,
            report: Report::default(),
            now: UnixMs(since_1970.unwrap_or_default().as_millis() as i64),
            long: None,
            empty: 0,
            created_s: None,
            stream: Default::default(),
            lines: Vec::new(),
        }
    }

    /// Where the stream of replication goes on behind the file, if it says that.
    pub fn position(&self) -> Option<Position> {
        Position::of_fields(&self.stream.0, &self.stream.1)
    }

    /// Bytes of the file that were checked.
    pub fn at(&self) -> u64 {
        self.scanner.at()
    }

    /// The version of the file, once it is read.
    pub fn version(&self) -> Option<u16> {
        self.scanner.version()
    }

    /// Takes the next block; an empty one says that no more come. Gives the summary when the file
    /// is complete. O(the block's bytes).
    ///
    /// # Errors
    /// The file is wrong; nothing more can be checked.
    pub fn block(&mut self, block: &[u8]) -> Result<Option<Summary>, FileError> {
        if block.is_empty() {
            self.scanner.end_of_input();
        } else {
            self.scanner.feed(block);
        }
        loop {
            match self.scanner.next()? {
                Scanned::More => return Ok(None),
                Scanned::Chunk(chunk) => self.chunk(chunk)?,
                Scanned::Complete(summary) => return Ok(Some(summary)),
            }
        }
    }

    /// Checks a part of the file.
    fn chunk(&mut self, chunk: Chunk) -> Result<(), FileError> {
        match chunk {
            Chunk::Aux(name, text) => {
                match std::str::from_utf8(&name) {
                    Ok("ctime") => {
                        let number = std::str::from_utf8(&text).ok();
                        self.created_s = number.and_then(|number| number.parse().ok());
                    }
                    Ok(stream::AUX_ID) => self.stream.0.clone_from(&text),
                    Ok(stream::AUX_OFFSET) => self.stream.1.clone_from(&text),
                    _ => {}
                }
                let (name, text) = (Shown(&name), Shown(&text));
                self.line(self.scanner.at(), format!("AUX FIELD {name} = '{text}'"));
            }
            Chunk::Function(_) => self.report.functions += 1,
            Chunk::Resize { .. } => {}
            Chunk::Keys(keys) => self.keys(&keys)?,
            Chunk::Long(part) => self.long(part)?,
        }
        Ok(())
    }

    fn keys(&mut self, keys: &Keys) -> Result<(), FileError> {
        for key in keys {
            let key = key?;
            self.checker.begin();
            match key.load(&mut self.checker) {
                Err(e) if e.is_empty() => {
                    self.empty += 1;
                    continue;
                }
                loaded => loaded?,
            }
            self.count(key.db, key.offset, &key.name, key.meta.expiry);
            let (kind, elements) = (self.checker.kind(), self.checker.elements);
            self.report.count_value(kind, elements, key.value.len() as u64);
        }
        Ok(())
    }

    fn long(&mut self, part: LongChunk) -> Result<(), FileError> {
        match (part, self.long.take()) {
            (LongChunk::Begin(about), _) => {
                self.checker.begin();
                self.count(about.db, about.offset, &about.name, about.meta.expiry);
                self.long = Some((LongReader::new(about), 0));
            }
            (LongChunk::Part(part), Some((mut reader, bytes))) => {
                reader.part(&part, &mut self.checker)?;
                drop(reader.take_text());
                self.long = Some((reader, bytes + part.len() as u64));
            }
            (LongChunk::End, Some((reader, bytes))) => {
                match reader.finish(&mut self.checker) {
                    Err(e) if e.is_empty() => {
                        self.empty += 1;
                        return Ok(());
                    }
                    finished => drop(finished?),
                }
                let (kind, elements) = (self.checker.kind(), self.checker.elements.max(1));
                self.report.count_value(kind, elements, bytes);
            }
            (LongChunk::Part(_) | LongChunk::End, None) => {
                unreachable!("a long value begins before its parts")
            }
        }
        Ok(())
    }

    /// Counts a key, and says it if it is the first one of its database. A server leaves out what
    /// is due, so such a key may be there once more.
    fn count(&mut self, db: u32, offset: u64, name: &[u8], expiry: Option<UnixMs>) {
        if !self.report.has(db) {
            self.line(offset, format!("Selecting DB ID {db}"));
        }
        self.report.count(db, expiry, self.now);
        let is_due = expiry.is_some_and(|at| at < self.now);
        if let Some(keys) = &mut self.keys
            && !is_due
        {
            keys.add(db, name);
        }
    }

    fn line(&mut self, offset: u64, text: String) {
        self.lines.push((offset, text));
    }
}
