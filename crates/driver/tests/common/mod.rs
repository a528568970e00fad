//! Worlds with one interface: real loopback sockets under epoll and under io_uring, and the
//! simulated network, so that every scenario runs on all of them.

#![allow(dead_code)] // each test file uses a part of it

use base::prng::Prng;
use driver::epoll::{Epoll, EpollDriver, EpollOptions};
use driver::poller::Poller;
use driver::reactor::Reactor;
use driver::sim::{Ending, Faults, SimClient, SimNet, SimPoller};
use driver::uring::{Uring, UringDriver};
use driver::{
    CloseReason, ConnId, Driver, Event, ListenAddr, ListenOptions, ListenerId, PeerAddr, Segment,
    SocketOptions,
};
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

pub const OPTIONS: SocketOptions = SocketOptions { nodelay: true, keepalive_s: 300, gathers: true };

/// How long a turn without an event lasts.
pub const TURN_NS: u64 = 2_000_000;

/// A client which never blocks.
pub trait Client {
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// Writes a few bytes, in as many pieces as it takes.
    fn put(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let n = self.write(&bytes[at..]);
            assert!(n > 0, "a few bytes fit");
            at += n;
        }
    }
    fn read(&mut self, room: &mut [u8]) -> usize;
    /// How the connection ended, once everything before the end was read.
    fn ending(&mut self) -> Option<Ending>;
    fn shutdown_write(&mut self);
    fn reset(&mut self);
}

pub trait World {
    type P: Poller;
    type C: Client;
    fn new() -> Self;
    /// False where the system does not support it.
    fn is_here() -> bool {
        true
    }
    fn driver(&self) -> Reactor<Self::P, u32>;
    fn connect(&self, to: &PeerAddr) -> Self::C;
    /// Gives the world time to make progress.
    fn breathe(&self);
}

pub struct Real;

impl World for Real {
    type P = Epoll;
    type C = RealClient;

    fn new() -> Self {
        Real
    }

    fn driver(&self) -> EpollDriver<u32> {
        let options = EpollOptions { busy_poll_us: 50, workers: 1, signals: false };
        EpollDriver::new(&options).expect("an event loop")
    }

    fn connect(&self, to: &PeerAddr) -> RealClient {
        let PeerAddr::Tcp(addr) = to else { panic!("this client speaks TCP: {to}") };
        RealClient::new(TcpStream::connect(addr).expect("it listens"))
    }

    fn breathe(&self) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The same sockets under io_uring.
pub struct Ring;

impl World for Ring {
    type P = Uring;
    type C = RealClient;

    fn new() -> Self {
        Ring
    }

    fn is_here() -> bool {
        let options = EpollOptions { busy_poll_us: 0, workers: 1, signals: false };
        let refused = UringDriver::<u32>::new(&options).err();
        if let Some(why) = &refused {
            eprintln!("not run: io_uring is not available: {why}");
        }
        refused.is_none()
    }

    fn driver(&self) -> UringDriver<u32> {
        let options = EpollOptions { busy_poll_us: 50, workers: 1, signals: false };
        UringDriver::new(&options).expect("a ring")
    }

    fn connect(&self, to: &PeerAddr) -> RealClient {
        Real.connect(to)
    }

    fn breathe(&self) {
        Real.breathe();
    }
}

pub struct RealClient {
    stream: Option<TcpStream>,
    ending: Option<Ending>,
}

impl RealClient {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).expect("it is open");
        stream.set_nodelay(true).expect("it is open");
        Self { stream: Some(stream), ending: None }
    }
}

impl Client for RealClient {
    fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(stream) = &mut self.stream else { return 0 };
        match stream.write(bytes) {
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.ending.get_or_insert(Ending::Reset);
                0
            }
        }
    }

    fn read(&mut self, room: &mut [u8]) -> usize {
        let Some(stream) = &mut self.stream else { return 0 };
        match stream.read(room) {
            Ok(0) => {
                self.ending.get_or_insert(Ending::Closed);
                0
            }
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.ending.get_or_insert(Ending::Reset);
                0
            }
        }
    }

    fn ending(&mut self) -> Option<Ending> {
        let mut byte = [0];
        assert_eq!(self.read(&mut byte), 0, "everything before the end was read");
        self.ending
    }

    fn shutdown_write(&mut self) {
        self.stream.as_ref().expect("open").shutdown(Shutdown::Write).expect("connected");
    }

    fn reset(&mut self) {
        if let Some(stream) = self.stream.take() {
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is open");
        }
    }
}

/// A simulated network without faults.
pub struct Calm(pub SimNet);
/// A simulated network with all faults.
pub struct Rough(pub SimNet);

impl World for Calm {
    type P = SimPoller;
    type C = SimClient;

    fn new() -> Self {
        Self(SimNet::new(1, Faults::NONE))
    }

    fn driver(&self) -> Reactor<SimPoller, u32> {
        self.0.driver()
    }

    fn connect(&self, to: &PeerAddr) -> SimClient {
        self.0.connect(to).expect("it listens and has room")
    }

    fn breathe(&self) {}
}

impl World for Rough {
    type P = SimPoller;
    type C = SimClient;

    fn new() -> Self {
        Self(SimNet::new(2, Faults::ROUGH))
    }

    fn driver(&self) -> Reactor<SimPoller, u32> {
        self.0.driver()
    }

    fn connect(&self, to: &PeerAddr) -> SimClient {
        self.0.connect(to).expect("it listens and has room")
    }

    fn breathe(&self) {}
}

impl Client for SimClient {
    fn write(&mut self, bytes: &[u8]) -> usize {
        SimClient::write(self, bytes)
    }
    fn read(&mut self, room: &mut [u8]) -> usize {
        SimClient::read(self, room)
    }
    fn ending(&mut self) -> Option<Ending> {
        SimClient::ending(self)
    }
    fn shutdown_write(&mut self) {
        SimClient::shutdown_write(self);
    }
    fn reset(&mut self) {
        SimClient::reset(self);
    }
}

/// An event. Its bytes are copied out of the receive area.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    Accepted(ConnId),
    Data(ConnId, Vec<u8>),
    Bulk(ConnId, usize),
    Drained(ConnId),
    /// The flag says whether unread bytes are waiting.
    Hangup(ConnId, bool),
    Closed(ConnId, CloseReason),
    Message(u32),
    AreaFull,
    File(driver::FileDone),
}

/// A driver with one listener.
pub struct Server<W: World> {
    pub world: W,
    pub driver: Reactor<W::P, u32>,
    pub listener: ListenerId,
    pub addr: PeerAddr,
    pub patience: Patience,
}

/// Bounds a loop which waits for an event.
pub struct Patience {
    since: Instant,
    steps: u32,
}

impl Patience {
    pub fn new() -> Self {
        Self { since: Instant::now(), steps: 0 }
    }

    pub fn step(&mut self) {
        self.steps += 1;
        // Both bounds: a machine which is suspended for a while is no failure.
        let patient = self.steps < 20_000 || self.since.elapsed() < Duration::from_secs(30);
        assert!(patient, "after {} steps", self.steps);
    }
}

impl<W: World> Server<W> {
    pub fn new() -> Self {
        Self::new_in(W::new())
    }

    pub fn new_in(world: W) -> Self {
        let mut driver = world.driver();
        let at = ListenAddr::Tcp("127.0.0.1:0".parse().expect("an address"));
        let options = ListenOptions { backlog: 1024 };
        let listener = driver.listen(&at, &options).expect("a free port");
        let addr = driver.listen_addr(listener).expect("just opened");
        Self { world, driver, listener, addr, patience: Patience::new() }
    }

    pub fn connect(&mut self) -> (W::C, ConnId) {
        let client = self.world.connect(&self.addr);
        loop {
            for event in self.turn() {
                if let Happened::Accepted(conn) = event {
                    return (client, conn);
                }
            }
        }
    }

    /// One turn. Bytes are copied out and the area is rewound after each event.
    pub fn turn(&mut self) -> Vec<Happened> {
        self.turn_with(|_, _, _, _| ())
    }

    /// One turn. `on_data` sees bytes while they are in the area.
    pub fn turn_with(
        &mut self,
        mut on_data: impl FnMut(&mut Reactor<W::P, u32>, ConnId, usize, usize),
    ) -> Vec<Happened> {
        self.patience.step();
        let until = self.driver.refresh_now().plus(TURN_NS);
        self.driver.wait(Some(until));
        let mut happened = Vec::new();
        while let Some(event) = self.driver.next() {
            happened.push(match event {
                Event::Accepted { listener, socket, .. } => {
                    assert_eq!(listener, self.listener);
                    Happened::Accepted(self.driver.adopt(socket, &OPTIONS))
                }
                Event::Data { conn, start, end } => {
                    assert!(start < end, "no empty data");
                    let bytes = self.driver.io().0[start..end].to_vec();
                    on_data(&mut self.driver, conn, start, end);
                    self.driver.rewind();
                    Happened::Data(conn, bytes)
                }
                Event::Bulk { conn, most } => Happened::Bulk(conn, most),
                Event::Drained { conn } => Happened::Drained(conn),
                Event::Hangup { conn, unread } => Happened::Hangup(conn, unread),
                Event::Closed { conn, why } => Happened::Closed(conn, why),
                Event::Message(m) => Happened::Message(m),
                Event::AreaFull => panic!("the area is rewound after every event"),
                Event::Signal(s) => panic!("nobody sent signal {s}"),
                Event::File(done) => Happened::File(*done),
            });
        }
        happened
    }

    /// Turns until this event happens. Any other event fails the test.
    pub fn expect(&mut self, expected: &Happened) {
        loop {
            let happened = self.turn();
            match happened.as_slice() {
                [] => self.world.breathe(),
                [one] if one == expected => return,
                other => panic!("{other:?} instead of {expected:?}"),
            }
        }
    }

    /// Received bytes of one connection, until there are `count`.
    pub fn receive(&mut self, conn: ConnId, count: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < count {
            for event in self.turn() {
                match event {
                    Happened::Data(from, bytes) if from == conn => got.extend(bytes),
                    other => panic!("{other:?}"),
                }
            }
        }
        got
    }

    /// Asserts that nothing happens and nothing keeps the loop awake: every turn lasts until its
    /// deadline.
    pub fn rests(&mut self) {
        self.quiet(5); // for events still pending
        let since = self.driver.refresh_now();
        self.quiet(5);
        let rested = self.driver.now().since(since);
        assert!(rested >= 5 * TURN_NS, "{rested} ns");
    }

    /// Asserts that nothing happens in so many turns.
    pub fn quiet(&mut self, turns: usize) {
        for _ in 0..turns {
            let happened = self.turn();
            assert!(happened.is_empty(), "{happened:?}");
        }
    }
}

/// Sends bytes as one segment.
pub fn send<P: Poller>(driver: &mut Reactor<P, u32>, conn: ConnId, bytes: &[u8]) -> usize {
    let out = driver.io().1;
    let start = out.bytes.len();
    out.bytes.extend_from_slice(bytes);
    let end = out.bytes.len();
    let blobs = out.blobs.len();
    let left = driver.send(conn, Segment { start, end, blob_start: blobs, blob_end: blobs });
    driver.flush_output();
    assert!(left == 0 || left == driver.backlog(conn));
    driver.backlog(conn)
}

/// Bytes without repetition, so that a shift or a swap is detected.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Prng::new(seed).fill(&mut bytes);
    bytes
}

/// Reads everything which is available, at most `most` bytes.
pub fn read_some(client: &mut impl Client, into: &mut Vec<u8>, most: usize) {
    let mut room = vec![0u8; 64 << 10];
    let most = most.min(room.len());
    let n = client.read(&mut room[..most]);
    into.extend_from_slice(&room[..n]);
}

/// Runs a scenario with real sockets, under epoll and under io_uring.
#[macro_export]
macro_rules! on_real_worlds {
    ($($name:ident),* $(,)?) => {
        mod real { $(#[test] fn $name() { super::$name::<$crate::common::Real>(); })* }
        mod ring {
            $(#[test] fn $name() {
                if <$crate::common::Ring as $crate::common::World>::is_here() {
                    super::$name::<$crate::common::Ring>();
                }
            })*
        }
    };
}

/// Runs a scenario in every world.
#[macro_export]
macro_rules! on_every_world {
    ($($name:ident),* $(,)?) => {
        mod real { $(#[test] fn $name() { super::$name::<$crate::common::Real>(); })* }
        mod ring {
            $(#[test] fn $name() {
                if <$crate::common::Ring as $crate::common::World>::is_here() {
                    super::$name::<$crate::common::Ring>();
                }
            })*
        }
        mod calm { $(#[test] fn $name() { super::$name::<$crate::common::Calm>(); })* }
        mod rough { $(#[test] fn $name() { super::$name::<$crate::common::Rough>(); })* }
    };
}
