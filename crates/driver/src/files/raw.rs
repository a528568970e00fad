//! What the engine asks of a back end: operations which are single system calls. One read and one
//! write may be short. Implemented by epoll (a helper thread), by io_uring, and by the simulation.

use super::OpenHow;
use rustix::io::Errno;
use std::ffi::{CString, OsString};

/// One system call on files. It owns its memory.
#[derive(Debug)]
pub enum RawOp<F> {
    /// Opens a file, or a folder for [`RawOp::Sync`]: [`RawValue::File`].
    Open {
        /// Its path.
        path: CString,
        /// Access and creation; of a folder only `read`.
        how: OpenHow,
        /// It is to be a folder (`NOTDIR` if not).
        is_folder: bool,
    },
    /// Length and permissions of an open file: [`RawValue::Status`].
    Measure {
        /// The file.
        file: F,
    },
    /// Reads up to `room` bytes from `at` behind the bytes of `buffer`, which has the capacity;
    /// 0 is the end. [`RawValue::Count`], and the buffer comes back.
    Read {
        /// The file.
        file: F,
        /// Offset of the first byte.
        at: u64,
        /// Bytes at most.
        room: usize,
        /// Where to append them.
        buffer: Vec<u8>,
    },
    /// Writes bytes of `bytes` from `from` on, at most `room` of them: [`RawValue::Count`], and the
    /// buffer comes back.
    Write {
        /// The file.
        file: F,
        /// Offset in the file; `None`: at its end (it was opened with `append`).
        at: Option<u64>,
        /// What to write.
        bytes: Vec<u8>,
        /// Offset in `bytes`.
        from: usize,
        /// Bytes at most.
        room: usize,
        /// They are made durable, too (`RWF_DSYNC`).
        is_durable: bool,
    },
    /// Sets the length.
    Truncate {
        /// The file.
        file: F,
        /// Its new length.
        to: u64,
    },
    /// Reserves blocks and keeps the length.
    Preallocate {
        /// The file.
        file: F,
        /// First byte.
        from: u64,
        /// Length.
        bytes: u64,
    },
    /// Makes contents and length of a file durable (`fdatasync`), or the names in a folder
    /// (`fsync`).
    Sync {
        /// The file or folder.
        file: F,
        /// It is a folder.
        is_folder: bool,
    },
    /// Advice: what stands before `to` need not stay in the page cache.
    Forget {
        /// The file.
        file: F,
        /// Behind the last byte.
        to: u64,
    },
    /// Sets the permissions of an open file.
    SetMode {
        /// The file.
        file: F,
        /// The permissions.
        mode: u32,
    },
    /// Closes. No other operation on this file is in flight.
    Close {
        /// The file or folder.
        file: F,
    },
    /// Renames.
    Rename {
        /// The old path.
        from: CString,
        /// The new path.
        to: CString,
    },
    /// Removes a file's name.
    Unlink {
        /// Its path.
        path: CString,
    },
    /// Creates a folder.
    CreateFolder {
        /// Its path.
        path: CString,
        /// Its permissions.
        mode: u32,
    },
    /// Removes an empty folder.
    RemoveFolder {
        /// Its path.
        path: CString,
    },
    /// The names in a folder, without `.` and `..`: [`RawValue::Names`]. (Several calls in truth.)
    List {
        /// Its path.
        folder: CString,
    },
    /// What stands at a path: [`RawValue::Status`].
    Status {
        /// Its path; a symbolic link is followed.
        path: CString,
    },
}

/// What a call returned.
#[derive(Debug)]
pub enum RawValue<F> {
    /// Nothing but success.
    Done,
    /// An open file.
    File(F),
    /// Bytes that were read or written.
    Count(usize),
    /// The names in a folder.
    Names(Vec<OsString>),
    /// Length, permissions (12 bits), and whether it is a folder.
    Status {
        /// Length in bytes.
        len: u64,
        /// Permissions.
        mode: u32,
        /// A folder.
        is_folder: bool,
    },
}

/// A completed call.
#[derive(Debug)]
pub struct RawDone<F> {
    /// The number under which it was submitted.
    pub number: u32,
    /// The buffer of a read or write; empty for other calls.
    pub buffer: Vec<u8>,
    /// Its result.
    pub result: Result<RawValue<F>, Errno>,
}

/// A back end for files.
pub trait RawFiles {
    /// An open file; clones are handles to the same one. When all are dropped without a `Close`, it
    /// is closed.
    type File: Clone + Send;

    /// Starts a call under a number which no call in flight has. An interrupted call is repeated by
    /// the back end.
    fn submit_file(&mut self, number: u32, op: RawOp<Self::File>);
    /// Appends the calls that have completed, in the order of their completion. A poll announces
    /// them with [`Token::FILES`](crate::poller::Token::FILES).
    fn completed_files(&mut self, into: &mut Vec<RawDone<Self::File>>);
}
