//! The smallest network: the test's own bytes go in, the worker's bytes come out, no system call,
//! no fault.
//!
//! For measuring what a worker itself does (instructions, allocations): every connection has one
//! buffer of input, copied into the receive area as the kernel would, and one of output. The clock
//! is virtual. One worker; for faults, delays and several workers there is the simulated network.

use crate::{
    AREA, Clock, CloseReason, ConnId, Driver, DriverStats, Event, FileDone, FileError, FileOp,
    ListenAddr, ListenError, ListenOptions, ListenerId, Mailbox, MailboxSender, Moving, OutBuf,
    PeerAddr, RECV_MAX, Segment, Socket, SocketOptions,
};
use base::prng::Prng;
use base::sync::Arc;
use base::sync::hint::{AtomicU64, Ordering::Relaxed};
use base::{MonoNs, UnixMs};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// How far the clock goes with every turn, nanoseconds.
const TURN_NS: u64 = 1_000;
/// Wall clock at the start, milliseconds.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// The two ends of one connection.
#[derive(Debug, Default)]
struct Pipe {
    input: Vec<u8>,
    /// Input that the worker took already.
    taken: usize,
    /// The end of what was delivered last.
    delivered: usize,
    output: Vec<u8>,
    paused: bool,
    closed: bool,
    /// The turn of its last `Data`.
    turn: u64,
}

/// A network of one worker.
#[derive(Debug)]
pub struct Loopback<M> {
    waiting: VecDeque<UnixStream>,
    pipes: Vec<Pipe>,
    next: usize,
    turn: u64,
    area: Vec<u8>,
    area_at: usize,
    out: OutBuf,
    /// Nanoseconds that a send takes.
    send_ns: u64,
    /// Reported at the end of a turn: ends of connections and of operations on files.
    last: VecDeque<Event<M>>,
    mailbox: Mailbox<M>,
    mail: VecDeque<M>,
    now: Arc<AtomicU64>,
    /// How far the clock goes whenever a worker reads it.
    step_ns: u64,
    prng: Prng,
    stats: DriverStats,
}

/// A connection's number in the order of [`Loopback::connect`].
pub type PipeNumber = usize;

impl<M: Send> Loopback<M> {
    /// A network without connections; everything it draws follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            pipes: Vec::new(),
            next: 0,
            turn: 0,
            area: vec![0; AREA],
            area_at: 0,
            out: OutBuf::new(),
            send_ns: 0,
            last: VecDeque::new(),
            mailbox: Mailbox::new(Box::new(Nobody)),
            mail: VecDeque::new(),
            now: Arc::new(AtomicU64::new(1)),
            step_ns: 0,
            prng: Prng::new(seed),
            stats: DriverStats::default(),
        }
    }

    /// As [`Loopback::new`], with a clock that goes on by so many nanoseconds whenever the worker
    /// reads it: so what is timed by itself takes time.
    pub fn stepping(seed: u64, step_ns: u64) -> Self {
        Self { step_ns, ..Self::new(seed) }
    }

    /// A client connects; the worker accepts it in its next turn.
    pub fn connect(&mut self) -> std::io::Result<PipeNumber> {
        let (socket, _) = UnixStream::pair()?;
        self.waiting.push_back(socket);
        Ok(self.pipes.len() + self.waiting.len() - 1)
    }

    /// The client writes. At most [`RECV_MAX`] bytes per turn reach the worker.
    pub fn write(&mut self, pipe: PipeNumber, bytes: &[u8]) {
        let pipe = &mut self.pipes[pipe];
        if pipe.taken == pipe.input.len() {
            pipe.input.clear();
            (pipe.taken, pipe.delivered) = (0, 0);
        }
        pipe.input.extend_from_slice(bytes);
    }

    /// What the worker sent since the last [`Loopback::forget`].
    pub fn received(&self, pipe: PipeNumber) -> &[u8] {
        &self.pipes[pipe].output
    }

    /// The client has read everything; the room stays.
    pub fn forget(&mut self, pipe: PipeNumber) {
        self.pipes[pipe].output.clear();
    }

    /// True once the worker closed the connection.
    pub fn is_closed(&self, pipe: PipeNumber) -> bool {
        self.pipes[pipe].closed
    }

    /// Time passes.
    pub fn advance(&mut self, ns: u64) {
        self.now.fetch_add(ns, Relaxed);
    }

    /// Each send takes so long from now on.
    pub fn set_send_ns(&mut self, ns: u64) {
        self.send_ns = ns;
    }

    fn pipe(&mut self, conn: ConnId) -> &mut Pipe {
        &mut self.pipes[conn.index as usize]
    }
}

/// The one worker never sleeps.
struct Nobody;

impl crate::mailbox::Waker for Nobody {
    fn wake(&self) {}
}

fn id(index: usize) -> ConnId {
    ConnId { index: index as u32, generation: 1 }
}

impl<M: Send> Driver for Loopback<M> {
    type Message = M;

    fn now(&self) -> MonoNs {
        MonoNs(self.now.load(Relaxed))
    }

    fn refresh_now(&mut self) -> MonoNs {
        self.now()
    }

    fn clock(&self) -> Clock {
        match self.step_ns {
            0 => Clock::Virtual(self.now.clone()),
            step_ns => Clock::Stepping(self.now.clone(), step_ns),
        }
    }

    fn unix_ms(&self) -> UnixMs {
        UnixMs(EPOCH_MS + (self.now().0 / 1_000_000) as i64)
    }

    fn random(&mut self) -> u64 {
        self.prng.draw()
    }

    fn secret(&mut self) -> u128 {
        self.prng.draw().into()
    }

    fn set_busy_poll_us(&mut self, _: u32) {}

    fn listen(&mut self, _: &ListenAddr, _: &ListenOptions) -> Result<ListenerId, ListenError> {
        Ok(ListenerId(0))
    }

    fn close_listener(&mut self, _: ListenerId) {}

    fn listener_overflows(&mut self) -> u64 {
        0
    }

    fn adopt(&mut self, _: Socket, _: &SocketOptions) -> ConnId {
        self.pipes.push(Pipe::default());
        id(self.pipes.len() - 1)
    }

    /// It has one worker, so nobody detaches.
    fn attach(&mut self, moving: Moving) -> ConnId {
        let input = [moving.put_back, moving.unread].concat();
        self.pipes.push(Pipe { input, ..Pipe::default() });
        id(self.pipes.len() - 1)
    }

    fn local_addr(&self, _: ConnId) -> PeerAddr {
        PeerAddr::Unix(PathBuf::from("loopback"))
    }

    fn wait(&mut self, until: Option<MonoNs>) {
        self.turn += 1;
        self.next = 0;
        self.stats.polls += 1;
        self.mailbox.take_all(&mut self.mail);
        self.advance(TURN_NS);
        let idle = self.pipes.iter().all(|p| p.taken == p.input.len());
        if let Some(until) = until
            && idle
        {
            self.now.fetch_max(until.0, Relaxed);
        }
    }

    fn next(&mut self) -> Option<Event<M>> {
        if let Some(message) = self.mail.pop_front() {
            return Some(Event::Message(message));
        }
        if let Some(socket) = self.waiting.pop_front() {
            return Some(Event::Accepted {
                listener: ListenerId(0),
                socket: Socket::from_fd(socket.into()),
                peer: PeerAddr::Unix(PathBuf::from("loopback")),
            });
        }
        while let Some(pipe) = self.pipes.get_mut(self.next) {
            let index = self.next;
            let unread = &pipe.input[pipe.taken..];
            if unread.is_empty() || pipe.paused || pipe.closed || pipe.turn == self.turn {
                self.next += 1;
                continue;
            }
            if self.area.len() - self.area_at < RECV_MAX {
                return Some(Event::AreaFull);
            }
            let (start, n) = (self.area_at, unread.len().min(RECV_MAX));
            self.area[start..start + n].copy_from_slice(&unread[..n]);
            pipe.taken += n;
            pipe.delivered = pipe.taken;
            pipe.turn = self.turn;
            self.next += 1;
            self.area_at = (start + n + 63) & !63;
            self.stats.receives += 1;
            self.stats.bytes_received += n as u64;
            self.stats.bytes_per_receive.record(n as u64);
            return Some(Event::Data { conn: id(index), start, end: start + n });
        }
        self.last.pop_front()
    }

    fn io(&mut self) -> (&[u8], &mut OutBuf) {
        (&self.area, &mut self.out)
    }

    fn rewind(&mut self) {
        self.area_at = 0;
    }

    /// What is put back is simply not taken yet.
    fn put_back(&mut self, conn: ConnId, from: usize, to: usize) {
        let pipe = self.pipe(conn);
        pipe.taken = pipe.delivered - (to - from);
    }

    fn pause(&mut self, conn: ConnId) {
        self.pipe(conn).paused = true;
    }

    fn resume(&mut self, conn: ConnId) {
        self.pipe(conn).paused = false;
    }

    fn redeliver(&mut self, conn: ConnId) {
        self.pipe(conn).paused = false;
    }

    fn send(&mut self, conn: ConnId, s: Segment) -> usize {
        let pipe = &mut self.pipes[conn.index as usize];
        let before = pipe.output.len();
        let mut at = s.start;
        for part in &self.out.blobs[s.blob_start..s.blob_end] {
            pipe.output.extend_from_slice(&self.out.bytes[at..part.position]);
            part.pages().for_each(|page| pipe.output.extend_from_slice(page));
            at = part.position;
        }
        pipe.output.extend_from_slice(&self.out.bytes[at..s.end]);
        let sent = (pipe.output.len() - before) as u64;
        self.stats.sends += 1;
        self.stats.bytes_sent += sent;
        self.stats.bytes_per_send.record(sent);
        self.now.fetch_add(self.send_ns, Relaxed);
        0
    }

    fn keep_half_open(&mut self, conn: ConnId) {
        self.pipe(conn).paused = true;
    }

    fn flush_output(&mut self) {
        self.out.clear();
    }

    fn backlog(&self, _: ConnId) -> usize {
        0
    }

    fn close_after_flush(&mut self, conn: ConnId) {
        self.last.push_back(Event::Closed { conn, why: CloseReason::Peer });
    }

    fn end_output(&mut self, _: ConnId) {}

    fn release(&mut self, conn: ConnId) {
        self.pipe(conn).closed = true;
        self.last.retain(|e| !matches!(e, Event::Closed { conn: c, .. } if *c == conn));
    }

    /// There are no files without system calls: every operation fails with `NOSYS`.
    fn file(&mut self, token: u64, _: FileOp) {
        let outcome = Err(FileError { errno: Errno::NOSYS, written: 0 });
        let done = FileDone { token, outcome, unwritten: Vec::new() };
        self.last.push_back(Event::File(Box::new(done)));
    }

    fn mailbox(&self) -> MailboxSender<M> {
        self.mailbox.sender()
    }

    fn stats(&mut self) -> &mut DriverStats {
        &mut self.stats
    }
}
