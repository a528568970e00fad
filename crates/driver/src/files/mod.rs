//! Files: operations that a worker hands to its driver, and their completions.
//!
//! ```text
//! worker                                   driver
//!   file(token, FileOp)        ------->    io_uring, a helper thread (epoll) or a simulated disk
//!   next() -> Event::File(FileDone { token, outcome })
//! ```
//!
//! An operation never blocks the worker. Operations in flight are not ordered among each other: who
//! needs an order waits for the completion of the first before it starts the second. The driver
//! owns the memory of an operation until it completes. Short reads and writes are continued by the
//! driver: a write completes when all bytes are written or with an error.
//!
//! Every operation completes once, in a later turn, also one which is refused at once: an
//! identifier that is not open (`BADF`), more than [`OPERATIONS_MAX`] in flight (`AGAIN`), more
//! than [`FILES_MAX`] files (`MFILE`). What is in flight when a driver is dropped may or may not
//! take effect, and does not complete.
//!
//! ```text
//! engine.rs   the table of open files, continued reads and writes, operations of several steps
//! raw.rs      single system calls: what the engine asks of a back end (`RawFiles`)
//! thread.rs   the helper thread of epoll, and of io_uring for what a ring cannot do
//! calls.rs    what that thread runs
//! ```
//!
//! `docs/design/0016-files.md` gives the reasons, and what a user of files owes to durability.

mod calls;
pub(crate) mod engine;
pub mod raw;
pub(crate) mod thread;

pub use calls::SystemFile;
pub(crate) use calls::{MODE_BITS, open_flags};

use rustix::io::Errno;
use std::ffi::OsString;
use std::path::PathBuf;

/// Operations of one driver in flight.
pub const OPERATIONS_MAX: usize = 1024;
/// Open files of one driver.
pub const FILES_MAX: usize = 1024;
/// Bytes that one system call reads at most. A longer read is continued, so its buffer grows with
/// what is there and not with what was asked for.
pub const READ_MAX: usize = 1 << 20;
/// Bytes that one system call writes at most: the kernel's own limit.
pub const WRITE_MAX: usize = 0x7fff_f000;

/// An open file of this driver. The generation distinguishes files that used the same index one
/// after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Small and reused.
    pub index: u32,
    /// Changes with every reuse of the index.
    pub generation: u32,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Every write goes to the end (`O_APPEND`); required by [`FileOp::Append`].
    pub append: bool,
    /// Create it if it does not exist.
    pub create: bool,
    /// Create it, and fail with `EXIST` if the name exists, also as a symbolic link (`O_EXCL`).
    pub create_new: bool,
    /// Remove its contents.
    pub truncate: bool,
    /// Permissions of a file that is created, less the process's umask.
    pub mode: u32,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Opens a file: [`FileValue::Opened`].
    Open {
        /// Its path.
        path: PathBuf,
        /// Access and creation.
        how: OpenHow,
    },
    /// Reads `bytes` bytes from `at`, fewer only at the end of the file: [`FileValue::Bytes`].
    Read {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        at: u64,
        /// How many.
        bytes: usize,
    },
    /// Writes all bytes at an offset: [`FileValue::Written`]. Not on a file that was opened with
    /// `append` (`INVAL`).
    Write {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        at: u64,
        /// What to write.
        bytes: Vec<u8>,
    },
    /// As [`FileOp::Write`], and makes these bytes durable, and the length of the file as far as
    /// it takes to read them (`RWF_DSYNC`): one operation instead of a write and a sync. What was
    /// written before and is not durable stays so.
    WriteDurably {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        at: u64,
        /// What to write.
        bytes: Vec<u8>,
    },
    /// Writes all bytes at the end of a file that was opened with `append`: [`FileValue::Written`].
    Append {
        /// The file.
        file: FileId,
        /// What to write.
        bytes: Vec<u8>,
    },
    /// Sets the length of a file.
    Truncate {
        /// The file.
        file: FileId,
        /// Its new length in bytes.
        to: u64,
    },
    /// Reserves blocks for a range without changing the length of the file.
    Preallocate {
        /// The file.
        file: FileId,
        /// First byte of the range.
        from: u64,
        /// Length of the range.
        bytes: u64,
    },
    /// Makes the contents and the length of a file durable (`fdatasync`).
    SyncData {
        /// The file.
        file: FileId,
    },
    /// Advice: the system need not keep what stands before `to` in its page cache. Only what is
    /// durable leaves it; contents stay as they are.
    Forget {
        /// The file.
        file: FileId,
        /// Behind the last byte.
        to: u64,
    },
    /// Closes a file. Operations in flight on it complete first; later ones are refused.
    Close {
        /// The file.
        file: FileId,
    },
    /// Renames a file and replaces `to` if it exists, atomically. Durable after a sync of the
    /// folder.
    Rename {
        /// The old path.
        from: PathBuf,
        /// The new path.
        to: PathBuf,
    },
    /// Removes a file's name.
    Unlink {
        /// Its path.
        path: PathBuf,
    },
    /// Creates a folder.
    CreateFolder {
        /// Its path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Removes a folder without names in it (`NOTEMPTY` otherwise).
    RemoveFolder {
        /// Its path.
        path: PathBuf,
    },
    /// The names in a folder, without `.` and `..`, in no particular order:
    /// [`FileValue::Names`].
    List {
        /// Its path.
        folder: PathBuf,
    },
    /// Makes the names in a folder durable (`fsync` of the folder).
    SyncFolder {
        /// Its path.
        folder: PathBuf,
    },
    /// Length and permissions of what stands at a path: [`FileValue::Status`].
    Status {
        /// Its path; a symbolic link is followed.
        path: PathBuf,
    },
    /// Sets the permissions of an open file.
    SetMode {
        /// The file.
        file: FileId,
        /// The permissions.
        mode: u32,
    },
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileValue {
    /// Nothing but success.
    Done,
    /// The file, and its length in bytes when it was opened.
    Opened {
        /// The file.
        file: FileId,
        /// Its length.
        len: u64,
    },
    /// The bytes that were read.
    Bytes(Vec<u8>),
    /// All bytes were written; the buffer goes back to the caller.
    Written(Vec<u8>),
    /// The names in a folder.
    Names(Vec<OsString>),
    /// What stands at a path.
    Status {
        /// Length in bytes.
        len: u64,
        /// Permissions (the low 12 bits of the mode).
        mode: u32,
        /// True for a folder.
        is_folder: bool,
    },
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The system's error.
    pub errno: Errno,
    /// Bytes that a write has written before it failed.
    pub written: usize,
}

/// A completed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDone {
    /// The caller's token.
    pub token: u64,
    /// Its result.
    pub outcome: Result<FileValue, FileError>,
    /// The buffer of a write that has failed; else empty.
    pub unwritten: Vec<u8>,
}
