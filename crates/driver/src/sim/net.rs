//! The state of a simulated world.

use super::Faults;
use super::disk::{DiskFaults, DiskSource, SimDisk};
use super::pipe::Pipe;
use super::world::World;
use crate::PeerAddr;
use crate::poller::{EVENTS_MAX, Ready, Token, Wait};
use base::MonoNs;
use base::prng::Prng;
use base::sync::Arc;
use base::sync::hint::{AtomicU64, Ordering::Relaxed};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};

/// When the simulation begins: far from zero, so that times before the start are valid.
const START_NS: u64 = 1_000_000_000_000;
/// The wall clock at that time.
const START_UNIX_NS: i64 = 1_700_000_000_000_000_000;
/// The first port of a client.
const CLIENT_PORT: u16 = 40_000;
/// The first port that is chosen for a listener.
const LISTENER_PORT: u16 = 6_000;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

#[derive(Debug)]
pub struct Stream {
    pub to_server: Pipe,
    pub to_client: Pipe,
    pub client_closed: bool,
    pub server_closed: bool,
    pub reset: bool,
    /// The server's side is readable when so many bytes have arrived.
    low_water: usize,
    /// [`Faults::reset_one_in`] has reset it.
    pub broken: bool,
    client_addr: PeerAddr,
    server_addr: PeerAddr,
}

#[derive(Debug)]
pub struct Listener {
    addr: PeerAddr,
    queue: VecDeque<usize>,
    queue_max: usize,
    overflows: u64,
    open: bool,
}

/// What a worker has registered, and whether it sleeps.
#[derive(Debug, Default)]
pub struct Worker {
    pub streams: BTreeMap<usize, (Token, EventFlags)>,
    pub listeners: BTreeMap<usize, Token>,
    /// Its operations on files.
    pub disk: Option<DiskSource>,
    /// The last wait, if it found nothing.
    asleep: Option<Wait>,
    pub woken: bool,
    gone: bool,
}

#[derive(Debug)]
pub struct State {
    clock: Arc<AtomicU64>,
    prng: Prng,
    pub faults: Faults,
    pub failing_accepts: u32,
    pub accept_error: Errno,
    /// The next change of a registration fails.
    pub failing_changes: bool,
    /// The disk of workers which get no other one.
    pub disk: SimDisk,
    pub streams: Vec<Stream>,
    pub listeners: Vec<Listener>,
    pub workers: Vec<Worker>,
    /// What the world of the baton adds, if there is one.
    pub world: World,
}

impl State {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            clock: Arc::new(AtomicU64::new(START_NS)),
            prng: Prng::new(seed),
            faults,
            failing_accepts: 0,
            accept_error: Errno::MFILE,
            failing_changes: false,
            disk: SimDisk::new(seed, DiskFaults::NONE),
            streams: Vec::new(),
            listeners: Vec::new(),
            workers: Vec::new(),
            world: World::default(),
        }
    }

    pub fn now(&self) -> MonoNs {
        MonoNs(World::now_ns().unwrap_or_else(|| self.clock.load(Relaxed)))
    }

    pub fn pass_time(&self, ns: u64) {
        self.clock.fetch_add(ns, Relaxed);
    }

    /// The wall clock of a worker's machine.
    pub fn unix_ns(&self, worker: usize) -> i64 {
        let since_start = self.now().since(MonoNs(START_NS)) as i64;
        START_UNIX_NS + since_start + self.world.clock_step_ns(worker)
    }

    pub fn clock(&self) -> Arc<AtomicU64> {
        self.clock.clone()
    }

    pub fn seed(&mut self) -> u64 {
        self.prng.draw()
    }

    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.prng.chance(1, one_in)
    }

    fn arrival(&mut self) -> u64 {
        let delay = match self.faults.delay_ns_max {
            0 => 0,
            most => self.prng.below(most + 1),
        };
        self.now().0 + delay
    }

    // ---- workers

    pub fn add_worker(&mut self, disk: DiskSource) -> usize {
        self.workers.push(Worker { disk: Some(disk), ..Worker::default() });
        self.world.add_worker();
        self.workers.len() - 1
    }

    pub fn remove_worker(&mut self, worker: usize) {
        self.workers[worker] = Worker { gone: true, ..Worker::default() };
    }

    pub fn wake(&mut self, worker: usize) {
        self.workers[worker].woken = true;
        self.world.wake(worker, self.now());
    }

    pub fn register(&mut self, worker: usize, stream: usize, token: Token, flags: EventFlags) {
        self.workers[worker].streams.insert(stream, (token, flags));
    }

    /// Removes the stream's registration.
    pub fn forget(&mut self, stream: usize) {
        for worker in &mut self.workers {
            worker.streams.remove(&stream);
        }
    }

    pub fn arm(&mut self, worker: usize, listener: usize, token: Option<Token>) {
        match token {
            Some(token) => self.workers[worker].listeners.insert(listener, token),
            None => self.workers[worker].listeners.remove(&listener),
        };
    }

    /// What is ready, in a random order; as epoll would see it.
    pub fn ready_of(&self, worker: usize) -> Vec<Ready> {
        let w = &self.workers[worker];
        let listeners = w
            .listeners
            .iter()
            .filter(|(listener, _)| !self.listeners[**listener].queue.is_empty())
            .map(|(_, token)| Ready { token: *token, flags: EventFlags::IN });
        let streams = w.streams.keys().filter_map(|stream| self.ready(worker, *stream));
        let files = w.disk.as_ref().filter(|disk| disk.has_done(self.now()));
        let files = files.map(|_| Ready { token: Token::FILES, flags: EventFlags::IN });
        listeners.chain(streams).chain(files).collect()
    }

    pub fn ready(&self, worker: usize, stream: usize) -> Option<Ready> {
        let (token, wanted) = *self.workers[worker].streams.get(&stream)?;
        let flags = self.readiness(stream) & (wanted | EventFlags::HUP | EventFlags::ERR);
        (!flags.is_empty()).then_some(Ready { token, flags })
    }

    fn readiness(&self, stream: usize) -> EventFlags {
        let (s, now) = (&self.streams[stream], self.now().0);
        let mut flags = EventFlags::empty();
        if self.is_reset(stream) {
            return EventFlags::IN | EventFlags::OUT | EventFlags::ERR | EventFlags::HUP;
        }
        let ended = s.to_server.end_arrived(now);
        let arrived = s.to_server.arrived(now);
        let is_full = arrived > 0 && s.to_server.room(self.faults.buffer_bytes) == 0;
        if arrived >= s.low_water || is_full || ended {
            flags |= EventFlags::IN;
        }
        if ended {
            flags |= EventFlags::RDHUP;
        }
        if ended && s.to_client.is_ended() {
            flags |= EventFlags::HUP;
        }
        if s.to_client.room(self.faults.buffer_bytes) > 0 {
            flags |= EventFlags::OUT;
        }
        flags
    }

    /// A poll of this worker; see the module's page on time.
    pub fn poll(&mut self, worker: usize, ready: &mut Vec<Ready>, wait: Wait) {
        let mut found = self.ready_of(worker);
        self.workers[worker].asleep = None;
        if found.is_empty() && wait != Wait::NoWait && !self.workers[worker].woken {
            self.workers[worker].asleep = Some(wait);
            self.advance_if_all_sleep();
            found = self.ready_of(worker);
        }
        if !found.is_empty() || wait == Wait::NoWait {
            self.workers[worker].asleep = None;
        }
        self.take(worker, found, ready);
    }

    /// Ends a poll that found this.
    pub fn take(&mut self, worker: usize, mut found: Vec<Ready>, ready: &mut Vec<Ready>) {
        self.workers[worker].woken = false;
        let blind = self.faults.blind_poll_one_in;
        if !found.is_empty() && self.happens(blind) {
            return;
        }
        for i in (1..found.len()).rev() {
            let j = self.prng.below(i as u64 + 1) as usize;
            found.swap(i, j);
        }
        found.truncate(EVENTS_MAX);
        ready.append(&mut found);
    }

    fn advance_if_all_sleep(&mut self) {
        let now = self.now();
        let idle = |(i, w): (usize, &Worker)| {
            let sleeps = match w.asleep {
                Some(Wait::Until(at)) => at > now,
                Some(Wait::Forever) => true,
                Some(Wait::NoWait) | None => false,
            };
            w.gone || sleeps && !w.woken && self.ready_of(i).is_empty()
        };
        if !self.workers.iter().enumerate().all(idle) {
            return;
        }
        let deadlines = self.workers.iter().filter_map(|w| match w.asleep {
            Some(Wait::Until(at)) => Some(at.0),
            _ => None,
        });
        let next = deadlines.chain(self.next_arrival()).min();
        if let Some(next) = next {
            self.clock.store(next.max(now.0), Relaxed);
        }
    }

    fn next_arrival(&self) -> Option<u64> {
        let now = self.now().0;
        let open = self.streams.iter().filter(|s| !s.reset);
        let bytes =
            open.flat_map(|s| [s.to_server.next_arrival(now), s.to_client.next_arrival(now)]);
        let disks = self.workers.iter().filter_map(|w| w.disk.as_ref());
        bytes.chain(disks.map(|disk| disk.next_arrival(MonoNs(now)))).flatten().min()
    }

    pub fn is_at_rest(&self) -> bool {
        self.next_arrival().is_none()
            && (0..self.workers.len())
                .all(|w| !self.workers[w].woken && self.ready_of(w).is_empty())
    }

    // ---- listeners

    pub fn listen(&mut self, at: &PeerAddr, queue_max: usize) -> Result<usize, Errno> {
        let mut addr = at.clone();
        if let PeerAddr::Tcp(tcp) = &mut addr
            && tcp.port() == 0
        {
            tcp.set_port(LISTENER_PORT + self.listeners.len() as u16);
        }
        if self.listeners.iter().any(|l| l.open && l.addr == addr) {
            return Err(Errno::ADDRINUSE);
        }
        let queue = VecDeque::new();
        self.listeners.push(Listener { addr, queue, queue_max, overflows: 0, open: true });
        self.world.add_listener();
        Ok(self.listeners.len() - 1)
    }

    pub fn close_listener(&mut self, listener: usize) {
        self.listeners[listener].open = false;
        for stream in std::mem::take(&mut self.listeners[listener].queue) {
            self.close(stream, Side::Server);
        }
        for worker in &mut self.workers {
            worker.listeners.remove(&listener);
        }
    }

    pub fn listen_addr(&self, listener: usize) -> PeerAddr {
        self.listeners[listener].addr.clone()
    }

    pub fn overflows(&self, listener: usize) -> u64 {
        self.listeners[listener].overflows
    }

    pub fn connect(&mut self, to: &PeerAddr) -> Option<usize> {
        let number = self.listeners.iter().position(|l| l.open && l.addr == *to)?;
        let listener = &mut self.listeners[number];
        if listener.queue.len() >= listener.queue_max {
            listener.overflows += 1;
            return None;
        }
        let stream = self.streams.len();
        listener.queue.push_back(stream);
        let mut client_addr = to.clone();
        if let PeerAddr::Tcp(tcp) = &mut client_addr {
            tcp.set_port(CLIENT_PORT.wrapping_add(stream as u16));
        }
        self.streams.push(Stream {
            to_server: Pipe::default(),
            to_client: Pipe::default(),
            client_closed: false,
            server_closed: false,
            reset: false,
            low_water: 1,
            broken: false,
            client_addr,
            server_addr: to.clone(),
        });
        self.world.add_stream(number);
        self.wake_acceptor(number);
        Some(stream)
    }

    pub fn accept(&mut self, listener: usize) -> Result<(usize, PeerAddr), Errno> {
        if self.listeners[listener].queue.is_empty() {
            return Err(Errno::AGAIN);
        }
        if self.failing_accepts > 0 {
            self.failing_accepts -= 1;
            return Err(self.accept_error);
        }
        let stream = self.listeners[listener].queue.pop_front().ok_or(Errno::AGAIN)?;
        Ok((stream, self.streams[stream].client_addr.clone()))
    }

    // ---- the server's side of a stream

    pub fn server_addr(&self, stream: usize) -> PeerAddr {
        self.streams[stream].server_addr.clone()
    }

    pub fn set_low_water(&mut self, stream: usize, bytes: usize) {
        self.streams[stream].low_water = bytes;
    }

    pub fn server_recv(&mut self, stream: usize, room: &mut [u8]) -> Result<usize, Errno> {
        self.maybe_reset(stream);
        let part = self.happens(self.faults.partial_read_one_in);
        let now = self.now().0;
        if self.is_reset(stream) {
            return Err(Errno::CONNRESET);
        }
        let s = &mut self.streams[stream];
        match s.to_server.read(room, now, part.then_some(&mut self.prng)) {
            0 if s.to_server.end_arrived(now) => Ok(0),
            0 => Err(Errno::AGAIN),
            n => {
                self.wake_watchers(stream);
                Ok(n)
            }
        }
    }

    pub fn server_send(&mut self, stream: usize, bytes: &[u8]) -> Result<usize, Errno> {
        self.maybe_reset(stream);
        let s = &self.streams[stream];
        if s.reset {
            return Err(Errno::CONNRESET);
        }
        if s.client_closed || s.to_client.is_ended() {
            return Err(Errno::PIPE);
        }
        self.write(stream, Side::Server, bytes)
    }

    pub fn shutdown_server(&mut self, stream: usize) {
        let at = self.arrival();
        self.streams[stream].to_client.end(at);
        self.wake_watchers(stream);
    }

    /// True if bytes for the server have arrived.
    pub fn has_input(&self, stream: usize) -> bool {
        !self.is_reset(stream) && self.streams[stream].to_server.arrived(self.now().0) > 0
    }

    /// True if the server finds the connection reset, for example because bytes arrived after it
    /// was closed.
    fn is_reset(&self, stream: usize) -> bool {
        let s = &self.streams[stream];
        s.reset || s.client_closed && s.to_client.arrived(self.now().0) > 0
    }

    // ---- both sides

    pub fn write(&mut self, stream: usize, side: Side, bytes: &[u8]) -> Result<usize, Errno> {
        let at = self.arrival();
        let part = self.happens(self.faults.partial_write_one_in);
        let s = &mut self.streams[stream];
        let pipe = if side == Side::Server { &mut s.to_client } else { &mut s.to_server };
        let mut count = pipe.room(self.faults.buffer_bytes).min(bytes.len());
        if part && count > 1 {
            count = 1 + self.prng.below(count as u64) as usize;
        }
        if count == 0 && !bytes.is_empty() {
            return Err(Errno::AGAIN);
        }
        pipe.write(&bytes[..count], at);
        self.wake_watchers(stream);
        Ok(count)
    }

    /// A close: an end for the peer, or a reset if bytes were left unread.
    pub fn close(&mut self, stream: usize, side: Side) {
        let at = self.arrival();
        let now = self.now().0;
        let s = &mut self.streams[stream];
        let (unread, pipe) = match side {
            Side::Server => {
                s.server_closed = true;
                (s.to_server.arrived(now) > 0, &mut s.to_client)
            }
            Side::Client => {
                s.client_closed = true;
                (s.to_client.arrived(now) > 0, &mut s.to_server)
            }
        };
        pipe.end(at);
        s.reset |= unread;
        self.wake_watchers(stream);
    }

    pub fn reset(&mut self, stream: usize) {
        self.streams[stream].reset = true;
        self.wake_watchers(stream);
    }

    fn maybe_reset(&mut self, stream: usize) {
        if self.happens(self.faults.reset_one_in) {
            self.streams[stream].broken = true;
            self.reset(stream);
        }
    }

    // ---- the client's side

    pub fn client_write(&mut self, stream: usize, bytes: &[u8]) -> usize {
        let s = &self.streams[stream];
        if s.reset || s.server_closed || s.to_server.is_ended() {
            return 0;
        }
        self.write(stream, Side::Client, bytes).unwrap_or(0)
    }

    pub fn client_read(&mut self, stream: usize, room: &mut [u8]) -> usize {
        let now = self.now().0;
        let s = &mut self.streams[stream];
        let count = s.to_client.read(room, now, None);
        if count > 0 {
            self.wake_watchers(stream);
        }
        count
    }

    pub fn shutdown_client(&mut self, stream: usize) {
        let at = self.arrival();
        self.streams[stream].to_server.end(at);
        self.wake_watchers(stream);
    }

    pub fn client_addr(&self, stream: usize) -> PeerAddr {
        self.streams[stream].client_addr.clone()
    }

    /// True if the connection was reset; all that arrived before has been read.
    pub fn client_sees_reset(&self, stream: usize) -> bool {
        let s = &self.streams[stream];
        s.reset && s.to_client.arrived(self.now().0) == 0
    }

    pub fn client_sees_end(&self, stream: usize) -> bool {
        let (s, now) = (&self.streams[stream], self.now().0);
        s.to_client.end_arrived(now) && s.to_client.arrived(now) == 0
    }
}
