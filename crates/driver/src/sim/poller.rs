//! The simulated world as one worker's reactor sees it.

use super::disk::{DiskUser, SimDisk, SimFile};
use super::net::Side;
use super::{SimNet, SimSocket, world};
use crate::files::raw::{RawDone, RawFiles, RawOp};
use crate::mailbox::Waker;
use crate::poller::{Poller, Ready, Token, Wait};
use crate::socket::Inner;
use crate::{Clock, ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::io::IoSlice;

/// One worker's view of a [`SimNet`].
pub struct SimPoller {
    net: SimNet,
    worker: usize,
    disk: DiskUser,
}

/// An adopted connection; dropping it closes the server's side.
pub struct SimStream {
    net: SimNet,
    stream: usize,
    /// It was detached: dropping it does nothing.
    is_gone: bool,
}

impl SimStream {
    fn of(net: &SimNet, socket: Socket) -> Self {
        match socket.0 {
            Inner::Sim(socket) => {
                Self { net: net.clone(), stream: socket.adopted(), is_gone: false }
            }
            Inner::Fd(_) => panic!("a real socket came to a simulated driver"),
        }
    }

    fn into_socket(mut self) -> SimSocket {
        self.is_gone = true;
        SimSocket { net: self.net.clone(), stream: self.stream, open: true }
    }
}

/// A listener; dropping it closes it.
pub struct SimListener {
    net: SimNet,
    listener: usize,
}

struct SimWaker {
    net: SimNet,
    worker: usize,
}

impl Waker for SimWaker {
    fn wake(&self) {
        self.net.state().wake(self.worker);
    }
}

impl SimPoller {
    pub(super) fn new(net: SimNet, disk: SimDisk) -> Self {
        let disk = DiskUser::new(disk);
        let worker = net.state().add_worker(disk.source());
        Self { net, worker, disk }
    }
}

impl Drop for SimPoller {
    fn drop(&mut self) {
        self.net.state().remove_worker(self.worker);
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        self.net.state().forget(self.stream);
        self.net.state().close(self.stream, Side::Server);
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.net.state().close_listener(self.listener);
    }
}

impl RawFiles for SimPoller {
    type File = SimFile;

    fn submit_file(&mut self, number: u32, op: RawOp<SimFile>) {
        let now = self.net.now();
        self.disk.submit(now, number, op);
    }

    fn completed_files(&mut self, into: &mut Vec<RawDone<SimFile>>) {
        let now = self.net.now();
        self.disk.take_done(now, into);
    }
}

impl Poller for SimPoller {
    type Stream = SimStream;
    type Listener = SimListener;
    const SLEEPS: bool = cfg!(sim);

    fn clock(&self) -> Clock {
        #[cfg(sim)]
        if world::is_active() {
            return Clock::Baton;
        }
        Clock::Virtual(self.net.state().clock())
    }

    fn unix_ns(&self) -> i64 {
        self.net.state().unix_ns(self.worker)
    }

    fn seed(&mut self) -> u64 {
        self.net.state().seed()
    }

    fn secret(&mut self) -> u128 {
        let mut net = self.net.state();
        u128::from(net.seed()) << 64 | u128::from(net.seed())
    }

    fn waker(&self) -> Box<dyn Waker> {
        Box::new(SimWaker { net: self.net.clone(), worker: self.worker })
    }

    fn involuntary_switches(&self) -> u64 {
        0
    }

    fn poll(&mut self, ready: &mut Vec<Ready>, wait: Wait) {
        if world::is_active() {
            return world::poll(&self.net, self.worker, ready, wait);
        }
        self.net.state().poll(self.worker, ready, wait);
    }

    fn signal(&mut self, _place: usize) -> Option<i32> {
        None
    }

    fn adopt(&mut self, socket: Socket, _options: &SocketOptions) -> SimStream {
        SimStream::of(&self.net, socket)
    }

    fn detach(&mut self, stream: SimStream) -> Result<(Socket, Vec<u8>), SimStream> {
        self.remove(&stream);
        Ok((Socket(Inner::Sim(stream.into_socket())), Vec::new()))
    }

    fn attach(&mut self, socket: Socket, unread: Vec<u8>) -> SimStream {
        debug_assert!(unread.is_empty(), "this network receives nothing by itself");
        SimStream::of(&self.net, socket)
    }

    fn add(&mut self, stream: &SimStream, token: Token, flags: EventFlags) -> Result<(), Errno> {
        self.net.state().register(self.worker, stream.stream, token, flags);
        Ok(())
    }

    fn modify(&mut self, stream: &SimStream, token: Token, flags: EventFlags) -> Result<(), Errno> {
        if std::mem::take(&mut self.net.state().failing_changes) {
            return Err(Errno::NOMEM);
        }
        self.net.state().register(self.worker, stream.stream, token, flags);
        Ok(())
    }

    fn remove(&mut self, stream: &SimStream) {
        self.net.state().forget(stream.stream);
    }

    fn recv(&mut self, stream: &SimStream, room: &mut [u8]) -> Result<usize, Errno> {
        self.net.state().server_recv(stream.stream, room)
    }

    fn set_bulk(&mut self, stream: &SimStream, low_water: Option<usize>) {
        self.net.state().set_low_water(stream.stream, low_water.unwrap_or(1));
    }

    fn has_input(&mut self, stream: &SimStream) -> bool {
        self.net.state().has_input(stream.stream)
    }

    fn send(&mut self, stream: &SimStream, bytes: &[u8]) -> Result<usize, Errno> {
        self.net.state().server_send(stream.stream, bytes)
    }

    fn send_pieces(&mut self, stream: &SimStream, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut net = self.net.state();
        let room = net.faults.buffer_bytes;
        let all: Vec<u8> = pieces.iter().flat_map(|p| p.iter().copied()).take(room).collect();
        net.server_send(stream.stream, &all)
    }

    fn shutdown_write(&mut self, stream: &SimStream) {
        self.net.state().shutdown_server(stream.stream);
    }

    fn local_addr(&self, stream: &SimStream) -> PeerAddr {
        self.net.state().server_addr(stream.stream)
    }

    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<SimListener, ListenError> {
        let addr = match at {
            ListenAddr::Tcp(addr) => PeerAddr::Tcp(*addr),
            ListenAddr::Unix { path, .. } => PeerAddr::Unix(path.clone()),
        };
        let listener = self.net.state().listen(&addr, options.backlog as usize);
        let listener = listener.map_err(|e| ListenError(e.into()))?;
        Ok(SimListener { net: self.net.clone(), listener })
    }

    fn arm(&mut self, listener: &SimListener, number: usize, armed: bool) -> Result<(), Errno> {
        let token = armed.then_some(Token::listener(number));
        self.net.state().arm(self.worker, listener.listener, token);
        Ok(())
    }

    fn accept(&mut self, listener: &SimListener) -> Result<(Socket, PeerAddr), Errno> {
        let (stream, peer) = self.net.state().accept(listener.listener)?;
        let socket = SimSocket { net: self.net.clone(), stream, open: true };
        Ok((Socket(Inner::Sim(socket)), peer))
    }

    fn overflows(&self, listener: &SimListener) -> u64 {
        self.net.state().overflows(listener.listener)
    }

    fn listen_addr(&self, listener: &SimListener) -> PeerAddr {
        self.net.state().listen_addr(listener.listener)
    }
}
