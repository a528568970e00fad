//! The ring itself: set up step by step, entered, and fed with the few operations that the driver uses.
//!
//! Which flags a kernel takes is found by asking: a refused set (EINVAL) is tried again with fewer. All that is needed
//! beyond flags came with Linux 6.0 (multishot receive), as did SINGLE_ISSUER, so what refuses that is too old.
#![allow(unsafe_code)]

use super::buffers::{BUFFERS, Buffers};
use super::tag::{Kind, Tag};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

/// Operations submitted with one call at most.
pub const SUBMIT_MAX: u32 = 256;
/// Completions that wait without help of the kernel's overflow list.
const COMPLETIONS: u32 = 2048;
/// The one group of buffers.
const GROUP: u16 = 0;

/// A completion.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Of what.
    pub tag: Tag,
    /// Its result, or the negative error number.
    pub result: i32,
    flags: u32,
}

impl Done {
    /// True if the operation goes on and completes again.
    #[inline]
    pub fn more(&self) -> bool {
        cqueue::more(self.flags)
    }

    /// The buffer it received into.
    #[inline]
    pub fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// The error it ended with.
    pub fn error(&self) -> Option<Errno> {
        (self.result < 0).then(|| Errno::from_raw_os_error(-self.result))
    }

    /// The descriptor that an accept made.
    pub fn accepted(&self) -> Option<OwnedFd> {
        let is_one = self.tag.kind == Kind::Accept && self.result >= 0;
        // SAFETY: a successful accept returns a new descriptor that nobody else knows. (`Done` is `Copy`, but its one
        // caller takes the descriptor once, when the completion is handled.)
        is_one.then(|| unsafe { OwnedFd::from_raw_fd(self.result) })
    }
}

/// A ring and the buffers that it receives into. (In this order: the ring is closed first.)
pub struct Ring {
    kernel: IoUring,
    pub buffers: Buffers,
    /// It was made disabled, because the thread that enables it is the only one that may use it.
    enabled: bool,
    enter: EnterFlags,
    /// Entered since the last look at this.
    pub entered: bool,
    /// The flags that it runs with, for the log.
    pub mode: &'static str,
}

/// A set of flags, with its name.
type Mode = (&'static str, fn(&mut Builder));

/// The sets of flags, best first.
const MODES: &[Mode] = &[
    ("deferred task work", |b| {
        b.setup_defer_taskrun().setup_taskrun_flag().setup_no_sqarray();
    }),
    ("deferred task work, old queue", |b| {
        b.setup_defer_taskrun().setup_taskrun_flag();
    }),
    ("cooperative task work", |b| {
        b.setup_coop_taskrun().setup_taskrun_flag();
    }),
];

impl Ring {
    /// A ring with everything the driver needs, or why this system does not give one.
    pub fn new() -> Result<Self, Errno> {
        let (ring, mode) = build()?;
        let features = ring.params();
        let complete = features.is_feature_ext_arg()
            && features.is_feature_nodrop()
            && features.is_feature_skip_cqe_on_success();
        if !complete {
            return Err(Errno::INVAL);
        }
        let mut enter = EnterFlags::GETEVENTS;
        if features.is_feature_no_iowait() {
            enter |= EnterFlags::NO_IOWAIT; // a server that waits for requests is idle, not waiting for a disk
        }
        let buffers = Buffers::new()?;
        let address = buffers.ring_address();
        // SAFETY: the descriptors at `address` are BUFFERS entries long, page-aligned, and stay mapped until the ring is
        // closed: the fields of `Ring` drop in order.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS as u16, GROUP, 0) }
            .map_err(|e| errno(&e))?;
        Ok(Self { kernel: ring, buffers, enabled: false, enter, entered: false, mode })
    }

    /// Receives whatever arrives until it is cancelled, fails or finds no buffer.
    pub fn receive(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        self.push(opcode::RecvMulti::new(Fd(fd.as_raw_fd()), GROUP).build(), tag.bits());
    }

    /// Accepts whoever comes until it is cancelled or fails.
    pub fn accept(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let accept = opcode::AcceptMulti::new(Fd(fd.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
        self.push(accept.build(), tag.bits());
    }

    /// Waits for readiness, once or again and again.
    pub fn poll(&mut self, fd: BorrowedFd<'_>, mask: u32, multi: bool, tag: Tag) {
        let poll = opcode::PollAdd::new(Fd(fd.as_raw_fd()), mask).multi(multi);
        self.push(poll.build(), tag.bits());
    }

    /// Takes an operation back; it completes with an error, unless it has completed already.
    pub fn cancel(&mut self, tag: Tag) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::user_data(tag.bits())).build();
        self.push(cancel.flags(squeue::Flags::SKIP_SUCCESS), Tag::IGNORED);
    }

    /// Sends all of these in order with as few calls as possible. A send that leaves whole completes silently; the
    /// completions of the others, and whatever else completed, go to `done`.
    pub fn send_all<'a>(
        &mut self,
        batch: impl Iterator<Item = (u32, BorrowedFd<'a>, &'a [u8])>,
        mut done: impl FnMut(&mut Buffers, Done),
    ) {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let mut batch = batch.peekable();
        while batch.peek().is_some() {
            while self.has_room()
                && let Some((number, fd, bytes)) = batch.next()
            {
                // More than 2 GiB is cut short by the kernel as by sendto.
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(0x7fff_f000);
                let send = opcode::Send::new(Fd(fd.as_raw_fd()), bytes.as_ptr(), len).flags(flags);
                let send = send.build().flags(squeue::Flags::SKIP_SUCCESS);
                self.push(send, Tag::new(Kind::Send, 0, number).bits());
                if (len as usize) < bytes.len() {
                    // It would leave whole and say nothing: what is behind it would be lost.
                    unreachable!("an arena is flushed long before it has 2 GiB");
                }
            }
            // The kernel reads the bytes while it takes an operation in: they never wait (DONTWAIT), so when the queue is
            // empty no operation refers to them any more.
            while !self.is_submitted() {
                self.enter(0, None);
            }
            self.drain(&mut done);
        }
    }

    /// True if there is something that only entering brings: operations to submit, completions to run or to fetch.
    #[inline]
    pub fn wants_enter(&mut self) -> bool {
        let queue = self.kernel.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    /// Submits what waits, runs what has arrived, and waits until `want` completions are there or the time has passed.
    pub fn enter(&mut self, want: u32, timeout_ns: Option<u64>) {
        self.entered = true;
        if !self.enabled {
            // The thread that does this is the one that uses the ring from now on.
            let enabled = self.kernel.submitter().register_enable_rings();
            enabled.expect("a ring that could be made can be enabled");
            self.enabled = true;
        }
        let count = self.kernel.submission().len() as u32;
        let submitter = self.kernel.submitter();
        // An error is a timeout, a signal, or a shortage that taking completions cures: the caller looks again either way.
        let _ = match timeout_ns {
            None => {
                // SAFETY: the operations in the queue were built by this file's functions, which argue for the memory they
                // point to. No argument is passed.
                unsafe { submitter.enter::<libc::sigset_t>(count, want, self.enter.bits(), None) }
            }
            Some(ns) => {
                let time = Timespec::new().sec(ns / 1_000_000_000);
                let time = time.nsec((ns % 1_000_000_000) as u32);
                let args = SubmitArgs::new().timespec(&time);
                let flags = self.enter | EnterFlags::EXT_ARG;
                // SAFETY: as above; `args` and the time it points to live until the call returns, and EXT_ARG says what
                // kind of argument it is.
                unsafe { submitter.enter(count, want, flags.bits(), Some(&args)) }
            }
        };
    }

    /// Hands over all completions.
    #[inline]
    pub fn drain(&mut self, mut done: impl FnMut(&mut Buffers, Done)) {
        loop {
            for entry in self.kernel.completion() {
                let tag = Tag::from_bits(entry.user_data());
                let completion = Done { tag, result: entry.result(), flags: entry.flags() };
                if let (Kind::Receive, Some(number)) = (tag.kind, completion.buffer()) {
                    self.buffers.take(number, completion.result.max(0) as usize);
                }
                done(&mut self.buffers, completion);
            }
            if !self.kernel.submission().cq_overflow() {
                return;
            }
            self.enter(0, None); // brings what did not fit
        }
    }

    fn is_submitted(&mut self) -> bool {
        self.kernel.submission().is_empty()
    }

    fn has_room(&mut self) -> bool {
        !self.kernel.submission().is_full()
    }

    fn push(&mut self, entry: squeue::Entry, user_data: u64) {
        let entry = entry.user_data(user_data);
        while !self.has_room() {
            self.enter(0, None);
        }
        // SAFETY: the operations of this driver point to no memory but the registered buffers, which outlive the ring, and
        // to the bytes of `send_all`, which stay borrowed until they are sent.
        let pushed = unsafe { self.kernel.submission().push(&entry) };
        assert!(pushed.is_ok(), "there is room");
    }
}

fn build() -> Result<(IoUring, &'static str), Errno> {
    let mut last = Errno::INVAL;
    for (mode, flags) in MODES {
        let mut builder = IoUring::builder();
        builder.setup_r_disabled().setup_single_issuer().setup_submit_all();
        builder.setup_clamp().setup_cqsize(COMPLETIONS).dontfork();
        flags(&mut builder);
        match builder.build(SUBMIT_MAX) {
            Ok(ring) => return Ok((ring, mode)),
            Err(e) => last = errno(&e),
        }
        if last != Errno::INVAL {
            break; // forbidden, or no memory: fewer flags change nothing
        }
    }
    Err(last)
}

fn errno(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::INVAL)
}
