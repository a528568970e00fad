//! An independent reader of append-only folders: it counts the bytes of the commands and compares
//! the count with whatever the files say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheafdb_tests::folder::Folder;
use sheafdb_tests::wire::{Value, parse};

pub const FILES: &str = "appendonlydir";
pub const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

/// What stands in the files of a folder, from the oldest one which is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recount {
    /// Bytes of the stream so far, and its id; none before a file says it.
    pub offset: u64,
    pub id: Option<String>,
    /// The offset behind each record, and the id there.
    pub behind: BTreeMap<u64, (String, u64)>,
    /// All ids.
    pub ids: Vec<String>,
    /// Lines which say an offset, and producers.
    pub lines: usize,
    pub producers: usize,
    pub bases: usize,
    /// The last file ends within a record.
    pub is_cut: bool,
}

/// The files of a folder in order, history first, without those of both lists twice.
fn chain(folder: &Path) -> Vec<(bool, PathBuf)> {
    let files = folder.join(FILES);
    let mut all: Vec<(bool, PathBuf)> = Vec::new();
    for list in ["appendonly.aof.history", "appendonly.aof.manifest"] {
        let text = fs::read_to_string(files.join(list)).unwrap_or_default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let file = (words[5] == "b", files.join(words[1]));
            if words[5] != "h" && !all.contains(&file) {
                all.push(file);
            }
        }
    }
    all
}

/// A field of an RDB file, as redis-check-rdb shows it.
pub fn field(path: &Path, name: &str) -> Option<String> {
    let out = Command::new("redis-check-rdb").arg(path).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    let mark = format!("AUX FIELD {name} = '");
    let begin = text.find(&mark)? + mark.len();
    Some(text[begin..].split('\'').next().expect("its end").to_owned())
}

impl Recount {
    /// Counts all files of a folder.
    pub fn of(folder: &Path) -> Self {
        let mut count = Self::default();
        for (is_base, path) in chain(folder) {
            assert!(!count.is_cut, "a file ahead of the last one is cut");
            let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            if is_base {
                count.base(&path, &bytes);
            } else {
                count.segment(&path, &bytes);
            }
        }
        count
    }

    /// The data at some moment: what it says is what was counted up to there.
    fn base(&mut self, path: &Path, bytes: &[u8]) {
        let (id, offset) = if bytes.starts_with(b"REDIS") {
            let id = field(path, "repl-id").unwrap_or_else(|| panic!("{}", path.display()));
            (id, field(path, "repl-offset").expect("it has both"))
        } else {
            let text = String::from_utf8_lossy(bytes);
            let mut lines = text.lines();
            assert!(lines.next().expect("a line").starts_with("#BASE:"), "{}", path.display());
            let line = lines.next().and_then(|line| line.strip_prefix("#OFFSET:"));
            let (offset, id) = line.expect("an offset").split_once(':').expect("an id");
            (id.to_owned(), offset.to_owned())
        };
        let offset = offset.parse().expect("a number");
        if self.bases > 0 {
            assert_eq!(self.offset, offset, "{}", path.display());
        }
        self.bases += 1;
        self.offset = offset;
        self.id = Some(id);
    }

    fn segment(&mut self, path: &Path, bytes: &[u8]) {
        let what = || path.display().to_string();
        let (mut at, mut next, mut is_said) = (0, 0, false);
        // Where the transaction began whose end has not come, by offset.
        let mut open: Option<u64> = None;
        let mut awaits_offset = false;
        while at < bytes.len() {
            if bytes[at] == b'#' {
                let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') else { break };
                let line = String::from_utf8_lossy(&bytes[at..at + end]).trim_end().to_owned();
                at += end + 1;
                if let Some(moment) = line.strip_prefix("#NUM:") {
                    assert!(open.is_none() && !awaits_offset, "{}: {line}", what());
                    next = moment.split(':').next().and_then(|n| n.parse().ok()).expect("a number");
                    awaits_offset = true;
                } else if let Some(said) = line.strip_prefix("#OFFSET:") {
                    assert!(open.is_none() && awaits_offset, "{}: {line}", what());
                    awaits_offset = false;
                    self.said(said, is_said, &what);
                    is_said = true;
                }
                self.producers += usize::from(line.starts_with("#PRODUCER:"));
                continue;
            }
            let Ok(Some((Value::Array(words), len))) = parse(&bytes[at..]) else { break };
            assert!(is_said && !awaits_offset, "{} begins without an offset", what());
            let Value::Bulk(name) = &words[0] else { panic!("{}: {words:?}", what()) };
            at += len;
            let before = self.offset;
            self.offset += len as u64;
            match name.as_slice() {
                b"MULTI" => open = Some(before),
                b"EXEC" => open = None,
                b"SELECT" => continue,
                _ => {}
            }
            if open.is_none() {
                let id = self.id.clone().expect("it was said");
                assert!(self.behind.insert(next, (id, self.offset)).is_none(), "{next} twice");
                next += 1;
            }
        }
        self.is_cut = at < bytes.len() || open.is_some();
        self.offset = open.unwrap_or(self.offset);
    }

    /// A line says an offset: that is what was counted.
    fn said(&mut self, said: &str, has_id: bool, what: &dyn Fn() -> String) {
        let (offset, id) = match said.split_once(':') {
            Some((offset, id)) => (offset, Some(id.to_owned())),
            None => (said, None),
        };
        assert!(has_id || id.is_some(), "{}: the first line says the id", what());
        if let Some(id) = id {
            self.ids.push(id.clone());
            self.id = Some(id);
        }
        assert_eq!(offset.parse(), Ok(self.offset), "{}: {said}", what());
        self.lines += 1;
    }

    /// The last position.
    pub fn position(&self) -> (Option<String>, u64) {
        (self.id.clone(), self.offset)
    }
}

/// Copies the files of a folder.
pub fn copy(folder: &Folder, name: &str) -> Folder {
    let copy = Folder::new(name);
    fs::create_dir(copy.at(FILES)).expect("a folder");
    for entry in fs::read_dir(folder.at(FILES)).expect("a folder") {
        let path = entry.expect("a name").path();
        fs::copy(&path, copy.at(FILES).join(path.file_name().expect("a name"))).expect("a copy");
    }
    copy
}
