//! The engine of file operations: common to all back ends, below the driver and above single system
//! calls.
//!
//! ```text
//! start(token, FileOp) ---> Running { token, step } ---> submit_file(number, RawOp)
//!                              |  ^  next step: the rest of a read or write, sync and close of a
//!                              v  |  folder that was opened, ...
//! FileDone <------- done    on_call(RawDone)
//! ```
//!
//! A running operation has one call in flight. A number is a place in `running`, reused when the
//! operation has completed.

mod open;

use super::raw::{RawDone, RawFiles, RawOp, RawValue};
use super::{
    FileDone, FileError, FileId, FileOp, FileValue, OPERATIONS_MAX, OpenHow, READ_MAX, WRITE_MAX,
};
use open::OpenFiles;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The files of one driver.
pub struct Files<F> {
    open: OpenFiles<F>,
    running: Vec<Option<Running<F>>>,
    free: Vec<u32>,
    /// Completed and not reported yet.
    done: VecDeque<FileDone>,
    /// Scratch: completed calls.
    calls: Vec<RawDone<F>>,
}

/// An operation with a call in flight.
struct Running<F> {
    token: u64,
    /// The file that it keeps from being closed.
    file: Option<FileId>,
    step: Step<F>,
}

/// What the call in flight is for.
enum Step<F> {
    /// The only call of its operation.
    Whole,
    Opening {
        how: OpenHow,
    },
    /// The file is open and has no identifier yet.
    Measuring {
        file: F,
        how: OpenHow,
    },
    Reading {
        file: F,
        at: u64,
        wanted: usize,
    },
    Writing {
        file: F,
        to: Target,
        written: usize,
    },
    Closing {
        id: FileId,
    },
    OpeningFolder,
    SyncingFolder {
        folder: F,
    },
    /// The outcome stands; the file or folder behind it is closed first.
    Discarding {
        outcome: Result<FileValue, FileError>,
    },
}

type Outcome = Result<FileValue, FileError>;

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        Self { errno, written: 0 }
    }
}

impl<F: Clone> Files<F> {
    pub fn new() -> Self {
        Self {
            open: OpenFiles::new(),
            running: Vec::new(),
            free: Vec::new(),
            done: VecDeque::new(),
            calls: Vec::new(),
        }
    }

    /// True if a completion waits to be reported.
    #[inline]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Handles the calls that have completed.
    pub fn advance_all(&mut self, back_end: &mut impl RawFiles<File = F>) {
        let mut calls = std::mem::take(&mut self.calls);
        back_end.completed_files(&mut calls);
        for call in calls.drain(..) {
            self.on_call(back_end, call);
        }
        self.calls = calls;
    }

    /// The next completion to report.
    pub fn next_done(&mut self) -> Option<FileDone> {
        self.done.pop_front()
    }

    /// Starts an operation.
    pub fn start(&mut self, back_end: &mut impl RawFiles<File = F>, token: u64, op: FileOp) {
        if let FileOp::Close { file } = op {
            return self.close(back_end, token, file);
        }
        let number = match self.may_start(&op).and_then(|()| self.reserve()) {
            Ok(number) => number,
            Err(errno) => return self.refuse(token, errno, op),
        };
        match self.prepare(op) {
            Ok(Prepared { file, step, call }) => {
                if let Some(id) = file {
                    self.open.begin(id);
                }
                self.running[number as usize] = Some(Running { token, file, step });
                back_end.submit_file(number, call);
            }
            Err(errno) => {
                self.free.push(number);
                self.report(token, Err(errno.into()));
            }
        }
    }

    /// Whether a write can be prepared; of other operations nothing is asked here.
    fn may_start(&self, op: &FileOp) -> Result<(), Errno> {
        let (id, at) = match op {
            FileOp::Write { file, at, .. } | FileOp::WriteDurably { file, at, .. } => {
                (*file, Some(*at))
            }
            FileOp::Append { file, .. } => (*file, None),
            _ => return Ok(()),
        };
        let (_, how) = self.open.find(id)?;
        if how.append != at.is_none() {
            return Err(Errno::INVAL); // the system would ignore the offset of a write
        }
        check_offset(at.unwrap_or(0)).map(|_| ())
    }

    /// Reports an operation that does not start. The buffer of a write goes back.
    fn refuse(&mut self, token: u64, errno: Errno, op: FileOp) {
        let unwritten = match op {
            FileOp::Write { bytes, .. }
            | FileOp::WriteDurably { bytes, .. }
            | FileOp::Append { bytes, .. } => bytes,
            _ => Vec::new(),
        };
        self.done.push_back(FileDone { token, outcome: Err(errno.into()), unwritten });
    }

    /// A free number.
    fn reserve(&mut self) -> Result<u32, Errno> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if self.running.len() >= OPERATIONS_MAX {
            return Err(Errno::AGAIN);
        }
        self.running.push(None);
        Ok(self.running.len() as u32 - 1)
    }

    /// The first call of an operation, or why it is refused.
    fn prepare(&self, op: FileOp) -> Result<Prepared<F>, Errno> {
        let on = |id| self.open.find(id).map(|(file, _)| file);
        let whole = |id, call| Ok(Prepared { file: id, step: Step::Whole, call });
        match op {
            FileOp::Open { path, how } => {
                let is_usable = how.write || how.read && !how.append;
                if !is_usable {
                    return Err(Errno::INVAL);
                }
                self.open.check_room()?;
                let call = RawOp::Open { path: c_path(path)?, how, is_folder: false };
                Ok(Prepared { file: None, step: Step::Opening { how }, call })
            }
            FileOp::Read { file: id, at, bytes } => {
                let file = on(id)?;
                let call = read(file.clone(), at, bytes, Vec::new())?;
                Ok(Prepared {
                    file: Some(id),
                    step: Step::Reading { file, at, wanted: bytes },
                    call,
                })
            }
            FileOp::Write { file, at, bytes } => self.prepare_write(file, Target::at(at), bytes),
            FileOp::WriteDurably { file, at, bytes } => {
                self.prepare_write(file, Target { at: Some(at), is_durable: true }, bytes)
            }
            FileOp::Append { file, bytes } => self.prepare_write(file, Target::END, bytes),
            FileOp::Truncate { file: id, to } => {
                whole(Some(id), RawOp::Truncate { file: on(id)?, to })
            }
            FileOp::Preallocate { file: id, from, bytes } => {
                let file = on(id)?;
                whole(Some(id), RawOp::Preallocate { file, from, bytes })
            }
            FileOp::SyncData { file: id } => {
                let file = on(id)?;
                whole(Some(id), RawOp::Sync { file, is_folder: false })
            }
            FileOp::Forget { file: id, to } => whole(Some(id), RawOp::Forget { file: on(id)?, to }),
            FileOp::SetMode { file: id, mode } => {
                whole(Some(id), RawOp::SetMode { file: on(id)?, mode })
            }
            FileOp::Close { .. } => unreachable!("close is no operation on an open file"),
            FileOp::Rename { from, to } => {
                whole(None, RawOp::Rename { from: c_path(from)?, to: c_path(to)? })
            }
            FileOp::Unlink { path } => whole(None, RawOp::Unlink { path: c_path(path)? }),
            FileOp::CreateFolder { path, mode } => {
                whole(None, RawOp::CreateFolder { path: c_path(path)?, mode })
            }
            FileOp::RemoveFolder { path } => {
                whole(None, RawOp::RemoveFolder { path: c_path(path)? })
            }
            FileOp::List { folder } => whole(None, RawOp::List { folder: c_path(folder)? }),
            FileOp::Status { path } => whole(None, RawOp::Status { path: c_path(path)? }),
            FileOp::SyncFolder { folder } => {
                let how = OpenHow { read: true, ..OpenHow::default() };
                let call = RawOp::Open { path: c_path(folder)?, how, is_folder: true };
                Ok(Prepared { file: None, step: Step::OpeningFolder, call })
            }
        }
    }

    fn prepare_write(&self, id: FileId, to: Target, bytes: Vec<u8>) -> Result<Prepared<F>, Errno> {
        let (file, _) = self.open.find(id)?;
        let step = Step::Writing { file: file.clone(), to, written: 0 };
        let call = write(file, to, bytes, 0);
        Ok(Prepared { file: Some(id), step, call })
    }

    /// Closes a file as soon as no operation is in flight on it.
    fn close(&mut self, back_end: &mut impl RawFiles<File = F>, token: u64, id: FileId) {
        let number = match self.open.find(id).and_then(|_| self.reserve()) {
            Ok(number) => number,
            Err(errno) => return self.report(token, Err(errno.into())),
        };
        let step = Step::Closing { id };
        self.running[number as usize] = Some(Running { token, file: None, step });
        if let Some(file) = self.open.close(id, number) {
            back_end.submit_file(number, RawOp::Close { file });
        }
    }

    /// A call has completed: the operation goes to its next step or completes.
    fn on_call(&mut self, back_end: &mut impl RawFiles<File = F>, call: RawDone<F>) {
        let RawDone { number, buffer, result } = call;
        let place = &mut self.running[number as usize];
        let running = place.take().expect("a call completes once");
        let (token, file) = (running.token, running.file);
        match self.advance(running.step, buffer, result) {
            Next::Call(step, call) => {
                self.running[number as usize] = Some(Running { token, file, step });
                back_end.submit_file(number, call);
            }
            Next::Completed(outcome) => {
                self.report(token, outcome);
                self.end(back_end, number, file);
            }
            Next::Unwritten(error, unwritten) => {
                self.done.push_back(FileDone { token, outcome: Err(error), unwritten });
                self.end(back_end, number, file);
            }
        }
    }

    /// An operation is over: its number is free, and its file may be closed.
    fn end(&mut self, back_end: &mut impl RawFiles<File = F>, number: u32, file: Option<FileId>) {
        self.free.push(number);
        if let Some((closing, file)) = file.and_then(|id| self.open.end(id)) {
            back_end.submit_file(closing, RawOp::Close { file });
        }
    }

    /// What follows from the result of a step.
    fn advance(
        &mut self,
        step: Step<F>,
        buffer: Vec<u8>,
        result: Result<RawValue<F>, Errno>,
    ) -> Next<F> {
        match (step, result) {
            (Step::Whole, result) => Next::Completed(whole(result)),
            (Step::Opening { how }, Ok(RawValue::File(file))) => {
                Next::Call(Step::Measuring { file: file.clone(), how }, RawOp::Measure { file })
            }
            (Step::Measuring { file, how }, Ok(RawValue::Status { len, .. })) => {
                match self.open.insert(file.clone(), how) {
                    Ok(id) => Next::Completed(Ok(FileValue::Opened { file: id, len })),
                    Err(errno) => discard(file, Err(errno.into())),
                }
            }
            (Step::Measuring { file, .. }, Err(errno)) => discard(file, Err(errno.into())),
            (Step::Reading { file, at, wanted }, result) => {
                on_read(&file, at, wanted, buffer, count(result))
            }
            (Step::Writing { file, to, written }, result) => {
                on_written(&file, to, written, buffer, count(result))
            }
            (Step::Closing { id }, result) => {
                self.open.remove(id);
                Next::Completed(whole(result))
            }
            (Step::OpeningFolder, Ok(RawValue::File(folder))) => {
                let step = Step::SyncingFolder { folder: folder.clone() };
                Next::Call(step, RawOp::Sync { file: folder, is_folder: true })
            }
            (Step::SyncingFolder { folder }, result) => discard(folder, whole(result)),
            (Step::Discarding { outcome }, _) => Next::Completed(outcome),
            (Step::Opening { .. } | Step::OpeningFolder, Err(errno)) => {
                Next::Completed(Err(errno.into()))
            }
            (Step::Opening { .. } | Step::OpeningFolder | Step::Measuring { .. }, Ok(_)) => {
                unreachable!("a back end returns what its call is documented to return")
            }
        }
    }

    fn report(&mut self, token: u64, outcome: Outcome) {
        self.done.push_back(FileDone { token, outcome, unwritten: Vec::new() });
    }
}

/// Where a write goes.
#[derive(Clone, Copy)]
struct Target {
    /// Offset of the first byte of all; `None`: the end of the file.
    at: Option<u64>,
    is_durable: bool,
}

impl Target {
    const END: Self = Self { at: None, is_durable: false };

    fn at(at: u64) -> Self {
        Self { at: Some(at), ..Self::END }
    }
}

/// The first call of an operation, and the file that it uses.
struct Prepared<F> {
    file: Option<FileId>,
    step: Step<F>,
    call: RawOp<F>,
}

/// What follows a call.
enum Next<F> {
    Call(Step<F>, RawOp<F>),
    Completed(Outcome),
    /// A write has failed; the buffer goes back.
    Unwritten(FileError, Vec<u8>),
}

/// The outcome of an operation of one call.
fn whole<F>(result: Result<RawValue<F>, Errno>) -> Outcome {
    match result? {
        RawValue::Done => Ok(FileValue::Done),
        RawValue::Names(names) => Ok(FileValue::Names(names)),
        RawValue::Status { len, mode, is_folder } => Ok(FileValue::Status { len, mode, is_folder }),
        RawValue::File(_) | RawValue::Count(_) => {
            unreachable!("such a call has a step of its own")
        }
    }
}

/// Closes a file which the caller never gets to know, and then reports `outcome`.
fn discard<F>(file: F, outcome: Outcome) -> Next<F> {
    Next::Call(Step::Discarding { outcome }, RawOp::Close { file })
}

/// The call that reads what is missing behind `buffer`, of which `wanted` bytes are wanted.
fn read<F>(file: F, at: u64, wanted: usize, mut buffer: Vec<u8>) -> Result<RawOp<F>, Errno> {
    let room = (wanted - buffer.len()).min(READ_MAX);
    buffer.try_reserve(room).map_err(|_| Errno::NOMEM)?;
    let at = check_offset(at.saturating_add(buffer.len() as u64))?;
    Ok(RawOp::Read { file, at, room, buffer })
}

/// The result of a read or write.
fn count<F>(result: Result<RawValue<F>, Errno>) -> Result<usize, Errno> {
    match result? {
        RawValue::Count(count) => Ok(count),
        _ => unreachable!("a read or write returns a count"),
    }
}

fn on_read<F: Clone>(
    file: &F,
    at: u64,
    wanted: usize,
    buffer: Vec<u8>,
    count: Result<usize, Errno>,
) -> Next<F> {
    match count {
        Ok(count) if count > 0 && buffer.len() < wanted => {
            match read(file.clone(), at, wanted, buffer) {
                Ok(call) => Next::Call(Step::Reading { file: file.clone(), at, wanted }, call),
                Err(errno) => Next::Completed(Err(errno.into())),
            }
        }
        Ok(_) => Next::Completed(Ok(FileValue::Bytes(buffer))),
        Err(errno) => Next::Completed(Err(errno.into())),
    }
}

/// The call that writes `bytes` from `written` on; the first byte of all goes to `to`.
fn write<F>(file: F, to: Target, bytes: Vec<u8>, written: usize) -> RawOp<F> {
    let room = (bytes.len() - written).min(WRITE_MAX);
    let at = to.at.map(|at| at.saturating_add(written as u64));
    RawOp::Write { file, at, bytes, from: written, room, is_durable: to.is_durable }
}

fn on_written<F: Clone>(
    file: &F,
    to: Target,
    before: usize,
    bytes: Vec<u8>,
    count: Result<usize, Errno>,
) -> Next<F> {
    let count = match count {
        Ok(count) => count,
        Err(errno) => return Next::Unwritten(FileError { errno, written: before }, bytes),
    };
    let written = before + count;
    if written >= bytes.len() {
        return Next::Completed(Ok(FileValue::Written(bytes)));
    }
    if count == 0 {
        // No byte and no error: writing again could loop for ever.
        return Next::Unwritten(FileError { errno: Errno::IO, written }, bytes);
    }
    let call = write(file.clone(), to, bytes, written);
    Next::Call(Step::Writing { file: file.clone(), to, written }, call)
}

/// Refuses an offset which no file has. (For a ring the greatest number means the end.)
fn check_offset(at: u64) -> Result<u64, Errno> {
    if i64::try_from(at).is_ok() { Ok(at) } else { Err(Errno::INVAL) }
}

/// A path for the system. One with a zero byte names nothing.
fn c_path(path: PathBuf) -> Result<CString, Errno> {
    CString::new(path.into_os_string().into_vec()).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests;
