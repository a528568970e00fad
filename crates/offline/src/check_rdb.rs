//! `sheafdb check-rdb FILE`: reads a file as a server would, and keeps nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use base::UnixMs;
use rdb::file::{
    Checked, Chunk, FileError, Keys, LongChunk, LongReader, ScanOptions, Scanned, Scanner, Summary,
};

use crate::progress::Progress;
use crate::report::Report;
use crate::sink::Checker;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 20;

/// Checks a file, and prints what is in it to `out`; true if it is whole. The lines that
/// `redis-check-rdb` prints are printed as there. A bar goes to standard error if it is shown.
///
/// # Errors
/// Nothing can be printed.
pub fn check_rdb(
    file: &Path,
    skip_unknown: bool,
    out: &mut impl Write,
    shows_bar: bool,
) -> io::Result<bool> {
    writeln!(out, "[offset 0] Checking RDB file {}", file.display())?;
    let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
    let (about, opened) = match opened {
        Ok(opened) => opened,
        Err(error) => return unreadable(out, 0, &error),
    };
    // Of what is no file, as a pipe, the length is not known.
    let length = about.is_file().then_some(about.len());
    let options = ScanOptions { length, verify: true, skip_unknown };
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let check = Check {
        scanner: Scanner::new(options),
        checker: Checker::new(),
        report: Report::default(),
        progress: Progress::new(length.unwrap_or(0), shows_bar && length.is_some()),
        now: UnixMs(since_1970.as_millis() as i64),
        long: None,
        empty: 0,
    };
    check.run(opened, length, out)
}

/// A check under way.
struct Check {
    scanner: Scanner,
    checker: Checker,
    report: Report,
    progress: Progress,
    now: UnixMs,
    /// A long value, and its bytes so far.
    long: Option<(LongReader, u64)>,
    /// Collections without elements.
    empty: u64,
}

/// Why a check ends early.
enum Stop {
    /// The file is wrong.
    Wrong(FileError),
    /// It cannot be read.
    Unreadable(io::Error),
    /// Nothing can be printed.
    Unprintable(io::Error),
}

impl From<FileError> for Stop {
    fn from(error: FileError) -> Self {
        Self::Wrong(error)
    }
}

impl Check {
    fn run(mut self, file: File, length: Option<u64>, out: &mut impl Write) -> io::Result<bool> {
        let checked = self.all(file, out);
        self.progress.clear();
        match checked {
            Ok(summary) => {
                self.complete(summary, length, out)?;
                return Ok(true);
            }
            Err(Stop::Wrong(error)) => self.wrong(&error, out)?,
            Err(Stop::Unreadable(error)) => return unreadable(out, self.scanner.at(), &error),
            Err(Stop::Unprintable(error)) => return Err(error),
        }
        Ok(false)
    }

    fn all(&mut self, mut file: File, out: &mut impl Write) -> Result<Summary, Stop> {
        let mut block = vec![0; BLOCK];
        loop {
            match self.scanner.next()? {
                Scanned::More => match file.read(&mut block).map_err(Stop::Unreadable)? {
                    0 => self.scanner.end_of_input(),
                    count => {
                        self.scanner.feed(&block[..count]);
                        self.progress.at(self.scanner.at(), self.report.keys());
                    }
                },
                Scanned::Chunk(chunk) => self.chunk(chunk, out)?,
                Scanned::Complete(summary) => return Ok(summary),
            }
        }
    }

    /// Checks a part of the file.
    fn chunk(&mut self, chunk: Chunk, out: &mut impl Write) -> Result<(), Stop> {
        match chunk {
            Chunk::Aux(name, text) => {
                let (name, text) = (name.escape_ascii(), text.escape_ascii());
                let line = format!("AUX FIELD {name} = '{text}'");
                self.line(self.scanner.at(), &line, out)?;
            }
            Chunk::Function(_) => self.report.functions += 1,
            Chunk::Resize { .. } => {}
            Chunk::Keys(keys) => self.keys(&keys, out)?,
            Chunk::Long(part) => self.long(part, out)?,
        }
        Ok(())
    }

    fn keys(&mut self, keys: &Keys, out: &mut impl Write) -> Result<(), Stop> {
        for key in keys {
            let key = key?;
            self.checker.begin(false);
            match key.load(&mut self.checker) {
                Err(e) if e.is_empty() => {
                    self.empty += 1;
                    continue;
                }
                loaded => loaded?,
            }
            self.select(key.db, key.offset, out)?;
            self.report.count(key.db, key.meta.expiry, self.now);
            let (kind, elements) = (self.checker.kind(), self.checker.elements);
            self.report.count_value(kind, elements, key.value.len() as u64);
        }
        Ok(())
    }

    fn long(&mut self, part: LongChunk, out: &mut impl Write) -> Result<(), Stop> {
        match (part, self.long.take()) {
            (LongChunk::Begin(about), _) => {
                self.checker.begin(true);
                self.select(about.db, about.offset, out)?;
                self.report.count(about.db, about.meta.expiry, self.now);
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

    /// Says it if the key is the first one of its database.
    fn select(&mut self, db: u32, offset: u64, out: &mut impl Write) -> Result<(), Stop> {
        if self.report.has(db) {
            return Ok(());
        }
        self.line(offset, &format!("Selecting DB ID {db}"), out)
    }

    /// Prints a line in the place of the bar.
    fn line(&mut self, offset: u64, text: &str, out: &mut impl Write) -> Result<(), Stop> {
        self.progress.clear();
        writeln!(out, "[offset {offset}] {text}").map_err(Stop::Unprintable)
    }

    fn complete(
        &self,
        summary: Summary,
        length: Option<u64>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let Summary { version, bytes, skipped_keys, skipped_aux, checked, .. } = summary;
        match checked {
            Checked::Right => writeln!(out, "[offset {bytes}] Checksum OK")?,
            Checked::Absent | Checked::Not => {
                let none = "RDB file was saved with checksum disabled: no check performed.";
                writeln!(out, "[offset {bytes}] {none}")?;
            }
        }
        writeln!(out, "[offset {bytes}] \\o/ RDB looks OK! \\o/")?;
        self.report.print(out)?;
        writeln!(out, "[info] version {version}, {bytes} bytes")?;
        if skipped_keys + skipped_aux > 0 {
            let skipped = format!("{skipped_keys} keys, and {skipped_aux} times other data");
            writeln!(out, "[info] left out of modules: {skipped}")?;
        }
        if self.empty > 0 {
            writeln!(out, "[warning] {} keys have no elements: servers skip them", self.empty)?;
        }
        if let Some(behind) = length.and_then(|length| length.checked_sub(bytes))
            && behind > 0
        {
            writeln!(out, "[warning] {behind} bytes follow the end of the data")?;
        }
        Ok(())
    }

    fn wrong(&self, error: &FileError, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "--- RDB ERROR DETECTED ---")?;
        writeln!(out, "[offset {}] {error}", error.offset)?;
        if let Some(version) = self.scanner.version() {
            writeln!(out, "[info] version {version}")?;
        }
        self.report.print(out)
    }
}

/// Says that the disk, or whatever it is, gave an error.
fn unreadable(out: &mut impl Write, at: u64, error: &io::Error) -> io::Result<bool> {
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    writeln!(out, "[offset {at}] The file cannot be read: {error}")?;
    Ok(false)
}
