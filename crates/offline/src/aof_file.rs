//! The check of one file of an append-only file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base::num;
use journal::{Damage, DamageKind, Follow, Item, Position, Reader};
use rdb::file::ScanOptions;

use crate::check_aof::Repair;
use crate::check_rdb::{BLOCK, check_keys};
use crate::progress::Progress;

/// How files are checked.
pub struct AofFile<'a, I, O> {
    pub repair: Repair,
    /// What a person answers.
    pub answers: &'a mut I,
    pub out: &'a mut O,
    pub shows_bar: bool,
    /// Where the stream of replication is behind the files which were checked, if they say that.
    pub position: Option<Position>,
}

/// A file to check.
pub struct Place<'a> {
    pub path: &'a Path,
    /// How it is called in what is printed.
    pub name: &'a str,
    /// What a repair is called with: the manifest or the file.
    pub repairs: &'a Path,
    /// Which kind of file it is.
    pub label: &'static str,
    /// Changes are appended to it, so it may be shortened.
    pub is_last: bool,
}

/// How the reading of commands ended.
enum Outcome {
    /// All are whole.
    Whole,
    /// At an annotation later than the time of [`Repair::After`]. Before this byte the file is
    /// whole, and earlier.
    Later(u64),
    /// At an annotation whose time is no number.
    NoTime(u64),
    Damaged(Damage),
}

impl<I: BufRead, O: Write> AofFile<'_, I, O> {
    /// Checks a file, which may begin with an RDB file if it is a base. True if it is whole, or was
    /// made so.
    pub fn check(&mut self, place: &Place<'_>, is_base: bool) -> io::Result<bool> {
        let (size, file) = match open(place.path) {
            Ok(opened) => opened,
            Err(error) => {
                let path = shown(place.path.as_os_str().as_bytes());
                writeln!(self.out, "Cannot open file {path}: {error}, aborting...")?;
                return Ok(false);
            }
        };
        let has_rdb = is_base && is_rdb(&file);
        if place.label.starts_with("BASE") {
            let format = if has_rdb { "RDB" } else { "RESP" };
            writeln!(self.out, "Start to check BASE AOF ({format} format).")?;
        }
        if size == 0 {
            writeln!(self.out, "{} {} is empty", place.label, place.name)?;
            return Ok(true);
        }
        let Some(start) = self.check_preamble(place, &file, has_rdb, size)? else {
            return Ok(false);
        };
        match self.read(file, start, size) {
            Ok(outcome) => self.conclude(place, size, &outcome),
            Err(error) => {
                writeln!(self.out, "Cannot read file {}: {error}", place.name)?;
                Ok(false)
            }
        }
    }

    /// Where the commands begin; `None` if the RDB file before them is not whole.
    fn check_preamble(
        &mut self,
        place: &Place<'_>,
        file: &File,
        has_rdb: bool,
        size: u64,
    ) -> io::Result<Option<u64>> {
        if !has_rdb {
            return Ok(Some(0));
        }
        let file = match file.try_clone() {
            Ok(file) => file,
            Err(error) => {
                writeln!(self.out, "Cannot read file {}: {error}", place.name)?;
                return Ok(None);
            }
        };
        let options = ScanOptions { verify: true, ..ScanOptions::default() };
        let shown = Path::new(place.name);
        let end = check_keys(shown, file, Some(size), options, self.out, self.shows_bar)?;
        self.position = end.and_then(|(_, position)| position);
        let found = match end {
            Some(_) => "RDB preamble is OK, proceeding with AOF tail...",
            None => "RDB preamble of AOF file is not sane, aborting.",
        };
        writeln!(self.out, "{found}")?;
        Ok(end.map(|(end, _)| end))
    }

    /// Reads the commands from `start` on.
    fn read(&mut self, mut file: File, start: u64, size: u64) -> io::Result<Outcome> {
        file.seek(SeekFrom::Start(start))?;
        let mut progress = Progress::new(size, self.shows_bar).counting("commands");
        let mut reader = Reader::new(start);
        let mut stream = Follow::begin(self.position.take(), start);
        let mut block = vec![0; BLOCK];
        let mut commands = 0;
        let outcome = loop {
            match reader.next() {
                Ok(Some(Item::Command(_))) => commands += 1,
                Ok(Some(Item::Annotation { at, end, multi, text })) => match self.is_later(text) {
                    Some(false) => stream.annotation(text, (at, end), multi),
                    Some(true) => break Outcome::Later(at.min(reader.valid_up_to())),
                    None => break Outcome::NoTime(at),
                },
                Ok(None) => {
                    progress.at(reader.at(), commands);
                    // What a server appends meanwhile is left out, so that it is not called cut.
                    let left = usize::try_from(size - reader.fed()).unwrap_or(usize::MAX);
                    let count = file.read(&mut block[..left.min(BLOCK)])?;
                    if count == 0 {
                        self.position = stream.end(reader.valid_up_to(), reader.multi());
                        break reader.finish().map_or_else(Outcome::Damaged, |()| Outcome::Whole);
                    }
                    reader.feed(&block[..count]);
                }
                Err(damage) => break Outcome::Damaged(damage),
            }
        };
        progress.clear();
        Ok(outcome)
    }

    /// Whether an annotation is later than what is kept; `None` if its time is no number.
    fn is_later(&self, annotation: &[u8]) -> Option<bool> {
        match (self.repair, annotation.strip_prefix(b"#TS:")) {
            (Repair::After(last), Some(text)) => num::parse_i64(text).map(|time| time > last),
            _ => Some(false),
        }
    }

    fn conclude(&mut self, place: &Place<'_>, size: u64, outcome: &Outcome) -> io::Result<bool> {
        let Place { name, label, .. } = place;
        match (outcome, self.repair) {
            (Outcome::Whole, Repair::After(time)) => {
                writeln!(self.out, "Truncate nothing in AOF {name} to timestamp {time}")?;
            }
            (Outcome::Whole, _) => self.analyzed(name, size, size)?,
            (&Outcome::Later(end), Repair::After(time)) => {
                return self.cut_at_time(place, size, end, time);
            }
            (Outcome::Later(_), _) => unreachable!("nothing is later than no time"),
            (Outcome::NoTime(at), _) => {
                writeln!(self.out, "Invalid timestamp annotation at byte {at}")?;
                return Ok(false);
            }
            (Outcome::Damaged(damage), _) => return self.damaged(place, size, damage),
        }
        writeln!(self.out, "{label} {name} is valid")?;
        Ok(true)
    }

    fn analyzed(&mut self, name: &str, size: u64, valid: u64) -> io::Result<()> {
        let diff = size - valid;
        writeln!(
            self.out,
            "AOF analyzed: filename={name}, size={size}, ok_up_to={valid}, diff={diff}"
        )
    }

    fn damaged(&mut self, place: &Place<'_>, size: u64, damage: &Damage) -> io::Result<bool> {
        let Place { name, is_last, .. } = *place;
        let valid = damage.valid_up_to;
        writeln!(self.out, "0x{:16x}: {}", damage.at, damage.reason())?;
        self.analyzed(name, size, valid)?;
        let repairs = shown(place.repairs.as_os_str().as_bytes());
        match (self.repair, is_last) {
            (Repair::Damage, true) => self.ask_and_cut(place, size, damage),
            (Repair::Damage, false) => {
                let why = "because it is not the last file";
                writeln!(self.out, "Failed to truncate AOF {name} {why}")?;
                self.advise_restore()
            }
            (_, true) => {
                let hint = "Use the --fix option to try fixing it.";
                writeln!(self.out, "AOF {name} is not valid. {hint}")?;
                writeln!(self.out, "To repair it: sheafdb check-aof --fix {repairs}")?;
                Ok(false)
            }
            (_, false) => {
                let why = "It is not the last file, so --fix cannot repair it.";
                writeln!(self.out, "AOF {name} is not valid. {why}")?;
                self.advise_restore()
            }
        }
    }

    fn advise_restore(&mut self) -> io::Result<bool> {
        writeln!(self.out, "The files behind it change data which would be missing.")?;
        writeln!(self.out, "Restore all files from a backup.")?;
        Ok(false)
    }

    fn ask_and_cut(&mut self, place: &Place<'_>, size: u64, damage: &Damage) -> io::Result<bool> {
        let (name, valid) = (place.name, damage.valid_up_to);
        let lost = size - valid;
        if damage.kind != DamageKind::Truncated {
            let behind = size - damage.at;
            writeln!(
                self.out,
                "The file does not just end early: {behind} bytes from the damage on are lost, too."
            )?;
        }
        writeln!(
            self.out,
            "This will shrink the AOF {name} from {size} bytes, with {lost} bytes, to {valid} bytes"
        )?;
        write!(self.out, "Continue? [y/N]: ")?;
        self.out.flush()?;
        let mut answer = Vec::new();
        // (Without an answer, nothing is done.)
        let _ = self.answers.by_ref().take(1024).read_until(b'\n', &mut answer);
        if !answer.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'y')) {
            writeln!(self.out, "Aborting...")?;
            return Ok(false);
        }
        self.cut(place, size, valid, &format!("Successfully truncated AOF {name}"))
    }

    fn cut_at_time(
        &mut self,
        place: &Place<'_>,
        size: u64,
        end: u64,
        time: i64,
    ) -> io::Result<bool> {
        let path = shown(place.path.as_os_str().as_bytes());
        if end == 0 {
            writeln!(self.out, "AOF {path} has nothing before timestamp {time}, aborting...")?;
            return Ok(false);
        }
        if !place.is_last {
            writeln!(
                self.out,
                "Failed to truncate AOF {path} to timestamp {time} to offset {end} because it is \
                 not the last file.\n\
                 If you insist, delete the files behind it in the manifest and their lines in \
                 it. Then run this again."
            )?;
            return Ok(false);
        }
        let cut = format!("Successfully truncated AOF {} to timestamp {time}", place.name);
        self.cut(place, size, end, &cut)
    }

    /// Shortens a file whose length was `size`, and says so when it is on disk.
    fn cut(&mut self, place: &Place<'_>, size: u64, end: u64, cut: &str) -> io::Result<bool> {
        let name = place.name;
        match shorten(place.path, size, end) {
            Ok(()) => {
                writeln!(self.out, "{cut}")?;
                Ok(true)
            }
            Err(error) => {
                writeln!(self.out, "Failed to truncate AOF {name}: {error}")?;
                Ok(false)
            }
        }
    }
}

/// Opens a regular file; gives its length, too. (To open a pipe would wait for its writer.)
pub fn open(path: &Path) -> io::Result<(u64, File)> {
    let length = |about: &Metadata| {
        let is_regular = about.is_file().then_some(about.len());
        is_regular.ok_or_else(|| io::Error::other("it is not a regular file"))
    };
    length(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    Ok((length(&file.metadata()?)?, file))
}

/// A name as a terminal may show it: a manifest can name any bytes.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(name).chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// Whether a file begins as an RDB file of Redis or Valkey does.
fn is_rdb(mut file: &File) -> bool {
    let mut magic = [0; 6];
    let read = file.read_exact(&mut magic[..5]).and_then(|()| {
        let is_valkey = &magic[..5] == b"VALKE";
        if is_valkey { file.read_exact(&mut magic[5..]) } else { Ok(()) }
    });
    let is_rewound = file.rewind().is_ok();
    is_rewound && read.is_ok() && (magic.starts_with(b"REDIS") || &magic == b"VALKEY")
}

/// Shortens a file and syncs it.
fn shorten(path: &Path, size: u64, end: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.len() != size {
        let text = "its length has changed during the check; stop the server which writes it";
        return Err(io::Error::other(text));
    }
    file.set_len(end)?;
    file.sync_all()
}
