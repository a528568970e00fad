//! The io_uring back end: one ring per worker under the same reactor as epoll.
//!
//! ```text
//! reactor (reactor/)                     sees readiness as from level-triggered epoll
//!    |  Poller: poll, recv, accept, send_batch
//! Uring
//!    +-- streams.rs    per connection: wanted and active operations, unread input
//!    +-- accept.rs     per listener: accepted connections that were not taken
//!    +-- files.rs      calls on files in flight, and the memory they point to
//!    +-- buffers.rs    memory that the kernel receives into
//!    +-- ring.rs       submission and completion queues, operations on sockets
//!    +-- tag.rs        which operation a completion belongs to
//! ```
//!
//! The kernel accepts and receives by itself (multishot operations), into buffers provided to it.
//! The replies of a turn leave with one system call, which also fetches what has arrived meanwhile.
//! Between calls a mapped flag tells whether entering the kernel would bring anything, so spinning
//! costs no system call. Polls are rare: for stalled senders, paused receivers, signals, wake-ups.
//!
//! `docs/design/0008-io-uring.md` gives the reasons and measurements.

mod accept;
mod buffers;
mod files;
mod ring;
mod streams;
mod tag;

pub use accept::Listening;
pub use buffers::{BUFFER_BYTES, BUFFERS};
pub use streams::Stream;

use crate::epoll::listen::Listener;
use crate::epoll::signals::Signals;
use crate::epoll::{EpollOptions, EventFdWaker, SEND};
use crate::files::SystemFile;
use crate::files::raw::{RawDone, RawFiles, RawOp};
use crate::mailbox::Waker;
use crate::poller::{Poller, Ready, Token, Wait};
use crate::process::{cpus_allowed, draw_seeds, involuntary_switches};
use crate::reactor::Reactor;
use crate::spin::SpinOptions;
use crate::trouble::fatal;
use crate::{
    Clock, ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions, clock, sys,
};
use accept::Listeners;
use base::sync::Arc;
use files::RingFiles;
use ring::{Completion, Ring};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, Shutdown, sendmsg};
use std::io::IoSlice;
use std::path::Path;
use streams::Streams;
use tag::{Kind, Tag};

/// System calls in which the operations on a connection must have ended that leaves the ring. (They
/// end in the first, which cancels them: no socket keeps one for longer.)
const CANCEL_CALLS_MAX: u32 = 4;

/// A driver on io_uring.
pub type UringDriver<M> = Reactor<Uring, M>;

impl<M: Send> UringDriver<M> {
    /// A driver without connections; the options are epoll's. Fails where the system does not allow
    /// or does not have io_uring (EPERM, EACCES, ENOSYS, EINVAL, ENOMEM). It may move to another
    /// thread before its first wait, and must not move afterwards.
    pub fn new(options: &EpollOptions) -> std::io::Result<Self> {
        let poller = Uring::new(options.signals)?;
        let spin = SpinOptions {
            busy_poll_us: options.busy_poll_us,
            workers: options.workers,
            cpus: cpus_allowed(),
        };
        Ok(Reactor::on(poller, spin))
    }
}

/// Real sockets, the real clock, one ring.
pub struct Uring {
    ring: Ring,
    streams: Streams,
    listeners: Listeners,
    wake: Arc<OwnedFd>,
    signals: Signals,
    /// Special descriptors whose multishot poll must be started: the wake-up and the signals.
    unwatched: Vec<Tag>,
    /// Signals that arrived, by their place.
    signalled: Vec<usize>,
    /// Completions that arrived during a batch of sends, which borrows the streams.
    deferred: Vec<Completion>,
    files: RingFiles,
    seed: u64,
    secret: u128,
}

impl Uring {
    fn new(with_signals: bool) -> std::io::Result<Self> {
        let ring = Ring::new()?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let signals = Signals::new(with_signals)?;
        let places = 0..signals.streams().count() as u32;
        let mut unwatched = vec![Tag::new(Kind::Wake, 0, 0)];
        unwatched.extend(places.map(|place| Tag::new(Kind::Signal, 0, place)));
        let (seed, secret) = draw_seeds()?;
        let files = RingFiles::new(Box::new(EventFdWaker(wake.clone())));
        Ok(Self {
            ring,
            streams: Streams::default(),
            listeners: Listeners::default(),
            wake,
            signals,
            unwatched,
            signalled: Vec::new(),
            deferred: Vec::new(),
            files,
            seed,
            secret,
        })
    }

    /// How the ring runs, for the log.
    pub fn mode(&self) -> &'static str {
        self.ring.mode
    }

    /// Starts and cancels operations, so that the active ones become the wanted ones.
    fn submit_changes(&mut self) {
        self.streams.submit_changes(&mut self.ring);
        self.listeners.submit_changes(&mut self.ring);
        for tag in self.unwatched.drain(..) {
            let fd = match tag.kind {
                Kind::Wake => Some(self.wake.as_fd()),
                _ => self.signals.streams().nth(tag.place as usize).map(AsFd::as_fd),
            };
            if let Some(fd) = fd {
                self.ring.poll(fd, EventFlags::IN.bits(), true, tag);
            }
        }
    }

    fn drain(&mut self) {
        let Self { ring, streams, listeners, unwatched, signalled, files, .. } = self;
        ring.drain(|buffers, done| match done.tag().kind {
            Kind::Receive | Kind::Poll => streams.on_done(buffers, &done),
            Kind::Accept => listeners.on_done(done),
            Kind::Wake | Kind::Signal => on_special(unwatched, signalled, &done),
            Kind::File | Kind::Open => files.on_done(done),
            Kind::Ignored => {}
            Kind::Send => debug_assert!(false, "sends complete within their batch"),
        });
    }

    /// Handles completions that arrived during a batch of sends.
    fn handle_deferred(&mut self) {
        for done in self.deferred.drain(..) {
            match done.tag().kind {
                Kind::Receive | Kind::Poll => self.streams.on_done(&mut self.ring.buffers, &done),
                Kind::Accept => self.listeners.on_done(done),
                Kind::Wake | Kind::Signal => {
                    on_special(&mut self.unwatched, &mut self.signalled, &done);
                }
                Kind::File | Kind::Open => self.files.on_done(done),
                Kind::Ignored | Kind::Send => {}
            }
        }
    }

    fn has_report(&self) -> bool {
        !self.signalled.is_empty()
            || self.streams.has_report()
            || self.listeners.has_report()
            || self.files.has_done()
    }
}

impl Drop for Uring {
    /// The kernel may use the memory of calls on files until they complete.
    fn drop(&mut self) {
        self.files.end(&mut self.ring);
    }
}

/// Handles the poll of the wake-up or of a signal. (The counter of the wake-up is not read: the
/// poll reports every write.) An error is fatal: this worker could not be woken.
fn on_special(unwatched: &mut Vec<Tag>, signalled: &mut Vec<usize>, done: &Completion) {
    if let Some(error) = done.error().filter(|error| *error != Errno::CANCELED) {
        fatal("the poll of a wake-up", error);
    }
    if done.tag().kind == Kind::Signal && done.result() > 0 {
        signalled.push(done.tag().place as usize);
    }
    if !done.more() {
        unwatched.push(done.tag());
    }
}

impl RawFiles for Uring {
    type File = SystemFile;

    fn submit_file(&mut self, number: u32, op: RawOp<SystemFile>) {
        self.files.submit(&mut self.ring, number, op);
    }

    fn completed_files(&mut self, into: &mut Vec<RawDone<SystemFile>>) {
        self.files.take_completed(into);
    }
}

impl Poller for Uring {
    const SLEEPS: bool = true;
    const DEFERS: bool = true;
    type Stream = Stream;
    type Listener = Listening;

    fn clock(&self) -> Clock {
        Clock::System
    }

    fn unix_ns(&self) -> i64 {
        clock::unix_ns()
    }

    fn seed(&mut self) -> u64 {
        self.seed
    }

    fn secret(&mut self) -> u128 {
        self.secret
    }

    fn waker(&self) -> Box<dyn Waker> {
        Box::new(EventFdWaker(self.wake.clone()))
    }

    fn involuntary_switches(&self) -> u64 {
        involuntary_switches()
    }

    fn poll(&mut self, ready: &mut Vec<Ready>, wait: Wait) {
        let wait = self.files.before_wait(&mut self.ring, wait);
        self.submit_changes();
        self.drain();
        let found = self.has_report();
        // A batch of sends enters the kernel and fetches all completions. If there was none, that
        // is done here: otherwise a connection that is never read would block all others.
        let entered = std::mem::take(&mut self.ring.entered);
        if found || wait == Wait::NoWait {
            if !(found && entered) && self.ring.wants_enter() {
                self.ring.enter(0, None);
                self.ring.entered = false;
                self.drain();
            }
        } else {
            let timeout = match wait {
                Wait::Until(at) => Some(at.since(Clock::System.now())),
                Wait::NoWait | Wait::Forever => None,
            };
            self.ring.enter(1, timeout);
            self.ring.entered = false;
            self.drain();
        }
        if self.files.after_wait() {
            ready.push(Ready { token: Token::FILES, flags: EventFlags::IN });
        }
        self.listeners.report(ready);
        ready.extend(
            self.signalled
                .drain(..)
                .map(|place| Ready { token: Token::signal(place), flags: EventFlags::IN }),
        );
        self.streams.report(ready);
    }

    fn signal(&mut self, place: usize) -> Option<i32> {
        self.signals.take(place)
    }

    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> Stream {
        self.streams.insert(socket.into_fd(*options))
    }

    fn detach(&mut self, stream: Stream) -> Result<(Socket, Vec<u8>), Stream> {
        self.streams.begin_leaving(&stream, &mut self.ring);
        for _ in 0..CANCEL_CALLS_MAX {
            if self.streams.is_quiet(&stream) {
                break;
            }
            self.ring.enter(0, None);
            self.drain();
        }
        match self.streams.leave(&stream, &mut self.ring.buffers) {
            Some((fd, unread)) => Ok((Socket::from_fd(fd), unread)),
            None => Err(stream),
        }
    }

    fn attach(&mut self, socket: Socket, unread: Vec<u8>) -> Stream {
        self.streams.attach(socket.into_raw_fd(), unread)
    }

    fn add(&mut self, stream: &Stream, token: Token, flags: EventFlags) -> Result<(), Errno> {
        self.streams.register(stream, token, flags);
        Ok(())
    }

    fn modify(&mut self, stream: &Stream, token: Token, flags: EventFlags) -> Result<(), Errno> {
        self.streams.register(stream, token, flags);
        Ok(())
    }

    fn remove(&mut self, stream: &Stream) {
        self.streams.deregister(stream, &mut self.ring.buffers);
    }

    #[inline]
    fn recv(&mut self, stream: &Stream, room: &mut [u8]) -> Result<usize, Errno> {
        self.streams.read(stream, room, &mut self.ring.buffers)
    }

    fn set_bulk(&mut self, stream: &Stream, low_water: Option<usize>) {
        sys::set_low_water(self.streams.fd(stream), low_water.unwrap_or(1));
        self.streams.set_bulk(stream, low_water.is_some());
    }

    fn recv_onto(&mut self, stream: &Stream, room: &mut Vec<u8>) -> Result<usize, Errno> {
        if self.streams.has_input(stream) {
            // Received before the bulk began: bounded by HELD_MAX buffers.
            let len = room.len();
            room.resize(room.capacity(), 0);
            let received = self.recv(stream, &mut room[len..]);
            room.truncate(len + received.unwrap_or(0));
            return received;
        }
        match self.recv(stream, &mut []) {
            Err(Errno::AGAIN) if !self.streams.is_receiving(stream) => {
                let fd = self.streams.fd(stream);
                net::recv(fd, spare_capacity(room), RecvFlags::DONTWAIT).map(|(n, _)| n)
            }
            other => other,
        }
    }

    fn has_input(&mut self, stream: &Stream) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.streams.has_input(stream)
            || matches!(net::recv(self.streams.fd(stream), &mut byte, flags), Ok((n, _)) if n > 0)
    }

    fn send(&mut self, stream: &Stream, bytes: &[u8]) -> Result<usize, Errno> {
        net::send(self.streams.fd(stream), bytes, SEND)
    }

    fn send_pieces(&mut self, stream: &Stream, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        sendmsg(self.streams.fd(stream), pieces, &mut SendAncillaryBuffer::default(), SEND)
    }

    fn send_batch<'a>(
        &mut self,
        batch: impl Iterator<Item = (u32, &'a Stream, &'a [u8])>,
        short: &mut Vec<(u32, Result<usize, Errno>)>,
    ) {
        let Self { ring, streams, deferred, .. } = self;
        let batch = batch.map(|(number, stream, bytes)| (number, streams.fd(stream), bytes));
        ring.send_all(batch, |_, done| match done.tag().kind {
            Kind::Send => {
                let sent = done.error().map_or(Ok(done.result() as usize), Err);
                short.push((done.tag().place, sent));
            }
            Kind::Ignored => {}
            _ => deferred.push(done),
        });
        short.sort_unstable_by_key(|&(number, _)| number);
        self.handle_deferred();
    }

    fn discard(&mut self, stream: &Stream, most: usize) {
        self.streams.discard(stream, &mut self.ring.buffers);
        let fd: BorrowedFd<'_> = self.streams.fd(stream);
        let mut scratch = [0u8; 4096];
        let mut discarded = 0;
        while discarded < most {
            match net::recv(fd, &mut scratch, RecvFlags::DONTWAIT) {
                Ok((n, _)) if n > 0 => discarded += n,
                _ => break,
            }
        }
    }

    fn close(&mut self, stream: Stream) {
        self.streams.close(&stream, &mut self.ring.buffers);
        if self.listeners.has_paused() {
            // A listener waits for a free descriptor: this one is freed now, not with the next
            // poll.
            self.streams.submit_changes(&mut self.ring);
            self.ring.enter(0, None);
            self.drain();
        }
    }

    fn shutdown_write(&mut self, stream: &Stream) {
        // The peer may be gone already.
        let _ = net::shutdown(self.streams.fd(stream), Shutdown::Write);
    }

    fn local_addr(&self, stream: &Stream) -> PeerAddr {
        PeerAddr::of(net::getsockname(self.streams.fd(stream)).ok(), Path::new(""))
    }

    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<Listening, ListenError> {
        let listener = Listener::open(at, *options).map_err(|e| ListenError(e.into()))?;
        Ok(self.listeners.insert(listener))
    }

    fn close_listener(&mut self, listener: Listening) {
        self.listeners.close(&listener);
    }

    fn arm(&mut self, listener: &Listening, number: usize, armed: bool) -> Result<(), Errno> {
        self.listeners.arm(listener, number, armed);
        Ok(())
    }

    fn accept(&mut self, listener: &Listening) -> Result<(Socket, PeerAddr), Errno> {
        let fd = self.listeners.accept(listener)?;
        let path = self.listeners.find(listener).path();
        // A peer without an address is gone already.
        let addr = net::getpeername(&fd).map_err(|_| Errno::CONNABORTED)?;
        Ok((Socket::from_fd(fd), PeerAddr::of(addr, path)))
    }

    fn overflows(&self, listener: &Listening) -> u64 {
        let listener = self.listeners.find(listener);
        if listener.is_unix() { 0 } else { sys::drops(listener.fd.as_fd()) }
    }

    fn listen_addr(&self, listener: &Listening) -> PeerAddr {
        let listener = self.listeners.find(listener);
        PeerAddr::of(net::getsockname(&listener.fd).ok(), listener.path())
    }
}
