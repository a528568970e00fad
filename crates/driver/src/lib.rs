//! Completion I/O that knows no Redis. One trait; back ends on io_uring and on epoll, and a
//! simulated one.
//!
//! The driver owns everything an operation in flight points to: the receive area, the output arena,
//! unsent backlogs, input put back. The room above sees bytes in place and events, no system call.

pub mod clock;
pub mod epoll;
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
pub use mailbox::{Mailbox, MailboxSender};
pub use process::{
    ProcessTimes, cpus_allowed, physical_memory_bytes, process_times, raise_file_limit,
    resident_bytes, spawn_helper, spawn_worker,
};
pub use socket::{ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions};
pub use stats::DriverStats;
pub use sys::{data_segments_in, drops as socket_drops};

use base::{MonoNs, UnixMs};

/// Bytes received at most per connection and turn.
pub const RECV_MAX: usize = 64 << 10;
/// Input put back at most per connection: a whole receive behind an incomplete request.
pub const KEEP_MAX: usize = RECV_MAX + (32 << 10);
/// The receive area. Normally only its start is used: it is rewound whenever nothing refers to it.
pub const AREA: usize = 256 << 10;

/// A connection of this driver. The generation tells a reused index from its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Dense: the room above may index by it.
    pub index: u32,
    /// Changes with every reuse of the index.
    pub generation: u32,
}

impl ConnId {
    /// One number for queues that know no connections.
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

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed its side.
    Peer,
    /// A reset or another error.
    Error,
}

/// What happened.
#[derive(Debug)]
pub enum Event<M> {
    /// A connection was accepted and is not adopted yet.
    Accepted {
        /// Where.
        listener: ListenerId,
        /// The socket; it may go to another worker's driver.
        socket: Socket,
        /// Who.
        peer: PeerAddr,
    },
    /// Bytes `start..end` of the receive area: what was kept, then what arrived. Valid until
    /// `rewind`.
    Data {
        /// Of whom.
        conn: ConnId,
        /// First byte.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// The backlog of replies has left.
    Drained {
        /// Whose.
        conn: ConnId,
    },
    /// The peer of a paused connection has stopped sending; it may be gone, or still read. Told
    /// once per call of `pause`, and again when a backlog has left. Whether that is the end is the
    /// room above's to say.
    Hangup {
        /// Whose.
        conn: ConnId,
        /// Bytes of it wait to be read or were kept.
        unread: bool,
    },
    /// The connection is gone; give its place back with `release`.
    Closed {
        /// Which.
        conn: ConnId,
        /// Why.
        why: CloseReason,
    },
    /// From another worker.
    Message(M),
    /// The receive area is used up: execute what was received, `rewind`, go on with `next`.
    AreaFull,
    /// SIGINT or SIGTERM (the number).
    Signal(i32),
}

/// A run of the output arena that goes to one connection.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// First big value.
    pub blob_start: usize,
    /// One past the last.
    pub blob_end: usize,
}

/// A network, a clock and randomness for one worker.
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
    /// A random number. Who sees enough of them can compute the others.
    fn random(&mut self) -> u64;
    /// What nobody outside of this process can know; the random numbers do not tell it.
    fn secret(&mut self) -> u128;
    /// Spins up to this long before sleeping from now on; 0 is never.
    fn set_busy_poll_us(&mut self, busy_poll_us: u32);

    /// Opens a listening socket.
    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError>;
    /// Closes it and removes the file of a unix socket; connections accepted before stay.
    fn close_listener(&mut self, id: ListenerId);
    /// Connections dropped because a listen queue of this driver was full (TCP; a unix socket makes
    /// its client wait instead).
    fn listener_overflows(&mut self) -> u64;
    /// Takes an accepted socket into this driver.
    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> ConnId;
    /// The local end of a connection.
    fn local_addr(&self, conn: ConnId) -> PeerAddr;

    /// Waits until something happened or `until` (first spinning, then sleeping; `None` for ever).
    fn wait(&mut self, until: Option<MonoNs>);
    /// The next event of this turn, `None` when the turn is over. Receives lazily.
    fn next(&mut self) -> Option<Event<Self::Message>>;
    /// The receive area and the output arena, both at once.
    fn io(&mut self) -> (&[u8], &mut OutBuf);
    /// Nobody refers to the receive area any more.
    fn rewind(&mut self);
    /// Puts `from..to` of the receive area back (copied once): delivered in front of the
    /// connection's next bytes. Replaces what was kept before in this turn. More than [`KEEP_MAX`]
    /// ends the connection.
    fn keep(&mut self, conn: ConnId, from: usize, to: usize);
    /// Stops receiving. A reset is still noticed, and of a peer that stopped sending `Hangup`
    /// tells, unless it did so behind more bytes than its socket holds. After `resume` its end is
    /// read.
    fn pause(&mut self, conn: ConnId);
    /// Receives again; what was kept is delivered in the next turn even if nothing arrives.
    fn resume(&mut self, conn: ConnId);
    /// Delivers what was kept in the next turn, whether or not anything arrives, and receives
    /// nothing in that turn.
    fn again(&mut self, conn: ConnId);
    /// Sends a segment; returns the bytes that wait in the connection's backlog now (0: all left,
    /// or will with `out_done`). The segment's bytes belong to the driver until `out_done`.
    fn send(&mut self, conn: ConnId, segment: Segment) -> usize;
    /// Sends a segment before it returns, for a caller that takes the bytes back at once.
    fn send_now(&mut self, conn: ConnId, segment: Segment) -> usize {
        self.send(conn, segment)
    }
    /// Every segment was handed over: the arena is empty again.
    fn out_done(&mut self);
    /// A connection that the latest `out_done` left with a backlog which `send` had not told of,
    /// and its bytes.
    fn next_backlogged(&mut self) -> Option<(ConnId, usize)> {
        None
    }
    /// Bytes waiting to be sent.
    fn backlog(&self, conn: ConnId) -> usize;
    /// The peer of a connection that was reported closed has only stopped sending, and is yet to be
    /// sent something: the connection stays, paused, and ends anew. Only for [`CloseReason::Peer`],
    /// before anything else is done with it.
    fn keep_sending(&mut self, conn: ConnId);
    /// Closes once the backlog has left; reports `Closed` then.
    fn close_after_flush(&mut self, conn: ConnId);
    /// Says to the peer that nothing more will be sent, and goes on receiving: a close while bytes
    /// of the peer are under way would be a reset, which may overtake the last answer. Not to be
    /// called while there is a backlog.
    fn end_output(&mut self, conn: ConnId);
    /// Closes now and gives the place back.
    fn release(&mut self, conn: ConnId);
    /// Where others post messages for this worker.
    fn mailbox(&self) -> MailboxSender<Self::Message>;
    /// The figures so far.
    fn stats(&mut self) -> &mut DriverStats;
}
