//! The epoll back end: level-triggered, receiving lazily, sending at once.
//!
//! Per request without a pipeline it makes one receive and one send; the poll is shared by all ready connections.

mod backlog;
mod listen;

use crate::mailbox::{Mailbox, MailboxSender, Waker};
use crate::process::{cpus_allowed, involuntary_switches};
use crate::socket::{Inner, set_options};
use crate::spin::Spin;
use crate::{
    AREA, Clock, CloseReason, ConnId, Driver, DriverStats, Event, ListenAddr, ListenError,
    ListenOptions, ListenerId, OutBuf, PeerAddr, RECV_MAX, Segment, Socket, SocketOptions, clock,
};
use backlog::Backlog;
use base::prng::Prng;
use base::sync::Arc;
use base::{MonoNs, UnixMs};
use clock::WallClock;
use listen::Listener;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Ready connections taken per poll.
const EVENTS: usize = 512;
/// Connections accepted per listener and turn.
const ACCEPTS: usize = 64;
/// Discarded input at most when a connection is closed in good order.
const DISCARD_MAX: usize = 1 << 20;

const KIND_CONN: u64 = 0;
const KIND_LISTENER: u64 = 1 << 32;
const KIND_WAKE: u64 = 2 << 32;
const KIND_SIGNAL: u64 = 3 << 32;
const KIND_MASK: u64 = !0 << 32;

/// How to set up.
#[derive(Clone, Copy, Debug)]
pub struct EpollOptions {
    /// Spin before sleeping, microseconds.
    pub busy_poll_us: u32,
    /// Workers of the process, to compare with its processors.
    pub workers: usize,
    /// This driver reports SIGINT and SIGTERM.
    pub signals: bool,
}

struct Conn {
    fd: OwnedFd,
    generation: u32,
    /// Interest registered with epoll.
    interest: EventFlags,
    paused: bool,
    /// Kept input is to be delivered without receiving.
    again: bool,
    /// Close once the backlog is empty.
    closing: bool,
    /// The end was reported; nothing more is.
    dead: bool,
    /// The turn of its last `Data`.
    turn: u64,
    kept: Vec<u8>,
    backlog: Option<Box<Backlog>>,
}

/// One worker's network.
pub struct EpollDriver<M> {
    epoll: OwnedFd,
    conns: Vec<Option<Conn>>,
    free: Vec<u32>,
    generation: u32,
    listeners: Vec<Option<Listener>>,
    ready: Vec<(u64, EventFlags)>,
    ready_at: usize,
    turn: u64,
    area: Vec<u8>,
    area_at: usize,
    out: OutBuf,
    again: Vec<ConnId>,
    ended: Vec<(ConnId, CloseReason)>,
    mailbox: Mailbox<M>,
    wake: Arc<OwnedFd>,
    signals: Vec<(i32, UnixStream)>,
    now: MonoNs,
    unix_ms: UnixMs,
    wall: WallClock,
    spin: Spin,
    prng: Prng,
    stats: DriverStats,
    overflows_at_start: u64,
    accept_paused_until: Option<MonoNs>,
    accepts_left: usize,
}

struct EventFdWaker(Arc<OwnedFd>);

impl Waker for EventFdWaker {
    fn wake(&self) {
        // A full counter is awake already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl<M: Send> EpollDriver<M> {
    /// A driver without connections.
    pub fn new(options: &EpollOptions) -> std::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*wake, EventData::new_u64(KIND_WAKE), EventFlags::IN)?;
        let mut signals = Vec::new();
        if options.signals {
            for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
                let (read, write) = UnixStream::pair()?;
                read.set_nonblocking(true)?;
                signal_hook::low_level::pipe::register(signal, write)?;
                let data = EventData::new_u64(KIND_SIGNAL | signals.len() as u64);
                epoll::add(&epoll, &read, data, EventFlags::IN)?;
                signals.push((signal, read));
            }
        }
        let mut seed = [0u8; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self {
            epoll,
            conns: Vec::new(),
            free: Vec::new(),
            generation: 0,
            listeners: Vec::new(),
            ready: Vec::with_capacity(EVENTS),
            ready_at: 0,
            turn: 0,
            area: vec![0; AREA],
            area_at: 0,
            out: OutBuf::new(),
            again: Vec::new(),
            ended: Vec::new(),
            mailbox: Mailbox::new(Box::new(EventFdWaker(wake.clone()))),
            wake,
            signals,
            now: Clock::System.now(),
            unix_ms: clock::unix_ms(),
            wall: WallClock::default(),
            spin: Spin::new(options.busy_poll_us, options.workers, cpus_allowed()),
            prng: Prng::new(u64::from_ne_bytes(seed)),
            stats: DriverStats::default(),
            overflows_at_start: listen_overflows(),
            accept_paused_until: None,
            accepts_left: ACCEPTS,
        })
    }

    fn conn(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.conns
            .get_mut(id.index as usize)
            .and_then(Option::as_mut)
            .filter(|c| c.generation == id.generation)
    }

    fn id_of(&self, index: u32) -> Option<ConnId> {
        let conn = self.conns.get(index as usize)?.as_ref()?;
        Some(ConnId { index, generation: conn.generation })
    }

    /// Registers what the connection waits for now.
    fn update(&mut self, id: ConnId) {
        let epoll = &self.epoll;
        let conn = self.conns.get_mut(id.index as usize).and_then(Option::as_mut);
        let Some(conn) = conn.filter(|c| c.generation == id.generation) else { return };
        let unsent = conn.backlog.is_some();
        let mut want = EventFlags::empty();
        if conn.dead {
            // errors and hang-ups cannot be masked; nothing else matters
        } else if !conn.paused && !conn.closing {
            want |= EventFlags::IN;
        } else if !unsent && !conn.closing {
            want |= EventFlags::RDHUP;
        }
        if unsent {
            want |= EventFlags::OUT;
        }
        if want != conn.interest
            && epoll::modify(
                epoll,
                &conn.fd,
                EventData::new_u64(KIND_CONN | u64::from(id.index)),
                want,
            )
            .is_ok()
        {
            conn.interest = want;
        }
    }

    fn end(&mut self, id: ConnId, why: CloseReason) {
        let Some(conn) = self.conn(id) else { return };
        if !conn.dead {
            conn.dead = true;
            conn.backlog = None;
            self.ended.push((id, why));
            // Level-triggered hang-ups would be reported at every poll until the place is given back.
            if let Some(conn) = self.conns[id.index as usize].as_ref() {
                let _ = epoll::delete(&self.epoll, &conn.fd);
            }
        }
    }

    /// Polls once; `None` sleeps for ever.
    fn poll(&mut self, timeout: Option<u64>) -> usize {
        let timespec = timeout.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        self.ready.clear();
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        // EINTR: nothing is ready; the caller looks again soon enough.
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut room, timespec.as_ref()) {
            self.ready.extend(events.iter().map(|e| (e.data.u64(), e.flags)));
        }
        self.stats.polls += 1;
        self.ready.len()
    }

    fn spin_or_sleep(&mut self, until: Option<MonoNs>, started: MonoNs) {
        let budget = self.spin.budget();
        if budget > 0 {
            loop {
                if self.poll(Some(0)) > 0 || !self.mailbox.is_empty() {
                    self.stats.spins_won += 1;
                    return self.spin.won();
                }
                let now = Clock::System.now();
                if until.is_some_and(|u| now >= u) {
                    return;
                }
                if now.since(started) >= budget {
                    break;
                }
            }
            self.stats.spins_lost += 1;
            self.spin.lost();
        }
        if !self.mailbox.prepare_sleep() {
            return;
        }
        let timeout = until.map(|u| u.since(Clock::System.now()));
        self.stats.sleeps += 1;
        self.poll(timeout);
        self.mailbox.awake();
        if self.spin.wants_sample() {
            self.spin.sample(involuntary_switches());
        }
    }

    /// An event of a ready descriptor; `None` to look at the next one.
    fn on_ready(&mut self, data: u64, flags: EventFlags) -> Option<Event<M>> {
        let number = data as u32;
        match data & KIND_MASK {
            KIND_LISTENER => self.accept(number),
            KIND_WAKE => {
                let mut b = [0u8; 8];
                let _ = rustix::io::read(&*self.wake, &mut b);
                self.ready_at += 1;
                None
            }
            KIND_SIGNAL => {
                let (signal, stream) = &self.signals[number as usize];
                let signal = *signal;
                let mut b = [0u8; 64];
                let _ = rustix::io::read(stream, &mut b);
                self.ready_at += 1;
                Some(Event::Signal(signal))
            }
            _ => self.on_conn(number, flags),
        }
    }

    fn accept(&mut self, number: u32) -> Option<Event<M>> {
        if self.accepts_left == 0 {
            self.ready_at += 1;
            return None; // level-triggered: the next poll reports it again
        }
        self.accepts_left -= 1;
        let listener = self.listeners.get(number as usize).and_then(Option::as_ref);
        let result = listener.map(|l| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            net::acceptfrom_with(&l.fd, flags).map(|(fd, addr)| (fd, PeerAddr::of(addr, &l.path)))
        });
        match result {
            Some(Ok((fd, peer))) => {
                return Some(Event::Accepted {
                    listener: ListenerId(number),
                    socket: Socket::from_fd(fd),
                    peer,
                });
            }
            Some(Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                // No descriptors: leave the queue alone for a while instead of spinning on it.
                self.pause_accepting(true);
                self.accept_paused_until = Some(self.now.plus(100_000_000));
            }
            Some(Err(Errno::INTR | Errno::CONNABORTED)) => return None, // try again
            _ => {}
        }
        self.ready_at += 1;
        None
    }

    fn pause_accepting(&mut self, paused: bool) {
        let want = if paused { EventFlags::empty() } else { EventFlags::IN };
        for (i, l) in self.listeners.iter().enumerate() {
            if let Some(l) = l {
                let _ = epoll::modify(
                    &self.epoll,
                    &l.fd,
                    EventData::new_u64(KIND_LISTENER | i as u64),
                    want,
                );
            }
        }
    }

    fn on_conn(&mut self, index: u32, flags: EventFlags) -> Option<Event<M>> {
        let Some(id) = self.id_of(index) else {
            self.ready_at += 1;
            return None;
        };
        if flags.contains(EventFlags::OUT) {
            self.ready[self.ready_at].1.remove(EventFlags::OUT);
            return self.flush_backlog(id);
        }
        let turn = self.turn;
        let free = self.area.len() - self.area_at;
        let conn = self.conns[index as usize].as_mut()?;
        let readable = flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR);
        if conn.dead || conn.again || conn.turn == turn {
            self.ready_at += 1;
            return None;
        }
        if conn.paused || conn.closing {
            self.ready_at += 1;
            self.look_at_paused(id, flags);
            return None;
        }
        if !readable {
            self.ready_at += 1;
            return None;
        }
        let kept = conn.kept.len();
        if free < kept + RECV_MAX {
            return Some(Event::AreaFull);
        }
        self.ready_at += 1;
        let start = self.area_at;
        let room = &mut self.area[start + kept..start + kept + RECV_MAX];
        let received = match net::recv(&conn.fd, &mut *room, RecvFlags::empty()) {
            Ok((n, _)) => n,
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(_) => {
                self.end(id, CloseReason::Error);
                return None;
            }
        };
        if received == 0 {
            self.end(id, CloseReason::Peer);
            return None;
        }
        if kept > 0 {
            self.area[start..start + kept].copy_from_slice(&conn.kept);
            conn.kept.clear();
            if conn.kept.capacity() > 4096 {
                conn.kept = Vec::new();
            }
        }
        conn.turn = turn;
        let end = start + kept + received;
        self.area_at = (end + 63) & !63;
        self.stats.receives += 1;
        self.stats.bytes_received += received as u64;
        self.stats.bytes_per_receive.record(received as u64);
        Some(Event::Data { conn: id, start, end })
    }

    /// A hang-up of a connection that is not read: it ends unless input or replies are still under way.
    fn look_at_paused(&mut self, id: ConnId, flags: EventFlags) {
        let Some(conn) = self.conn(id) else { return };
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            return self.end(id, CloseReason::Error);
        }
        if flags.contains(EventFlags::RDHUP) {
            let mut byte = [0u8; 1];
            let unread = matches!(
                net::recv(&conn.fd, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT),
                Ok((n, _)) if n > 0
            );
            if unread || !conn.kept.is_empty() {
                // It wants answers to what it sent before it stopped sending: not gone yet.
                let data = EventData::new_u64(KIND_CONN | u64::from(id.index));
                if let Some(conn) = self.conns[id.index as usize].as_mut()
                    && epoll::modify(&self.epoll, &conn.fd, data, EventFlags::empty()).is_ok()
                {
                    conn.interest = EventFlags::empty();
                }
            } else {
                self.end(id, CloseReason::Peer);
            }
        }
    }

    fn flush_backlog(&mut self, id: ConnId) -> Option<Event<M>> {
        let conn = self.conn(id)?;
        let backlog = conn.backlog.as_mut()?;
        let result = backlog.flush(conn.fd.as_fd());
        let left = backlog.len();
        let closing = conn.closing;
        match result {
            Ok(sent) => {
                self.stats.sends += 1;
                self.stats.bytes_sent += sent as u64;
            }
            Err(_) => {
                self.end(id, CloseReason::Error);
                return None;
            }
        }
        if left > 0 {
            return None;
        }
        self.conn(id)?.backlog = None;
        if closing {
            self.finish(id);
            return None;
        }
        self.update(id);
        Some(Event::Drained { conn: id })
    }

    /// Everything has left: says so to the peer, discards what it sent meanwhile.
    fn finish(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        let _ = net::shutdown(&conn.fd, net::Shutdown::Write);
        discard_input(&conn.fd);
        self.end(id, CloseReason::Peer);
    }

    fn deliver_kept(&mut self, id: ConnId) -> Option<Event<M>> {
        let turn = self.turn;
        let free = self.area.len() - self.area_at;
        let start = self.area_at;
        let conn = self.conn(id)?;
        let kept = conn.kept.len();
        if conn.dead || conn.paused || kept == 0 {
            conn.again = false;
            return None;
        }
        if free < kept {
            self.again.push(id);
            return Some(Event::AreaFull);
        }
        conn.again = false;
        conn.turn = turn;
        let bytes = std::mem::take(&mut conn.kept);
        self.area[start..start + kept].copy_from_slice(&bytes);
        self.area_at = (start + kept + 63) & !63;
        Some(Event::Data { conn: id, start, end: start + kept })
    }

    /// Sends the pieces of a segment; returns the bytes that left.
    fn send_pieces(conn: &Conn, out: &OutBuf, s: Segment) -> Result<usize, Errno> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if s.blob_start == s.blob_end {
            return net::send(&conn.fd, &out.bytes[s.start..s.end], flags);
        }
        let mut total = 0;
        for piece in pieces(out, s) {
            let n = match net::send(&conn.fd, piece, flags) {
                Ok(n) => n,
                Err(Errno::AGAIN) => 0,
                Err(e) => return Err(e),
            };
            total += n;
            if n < piece.len() {
                break;
            }
        }
        Ok(total)
    }
}

/// The runs of bytes of a segment, in order.
fn pieces(out: &OutBuf, s: Segment) -> impl Iterator<Item = &[u8]> {
    let mut at = s.start;
    let blobs = &out.blobs[s.blob_start..s.blob_end];
    let mut next = 0;
    let mut blob_turn = false;
    std::iter::from_fn(move || {
        loop {
            if blob_turn {
                blob_turn = false;
                next += 1;
                return Some(blobs[next - 1].1.as_slice());
            }
            if next < blobs.len() {
                let to = blobs[next].0;
                let run = &out.bytes[at..to];
                at = to;
                blob_turn = true;
                if run.is_empty() {
                    continue;
                }
                return Some(run);
            }
            if at < s.end {
                let run = &out.bytes[at..s.end];
                at = s.end;
                return Some(run);
            }
            return None;
        }
    })
    .filter(|p| !p.is_empty())
}

fn discard_input(fd: &OwnedFd) {
    let mut scratch = [0u8; 4096];
    let mut total = 0;
    while total < DISCARD_MAX {
        match net::recv(fd, &mut scratch, RecvFlags::DONTWAIT) {
            Ok((n, _)) if n > 0 => total += n,
            _ => return,
        }
    }
}

/// Listen-queue overflows of the machine so far (`ListenOverflows` in /proc/net/netstat).
fn listen_overflows() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter(|l| l.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    names
        .split(' ')
        .zip(values.split(' '))
        .find(|(name, _)| *name == "ListenOverflows")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

impl<M: Send> Driver for EpollDriver<M> {
    type Message = M;

    fn now(&self) -> MonoNs {
        self.now
    }

    fn refresh_now(&mut self) -> MonoNs {
        self.now = Clock::System.now();
        self.now
    }

    fn clock(&self) -> Clock {
        Clock::System
    }

    fn unix_ms(&self) -> UnixMs {
        self.unix_ms
    }

    fn random(&mut self) -> u64 {
        self.prng.draw()
    }

    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let listener = listen::open(at, options)?;
        let id = self.listeners.len() as u64;
        epoll::add(
            &self.epoll,
            &listener.fd,
            EventData::new_u64(KIND_LISTENER | id),
            EventFlags::IN,
        )
        .map_err(|e| ListenError(e.into()))?;
        self.listeners.push(Some(listener));
        Ok(ListenerId(id as u32))
    }

    fn close_listener(&mut self, id: ListenerId) {
        if let Some(l) = self.listeners.get_mut(id.0 as usize).and_then(Option::take)
            && !l.path.as_os_str().is_empty()
        {
            let _ = rustix::fs::unlink(&l.path);
        }
    }

    fn listener_overflows(&mut self) -> u64 {
        listen_overflows().saturating_sub(self.overflows_at_start)
    }

    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> ConnId {
        let Inner::Fd(fd) = socket.0;
        set_options(fd.as_fd(), options);
        let index = self.free.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() as u32 - 1
        });
        self.generation = self.generation.wrapping_add(1);
        let id = ConnId { index, generation: self.generation };
        let data = EventData::new_u64(KIND_CONN | u64::from(index));
        let added = epoll::add(&self.epoll, &fd, data, EventFlags::IN);
        self.conns[index as usize] = Some(Conn {
            fd,
            generation: self.generation,
            interest: EventFlags::IN,
            paused: false,
            again: false,
            closing: false,
            dead: false,
            turn: 0,
            kept: Vec::new(),
            backlog: None,
        });
        if added.is_err() {
            self.end(id, CloseReason::Error);
        }
        id
    }

    fn local_addr(&self, conn: ConnId) -> PeerAddr {
        let fd = self.conns.get(conn.index as usize).and_then(Option::as_ref).map(|c| &c.fd);
        let addr = fd.and_then(|fd| net::getsockname(fd).ok());
        let path: PathBuf =
            self.listeners.iter().flatten().map(|l| l.path.clone()).next_back().unwrap_or_default();
        PeerAddr::of(addr, &path)
    }

    fn wait(&mut self, until: Option<MonoNs>) {
        self.turn += 1;
        self.ready_at = 0;
        self.accepts_left = ACCEPTS;
        let started = Clock::System.now();
        if let Some(at) = self.accept_paused_until
            && started >= at
        {
            self.accept_paused_until = None;
            self.pause_accepting(false);
        }
        let hurry = !self.again.is_empty() || !self.ended.is_empty() || !self.mailbox.is_empty();
        if self.poll(Some(0)) == 0 && !hurry && until.is_none_or(|u| u > started) {
            let until = [until, self.accept_paused_until].into_iter().flatten().min();
            self.spin_or_sleep(until, started);
        }
        let n = self.ready.len() as u64;
        self.stats.events += n;
        self.stats.events_per_poll.record(n);
        let now = self.refresh_now();
        self.unix_ms = self.wall.unix_ms(now);
        let ns = now.since(started);
        self.stats.poll_ns += ns;
        self.stats.ns_per_poll.record(ns);
    }

    fn next(&mut self) -> Option<Event<M>> {
        if let Some(m) = self.mailbox.take() {
            return Some(Event::Message(m));
        }
        while let Some(id) = self.again.pop() {
            if let Some(event) = self.deliver_kept(id) {
                return Some(event);
            }
        }
        while self.ready_at < self.ready.len() {
            let (data, flags) = self.ready[self.ready_at];
            if let Some(event) = self.on_ready(data, flags) {
                return Some(event);
            }
        }
        self.ended.pop().map(|(conn, why)| Event::Closed { conn, why })
    }

    fn io(&mut self) -> (&[u8], &mut OutBuf) {
        (&self.area, &mut self.out)
    }

    fn rewind(&mut self) {
        self.area_at = 0;
    }

    fn keep(&mut self, conn: ConnId, from: usize, to: usize) {
        let Some(c) = self.conns.get_mut(conn.index as usize).and_then(Option::as_mut) else {
            return;
        };
        if c.generation == conn.generation {
            c.kept.clear();
            c.kept.extend_from_slice(&self.area[from..to]);
        }
    }

    fn pause(&mut self, conn: ConnId) {
        if let Some(c) = self.conn(conn)
            && !c.paused
        {
            c.paused = true;
            self.update(conn);
        }
    }

    fn resume(&mut self, conn: ConnId) {
        let Some(c) = self.conn(conn) else { return };
        c.paused = false;
        let kept = !c.kept.is_empty();
        self.update(conn);
        if kept {
            self.again(conn);
        }
    }

    fn again(&mut self, conn: ConnId) {
        if let Some(c) = self.conn(conn)
            && !c.again
        {
            c.again = true;
            self.again.push(conn);
        }
    }

    fn send(&mut self, conn: ConnId, s: Segment) -> usize {
        let Some(c) = self.conns.get_mut(conn.index as usize).and_then(Option::as_mut) else {
            return 0;
        };
        if c.generation != conn.generation || c.dead {
            return 0;
        }
        let out = &self.out;
        let blobs = &out.blobs[s.blob_start..s.blob_end];
        let full = s.end - s.start + blobs.iter().map(|(_, b)| b.len()).sum::<usize>();
        let mut sent = 0;
        if c.backlog.is_none() {
            sent = match Self::send_pieces(c, out, s) {
                Ok(n) => n,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(_) => {
                    self.end(conn, CloseReason::Error);
                    return 0;
                }
            };
            self.stats.sends += 1;
            self.stats.bytes_sent += sent as u64;
            self.stats.bytes_per_send.record(sent as u64);
            if sent == full {
                return 0;
            }
        }
        let backlog = c.backlog.get_or_insert_default();
        push_rest(backlog, out, s, sent);
        let left = backlog.len();
        self.update(conn);
        left
    }

    fn out_done(&mut self) {
        self.out.clear();
        if self.out.bytes.capacity() > ARENA_KEPT {
            self.out.bytes.shrink_to(ARENA_KEPT);
        }
    }

    fn backlog(&self, conn: ConnId) -> usize {
        let c = self.conns.get(conn.index as usize).and_then(Option::as_ref);
        c.and_then(|c| c.backlog.as_ref()).map_or(0, |b| b.len())
    }

    fn close_after_flush(&mut self, conn: ConnId) {
        let Some(c) = self.conn(conn) else { return };
        c.closing = true;
        c.kept = Vec::new();
        if c.backlog.is_none() {
            self.finish(conn);
        } else {
            self.update(conn);
        }
    }

    fn release(&mut self, conn: ConnId) {
        if self.conn(conn).is_some() {
            self.conns[conn.index as usize] = None;
            self.free.push(conn.index);
            self.ended.retain(|(c, _)| *c != conn);
        }
    }

    fn mailbox(&self) -> MailboxSender<M> {
        self.mailbox.sender()
    }

    fn stats(&mut self) -> &mut DriverStats {
        &mut self.stats
    }
}

/// Arena memory kept between turns.
const ARENA_KEPT: usize = 1 << 20;

/// What was not sent goes to the backlog: bytes by copy, big values by reference.
fn push_rest(backlog: &mut Backlog, out: &OutBuf, s: Segment, sent: usize) {
    let mut skip = sent;
    let mut at = s.start;
    let run = |backlog: &mut Backlog, bytes: &[u8], skip: &mut usize| {
        let n = (*skip).min(bytes.len());
        *skip -= n;
        backlog.push(&bytes[n..]);
    };
    for (position, blob) in &out.blobs[s.blob_start..s.blob_end] {
        run(backlog, &out.bytes[at..*position], &mut skip);
        at = *position;
        let n = skip.min(blob.len());
        skip -= n;
        backlog.push_shared(blob, n);
    }
    run(backlog, &out.bytes[at..s.end], &mut skip);
}
