//! One run of CONFIG REWRITE: which operations on files follow each other. No I/O: it is handed the
//! outcome of each operation and returns the next one.
//!
//! ```text
//! open, read, close the old file      none: as if it were empty
//! compute the new text  <----+
//!    included files ---------+        asked for one by one, until the text follows from them
//! unlink what has the name of the temporary file
//! open it (O_EXCL, 0600), set the old file's permissions, write, sync, close
//! rename it over the old file
//! sync the folder
//! ```
//!
//! A crash leaves the old file or the new one, and perhaps the temporary file, which the next run
//! removes. So does a worker that ends in a run. After an error the temporary file is removed.

use config::Config;
use config::load::FILE_BYTES_MAX;
use config::source::{Answer, Known, Question};
use driver::{FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Bytes of a file that are read; more are too many.
const READ_BYTES: usize = FILE_BYTES_MAX as usize + 1;

/// A run under way: one operation is in flight.
pub(crate) struct Rewriting {
    /// Its number.
    pub(crate) run: u64,
    config: Box<Config>,
    file: PathBuf,
    /// The temporary file.
    beside: PathBuf,
    old: Vec<u8>,
    new: Vec<u8>,
    known: Known,
    /// What is still to be asked about included files; the last one is asked.
    questions: Vec<Question>,
    step: Step,
}

/// The operation in flight.
#[derive(Debug)]
enum Step {
    Open,
    Read(FileId),
    EndRead(Result<Vec<u8>, Errno>),
    /// Names of a folder, or what stands at a path.
    Ask,
    RemoveLeftover,
    Create,
    Permissions(FileId),
    SetPermissions(FileId),
    Write(FileId),
    Sync(FileId),
    Close,
    Rename,
    SyncFolder,
    /// After an error: the temporary file is closed and removed.
    CloseFailed(Errno),
    RemoveFailed(Errno),
}

/// What follows an operation.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next operation.
    Op(FileOp),
    /// The run is over.
    Over(Result<(), Errno>),
}

type Outcome = Result<FileValue, FileError>;

impl Rewriting {
    /// A run that writes `config`, and its first operation.
    ///
    /// # Panics
    /// If the configuration has no file: that is refused before.
    pub(crate) fn begin(run: u64, config: Box<Config>) -> (Self, FileOp) {
        let file = config.file.clone().expect("without a file there is no run");
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", driver::process_id()));
        let beside = file.with_file_name(name);
        let open = open_to_read(&file);
        let rewriting = Self {
            run,
            config,
            file,
            beside,
            old: Vec::new(),
            new: Vec::new(),
            known: Known::default(),
            questions: Vec::new(),
            step: Step::Open,
        };
        (rewriting, open)
    }

    /// The operation in flight has completed.
    pub(crate) fn advance(&mut self, outcome: Outcome) -> Next {
        let step = std::mem::replace(&mut self.step, Step::Open);
        match (step, outcome.map_err(|e| e.errno)) {
            (Step::Open, Ok(FileValue::Opened { file, .. })) => {
                self.op(Step::Read(file), FileOp::Read { file, at: 0, bytes: READ_BYTES })
            }
            (Step::Open, Err(errno)) => self.on_read(Err(errno)),
            (Step::Read(file), read) => {
                let contents = read.map(|value| match value {
                    FileValue::Bytes(bytes) => bytes,
                    other => unreachable!("a read returns bytes: {other:?}"),
                });
                self.op(Step::EndRead(contents), FileOp::Close { file })
            }
            (Step::EndRead(contents), _) => self.on_read(contents),
            (Step::Ask, answered) => {
                let answer = match answered {
                    Ok(FileValue::Names(names)) => Answer::Names(names),
                    Ok(_) => Answer::Exists,
                    Err(_) => Answer::Failed,
                };
                self.on_answer(answer)
            }
            (step, outcome) => self.advance_writing(step, outcome),
        }
    }

    /// As [`Rewriting::advance`], for the second half, which begins when the new text is known.
    fn advance_writing(&mut self, step: Step, outcome: Result<FileValue, Errno>) -> Next {
        match (step, outcome) {
            // A file that has the name already is a leftover or an attack: it is never written to.
            (Step::RemoveLeftover, Ok(_) | Err(Errno::NOENT)) => {
                let how =
                    OpenHow { write: true, create_new: true, mode: 0o600, ..OpenHow::default() };
                self.op(Step::Create, FileOp::Open { path: self.beside.clone(), how })
            }
            (Step::Create, Ok(FileValue::Opened { file, .. })) => {
                self.op(Step::Permissions(file), FileOp::Status { path: self.file.clone() })
            }
            (Step::Permissions(file), Ok(FileValue::Status { mode, .. })) => {
                self.op(Step::SetPermissions(file), FileOp::SetMode { file, mode })
            }
            // There was no old file: the new one stays private, because it may hold passwords.
            (Step::Permissions(file), Err(_)) | (Step::SetPermissions(file), Ok(_)) => {
                let bytes = std::mem::take(&mut self.new);
                self.op(Step::Write(file), FileOp::Write { file, at: 0, bytes })
            }
            (Step::Write(file), Ok(_)) => self.op(Step::Sync(file), FileOp::SyncData { file }),
            (Step::Sync(file), Ok(_)) => self.op(Step::Close, FileOp::Close { file }),
            (Step::Close, _) => {
                let (from, to) = (self.beside.clone(), self.file.clone());
                self.op(Step::Rename, FileOp::Rename { from, to })
            }
            (Step::Rename, Ok(_)) => {
                let folder = self.file.parent().filter(|p| !p.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).to_owned();
                self.op(Step::SyncFolder, FileOp::SyncFolder { folder })
            }
            (Step::SyncFolder, outcome) => Next::Over(outcome.map(|_| ())),
            (Step::SetPermissions(file) | Step::Write(file) | Step::Sync(file), Err(errno)) => {
                self.op(Step::CloseFailed(errno), FileOp::Close { file })
            }
            (Step::Rename, Err(errno)) | (Step::CloseFailed(errno), _) => {
                self.op(Step::RemoveFailed(errno), FileOp::Unlink { path: self.beside.clone() })
            }
            // A partial file is useless; a failure to remove it changes nothing.
            (Step::RemoveFailed(errno), _) | (Step::RemoveLeftover | Step::Create, Err(errno)) => {
                Next::Over(Err(errno))
            }
            (step, outcome) => unreachable!("not what {step:?} returns: {outcome:?}"),
        }
    }

    fn op(&mut self, step: Step, op: FileOp) -> Next {
        self.step = step;
        Next::Op(op)
    }

    /// A file was read: the old one, or one that is included.
    fn on_read(&mut self, contents: Result<Vec<u8>, Errno>) -> Next {
        if !self.questions.is_empty() {
            return self.on_answer(contents.map_or(Answer::Failed, Answer::Contents));
        }
        self.old = match contents {
            Ok(old) if old.len() as u64 > FILE_BYTES_MAX => return Next::Over(Err(Errno::FBIG)),
            Ok(old) => old,
            Err(Errno::NOENT) => Vec::new(),
            Err(errno) => return Next::Over(Err(errno)),
        };
        self.compute()
    }

    /// Computes the new text, or finds what else it depends on.
    fn compute(&mut self) -> Next {
        match config::rewrite::text(&self.config, &self.old, &mut self.known) {
            Ok(text) => {
                self.new = text;
                self.op(Step::RemoveLeftover, FileOp::Unlink { path: self.beside.clone() })
            }
            Err(questions) => {
                self.questions = questions;
                self.ask()
            }
        }
    }

    fn on_answer(&mut self, answer: Answer) -> Next {
        let question = self.questions.pop().expect("it was asked");
        self.known.add(question, answer);
        self.ask()
    }

    /// Asks the next question about included files; computes again when there is none.
    fn ask(&mut self) -> Next {
        let (step, op) = match self.questions.last() {
            None => return self.compute(),
            Some(Question::Contents(file)) => (Step::Open, open_to_read(file)),
            Some(Question::Names(folder)) => (Step::Ask, FileOp::List { folder: folder.clone() }),
            Some(Question::Exists(path)) => (Step::Ask, FileOp::Status { path: path.clone() }),
        };
        self.op(step, op)
    }
}

fn open_to_read(file: &Path) -> FileOp {
    let how = OpenHow { read: true, ..OpenHow::default() };
    FileOp::Open { path: file.to_owned(), how }
}

#[cfg(test)]
mod tests;
