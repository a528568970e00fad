//! What a reactor needs from the world: readiness, streams, a clock. Implemented by epoll, by
//! io_uring and by the simulated network, so that all run the same driver.

use crate::files::raw::RawFiles;
use crate::mailbox::Waker;
use crate::{Clock, ListenAddr, ListenError, ListenOptions, PeerAddr, Socket, SocketOptions};
use base::MonoNs;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::io::IoSlice;

/// Ready descriptors taken per poll.
pub const EVENTS_MAX: usize = 512;

/// Indices from here on are no connections.
const SPECIAL: u32 = 0xffff_ff00;
/// Listening sockets of one driver.
pub const LISTENERS_MAX: usize = 128;

/// What a ready descriptor is: a connection (index and generation), a listener or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u64);

/// The decoded form of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A connection.
    Conn(crate::ConnId),
    /// A listener by its number.
    Listener(usize),
    /// A signal by its place among those watched.
    Signal(usize),
    /// The mailbox of this driver.
    Wake,
    /// Operations on files have completed.
    Files,
}

impl Token {
    /// A message was posted.
    pub const WAKE: Token = Token(u32::MAX as u64);

    /// Operations on files have completed: `completed_files` has something.
    pub const FILES: Token = Token(u32::MAX as u64 - 1);

    /// Of a connection.
    pub const fn conn(id: crate::ConnId) -> Self {
        debug_assert!(id.index < SPECIAL, "a process cannot have so many descriptors");
        Self(id.token())
    }

    /// Of a listener.
    pub const fn listener(number: usize) -> Self {
        debug_assert!(number < LISTENERS_MAX, "bounded by listen");
        Self(SPECIAL as u64 + number as u64)
    }

    /// Of a signal.
    pub const fn signal(place: usize) -> Self {
        Self(SPECIAL as u64 + (LISTENERS_MAX + place) as u64)
    }

    /// What it stands for.
    #[inline]
    pub fn target(self) -> Target {
        let id = crate::ConnId::from_token(self.0);
        if id.index < SPECIAL {
            return Target::Conn(id);
        }
        let number = (id.index - SPECIAL) as usize;
        if self == Self::WAKE {
            Target::Wake
        } else if self == Self::FILES {
            Target::Files
        } else if number < LISTENERS_MAX {
            Target::Listener(number)
        } else {
            Target::Signal(number - LISTENERS_MAX)
        }
    }
}

/// A ready descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Which.
    pub token: Token,
    /// For what, in epoll's words.
    pub flags: EventFlags,
}

/// How long a poll may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: take what is ready.
    NoWait,
    /// Until this time.
    Until(MonoNs),
    /// Until something happens.
    Forever,
}

/// The world under a reactor; files are in its supertrait. `Stream` and `Listener` are names that
/// the poller understands: end them with `close` and `close_listener`.
pub trait Poller: RawFiles {
    /// An adopted connection.
    type Stream;
    /// A listening socket.
    type Listener;
    /// A poll that waits keeps its thread asleep. If not, it returns at once and the worker counts
    /// as asleep until its next wait.
    const SLEEPS: bool;
    /// Sends are collected and handed over together ([`Poller::send_batch`]); if not, each leaves
    /// at once.
    const DEFERS: bool = false;

    /// The clock.
    fn clock(&self) -> Clock;
    /// Reads the wall clock, nanoseconds since the Unix epoch.
    fn unix_ns(&self) -> i64;
    /// A seed for everything random.
    fn seed(&mut self) -> u64;
    /// A secret that is unknown outside this process and cannot be derived from [`Poller::seed`].
    fn secret(&mut self) -> u128;
    /// What wakes this poller when it sleeps.
    fn waker(&self) -> Box<dyn Waker>;
    /// Involuntary context switches of the calling thread.
    fn involuntary_switches(&self) -> u64;

    /// Appends what is ready, at most [`EVENTS_MAX`], and [`Token::FILES`] if operations on files
    /// have completed. May return early with nothing.
    fn poll(&mut self, ready: &mut Vec<Ready>, wait: Wait);
    /// Takes the signal that a ready token announced.
    fn signal(&mut self, place: usize) -> Option<i32>;

    /// Takes an accepted socket over, sets its options and registers it for reading.
    fn adopt(&mut self, socket: Socket, options: &SocketOptions) -> Self::Stream;
    /// Takes a stream out, for another poller of the same kind: its socket, and what was received
    /// from it and not read. It is not registered any more. Gives the stream back, as it was, if an
    /// operation on it does not end.
    fn detach(&mut self, stream: Self::Stream) -> Result<(Socket, Vec<u8>), Self::Stream>;
    /// Takes in what another poller has detached. Its options are set.
    fn attach(&mut self, socket: Socket, unread: Vec<u8>) -> Self::Stream;
    /// Registers a stream.
    fn add(&mut self, stream: &Self::Stream, token: Token, flags: EventFlags) -> Result<(), Errno>;
    /// Changes what it is registered for.
    fn modify(
        &mut self,
        stream: &Self::Stream,
        token: Token,
        flags: EventFlags,
    ) -> Result<(), Errno>;
    /// Registers it no longer.
    fn remove(&mut self, stream: &Self::Stream);
    /// Receives into `room`; 0 is the end.
    fn recv(&mut self, stream: &Self::Stream, room: &mut [u8]) -> Result<usize, Errno>;
    /// The next bytes of the stream are received by [`Poller::recv_onto`]: reports it when
    /// `low_water` bytes have arrived, at its end, and when there is no room for so many. `None`:
    /// they are received by [`Poller::recv`] again, and each byte is reported. Takes effect with
    /// the next poll.
    fn set_bulk(&mut self, stream: &Self::Stream, low_water: Option<usize>);
    /// Receives into the spare room of `room`, of which there is some; 0 is the end.
    fn recv_onto(&mut self, stream: &Self::Stream, room: &mut Vec<u8>) -> Result<usize, Errno> {
        let len = room.len();
        room.resize(room.capacity(), 0);
        let received = self.recv(stream, &mut room[len..]);
        room.truncate(len + received.unwrap_or(0));
        received
    }
    /// True if bytes wait to be received.
    fn has_input(&mut self, stream: &Self::Stream) -> bool;
    /// Sends one run of bytes.
    fn send(&mut self, stream: &Self::Stream, bytes: &[u8]) -> Result<usize, Errno>;
    /// Sends several runs at once, in order.
    fn send_pieces(
        &mut self,
        stream: &Self::Stream,
        pieces: &[IoSlice<'_>],
    ) -> Result<usize, Errno>;
    /// Sends one run of bytes to each of several streams, no stream twice. Appends what did not
    /// leave whole: its number in the batch and the bytes that left or the error, in ascending
    /// order. The bytes are the caller's again on return.
    fn send_batch<'a>(
        &mut self,
        batch: impl Iterator<Item = (u32, &'a Self::Stream, &'a [u8])>,
        short: &mut Vec<(u32, Result<usize, Errno>)>,
    ) where
        Self::Stream: 'a,
    {
        for (number, stream, bytes) in batch {
            let sent = self.send(stream, bytes);
            if sent != Ok(bytes.len()) {
                short.push((number, sent));
            }
        }
    }
    /// Throws away what has arrived, about `most` bytes of it at most.
    fn discard(&mut self, stream: &Self::Stream, most: usize) {
        let mut scratch = [0u8; 4096];
        let mut discarded = 0;
        while discarded < most {
            match self.recv(stream, &mut scratch) {
                Ok(n) if n > 0 => discarded += n,
                _ => break,
            }
        }
    }
    /// Closes a stream; what is still under way on it is taken back first.
    fn close(&mut self, stream: Self::Stream) {
        drop(stream);
    }
    /// Says that nothing more will be sent.
    fn shutdown_write(&mut self, stream: &Self::Stream);
    /// This side's address.
    fn local_addr(&self, stream: &Self::Stream) -> PeerAddr;

    /// Opens a listening socket.
    fn listen(
        &mut self,
        at: &ListenAddr,
        options: &ListenOptions,
    ) -> Result<Self::Listener, ListenError>;
    /// Closes a listening socket.
    fn close_listener(&mut self, listener: Self::Listener) {
        drop(listener);
    }
    /// Registers a listener, or registers it no longer.
    fn arm(&mut self, listener: &Self::Listener, number: usize, armed: bool) -> Result<(), Errno>;
    /// Takes one connection from its queue.
    fn accept(&mut self, listener: &Self::Listener) -> Result<(Socket, PeerAddr), Errno>;
    /// Connections dropped because its queue was full.
    fn overflows(&self, listener: &Self::Listener) -> u64;
    /// Where it listens; of a port 0, the one that was chosen.
    fn listen_addr(&self, listener: &Self::Listener) -> PeerAddr;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnId;

    #[test]
    fn tokens_decode_to_their_targets() {
        let last = ConnId { index: SPECIAL - 1, generation: u32::MAX };
        assert_eq!(Token::conn(last).target(), Target::Conn(last));
        assert_eq!(Token::listener(0).target(), Target::Listener(0));
        let most = LISTENERS_MAX - 1;
        assert_eq!(Token::listener(most).target(), Target::Listener(most));
        assert_eq!(Token::signal(0).target(), Target::Signal(0));
        assert_eq!(Token::WAKE.target(), Target::Wake);
        assert_eq!(Token::FILES.target(), Target::Files);
    }
}
