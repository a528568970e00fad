//! The manifest: the files which together are the append-only file.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b        the data at some moment
//! file appendonly.aof.1.incr.aof seq 1 type h        not needed any more, to be removed
//! file appendonly.aof.2.incr.aof seq 2 type i        the changes since then, in this order
//! file appendonly.aof.3.incr.aof seq 3 type i
//! ```
//!
//! A line is words ([`base::words`]): names and their values. It is a comment if `#` is its first
//! byte.

use std::collections::HashSet;
use std::fmt;

use base::{num, words};

/// The largest number of bytes of a line, its end included, as for Redis.
pub const LINE_MAX: usize = 1024;
/// The largest number of a file that is read. Redis keeps it in 64 bits with a sign, in which
/// further numbers must fit.
pub const SEQ_MAX: u64 = 1 << 62;

/// What stands in the place of a manifest until there is one that lists all data: the files beside
/// it are not complete, and nobody was promised anything about them.
pub const UNBEGUN: &[u8] = b"# Nothing is complete yet: the first files are being written.\n";

/// What a file is to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// All data at some moment. There is one at most.
    Base,
    /// Changes.
    Incr,
    /// A file that was needed by an older manifest.
    History,
}

impl FileKind {
    /// The letter in the manifest.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Base => b'b',
            Self::Incr => b'i',
            Self::History => b'h',
        }
    }

    const fn of(letter: &[u8]) -> Option<Self> {
        match letter {
            b"b" => Some(Self::Base),
            b"i" => Some(Self::Incr),
            b"h" => Some(Self::History),
            _ => None,
        }
    }
}

/// A file that a manifest lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name in the folder of the manifest.
    pub name: Vec<u8>,
    /// Its number among those of its kind, from 1.
    pub seq: u64,
    /// What it is.
    pub kind: FileKind,
    /// The replication offset at which it begins, which Redis 8 writes.
    pub start_offset: Option<i64>,
    /// The replication offset at which it ends.
    pub end_offset: Option<i64>,
}

/// How a BASE file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// As an RDB file.
    Rdb,
    /// As commands.
    Commands,
}

/// The files of an append-only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The data that [`Manifest::incr`] starts from; without it, from nothing.
    pub base: Option<FileInfo>,
    /// The changes since, oldest first. New changes go to the last one.
    pub incr: Vec<FileInfo>,
    /// Files to remove.
    pub history: Vec<FileInfo>,
}

/// The name of a manifest.
pub fn manifest_name(appendfilename: &[u8]) -> Vec<u8> {
    [appendfilename, b".manifest"].concat()
}

/// The name of a BASE file.
pub fn base_name(appendfilename: &[u8], seq: u64, format: BaseFormat) -> Vec<u8> {
    let end: &[u8] = match format {
        BaseFormat::Rdb => b".base.rdb",
        BaseFormat::Commands => b".base.aof",
    };
    numbered(appendfilename, seq, end)
}

/// The name of an INCR file.
pub fn incr_name(appendfilename: &[u8], seq: u64) -> Vec<u8> {
    numbered(appendfilename, seq, b".incr.aof")
}

fn numbered(appendfilename: &[u8], seq: u64, end: &[u8]) -> Vec<u8> {
    [appendfilename, b".", seq.to_string().as_bytes(), end].concat()
}

impl FileInfo {
    /// A file without offsets.
    pub fn new(name: Vec<u8>, seq: u64, kind: FileKind) -> Self {
        Self { name, seq, kind, start_offset: None, end_offset: None }
    }

    /// Appends its line without the end.
    pub(crate) fn print(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"file ");
        // (Redis leaves a name with ' unquoted, and cannot read it back.)
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'\'');
        if self.name.iter().all(is_plain) {
            out.extend_from_slice(&self.name);
        } else {
            out.extend_from_slice(words::quoted(&self.name).as_bytes());
        }
        out.extend_from_slice(format!(" seq {} type ", self.seq).as_bytes());
        out.push(self.kind.letter());
        for (name, offset) in [("startoffset", self.start_offset), ("endoffset", self.end_offset)] {
            if let Some(offset) = offset {
                out.extend_from_slice(format!(" {name} {offset}").as_bytes());
            }
        }
    }
}

impl Manifest {
    /// The manifest of a single file as servers before Redis 7 have it: it becomes the BASE file
    /// under its own name.
    pub fn of_old_file(name: &[u8]) -> Self {
        let base = FileInfo::new(name.to_vec(), 1, FileKind::Base);
        Self { base: Some(base), ..Self::default() }
    }

    /// Reads a manifest, O(its bytes).
    ///
    /// # Errors
    /// It is not one, or not all of one.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let mut manifest = Self::default();
        if parse_lines(text, |file, _| manifest.add(file))? == 0 {
            return Err(ManifestError::new(0, b"", Fault::Empty));
        }
        Ok(manifest)
    }

    fn add(&mut self, file: FileInfo) -> Result<(), Fault> {
        match file.kind {
            FileKind::Base if self.base.is_some() => return Err(Fault::SecondBase),
            FileKind::Base => self.base = Some(file),
            FileKind::Incr if self.incr.last().is_some_and(|last| last.seq >= file.seq) => {
                return Err(Fault::Order);
            }
            FileKind::Incr => self.incr.push(file),
            FileKind::History => self.history.push(file),
        }
        Ok(())
    }

    /// The text of the file: the base first and the changes last, as Redis writes it.
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for file in self.base.iter().chain(&self.history).chain(&self.incr) {
            file.print(&mut out);
            out.push(b'\n');
        }
        out
    }

    /// The files which are the data, in the order in which they are loaded.
    pub fn loaded(&self) -> impl Iterator<Item = &FileInfo> {
        self.base.iter().chain(&self.incr)
    }

    /// The file to which new changes are appended, or would have been.
    pub fn last(&self) -> Option<&FileInfo> {
        self.incr.last().or(self.base.as_ref())
    }

    /// Adds an INCR file behind the others, for the changes from now on.
    pub fn next_incr(&mut self, appendfilename: &[u8]) -> FileInfo {
        let last = self.incr.last().map_or(0, |file| file.seq);
        let (name, seq) = self.unused(last, |seq| incr_name(appendfilename, seq));
        let file = FileInfo::new(name, seq, FileKind::Incr);
        self.incr.push(file.clone());
        file
    }

    /// Puts a new BASE file in the place of the old one, which becomes history. The changes that it
    /// holds become history with [`Manifest::retire`].
    pub fn next_base(&mut self, appendfilename: &[u8], format: BaseFormat) -> FileInfo {
        let last = self.base.as_ref().map_or(0, |file| file.seq);
        let (name, seq) = self.unused(last, |seq| base_name(appendfilename, seq, format));
        let file = FileInfo::new(name, seq, FileKind::Base);
        if let Some(old) = self.base.replace(file.clone()) {
            self.history.push(FileInfo { kind: FileKind::History, ..old });
        }
        file
    }

    /// Makes history of the INCR files before this number: a new BASE file holds their changes.
    pub fn retire(&mut self, before: u64) {
        let kept = self.incr.partition_point(|file| file.seq < before);
        let retired = self.incr.drain(..kept);
        self.history.extend(retired.map(|file| FileInfo { kind: FileKind::History, ..file }));
    }

    /// Makes history of all files: one of them is missing, so the others are of no use.
    pub fn retire_all(&mut self) {
        let retired = self.base.take().into_iter().chain(std::mem::take(&mut self.incr));
        self.history.extend(retired.map(|file| FileInfo { kind: FileKind::History, ..file }));
    }

    /// The first number behind this one whose name is not listed.
    fn unused(&self, last: u64, name: impl Fn(u64) -> Vec<u8>) -> (Vec<u8>, u64) {
        let used: HashSet<_> = self.loaded().chain(&self.history).map(|file| &file.name).collect();
        let mut seq = last + 1;
        loop {
            let name = name(seq);
            if !used.contains(&name) {
                return (name, seq);
            }
            seq += 1;
        }
    }
}

/// Reads lines and passes each file on with its line. Returns their number.
pub(crate) fn parse_lines(
    text: &[u8],
    mut add: impl FnMut(FileInfo, &[u8]) -> Result<(), Fault>,
) -> Result<usize, ManifestError> {
    let mut names = HashSet::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let fail = |fault| ManifestError::new(index + 1, line, fault);
        if line.len() > LINE_MAX {
            return Err(fail(Fault::LongLine));
        }
        if line.last() != Some(&b'\n') {
            return Err(fail(Fault::Unended));
        }
        if line[0] == b'#' {
            continue;
        }
        let file = parse_line(line).map_err(fail)?;
        if !names.insert(file.name.clone()) {
            return Err(fail(Fault::SameName));
        }
        add(file, line).map_err(fail)?;
    }
    Ok(names.len())
}

/// Reads the file which a line lists.
fn parse_line(line: &[u8]) -> Result<FileInfo, Fault> {
    // (The words would be split there.)
    if line.contains(&0) {
        return Err(Fault::Format);
    }
    let words = words::split(line).ok_or(Fault::Format)?;
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err(Fault::Format);
    }
    let (mut name, mut seq, mut kind) = (None, None, None);
    let (mut start_offset, mut end_offset) = (None, None);
    for [key, value] in pairs {
        let is_new = match key.to_ascii_lowercase().as_slice() {
            b"file" => name.replace(checked_name(value)?).is_none(),
            b"seq" => {
                let number = num::parse_u64(value).filter(|seq| (1..=SEQ_MAX).contains(seq));
                seq.replace(number.ok_or(Fault::Seq)?).is_none()
            }
            b"type" => kind.replace(FileKind::of(value).ok_or(Fault::Type)?).is_none(),
            b"startoffset" => start_offset.replace(offset(value)?).is_none(),
            b"endoffset" => end_offset.replace(offset(value)?).is_none(),
            // (Later versions may write more, as Redis 8 did.)
            _ => true,
        };
        if !is_new {
            return Err(Fault::Repeated);
        }
    }
    match (name, seq, kind) {
        (Some(name), Some(seq), Some(kind)) => {
            Ok(FileInfo { name, seq, kind, start_offset, end_offset })
        }
        _ => Err(Fault::Format),
    }
}

fn offset(text: &[u8]) -> Result<i64, Fault> {
    num::parse_i64(text).ok_or(Fault::Offset)
}

fn checked_name(name: &[u8]) -> Result<Vec<u8>, Fault> {
    let is_path = name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0));
    if is_path || matches!(name, b"" | b"." | b"..") { Err(Fault::Path) } else { Ok(name.to_vec()) }
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The line, from 1; 0 if it is about none.
    pub line: usize,
    /// The beginning of the line, as it may be shown.
    pub text: String,
    /// What it is.
    pub fault: Fault,
}

/// Why a manifest is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It lists nothing.
    Empty,
    /// The last line has no end, so the rest of it may be missing.
    Unended,
    /// A line is longer than [`LINE_MAX`].
    LongLine,
    /// A line does not say `file NAME seq N type T`.
    Format,
    /// A line says something twice.
    Repeated,
    /// The number of a file is none, or not from 1 to [`SEQ_MAX`].
    Seq,
    /// An offset is no number.
    Offset,
    /// A type other than `b`, `h` and `i`.
    Type,
    /// The name of a file is none, or leads to another folder.
    Path,
    /// Two lines have the same name.
    SameName,
    /// A second BASE file.
    SecondBase,
    /// The number of an INCR file is not above the one before.
    Order,
    /// Of a list of history: no BASE file stands before an INCR file.
    NoBase,
}

/// Bytes of a line that are shown.
const SHOWN_MAX: usize = 128;

impl ManifestError {
    fn new(line: usize, text: &[u8], fault: Fault) -> Self {
        let shown = text.trim_ascii_end();
        let shown = &shown[..shown.len().min(SHOWN_MAX)];
        Self { line, text: shown.escape_ascii().to_string(), fault }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it lists no file",
            Self::Unended => "the last line has no end, so it may not be complete",
            Self::LongLine => "the line is longer than 1024 bytes",
            Self::Format => "it does not read: file NAME seq NUMBER type b|h|i",
            Self::Repeated => "it says something twice",
            Self::Seq => "'seq' is not a number from 1 to 2^62",
            Self::Offset => "an offset is not a number",
            Self::Type => "the type is none of b (base), h (history) and i (incremental)",
            Self::Path => "the name of a file is empty or a path; it may have no folder",
            Self::SameName => "an earlier line has the same name",
            Self::SecondBase => "an earlier line has a base file; there can be only one",
            Self::Order => "the number of an incremental file is not above the one before",
            Self::NoBase => "no base file stands before it",
        })
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => self.fault.fmt(f),
            line => write!(f, "line {line}: {}", self.fault),
        }
    }
}

impl std::error::Error for ManifestError {}

#[cfg(test)]
mod tests;
