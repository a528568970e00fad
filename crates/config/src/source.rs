//! Where the files of a configuration come from: from the disk when a server starts, and from
//! answers that a caller has got by itself when a running server rewrites its file.

use super::load::FILE_BYTES_MAX;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Files and folders.
pub(crate) trait Source {
    /// The contents of a file, cut at [`FILE_BYTES_MAX`] + 1 bytes.
    fn contents(&mut self, file: &Path) -> io::Result<Vec<u8>>;
    /// The names in a folder; none if it cannot be read.
    fn names(&mut self, folder: &Path) -> Vec<OsString>;
    /// True if something stands at this path.
    fn exists(&mut self, path: &Path) -> bool;
}

/// The disk. Its calls block: for a server that starts.
pub(crate) struct Disk;

impl Source for Disk {
    fn contents(&mut self, file: &Path) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
        Ok(text)
    }

    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.flatten().map(|entry| entry.file_name()).collect()
    }

    fn exists(&mut self, path: &Path) -> bool {
        path.exists()
    }
}

/// Something about the disk that a configuration depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The contents of a file, cut at [`FILE_BYTES_MAX`] + 1 bytes.
    Contents(PathBuf),
    /// The names in a folder.
    Names(PathBuf),
    /// Whether something stands at a path.
    Exists(PathBuf),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// The contents.
    Contents(Vec<u8>),
    /// The names.
    Names(Vec<OsString>),
    /// Something stands there.
    Exists,
    /// It does not exist or cannot be read.
    Failed,
}

/// The answers so far. While a question is open, the files are empty and the folders have no names;
/// what was read then is not to be used.
#[derive(Debug, Default)]
pub struct Known {
    answers: BTreeMap<Question, Answer>,
    open: Vec<Question>,
}

impl Known {
    /// Adds an answer.
    pub fn add(&mut self, question: Question, answer: Answer) {
        self.answers.insert(question, answer);
    }

    /// The questions that were asked without an answer, each once.
    pub(crate) fn take_open(&mut self) -> Vec<Question> {
        let mut open = std::mem::take(&mut self.open);
        open.sort_unstable();
        open.dedup();
        open
    }

    fn ask(&mut self, question: Question) -> Option<&Answer> {
        if !self.answers.contains_key(&question) {
            self.open.push(question);
            return None;
        }
        self.answers.get(&question)
    }
}

impl Source for Known {
    fn contents(&mut self, file: &Path) -> io::Result<Vec<u8>> {
        match self.ask(Question::Contents(file.to_owned())) {
            None => Ok(Vec::new()),
            Some(Answer::Contents(text)) => Ok(text.clone()),
            Some(_) => Err(ErrorKind::NotFound.into()),
        }
    }

    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        match self.ask(Question::Names(folder.to_owned())) {
            Some(Answer::Names(names)) => names.clone(),
            _ => Vec::new(),
        }
    }

    fn exists(&mut self, path: &Path) -> bool {
        matches!(self.ask(Question::Exists(path.to_owned())), Some(Answer::Exists))
    }
}
