//! `sheafdb check-rdb FILE`: reads a file as a server would, and keeps nothing.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use journal::Position;
use rdb::file::{Checked, FileError, ScanOptions, Scanned, Scanner, Summary};

use crate::check::Check;
use crate::progress::Progress;
use crate::repeats::Hashes;

/// Bytes that are read at a time.
pub const BLOCK: usize = 1 << 20;

/// Checks a file, whose length the options need not have, and prints what is in it to `out`; true
/// if it is whole. The lines that
/// `redis-check-rdb` prints are printed as there. A bar goes to standard error if it is shown.
///
/// # Errors
/// Nothing can be printed.
pub fn check_rdb(
    file: &Path,
    options: ScanOptions,
    out: &mut impl Write,
    shows_bar: bool,
) -> io::Result<bool> {
    let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?, opened)));
    let (about, opened) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            begin(out, file)?;
            unreadable(out, 0, &error)?;
            return Ok(false);
        }
    };
    // Of what is no file, as a pipe, the length is not known.
    let length = about.is_file().then_some(about.len());
    let Some((end, _)) = check_keys(file, opened, length, options, out, shows_bar)? else {
        return Ok(false);
    };
    if let Some(behind) = length.and_then(|length| length.checked_sub(end))
        && behind > 0
    {
        writeln!(out, "[warning] {behind} bytes follow the end of the data")?;
    }
    Ok(true)
}

fn begin(out: &mut impl Write, file: &Path) -> io::Result<()> {
    writeln!(out, "[offset 0] Checking RDB file {}", file.display())
}

/// Checks the RDB file with which an opened file begins, and prints what is in it under this name.
/// Gives where it ends, and what it says about the stream of replication; or `None` if it is not
/// whole.
///
/// # Errors
/// Nothing can be printed.
pub fn check_keys(
    shown: &Path,
    opened: File,
    length: Option<u64>,
    options: ScanOptions,
    out: &mut impl Write,
    shows_bar: bool,
) -> io::Result<Option<(u64, Option<Position>)>> {
    begin(out, shown)?;
    let options = ScanOptions { length, ..options };
    let mut check = Check::new(options);
    check.keys = Some(Hashes::new());
    let run = Run {
        check,
        options,
        progress: Progress::new(length.unwrap_or(0), shows_bar && length.is_some()),
    };
    run.run(opened, out)
}

/// A check whose findings are printed.
struct Run {
    check: Check,
    options: ScanOptions,
    progress: Progress,
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

impl Run {
    fn run(
        mut self,
        file: File,
        out: &mut impl Write,
    ) -> io::Result<Option<(u64, Option<Position>)>> {
        let checked = self.all(&file, out).and_then(|summary| self.keys(file).map(|()| summary));
        self.progress.clear();
        match checked {
            Ok(summary) => {
                self.complete(summary, out)?;
                return Ok(Some((summary.bytes, self.check.position())));
            }
            Err(Stop::Wrong(error)) => self.wrong(&error, out)?,
            Err(Stop::Unreadable(error)) => unreadable(out, self.check.at(), &error)?,
            Err(Stop::Unprintable(error)) => return Err(error),
        }
        Ok(None)
    }

    fn all(&mut self, mut file: &File, out: &mut impl Write) -> Result<Summary, Stop> {
        let mut block = vec![0; BLOCK];
        loop {
            let count = file.read(&mut block).map_err(Stop::Unreadable)?;
            let checked = self.check.block(&block[..count]);
            self.lines(out).map_err(Stop::Unprintable)?;
            if let Some(summary) = checked.map_err(Stop::Wrong)? {
                return Ok(summary);
            }
            self.progress.at(self.check.at(), self.check.report.keys());
        }
    }

    /// That no key occurs twice. The file is read again only if hashes of keys are equal.
    fn keys(&mut self, mut file: File) -> Result<(), Stop> {
        let Some(mut suspects) = self.check.keys.as_mut().and_then(Hashes::suspects) else {
            return Ok(());
        };
        file.rewind().map_err(Stop::Unreadable)?;
        let mut scanner = Scanner::new(ScanOptions { verify: false, ..self.options });
        let mut block = vec![0; BLOCK];
        loop {
            match scanner.next().map_err(Stop::Wrong)? {
                Scanned::More => match file.read(&mut block).map_err(Stop::Unreadable)? {
                    0 => scanner.end_of_input(),
                    count => scanner.feed(&block[..count]),
                },
                Scanned::Chunk(chunk) => {
                    if let Some(error) = suspects.first_in(&chunk).map_err(Stop::Wrong)? {
                        return Err(Stop::Wrong(error));
                    }
                    self.progress.at(scanner.at(), self.check.report.keys());
                }
                Scanned::Complete(_) => return Ok(()),
            }
        }
    }

    /// Prints the lines of the check in the place of the bar.
    fn lines(&mut self, out: &mut impl Write) -> io::Result<()> {
        for (offset, text) in self.check.lines.drain(..) {
            self.progress.clear();
            writeln!(out, "[offset {offset}] {text}")?;
        }
        Ok(())
    }

    fn complete(&self, summary: Summary, out: &mut impl Write) -> io::Result<()> {
        let Summary { version, bytes, skipped_keys, skipped_aux, checked, .. } = summary;
        match checked {
            Checked::Right => writeln!(out, "[offset {bytes}] Checksum OK")?,
            Checked::Absent | Checked::Not => {
                let none = "RDB file was saved with checksum disabled: no check performed.";
                writeln!(out, "[offset {bytes}] {none}")?;
            }
        }
        writeln!(out, "[offset {bytes}] \\o/ RDB looks OK! \\o/")?;
        self.check.report.print(out)?;
        writeln!(out, "[info] version {version}, {bytes} bytes")?;
        if skipped_keys + skipped_aux > 0 {
            let skipped = format!("{skipped_keys} keys, and {skipped_aux} times other data");
            writeln!(out, "[info] left out of modules: {skipped}")?;
        }
        if self.check.empty > 0 {
            writeln!(
                out,
                "[warning] {} keys have no elements: servers skip them",
                self.check.empty
            )?;
        }
        if let Some(Hashes { left_out: left_out @ 1.., .. }) = &self.check.keys {
            writeln!(out, "[warning] {left_out} keys were not compared with the others")?;
        }
        Ok(())
    }

    fn wrong(&self, error: &FileError, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "--- RDB ERROR DETECTED ---")?;
        writeln!(out, "[offset {}] {error}", error.offset)?;
        if let Some(version) = self.check.version() {
            writeln!(out, "[info] version {version}")?;
        }
        self.check.report.print(out)
    }
}

/// Says that the disk, or whatever it is, gave an error.
fn unreadable(out: &mut impl Write, at: u64, error: &io::Error) -> io::Result<()> {
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    writeln!(out, "[offset {at}] The file cannot be read: {error}")
}
