//! File operations on a ring. A call in flight has a slot, which owns its paths and its buffer; the
//! slot is not touched until the kernel has completed the call. What a kernel's ring cannot do goes
//! to the helper thread: listing a folder, setting permissions, and every operation that the probe
//! does not find (ftruncate before Linux 6.9).
#![allow(unsafe_code)]

use super::ring::{Completion, Ring};
use super::tag::{Kind, Tag};
use crate::files::raw::{RawDone, RawOp, RawValue};
use crate::files::thread::FileThread;
use crate::files::{MODE_BITS, SystemFile, open_flags};
use crate::mailbox::Waker;
use crate::poller::Wait;
use base::sync::Arc;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{Probe, opcode, squeue};
use rustix::fd::{AsRawFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;

/// How long a driver that ends waits for the calls that it has cancelled. A call which the kernel
/// cannot interrupt keeps its memory for ever.
const END_WAIT: Duration = Duration::from_secs(1);

/// The end of a file, as the offset of an operation.
const AT_END: u64 = u64::MAX;

/// What a call in flight points to.
struct Slot {
    /// Absent for a close, which points to nothing.
    op: Option<RawOp<SystemFile>>,
    /// One element where the kernel writes a status.
    status: Vec<libc::statx>,
    /// What a close closes; the kernel owns it when that has completed.
    closing: Option<OwnedFd>,
}

/// The file operations of one ring.
pub struct RingFiles {
    /// Calls on the ring, by their numbers.
    slots: Vec<Option<Slot>>,
    /// How many of the slots are in use.
    on_ring: usize,
    /// Interrupted calls, to be submitted again.
    again: Vec<u32>,
    done: Vec<RawDone<SystemFile>>,
    /// What the ring can do; asked with the first operation.
    probe: Option<Box<Probe>>,
    thread: FileThread,
    /// Calls whose completions were not taken, on the ring and on the thread.
    in_flight: usize,
}

impl RingFiles {
    pub fn new(waker: Box<dyn Waker>) -> Self {
        Self {
            slots: Vec::new(),
            on_ring: 0,
            again: Vec::new(),
            done: Vec::new(),
            probe: None,
            thread: FileThread::new(waker),
            in_flight: 0,
        }
    }

    /// True if completions of the ring wait to be taken.
    #[inline]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Starts a call.
    pub fn submit(&mut self, ring: &mut Ring, number: u32, op: RawOp<SystemFile>) {
        self.in_flight += 1;
        let probe = self.probe.get_or_insert_with(|| ring.probe());
        if !opcode_of(&op).is_some_and(|code| probe.is_supported(code)) {
            return self.thread.submit(number, op);
        }
        let index = number as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        assert!(self.slots[index].is_none(), "a number has one call in flight");
        self.slots[index] = Some(Slot { op: Some(op), status: Vec::new(), closing: None });
        self.on_ring += 1;
        self.push(ring, number);
    }

    /// Queues the call of a slot.
    fn push(&mut self, ring: &mut Ring, number: u32) {
        let slot = self.slots[number as usize].as_mut().expect("the slot is in use");
        let is_open = matches!(slot.op, Some(RawOp::Open { .. }));
        let kind = if is_open { Kind::Open } else { Kind::File };
        match slot.entry() {
            // SAFETY: the entry points to what the slot owns on the heap, to constants, and to
            // descriptors of which the slot holds a handle. The slot is neither used nor dropped
            // before `on_done` gets the completion of this call, which is the only one with this
            // tag; `end` leaks the slots that are left. Moving the slot moves nothing on the heap.
            Some(entry) => unsafe { ring.push_file(entry, Tag::new(kind, 0, number)) },
            None => self.complete(number, Ok(RawValue::Done)),
        }
    }

    /// Before a poll waits: submits what was interrupted; the wait that the poll may make.
    #[inline]
    pub fn before_wait(&mut self, ring: &mut Ring, wait: Wait) -> Wait {
        if self.in_flight == 0 {
            return wait;
        }
        for number in std::mem::take(&mut self.again) {
            self.push(ring, number);
        }
        self.thread.before_wait(wait)
    }

    /// The wait is over. True if completions are there.
    #[inline]
    pub fn after_wait(&self) -> bool {
        self.in_flight > 0 && (self.thread.after_wait() | self.has_done())
    }

    /// Appends what has completed.
    pub fn take_completed(&mut self, into: &mut Vec<RawDone<SystemFile>>) {
        let before = into.len();
        into.append(&mut self.done);
        self.thread.take_completed(into);
        self.in_flight -= into.len() - before;
    }

    /// A call on the ring has completed.
    pub fn on_done(&mut self, done: Completion) {
        let number = done.tag().place;
        let slot = self.slots[number as usize].as_mut().expect("a call completes once");
        if done.error() == Some(Errno::INTR) && slot.op.is_some() {
            self.again.push(number);
            return;
        }
        let result = slot.value(done);
        self.complete(number, result);
    }

    /// Frees the slot of a call.
    fn complete(&mut self, number: u32, result: Result<RawValue<SystemFile>, Errno>) {
        let slot = self.slots[number as usize].take().expect("the slot is in use");
        self.on_ring -= 1;
        let buffer = match slot.op {
            Some(RawOp::Read { buffer, .. }) => buffer,
            Some(RawOp::Write { bytes, .. }) => bytes,
            _ => Vec::new(),
        };
        self.done.push(RawDone { number, buffer, result });
    }

    /// The driver ends: cancels the calls in flight and waits for them. The kernel may still use
    /// the memory of those which do not end in time: it is never freed.
    pub fn end(&mut self, ring: &mut Ring) {
        if self.on_ring == 0 {
            return;
        }
        ring.cancel_all(END_WAIT, |done| match done.tag().kind {
            Kind::File | Kind::Open => {
                self.on_done(done);
                self.on_ring > self.again.len()
            }
            _ => {
                drop(done.descriptor());
                true
            }
        });
        for number in self.again.drain(..) {
            self.slots[number as usize] = None; // interrupted: the kernel no longer uses it
        }
        self.slots.drain(..).for_each(std::mem::forget);
    }
}

/// The operation of a ring that runs a call, if there is one.
fn opcode_of(op: &RawOp<SystemFile>) -> Option<u8> {
    Some(match op {
        RawOp::Open { .. } => opcode::OpenAt::CODE,
        RawOp::Measure { .. } | RawOp::Status { .. } => opcode::Statx::CODE,
        RawOp::Read { .. } => opcode::Read::CODE,
        RawOp::Write { .. } => opcode::Write::CODE,
        RawOp::Truncate { .. } => opcode::Ftruncate::CODE,
        RawOp::Preallocate { .. } => opcode::Fallocate::CODE,
        RawOp::Sync { .. } => opcode::Fsync::CODE,
        RawOp::Close { .. } => opcode::Close::CODE,
        RawOp::Rename { .. } => opcode::RenameAt::CODE,
        RawOp::Unlink { .. } | RawOp::RemoveFolder { .. } => opcode::UnlinkAt::CODE,
        RawOp::CreateFolder { .. } => opcode::MkDirAt::CODE,
        // The length of an advice has 32 bits on a ring.
        RawOp::Forget { .. } | RawOp::SetMode { .. } | RawOp::List { .. } => return None,
    })
}

impl Slot {
    /// The entry for its call; `None` if there is nothing to do.
    fn entry(&mut self) -> Option<squeue::Entry> {
        let here = Fd(libc::AT_FDCWD);
        let fd = |file: &SystemFile| Fd(file.as_raw_fd());
        if let Some(RawOp::Close { .. }) = &self.op {
            return self.close();
        }
        let entry = match self.op.as_mut().expect("only a close has no operation") {
            RawOp::Open { path, how, is_folder } => {
                let flags = open_flags(*how, *is_folder).bits() as i32;
                opcode::OpenAt::new(here, path.as_ptr()).flags(flags).mode(how.mode).build()
            }
            RawOp::Measure { file } => {
                let (file, status) = (fd(file), status_room(&mut self.status));
                let statx = opcode::Statx::new(file, c"".as_ptr(), status);
                statx.flags(libc::AT_EMPTY_PATH).mask(libc::STATX_BASIC_STATS).build()
            }
            RawOp::Status { path } => {
                let statx = opcode::Statx::new(here, path.as_ptr(), status_room(&mut self.status));
                statx.mask(libc::STATX_BASIC_STATS).build()
            }
            RawOp::Read { file, at, room, buffer } => {
                let spare = buffer.spare_capacity_mut();
                let room = spare.len().min(*room) as u32;
                opcode::Read::new(fd(file), spare.as_mut_ptr().cast(), room).offset(*at).build()
            }
            RawOp::Write { file, at, bytes, from, room, is_durable } => {
                let piece = &bytes[*from..*from + *room];
                let write = opcode::Write::new(fd(file), piece.as_ptr(), piece.len() as u32);
                let write = write.rw_flags(if *is_durable { libc::RWF_DSYNC } else { 0 });
                write.offset(at.unwrap_or(AT_END)).build()
            }
            RawOp::Truncate { file, to } => opcode::Ftruncate::new(fd(file), *to).build(),
            RawOp::Preallocate { file, from, bytes } => {
                let fallocate = opcode::Fallocate::new(fd(file), *bytes).offset(*from);
                fallocate.mode(libc::FALLOC_FL_KEEP_SIZE).build()
            }
            RawOp::Sync { file, is_folder } => {
                let flags = if *is_folder { FsyncFlags::empty() } else { FsyncFlags::DATASYNC };
                opcode::Fsync::new(fd(file)).flags(flags).build()
            }
            RawOp::Rename { from, to } => {
                opcode::RenameAt::new(here, from.as_ptr(), here, to.as_ptr()).build()
            }
            RawOp::Unlink { path } => opcode::UnlinkAt::new(here, path.as_ptr()).build(),
            RawOp::RemoveFolder { path } => {
                let unlink = opcode::UnlinkAt::new(here, path.as_ptr());
                unlink.flags(libc::AT_REMOVEDIR).build()
            }
            RawOp::CreateFolder { path, mode } => {
                opcode::MkDirAt::new(here, path.as_ptr()).mode(*mode).build()
            }
            RawOp::Close { .. }
            | RawOp::Forget { .. }
            | RawOp::SetMode { .. }
            | RawOp::List { .. } => {
                unreachable!("no entry of this kind is built here")
            }
        };
        Some(entry)
    }

    /// The entry that closes the descriptor; `None` if another handle keeps it open.
    fn close(&mut self) -> Option<squeue::Entry> {
        let Some(RawOp::Close { file }) = self.op.take() else { unreachable!("it is a close") };
        let file = self.closing.insert(Arc::into_inner(file)?);
        Some(opcode::Close::new(Fd(file.as_raw_fd())).build())
    }

    /// What the call returned.
    fn value(&mut self, done: Completion) -> Result<RawValue<SystemFile>, Errno> {
        let (error, result) = (done.error(), done.result());
        let Some(op) = &mut self.op else {
            // Also a close that fails has closed, unless it was cancelled. Its error would say
            // nothing about what is durable.
            if let Some(file) = self.closing.take().filter(|_| error != Some(Errno::CANCELED)) {
                let _closed = file.into_raw_fd();
            }
            return Ok(RawValue::Done);
        };
        if let Some(error) = error {
            return Err(error);
        }
        Ok(match op {
            RawOp::Open { .. } => {
                let file = done.descriptor().expect("an open that succeeds returns a descriptor");
                RawValue::File(Arc::new(file))
            }
            RawOp::Read { buffer, .. } => {
                let count = usize::try_from(result).expect("it is no error");
                assert!(count <= buffer.capacity() - buffer.len(), "no more than was asked for");
                // SAFETY: the kernel has written `count` bytes behind the buffer's length, which is
                // the one that `entry` saw, and they fit (above).
                unsafe { buffer.set_len(buffer.len() + count) };
                RawValue::Count(count)
            }
            RawOp::Write { .. } => {
                RawValue::Count(usize::try_from(result).expect("it is no error"))
            }
            RawOp::Measure { .. } | RawOp::Status { .. } => {
                let status = self.status.first().expect("the kernel wrote it");
                let mode = u32::from(status.stx_mode);
                RawValue::Status {
                    len: status.stx_size,
                    mode: mode & MODE_BITS,
                    is_folder: mode & libc::S_IFMT == libc::S_IFDIR,
                }
            }
            _ => RawValue::Done,
        })
    }
}

/// Room for the status that a call returns.
fn status_room(status: &mut Vec<libc::statx>) -> *mut io_uring::types::statx {
    status.clear();
    // SAFETY: `statx` is plain numbers, for which zero is valid.
    status.push(unsafe { std::mem::zeroed() });
    status.as_mut_ptr().cast()
}
