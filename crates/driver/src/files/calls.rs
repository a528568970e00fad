//! File operations as system calls which block: what the helper thread runs.

use super::OpenHow;
use super::raw::{RawOp, RawValue};
use base::sync::Arc;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, Advice, CWD, Dir, FallocateFlags, Mode, OFlags};
use rustix::io::{self, Errno, ReadWriteFlags, retry_on_intr};
use std::ffi::OsString;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStringExt;

/// An open file of a back end on the system. An operation in flight holds a handle, so the
/// descriptor cannot be closed and reused under it.
pub type SystemFile = Arc<OwnedFd>;

/// The permission bits of a mode.
pub const MODE_BITS: u32 = 0o7777;

/// The flags of `open`.
pub fn open_flags(how: OpenHow, is_folder: bool) -> OFlags {
    let mut flags = OFlags::CLOEXEC;
    flags |= match (how.read, how.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    flags.set(OFlags::APPEND, how.append);
    flags.set(OFlags::CREATE, how.create || how.create_new);
    flags.set(OFlags::EXCL, how.create_new);
    flags.set(OFlags::TRUNC, how.truncate);
    flags.set(OFlags::DIRECTORY, is_folder);
    flags
}

/// Runs one call to its end; interrupted calls are repeated. Returns the buffer of a read or write
/// and the result.
pub fn run(op: RawOp<SystemFile>) -> (Vec<u8>, Result<RawValue<SystemFile>, Errno>) {
    match op {
        RawOp::Read { file, at, room, mut buffer } => {
            let result = retry_on_intr(|| read(file.as_fd(), at, room, &mut buffer));
            (buffer, result.map(RawValue::Count))
        }
        RawOp::Write { file, at, bytes, from, room, is_durable } => {
            let piece = &bytes[from..from + room];
            let result = retry_on_intr(|| match at {
                Some(at) if is_durable => write_durably(file.as_fd(), at, piece),
                at => write(file.as_fd(), at, piece),
            });
            (bytes, result.map(RawValue::Count))
        }
        other => (Vec::new(), run_plain(other)),
    }
}

fn run_plain(op: RawOp<SystemFile>) -> Result<RawValue<SystemFile>, Errno> {
    let done = |result: Result<(), Errno>| result.map(|()| RawValue::Done);
    match op {
        RawOp::Read { .. } | RawOp::Write { .. } => unreachable!("they have a buffer"),
        RawOp::Open { path, how, is_folder } => {
            let (flags, mode) = (open_flags(how, is_folder), Mode::from_raw_mode(how.mode));
            let file = retry_on_intr(|| fs::open(&*path, flags, mode))?;
            Ok(RawValue::File(Arc::new(file)))
        }
        RawOp::Measure { file } => Ok(status(&retry_on_intr(|| fs::fstat(&*file))?)),
        RawOp::Status { path } => Ok(status(&retry_on_intr(|| fs::stat(&*path))?)),
        RawOp::Truncate { file, to } => done(retry_on_intr(|| fs::ftruncate(&*file, to))),
        RawOp::Preallocate { file, from, bytes } => {
            let flags = FallocateFlags::KEEP_SIZE;
            done(retry_on_intr(|| fs::fallocate(&*file, flags, from, bytes)))
        }
        RawOp::Sync { file, is_folder: false } => done(retry_on_intr(|| fs::fdatasync(&*file))),
        RawOp::Sync { file, is_folder: true } => done(retry_on_intr(|| fs::fsync(&*file))),
        RawOp::Forget { file, to } => {
            let len = NonZeroU64::new(to); // none would be the whole file
            let forget = |len| fs::fadvise(&*file, 0, Some(len), Advice::DontNeed);
            done(len.map_or(Ok(()), |len| retry_on_intr(|| forget(len))))
        }
        RawOp::SetMode { file, mode } => {
            done(retry_on_intr(|| fs::fchmod(&*file, Mode::from_raw_mode(mode))))
        }
        RawOp::Close { file } => {
            // The last handle. An error of the close would say nothing about what is durable.
            drop(file);
            Ok(RawValue::Done)
        }
        RawOp::Rename { from, to } => done(retry_on_intr(|| fs::rename(&*from, &*to))),
        RawOp::Unlink { path } => done(retry_on_intr(|| fs::unlink(&*path))),
        RawOp::CreateFolder { path, mode } => {
            done(retry_on_intr(|| fs::mkdir(&*path, Mode::from_raw_mode(mode))))
        }
        RawOp::RemoveFolder { path } => done(retry_on_intr(|| fs::rmdir(&*path))),
        RawOp::List { folder } => {
            let how = OpenHow { read: true, ..OpenHow::default() };
            let flags = open_flags(how, true);
            let folder = retry_on_intr(|| fs::openat(CWD, &*folder, flags, Mode::empty()))?;
            names(folder).map(RawValue::Names)
        }
    }
}

/// A pipe or a terminal has no offsets and is read in order.
fn read(file: BorrowedFd<'_>, at: u64, room: usize, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    if room == 0 {
        return Ok(0);
    }
    let before = buffer.len();
    let read = match io::pread(file, spare_capacity(buffer), at) {
        Err(Errno::SPIPE) => io::read(file, spare_capacity(buffer)),
        read => read,
    };
    // The buffer may have more capacity than was asked for.
    buffer.truncate(before + room);
    read.map(|count| count.min(room))
}

fn write(file: BorrowedFd<'_>, at: Option<u64>, bytes: &[u8]) -> Result<usize, Errno> {
    let Some(at) = at else { return io::write(file, bytes) };
    match io::pwrite(file, bytes, at) {
        Err(Errno::SPIPE) => io::write(file, bytes),
        written => written,
    }
}

fn write_durably(file: BorrowedFd<'_>, at: u64, bytes: &[u8]) -> Result<usize, Errno> {
    io::pwritev2(file, &[IoSlice::new(bytes)], at, ReadWriteFlags::DSYNC)
}

fn status(stat: &fs::Stat) -> RawValue<SystemFile> {
    RawValue::Status {
        len: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & MODE_BITS,
        is_folder: fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::Directory,
    }
}

fn names(folder: OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}
