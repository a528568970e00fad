//! A model of the files in one folder, and an actor which does random operations there.

use base::prng::Prng;
use driver::{FileError, FileId, FileOp, FileValue, OpenHow};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::PathBuf;

type Outcome = Result<FileValue, FileError>;

/// Names an actor uses.
const NAMES: u64 = 4;
/// Files are not longer than about this.
const LEN_MAX: u64 = 3_000;

/// The contents of a folder's files, without links: an open file stands for its name.
#[derive(Default)]
pub struct Model {
    pub names: BTreeMap<String, Vec<u8>>,
}

/// One random user of a folder, with one operation in flight.
pub struct Actor {
    pub folder: PathBuf,
    pub model: Model,
    prng: Prng,
    open: Option<Open>,
    expected: Expected,
}

/// The open file. Its contents are here when its name is gone.
struct Open {
    file: FileId,
    append: bool,
    name: Option<String>,
    nameless: Vec<u8>,
}

/// How the operation in flight should end.
enum Expected {
    Outcome(Outcome),
    /// Opened, of this length.
    Opened {
        name: String,
        append: bool,
        len: u64,
    },
    /// These names, in any order.
    Names(Vec<String>),
    Closed,
}

impl Actor {
    pub fn new(folder: PathBuf, seed: u64) -> Self {
        let expected = Expected::Closed;
        Self { folder, model: Model::default(), prng: Prng::new(seed), open: None, expected }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.prng.draw() % bound
    }

    fn name(&mut self) -> String {
        format!("file-{}", self.below(NAMES))
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.below(500);
        (0..len).map(|_| self.prng.draw() as u8).collect()
    }

    /// Draws an operation, applies it to the model and remembers what must follow.
    pub fn next_op(&mut self) -> FileOp {
        if self.open.is_none() || self.below(8) == 0 {
            return self.op_on_names();
        }
        self.op_on_open()
    }

    fn op_on_names(&mut self) -> FileOp {
        let name = self.name();
        let path = self.folder.join(&name);
        let stands = self.model.names.get(&name).map(|contents| contents.len() as u64);
        let missing = || Err(FileError { errno: Errno::NOENT, written: 0 });
        let done = if stands.is_some() { Ok(FileValue::Done) } else { missing() };
        let op;
        (op, self.expected) = match self.below(if self.open.is_some() { 4 } else { 8 }) {
            0 => {
                self.model
                    .names
                    .remove(&name)
                    .into_iter()
                    .for_each(|bytes| self.unname(&name, bytes));
                (FileOp::Unlink { path }, Expected::Outcome(done))
            }
            1 => {
                let to = self.name();
                if stands.is_some() && to != name {
                    self.rename(&name, &to);
                }
                let op = FileOp::Rename { from: path, to: self.folder.join(to) };
                (op, Expected::Outcome(done))
            }
            2 => {
                let status = |len| FileValue::Status { len, mode: 0o600, is_folder: false };
                let status = stands.map(status).map_or_else(missing, Ok);
                (FileOp::Status { path }, Expected::Outcome(status))
            }
            3 => {
                let names = self.model.names.keys().cloned().collect();
                (FileOp::List { folder: self.folder.clone() }, Expected::Names(names))
            }
            _ => return self.op_open(&name, stands),
        };
        op
    }

    fn op_open(&mut self, name: &str, stands: Option<u64>) -> FileOp {
        let (append, kind) = (self.below(3) == 0, self.below(4));
        let how = OpenHow {
            read: true,
            write: true,
            append,
            create: kind == 0,
            create_new: kind == 1,
            truncate: kind == 2,
            mode: 0o600,
        };
        let errno = match (stands, kind) {
            (None, 2 | 3) => Some(Errno::NOENT),
            (Some(_), 1) => Some(Errno::EXIST),
            _ => None,
        };
        self.expected = if let Some(errno) = errno {
            Expected::Outcome(Err(FileError { errno, written: 0 }))
        } else {
            let contents = self.model.names.entry(name.to_owned()).or_default();
            if how.truncate {
                contents.clear();
            }
            Expected::Opened { name: name.to_owned(), append, len: contents.len() as u64 }
        };
        FileOp::Open { path: self.folder.join(name), how }
    }

    fn op_on_open(&mut self) -> FileOp {
        let (kind, at, bytes) = (self.below(11), self.below(LEN_MAX), self.bytes());
        let Some(open) = &mut self.open else { unreachable!("it is open") };
        let (file, append) = (open.file, open.append);
        let contents = match &open.name {
            Some(name) => self.model.names.get_mut(name).expect("it stands there"),
            None => &mut open.nameless,
        };
        let done = Expected::Outcome(Ok(FileValue::Done));
        let (op, expected) = match kind {
            0..3 => {
                let (from, len) = ((at as usize).min(contents.len()), bytes.len() * 3);
                let to = (from + len).min(contents.len());
                let read = FileValue::Bytes(contents[from..to].to_vec());
                let op = FileOp::Read { file, at, bytes: len };
                (op, Expected::Outcome(Ok(read)))
            }
            3..6 if append => {
                contents.extend_from_slice(&bytes);
                let written = FileValue::Written(bytes.clone());
                (FileOp::Append { file, bytes }, Expected::Outcome(Ok(written)))
            }
            3..6 => {
                let (from, to) = (at as usize, at as usize + bytes.len());
                if !bytes.is_empty() {
                    contents.resize(contents.len().max(to), 0);
                    contents[from..to].copy_from_slice(&bytes);
                }
                let written = FileValue::Written(bytes.clone());
                (FileOp::Write { file, at, bytes }, Expected::Outcome(Ok(written)))
            }
            6 => {
                contents.resize(at as usize, 0);
                (FileOp::Truncate { file, to: at }, done)
            }
            7 => (FileOp::Preallocate { file, from: at, bytes: 1 + bytes.len() as u64 }, done),
            8 => (FileOp::SyncData { file }, done),
            9 => (FileOp::Forget { file, to: at }, done),
            _ => (FileOp::Close { file }, Expected::Closed),
        };
        self.expected = expected;
        op
    }

    /// A name is gone; its open file keeps the contents.
    fn unname(&mut self, name: &str, contents: Vec<u8>) {
        if let Some(open) = self.open.as_mut().filter(|open| open.name.as_deref() == Some(name)) {
            (open.name, open.nameless) = (None, contents);
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(replaced) = self.model.names.remove(to) {
            self.unname(to, replaced);
        }
        let contents = self.model.names.remove(from).expect("it stands there");
        self.model.names.insert(to.to_owned(), contents);
        if let Some(open) = self.open.as_mut().filter(|open| open.name.as_deref() == Some(from)) {
            open.name = Some(to.to_owned());
        }
    }

    /// The operation has completed.
    pub fn check(&mut self, outcome: Outcome) {
        match std::mem::replace(&mut self.expected, Expected::Closed) {
            Expected::Outcome(expected) => assert_eq!(outcome, expected),
            Expected::Closed => {
                assert_eq!(outcome, Ok(FileValue::Done));
                self.open = None;
            }
            Expected::Names(expected) => {
                let Ok(FileValue::Names(names)) = outcome else { panic!("{outcome:?}") };
                let mut names: Vec<String> = names
                    .into_iter()
                    .map(|name| name.into_string().expect("names are text"))
                    .collect();
                names.sort();
                assert_eq!(names, expected);
            }
            Expected::Opened { name, append, len } => {
                let Ok(FileValue::Opened { file, len: opened }) = outcome else {
                    panic!("{name}: {outcome:?}")
                };
                assert_eq!(opened, len);
                let name = Some(name);
                self.open = Some(Open { file, append, name, nameless: Vec::new() });
            }
        }
    }
}
