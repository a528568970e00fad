//! Network and file I/O for one worker thread; it knows nothing of Redis. A `Reactor` implements
//! the [`Driver`] trait over io_uring, epoll or a simulated network for tests; `Loopback`
//! implements it without any system call, for counting instructions.
//!
//! ```text
//! worker (crates/server)          calls the driver:
//!
//!   wait(until)                   sleep, spin or poll; a *turn* begins
//!   next() -> Event, again and again until None
//!       Data { conn, start..end }   input lies in the receive area, in place
//!       execute; replies go to the output arena (`io`)
//!       put_back(conn, from..to)    an incomplete request: delivered again with the next bytes
//!       send(conn, segment)         a run of the arena; sent now, or collected
//!       Bulk { conn, most }         a long argument goes on: receive(conn, room) into own memory
//!   rewind()                      all input is used: the receive area is free again
//!   flush_output()                what was collected leaves; the arena is empty again
//!   file(token, FileOp)           an operation on files; completes as Event::File (files/)
//!
//! Reactor<P: Poller>              one implementation of Driver (reactor/), over a Poller:
//!   epoll::Epoll | uring::Uring | sim::SimPoller
//! ```
//!
//! The driver owns all memory that an operation in flight points to: the receive area, the output
//! arena, unsent backlogs, and input that was put back.

pub mod clock;
pub mod epoll;
pub mod files;
pub mod loopback;
pub mod mailbox;
pub mod outgoing;
pub mod patience;
pub mod poller;
pub mod process;
pub mod reactor;
pub mod sim;
pub mod socket;
pub mod spin;
pub mod stats;
mod sys;
mod trouble;
pub mod uring;

pub use base::out::OutBuf;
pub use clock::Clock;
pub use files::{FileDone, FileError, FileId, FileOp, FileValue, Inode, OpenHow};
pub use mailbox::{Mailbox, MailboxSender};
pub use process::{
    ProcessTimes, allowed_memory_bytes, cpus_allowed, give_way, physical_memory_bytes, process_id,
    process_times, raise_file_limit, resident_bytes, spawn_helper, spawn_worker,
};
pub use socket::{ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions};
pub use stats::DriverStats;
pub use sys::{data_segments_in, drops as socket_drops};

use base::{MonoNs, UnixMs};

/// Bytes received at most per connection and turn.
pub const RECV_MAX: usize = 64 << 10;
/// The most input that is put back per connection: a whole receive behind an incomplete request.
pub const PUT_BACK_MAX: usize = RECV_MAX + (32 << 10);
/// A bulk is reported when so many bytes of it have arrived, or all that are left.
pub const BULK_LOW_WATER: usize = 512 << 10;
/// Bytes of bulks received at most per turn, shared by the ready connections; each of them may
/// receive [`RECV_MAX`]. More would delay the others: 512 KiB take about 0.1 ms.
pub const BULKS_MAX: usize = BULK_LOW_WATER;
/// Bytes of the receive area. It is rewound whenever nothing refers to it, so mostly its beginning
/// is used.
pub const AREA: usize = 256 << 10;

/// A connection of this driver. The generation distinguishes connections that used the same index
/// one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Small and reused: callers may keep their state in a vector under this index.
    pub index: u32,
    /// Changes with every reuse of the index.
    pub generation: u32,
}

impl ConnId {
    /// The id as one number, for queues of plain integers.
    pub const fn token(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The connection of a [`ConnId::token`].
    pub const fn from_token(token: u64) -> Self {
        Self { index: token as u32, generation: (token >> 32) as u32 }
    }
}

/// A listening socket of this driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId(pub u32);

/// A connection on its way from one driver to another ([`Driver::detach`], [`Driver::attach`]).
/// Dropping it closes the connection.
#[derive(Debug)]
pub struct Moving {
    socket: Socket,
    /// What was put back, and behind it what was received and not delivered.
    put_back: Vec<u8>,
    unread: Vec<u8>,
    /// [`SocketOptions::gathers`].
    gathers: bool,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its side.
    Peer,
    /// A reset or another error.
    Error,
}

/// What [`Driver::next`] reports.
#[derive(Debug)]
pub enum Event<M> {
    /// A connection was accepted and is not adopted yet.
    Accepted {
        /// The listener it arrived at.
        listener: ListenerId,
        /// The socket; any worker's driver may adopt it.
        socket: Socket,
        /// The client's address.
        peer: PeerAddr,
    },
    /// Input: bytes `start..end` of the receive area, first what was put back, then what arrived.
    /// Valid until `rewind`.
    Data {
        /// The sender.
        conn: ConnId,
        /// First byte.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// Bytes of a bulk have arrived ([`Driver::begin_bulk`]); the caller receives them.
    Bulk {
        /// The sender.
        conn: ConnId,
        /// Bytes to receive at most in this turn, so that other connections have their share.
        most: usize,
    },
    /// All replies that waited in the connection's backlog have left.
    Drained {
        /// The connection.
        conn: ConnId,
    },
    /// The peer of a paused connection has stopped sending: it may be gone, or may still read.
    /// Reported once per call of `pause`, and again when a backlog has left. The caller decides
    /// whether to close.
    Hangup {
        /// The connection.
        conn: ConnId,
        /// Some of its bytes wait to be received or were put back.
        unread: bool,
    },
    /// The connection is gone; free its id with `release`.
    Closed {
        /// The connection.
        conn: ConnId,
        /// The reason.
        why: CloseReason,
    },
    /// A message from another worker.
    Message(M),
    /// The receive area is full: execute what was received, `rewind`, and call `next` again.
    AreaFull,
    /// SIGINT or SIGTERM (the number).
    Signal(i32),
    /// An operation on a file has completed. (In a box, so that the others are small.)
    File(Box<FileDone>),
}

/// A run of the output arena that goes to one connection: bytes, and the big values between them,
/// which are sent from where they are stored.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte, in [`OutBuf::bytes`].
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// First big value, in [`OutBuf::blobs`].
    pub blob_start: usize,
    /// One past the last big value.
    pub blob_end: usize,
}

/// A network, files, a clock and randomness for one worker.
pub trait Driver {
    /// What workers send each other.
    type Message: Send;

    /// Monotonic time as of the last `wait` or `refresh_now`.
    fn now(&self) -> MonoNs;
    /// Reads the monotonic clock.
    fn refresh_now(&mut self) -> MonoNs;
    /// A way to read the monotonic clock without the driver at hand.
    fn clock(&self) -> Clock;
    /// Wall clock as of the last `wait`.
    fn unix_ms(&self) -> UnixMs;
    /// A random number. Not for secrets: whoever sees enough of them can compute the others.
    fn random(&mut self) -> u64;
    /// A secret that nobody outside this process can know or derive from [`Driver::random`].
    fn secret(&mut self) -> u128;
    /// Sets how long `wait` spins before it sleeps; 0: never.
    fn set_busy_poll_us(&mut self, busy_poll_us: u32);

    /// Opens a listening socket.
    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError>;
    /// Closes a listening socket, and removes the file of a Unix socket. Accepted connections stay.
    fn close_listener(&mut self, id: ListenerId);
    /// TCP connections dropped because a listen queue of this driver was full. (A full queue of a
    /// Unix socket makes clients wait instead.)
    fn listener_overflows(&mut self) -> u64;
    /// Takes an accepted socket into this driver.
    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> ConnId;
    /// Takes a connection out of this driver, for another driver of the same kind. Input that was
    /// put back or received goes with it, in order. Between two turns only. `None` if it has to
    /// stay: it has a backlog, collected segments, a bulk, or an end that is yet to be reported; an
    /// operation on it does not end; or the driver cannot do it at all. Then nothing changes.
    fn detach(&mut self, conn: ConnId) -> Option<Moving> {
        let _ = conn;
        None
    }
    /// Takes in what another driver has detached. It is not paused. What it brings is delivered in
    /// the next turn, before anything else arrives.
    fn attach(&mut self, moving: Moving) -> ConnId;
    /// The address of this side of a connection.
    fn local_addr(&self, conn: ConnId) -> PeerAddr;

    /// Begins a turn: waits for an event, or until `until` (`None`: without limit). It spins first
    /// and then sleeps.
    fn wait(&mut self, until: Option<MonoNs>);
    /// The next event of this turn; `None` ends the turn. Input is received by this call.
    fn next(&mut self) -> Option<Event<Self::Message>>;
    /// The receive area and the output arena.
    fn io(&mut self) -> (&[u8], &mut OutBuf);
    /// Empties the receive area: the caller no longer refers to it.
    fn rewind(&mut self);
    /// Puts `from..to` of the receive area back: a copy is delivered in front of the connection's
    /// next bytes. Replaces what was put back before in this turn. More than [`PUT_BACK_MAX`] bytes
    /// end the connection.
    fn put_back(&mut self, conn: ConnId, from: usize, to: usize);
    /// Stops receiving from a connection. A reset still ends it. If the peer stops sending,
    /// [`Event::Hangup`] reports it, unless more unread bytes precede the end than the socket
    /// holds; then it shows after `resume`.
    fn pause(&mut self, conn: ConnId);
    /// Receives again. What was put back is delivered in the next turn even if nothing arrives.
    fn resume(&mut self, conn: ConnId);
    /// Delivers what was put back in the next turn, whether or not anything arrives, and receives
    /// nothing more in that turn.
    fn redeliver(&mut self, conn: ConnId);
    /// The next `bytes` bytes of this connection belong together, and the caller receives them
    /// itself, into memory of its own: [`Event::Bulk`] reports them in place of `Data`, until
    /// [`Driver::receive`] has delivered them all. They are reported when many have arrived, which
    /// saves wake-ups (see [`Driver::hasten_bulk`]). All input was used: nothing is put back.
    /// False if the driver declines: then they arrive as `Data`.
    fn begin_bulk(&mut self, conn: ConnId, bytes: usize) -> bool {
        let _ = (conn, bytes);
        false
    }
    /// Receives bytes of a bulk into the spare room of `room`, which is no larger than what is left
    /// of the bulk. Returns how many; if fewer than there is room, no more have arrived.
    fn receive(&mut self, conn: ConnId, room: &mut Vec<u8>) -> usize {
        let _ = (conn, room);
        0
    }
    /// Reports the bytes of this bulk as soon as any have arrived: its sender is slow.
    fn hasten_bulk(&mut self, conn: ConnId) {
        let _ = conn;
    }
    /// Sends a segment, now or with `flush_output`; the driver owns its bytes until then. Returns
    /// how many bytes wait in the connection's backlog.
    fn send(&mut self, conn: ConnId, segment: Segment) -> usize;
    /// Sends a segment before it returns, for a caller that takes the bytes back at once.
    fn send_now(&mut self, conn: ConnId, segment: Segment) -> usize {
        self.send(conn, segment)
    }
    /// Ends the output of a turn: sends the segments that were collected and empties the arena.
    fn flush_output(&mut self);
    /// A connection whose collected segments the latest `flush_output` could not send completely,
    /// and the bytes of its backlog.
    fn next_backlogged(&mut self) -> Option<(ConnId, usize)> {
        None
    }
    /// Bytes waiting to be sent.
    fn backlog(&self, conn: ConnId) -> usize;
    /// Keeps a connection that was reported closed because its peer stopped sending
    /// ([`CloseReason::Peer`]), so that replies can still be sent. It is paused, and its end is
    /// reported again later. Must be the first call after the report.
    fn keep_half_open(&mut self, conn: ConnId);
    /// Closes when the backlog has left, and then reports [`Event::Closed`].
    fn close_after_flush(&mut self, conn: ConnId);
    /// Shuts down sending and still receives: closing while bytes of the peer are in flight would
    /// reset the connection, and the reset may overtake the last reply. Not while there is a
    /// backlog.
    fn end_output(&mut self, conn: ConnId);
    /// Closes now and frees the id.
    fn release(&mut self, conn: ConnId);
    /// Starts an operation on files. It completes in a later turn as [`Event::File`] with `token`,
    /// whatever becomes of it.
    fn file(&mut self, token: u64, op: FileOp);
    /// The sending end of this worker's mailbox.
    fn mailbox(&self) -> MailboxSender<Self::Message>;
    /// Counters of this driver.
    fn stats(&mut self) -> &mut DriverStats;
}
