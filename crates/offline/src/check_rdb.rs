//! `sheafdb check-rdb FILE`: reads a file as a server would, and keeps nothing.

use std::fs::File;
use std::io::{Read, Result, Write};
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
) -> Result<bool> {
    writeln!(out, "[offset 0] Checking RDB file {}", file.display())?;
    let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
    let (about, opened) = match opened {
        Ok(opened) => opened,
        Err(error) => return unreadable(out, 0, &error),
    };
    // Of what is no file, as a pipe, the length is not known.
    let length = about.is_file().then(|| about.len());
    let options = ScanOptions { length, verify: true, skip_unknown };
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let check = Check {
        scanner: Scanner::new(options),
        checker: Checker::new(),
        report: Report::default(),
        progress: Progress::new(length.unwrap_or(0), shows_bar && length.is_some()),
        now: UnixMs(since_1970.as_millis() as i64),
        long: None,
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
}

impl Check {
    fn run(mut self, mut file: File, length: Option<u64>, out: &mut impl Write) -> Result<bool> {
        let mut block = vec![0; BLOCK];
        loop {
            let scanned = match self.scanner.next() {
                Ok(Scanned::More) => match file.read(&mut block) {
                    Ok(0) => {
                        self.scanner.end_of_input();
                        continue;
                    }
                    Ok(count) => {
                        self.scanner.feed(&block[..count]);
                        self.progress.at(self.scanner.at(), self.report.keys());
                        continue;
                    }
                    Err(error) => {
                        self.progress.clear();
                        return unreadable(out, self.scanner.at(), &error);
                    }
                },
                Ok(Scanned::Chunk(chunk)) => self.chunk(chunk, out)?,
                Ok(Scanned::Complete(summary)) => {
                    self.progress.clear();
                    self.complete(summary, length, out)?;
                    return Ok(true);
                }
                Err(error) => Err(error),
            };
            if let Err(error) = scanned {
                self.progress.clear();
                self.wrong(&error, out)?;
                return Ok(false);
            }
        }
    }

    /// Checks a part of the file.
    fn chunk(
        &mut self,
        chunk: Chunk,
        out: &mut impl Write,
    ) -> Result<std::result::Result<(), FileError>> {
        Ok(match chunk {
            Chunk::Aux(name, text) => {
                self.progress.clear();
                let (at, name, text) =
                    (self.scanner.at(), name.escape_ascii(), text.escape_ascii());
                writeln!(out, "[offset {at}] AUX FIELD {name} = '{text}'")?;
                Ok(())
            }
            Chunk::Function(_) => {
                self.report.functions += 1;
                Ok(())
            }
            Chunk::Resize { .. } => Ok(()),
            Chunk::Keys(keys) => self.keys(&keys, out)?,
            Chunk::Long(part) => self.long(part, out)?,
        })
    }

    fn keys(
        &mut self,
        keys: &Keys,
        out: &mut impl Write,
    ) -> Result<std::result::Result<(), FileError>> {
        for key in keys {
            let loaded = key.and_then(|key| {
                self.checker.begin(false);
                key.load(&mut self.checker).map(|()| key)
            });
            let key = match loaded {
                Ok(key) => key,
                Err(error) => return Ok(Err(error)),
            };
            self.select(key.db, key.offset, out)?;
            self.report.count(key.db, key.meta.expiry, self.now);
            let (kind, elements) = (self.checker.kind(), self.checker.elements);
            self.report.count_value(kind, elements, key.value.len() as u64);
        }
        Ok(Ok(()))
    }

    fn long(
        &mut self,
        part: LongChunk,
        out: &mut impl Write,
    ) -> Result<std::result::Result<(), FileError>> {
        let checker = &mut self.checker;
        Ok(match (part, self.long.take()) {
            (LongChunk::Begin(about), _) => {
                checker.begin(true);
                self.select(about.db, about.offset, out)?;
                self.long = Some((LongReader::new(about), 0));
                Ok(())
            }
            (LongChunk::Part(part), Some((mut reader, bytes))) => {
                let read = reader.part(&part, checker);
                drop(reader.take_text());
                self.long = Some((reader, bytes + part.len() as u64));
                read
            }
            (LongChunk::End, Some((reader, bytes))) => {
                let (db, expiry) = (reader.about().db, reader.about().meta.expiry);
                reader.finish(checker).map(|_| {
                    self.report.count(db, expiry, self.now);
                    self.report.count_value(checker.kind(), checker.elements.max(1), bytes);
                })
            }
            (LongChunk::Part(_) | LongChunk::End, None) => {
                unreachable!("a long value begins before its parts")
            }
        })
    }

    /// Says it if the key is the first one of its database.
    fn select(&mut self, db: u32, offset: u64, out: &mut impl Write) -> Result<()> {
        if !self.report.has(db) {
            self.progress.clear();
            writeln!(out, "[offset {offset}] Selecting DB ID {db}")?;
        }
        Ok(())
    }

    fn complete(&self, summary: Summary, length: Option<u64>, out: &mut impl Write) -> Result<()> {
        let Summary { version, bytes, skipped_keys, skipped_aux, checked, .. } = summary;
        match checked {
            Checked::Right => writeln!(out, "[offset {bytes}] Checksum OK")?,
            Checked::Absent | Checked::Not => {
                writeln!(out, "[offset {bytes}] The file has no checksum")?;
            }
        }
        writeln!(out, "[offset {bytes}] \\o/ RDB looks OK! \\o/")?;
        self.report.print(out)?;
        writeln!(out, "[info] version {version}, {bytes} bytes")?;
        if skipped_keys + skipped_aux > 0 {
            let skipped = format!("{skipped_keys} keys, and {skipped_aux} times other data");
            writeln!(out, "[info] left out of modules: {skipped}")?;
        }
        if let Some(behind) = length.and_then(|length| length.checked_sub(bytes))
            && behind > 0
        {
            writeln!(out, "[warning] {behind} bytes follow the end of the data")?;
        }
        Ok(())
    }

    fn wrong(&self, error: &FileError, out: &mut impl Write) -> Result<()> {
        writeln!(out, "--- RDB ERROR DETECTED ---")?;
        writeln!(out, "[offset {}] {error}", error.offset)?;
        if let Some(version) = self.scanner.version() {
            writeln!(out, "[info] version {version}")?;
        }
        self.report.print(out)
    }
}

/// Says that the disk, or whatever it is, gave an error.
fn unreadable(out: &mut impl Write, at: u64, error: &std::io::Error) -> Result<bool> {
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    writeln!(out, "[offset {at}] The file cannot be read: {error}")?;
    Ok(false)
}
