//! The ring itself: setting it up, entering it, and submitting the few operations that the driver
//! uses.
//!
//! The flags that a kernel supports are found by trying: after EINVAL setup is retried with fewer
//! flags. Everything else that the driver needs came with Linux 6.0 (multishot receive), as did
//! SINGLE_ISSUER, so a kernel that refuses SINGLE_ISSUER is too old.
#![allow(unsafe_code)]

use super::buffers::{BUFFERS, Buffers};
use super::tag::{Kind, Tag};
use crate::trouble::{Enter, fatal};
use base::sync::thread;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, Probe, cqueue, opcode, squeue};
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Maximum number of operations submitted with one call.
pub const SUBMIT_MAX: u32 = 256;
/// Size of the completion queue; further completions go to the kernel's overflow list.
const COMPLETIONS: u32 = 2048;
/// The number of the only group of buffers.
const GROUP: u16 = 0;
/// How long one wait for cancelled operations lasts.
const CANCEL_STEP_NS: u64 = 20_000_000;
/// How long to wait before retrying when the kernel lacks memory or room for completions.
const SHORTAGE: Duration = Duration::from_millis(1);

/// A completion. Only this file creates it, and it cannot be copied: the completion of an accept
/// or an open owns a descriptor.
#[derive(Debug)]
pub struct Completion {
    tag: Tag,
    result: i32,
    flags: u32,
}

impl Completion {
    /// The operation that completed.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Its result, or the negative error number.
    #[inline]
    pub fn result(&self) -> i32 {
        self.result
    }

    /// True if the operation continues and will complete again.
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

    /// The descriptor of an accepted connection or an opened file; consumes the completion, so it
    /// is returned once.
    pub fn descriptor(self) -> Option<OwnedFd> {
        let is_one = matches!(self.tag.kind, Kind::Accept | Kind::Open) && self.result >= 0;
        // SAFETY: a successful accept or open returns a new descriptor that no other code knows.
        // The kernel reports it in one completion, of which `drain` makes one `Completion`, and
        // this function consumes that.
        is_one.then(|| unsafe { OwnedFd::from_raw_fd(self.result) })
    }
}

/// A ring and the buffers that it receives into. (In this order: the ring is closed first.)
pub struct Ring {
    kernel: IoUring,
    pub buffers: Buffers,
    /// It is created disabled, because only the thread that enables it may use it.
    enabled: bool,
    enter: EnterFlags,
    /// Completions that were fetched early to make room; they are delivered first.
    early: Vec<Completion>,
    /// The ring was entered since the caller last reset this.
    pub entered: bool,
    /// The name of its set of flags, for the log.
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
    /// A ring with everything the driver needs, or the error of a system that does not support one.
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
        // SAFETY: the descriptors at `address` are BUFFERS entries long, page-aligned, and stay
        // mapped until the ring is closed: the fields of `Ring` drop in order.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS as u16, GROUP, 0) }
            .map_err(|e| errno(&e))?;
        Ok(Self {
            kernel: ring,
            buffers,
            enabled: false,
            enter,
            early: Vec::new(),
            entered: false,
            mode,
        })
    }

    /// Receives until it is cancelled, fails or finds no buffer.
    pub fn receive(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        self.push(opcode::RecvMulti::new(Fd(fd.as_raw_fd()), GROUP).build(), tag.bits());
    }

    /// Accepts connections until it is cancelled or fails.
    pub fn accept(&mut self, fd: BorrowedFd<'_>, tag: Tag) {
        let accept = opcode::AcceptMulti::new(Fd(fd.as_raw_fd())).flags(libc::SOCK_CLOEXEC);
        self.push(accept.build(), tag.bits());
    }

    /// Waits for readiness, once or repeatedly.
    pub fn poll(&mut self, fd: BorrowedFd<'_>, mask: u32, multi: bool, tag: Tag) {
        let poll = opcode::PollAdd::new(Fd(fd.as_raw_fd()), mask).multi(multi);
        self.push(poll.build(), tag.bits());
    }

    /// Cancels an operation; it completes with an error, unless it has completed already.
    pub fn cancel(&mut self, tag: Tag) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::user_data(tag.bits())).build();
        self.push(cancel.flags(squeue::Flags::SKIP_SUCCESS), Tag::IGNORED);
    }

    /// What this kernel's rings can do. Nothing, if it does not tell.
    pub fn probe(&self) -> Box<Probe> {
        let mut probe = Box::new(Probe::new());
        // If it fails, the probe stays empty and the helper thread does everything.
        let _ = self.kernel.submitter().register_probe(&mut probe);
        probe
    }

    /// Queues a call on files.
    ///
    /// # Safety
    /// Until `drain` delivers the completion with this tag, or for ever:
    /// 1. the memory that `entry` points to stays where it is, and nobody else uses it;
    /// 2. the descriptors in `entry` stay open, except the one that it closes.
    pub unsafe fn push_file(&mut self, entry: squeue::Entry, tag: Tag) {
        self.push(entry, tag.bits());
    }

    /// Cancels all operations and delivers completions, until `done` returns false, the time has
    /// passed, or the ring fails (on a thread which does not own it, for instance).
    pub fn cancel_all(&mut self, within: Duration, mut done: impl FnMut(Completion) -> bool) {
        let since = Instant::now();
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        let cancel = cancel.flags(squeue::Flags::SKIP_SUCCESS).user_data(Tag::IGNORED);
        let mut is_queued = false;
        while since.elapsed() < within {
            // SAFETY: a cancellation points to no memory.
            is_queued = is_queued || unsafe { self.kernel.submission().push(&cancel) }.is_ok();
            if self.try_enter(1, Some(CANCEL_STEP_NS)).is_err_and(|e| !Enter::is_passing(errno(&e)))
            {
                return;
            }
            let mut goes_on = true;
            let early = std::mem::take(&mut self.early);
            let Self { kernel, buffers, .. } = self;
            let fetched = kernel.completion().map(|entry| completion_of(buffers, &entry));
            for completion in early.into_iter().chain(fetched) {
                goes_on &= done(completion);
            }
            if !goes_on {
                return;
            }
        }
    }

    /// Sends all items in order with as few calls as possible. A send of all its bytes completes
    /// silently; `done` receives the completions of the other sends and of other operations.
    pub fn send_all<'a>(
        &mut self,
        batch: impl Iterator<Item = (u32, BorrowedFd<'a>, &'a [u8])>,
        mut done: impl FnMut(&mut Buffers, Completion),
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
                    // The kernel would send its part without a completion, and the remainder would
                    // be lost.
                    unreachable!("an arena is flushed long before it has 2 GiB");
                }
            }
            // The kernel reads the bytes while it processes the submission: sends never wait
            // (DONTWAIT), so once the queue is empty no operation refers to the bytes.
            while !self.is_submitted() {
                if self.enter(0, None) == Some(Enter::Short) {
                    self.drain(&mut done);
                }
            }
            self.drain(&mut done);
        }
    }

    /// True if the ring must be entered: there are operations to submit, or completions to run or
    /// to fetch.
    #[inline]
    pub fn wants_enter(&mut self) -> bool {
        let queue = self.kernel.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    /// Submits queued operations, runs pending completions, and waits until `want` completions are
    /// there or the time has passed. Returns what prevented this, if anything; after a shortage the
    /// caller must fetch completions. A permanent error panics.
    pub fn enter(&mut self, want: u32, timeout_ns: Option<u64>) -> Option<Enter> {
        self.entered = true;
        if !self.enabled {
            // From here on only the calling thread may use the ring.
            let enabled = self.kernel.submitter().register_enable_rings();
            enabled.unwrap_or_else(|e| fatal("enabling a ring", errno(&e)));
            self.enabled = true;
        }
        let trouble = self.try_enter(want, timeout_ns).err().map(|e| Enter::of(errno(&e)));
        if trouble == Some(Enter::Short) {
            thread::sleep(SHORTAGE);
        }
        trouble
    }

    fn try_enter(&mut self, want: u32, timeout_ns: Option<u64>) -> std::io::Result<usize> {
        let count = self.kernel.submission().len() as u32;
        let submitter = self.kernel.submitter();
        match timeout_ns {
            None => {
                // SAFETY: the operations in the queue were built by this file's functions, which
                // argue for the memory they point to, or came through `push_file`. No argument is
                // passed.
                unsafe { submitter.enter::<libc::sigset_t>(count, want, self.enter.bits(), None) }
            }
            Some(ns) => {
                let time = Timespec::new().sec(ns / 1_000_000_000);
                let time = time.nsec((ns % 1_000_000_000) as u32);
                let args = SubmitArgs::new().timespec(&time);
                let flags = self.enter | EnterFlags::EXT_ARG;
                // SAFETY: as above; `args` and the time it points to live until the call returns,
                // and EXT_ARG says what kind of argument it is.
                unsafe { submitter.enter(count, want, flags.bits(), Some(&args)) }
            }
        }
    }

    /// Delivers all completions.
    #[inline]
    pub fn drain(&mut self, mut done: impl FnMut(&mut Buffers, Completion)) {
        for completion in self.early.drain(..) {
            done(&mut self.buffers, completion);
        }
        loop {
            let Self { kernel, buffers, .. } = self;
            for entry in kernel.completion() {
                let completion = completion_of(buffers, &entry);
                done(buffers, completion);
            }
            if !self.kernel.submission().cq_overflow() {
                return;
            }
            self.enter(0, None); // fetches completions that did not fit into the queue
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
            if self.enter(0, None) == Some(Enter::Short) {
                let Self { kernel, buffers, early, .. } = self;
                early.extend(kernel.completion().map(|entry| completion_of(buffers, &entry)));
            }
        }
        // SAFETY: the operations of this file point to no memory but the registered buffers, which
        // outlive the ring, and to the bytes of `send_all`, which stay borrowed until they are
        // sent. The callers of `push_file` vouch for theirs.
        let pushed = unsafe { self.kernel.submission().push(&entry) };
        assert!(pushed.is_ok(), "there is room");
    }
}

/// Makes a completion, and marks its buffer as filled.
#[inline]
fn completion_of(buffers: &mut Buffers, entry: &cqueue::Entry) -> Completion {
    let tag = Tag::from_bits(entry.user_data());
    let done = Completion { tag, result: entry.result(), flags: entry.flags() };
    if let (Kind::Receive, Some(number)) = (tag.kind, done.buffer()) {
        buffers.mark_filled(number, done.result.max(0) as usize);
    }
    done
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
            break; // forbidden, or no memory: fewer flags do not help
        }
    }
    Err(last)
}

fn errno(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn ring() -> Option<Ring> {
        Ring::new().map_err(|e| eprintln!("not run: io_uring is not available: {e}")).ok()
    }

    /// Replaces the ring's descriptor by that of a file, so that every call on the ring fails.
    fn break_ring(ring: &Ring) {
        let null = std::fs::File::open("/dev/null").expect("it is there");
        // SAFETY: the number belongs to the ring, which closes the new descriptor when it is
        // dropped.
        assert!(unsafe { libc::dup2(null.as_raw_fd(), ring.kernel.as_raw_fd()) } >= 0);
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("descriptors")
    }

    const TAG: Tag = Tag::new(Kind::Poll, 0, 0);

    /// Checks that `run` on a lost ring panics with the right message instead of looping forever.
    fn assert_panics(run: impl FnOnce(&mut Ring)) {
        let Some(mut ring) = ring() else { return };
        ring.enter(0, None);
        break_ring(&ring);
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&mut ring)));
        let end = end.expect_err("a ring that is lost cannot be used");
        let text = end.downcast_ref::<String>().expect("a text");
        assert!(text.starts_with("io_uring_enter failed for good: "), "{text}");
    }

    #[test]
    fn a_wait_on_a_lost_ring_panics() {
        assert_panics(|ring| {
            ring.enter(1, Some(1_000_000_000));
        });
    }

    #[test]
    fn a_full_queue_of_a_lost_ring_panics() {
        assert_panics(|ring| {
            let (a, _b) = pair();
            for _ in 0..=2 * SUBMIT_MAX {
                ring.poll(a.as_fd(), 1, false, TAG);
            }
        });
    }

    #[test]
    fn a_batch_of_sends_on_a_lost_ring_panics() {
        assert_panics(|ring| {
            let (a, _b) = pair();
            ring.send_all([(0, a.as_fd(), &b"bytes"[..])].into_iter(), |_, _| ());
        });
    }

    /// Completions which were fetched early are delivered before later ones.
    #[test]
    fn early_completions_are_delivered_first() {
        let Some(mut ring) = ring() else { return };
        let done = |place| Completion { tag: Tag::new(Kind::Poll, 0, place), result: 1, flags: 0 };
        ring.early.extend([done(7), done(8)]);
        let (a, b) = pair();
        rustix::io::write(&b, b"x").expect("there is room");
        ring.poll(a.as_fd(), 1, false, Tag::new(Kind::Poll, 0, 9));
        ring.enter(1, None);
        let mut places = Vec::new();
        ring.drain(|_, done| places.push(done.tag().place));
        assert_eq!(places, [7, 8, 9]);
    }
}
