//! The epoll back end: level-triggered readiness of real sockets under a reactor.

pub(crate) mod listen;
pub(crate) mod signals;

use crate::files::SystemFile;
use crate::files::raw::{RawDone, RawFiles, RawOp};
use crate::files::thread::FileThread;
use crate::mailbox::Waker;
use crate::poller::{EVENTS_MAX, Poller, Ready, Token, Wait};
use crate::process::{cpus_allowed, draw_seeds, involuntary_switches};
use crate::reactor::Reactor;
use crate::spin::SpinOptions;
use crate::trouble::is_interruption;
use crate::{
    Clock, ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions, clock, sys,
};
use base::sync::Arc;
use listen::Listener;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, sendmsg,
};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use signals::Signals;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::Path;

/// How to set up the driver.
#[derive(Clone, Copy, Debug)]
pub struct EpollOptions {
    /// Spin before sleeping, microseconds.
    pub busy_poll_us: u32,
    /// Workers of the process, to compare with its processors.
    pub workers: usize,
    /// This driver reports SIGINT and SIGTERM.
    pub signals: bool,
}

/// A driver on epoll.
pub type EpollDriver<M> = Reactor<Epoll, M>;

impl<M: Send> EpollDriver<M> {
    /// A driver without connections.
    pub fn new(options: &EpollOptions) -> std::io::Result<Self> {
        let poller = Epoll::new(options.signals)?;
        let spin = SpinOptions {
            busy_poll_us: options.busy_poll_us,
            workers: options.workers,
            cpus: cpus_allowed(),
        };
        Ok(Reactor::on(poller, spin))
    }
}

/// Real sockets, the real clock.
pub struct Epoll {
    set: OwnedFd,
    wake: Arc<OwnedFd>,
    /// Ends waits that are shorter than epoll's resolution.
    timer: OwnedFd,
    signals: Signals,
    files: FileThread,
    seed: u64,
    secret: u128,
}

/// Wakes the thread that polls this counter.
pub(crate) struct EventFdWaker(pub Arc<OwnedFd>);

impl Waker for EventFdWaker {
    fn wake(&self) {
        // If the counter is full, a wake-up is pending already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl Epoll {
    fn new(with_signals: bool) -> std::io::Result<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        // Edge-triggered: every write wakes once and the counter need not be read back.
        let data = EventData::new_u64(Token::WAKE.0);
        epoll::add(&set, &*wake, data, EventFlags::IN | EventFlags::ET)?;
        let clock = TimerfdClockId::Monotonic;
        let timer = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // Edge-triggered for the same reason.
        epoll::add(&set, &timer, data, EventFlags::IN | EventFlags::ET)?;
        let signals = Signals::new(with_signals)?;
        for (place, stream) in signals.streams().enumerate() {
            let data = EventData::new_u64(Token::signal(place).0);
            epoll::add(&set, stream, data, EventFlags::IN)?;
        }
        let (seed, secret) = draw_seeds()?;
        let files = FileThread::new(Box::new(EventFdWaker(wake.clone())));
        Ok(Self { set, wake, timer, signals, files, seed, secret })
    }

    fn timeout(&self, wait: Wait) -> Option<Timespec> {
        let ns = match wait {
            Wait::NoWait => 0,
            Wait::Until(at) => at.since(Clock::System.now()),
            Wait::Forever => return None,
        };
        let (tv_sec, tv_nsec) = ((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        let timeout = Timespec { tv_sec, tv_nsec };
        if (1..TIMER_NS).contains(&ns) {
            let once = Itimerspec { it_interval: Timespec::default(), it_value: timeout };
            if timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_ok() {
                return None;
            }
        }
        Some(timeout)
    }
}

/// Shorter waits use the timer: epoll's own timeout has a resolution of 1 ms.
const TIMER_NS: u64 = 1_000_000;

/// Flags of every send: no signal if the peer is gone, no blocking.
pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

impl RawFiles for Epoll {
    type File = SystemFile;

    fn submit_file(&mut self, number: u32, op: RawOp<SystemFile>) {
        self.files.submit(number, op);
    }

    fn completed_files(&mut self, into: &mut Vec<RawDone<SystemFile>>) {
        self.files.take_completed(into);
    }
}

impl Poller for Epoll {
    const SLEEPS: bool = true;
    type Stream = OwnedFd;
    type Listener = Listener;

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
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let timeout = self.timeout(self.files.before_wait(wait));
        match epoll::wait(&self.set, &mut room, timeout.as_ref()) {
            Ok((events, _)) => ready.extend(events.iter().filter_map(|event| {
                let token = Token(event.data.u64());
                (token != Token::WAKE).then_some(Ready { token, flags: event.flags })
            })),
            // Counts as an empty poll; the caller polls again.
            Err(error) => is_interruption("epoll_wait", error),
        }
        if self.files.after_wait() {
            ready.push(Ready { token: Token::FILES, flags: EventFlags::IN });
        }
    }

    fn signal(&mut self, place: usize) -> Option<i32> {
        self.signals.take(place)
    }

    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> OwnedFd {
        socket.into_fd(*options)
    }

    fn detach(&mut self, stream: OwnedFd) -> Result<(Socket, Vec<u8>), OwnedFd> {
        self.remove(&stream);
        Ok((Socket::from_fd(stream), Vec::new()))
    }

    fn attach(&mut self, socket: Socket, unread: Vec<u8>) -> OwnedFd {
        debug_assert!(unread.is_empty(), "epoll receives nothing by itself");
        socket.into_raw_fd()
    }

    fn add(&mut self, stream: &OwnedFd, token: Token, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.set, stream, EventData::new_u64(token.0), flags)
    }

    fn modify(&mut self, stream: &OwnedFd, token: Token, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.set, stream, EventData::new_u64(token.0), flags)
    }

    fn remove(&mut self, stream: &OwnedFd) {
        // It is not registered if registering it failed.
        let _ = epoll::delete(&self.set, stream);
    }

    #[inline]
    fn recv(&mut self, stream: &OwnedFd, room: &mut [u8]) -> Result<usize, Errno> {
        net::recv(stream, room, RecvFlags::DONTWAIT).map(|(n, _)| n)
    }

    fn set_bulk(&mut self, stream: &OwnedFd, low_water: Option<usize>) {
        sys::set_low_water(stream.as_fd(), low_water.unwrap_or(1));
    }

    fn recv_onto(&mut self, stream: &OwnedFd, room: &mut Vec<u8>) -> Result<usize, Errno> {
        net::recv(stream, spare_capacity(room), RecvFlags::DONTWAIT).map(|(n, _)| n)
    }

    fn has_input(&mut self, stream: &OwnedFd) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(net::recv(stream, &mut byte, flags), Ok((n, _)) if n > 0)
    }

    #[inline]
    fn send(&mut self, stream: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        net::send(stream, bytes, SEND)
    }

    fn send_pieces(&mut self, stream: &OwnedFd, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        sendmsg(stream, pieces, &mut SendAncillaryBuffer::default(), SEND)
    }

    fn shutdown_write(&mut self, stream: &OwnedFd) {
        // The peer may be gone already.
        let _ = net::shutdown(stream, Shutdown::Write);
    }

    fn local_addr(&self, stream: &OwnedFd) -> PeerAddr {
        PeerAddr::of(net::getsockname(stream).ok(), Path::new(""))
    }

    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<Listener, ListenError> {
        Listener::open(at, *options).map_err(|e| ListenError(e.into()))
    }

    fn arm(&mut self, listener: &Listener, number: usize, armed: bool) -> Result<(), Errno> {
        if armed {
            let data = EventData::new_u64(Token::listener(number).0);
            epoll::add(&self.set, &listener.fd, data, EventFlags::IN)
        } else {
            epoll::delete(&self.set, &listener.fd)
        }
    }

    fn accept(&mut self, listener: &Listener) -> Result<(Socket, PeerAddr), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (fd, addr) = net::acceptfrom_with(&listener.fd, flags)?;
        Ok((Socket::from_fd(fd), PeerAddr::of(addr, listener.path())))
    }

    fn overflows(&self, listener: &Listener) -> u64 {
        if listener.is_unix() { 0 } else { sys::drops(listener.fd.as_fd()) }
    }

    fn listen_addr(&self, listener: &Listener) -> PeerAddr {
        PeerAddr::of(net::getsockname(&listener.fd).ok(), listener.path())
    }
}
