//! A connection of a client: bytes leave and arrive in pieces, and the seed ends it before its
//! time.

use crate::world::{Phase, World};
use driver::PeerAddr;
use driver::sim::{Ending, SimClient};

/// Bytes that are read at a time.
const READ_MAX: usize = 16 << 10;
/// How long a client does not read, at most.
const DEAF_NS_MAX: u64 = 150_000_000;

/// Accepts in a row that fail.
pub const FAILING_ACCEPTS_MAX: u64 = 4;

/// A connection.
pub struct Link {
    conn: SimClient,
    who: u32,
    unsent: Vec<u8>,
    /// Bytes of `unsent` which were written.
    written: usize,
    /// Bytes that arrived and were not taken.
    pub got: Vec<u8>,
    /// Until then nothing is read.
    deaf_until_ns: u64,
    /// When a byte last left or arrived, or should have been read.
    pub moved_ns: u64,
    /// The server has accepted it by then: when the first byte arrived, or when the last of the
    /// accepts that may fail is repeated.
    pub accepted_ns: u64,
    /// It ended, or will end, because this client wants it so.
    pub was_cut: bool,
}

/// What a turn of a connection found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There may be more to do at once.
    Busy,
    /// Nothing before this time, unless bytes arrive.
    Idle(u64),
    /// It is over. `None`: this client has ended it.
    Ended(Option<Ending>),
}

impl Link {
    /// Connects; `None` if nobody listens or too many wait.
    pub fn open(world: &mut World, who: u32, to: &PeerAddr) -> Option<Self> {
        let conn = world.net.connect(to)?;
        world.note(who, format_args!("connects as {}", conn.addr()));
        // The server may have to try again to accept it, and may fail for several reasons in a row.
        let retries = if world.plan.failing_accepts { 3 * FAILING_ACCEPTS_MAX } else { 0 };
        let moved_ns = world.now() + retries * driver::reactor::ACCEPT_RETRY_NS;
        let (unsent, got) = (Vec::new(), Vec::new());
        Some(Self {
            conn,
            who,
            unsent,
            written: 0,
            got,
            deaf_until_ns: 0,
            moved_ns,
            accepted_ns: moved_ns,
            was_cut: false,
        })
    }

    /// The address of this client.
    pub fn addr(&self) -> PeerAddr {
        self.conn.addr()
    }

    /// Adds bytes to what will be written.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// True while bytes wait to be written.
    pub fn has_unsent(&self) -> bool {
        self.written < self.unsent.len()
    }

    /// True if a fault of the network has reset it.
    pub fn was_broken(&self) -> bool {
        self.conn.was_broken()
    }

    /// Writes and reads what is possible.
    pub fn turn(&mut self, world: &mut World) -> Turn {
        let now = world.now();
        let (written, more) = self.write(world);
        let deaf = now < self.deaf_until_ns;
        let read = if deaf { 0 } else { self.read(world) };
        if written + read > 0 {
            self.moved_ns = self.moved_ns.max(now);
            if self.is_cut_now(world) {
                return Turn::Ended(None);
            }
            return Turn::Busy;
        }
        if more {
            return Turn::Busy;
        }
        if deaf {
            return Turn::Idle(self.deaf_until_ns);
        }
        match self.conn.ending() {
            Some(ending) => Turn::Ended(Some(ending)),
            None => Turn::Idle(u64::MAX),
        }
    }

    /// Returns how many bytes were written, and whether this client kept some back on purpose.
    fn write(&mut self, world: &mut World) -> (usize, bool) {
        if !self.has_unsent() {
            return (0, false);
        }
        let mut part = self.unsent.len() - self.written;
        if world.plan.small_pieces && world.prng.chance(1, 2) {
            part = 1 + world.prng.below(part.min(40) as u64) as usize;
        }
        let written = self.conn.write(&self.unsent[self.written..][..part]);
        self.written += written;
        let has_more = self.has_unsent();
        if !has_more {
            self.unsent.clear();
            self.written = 0;
        }
        (written, written == part && has_more)
    }

    fn read(&mut self, world: &mut World) -> usize {
        let mut most = READ_MAX;
        if world.plan.small_pieces && world.prng.chance(1, 2) {
            most = 1 + world.prng.below(60) as usize;
        }
        let mut room = [0; READ_MAX];
        let read = self.conn.read(&mut room[..most]);
        self.got.extend_from_slice(&room[..read]);
        if read > 0 {
            self.accepted_ns = self.accepted_ns.min(world.now());
        }
        read
    }

    /// Draws whether the connection is cut now, or whether its client becomes deaf. True if it is
    /// over at once.
    fn is_cut_now(&mut self, world: &mut World) -> bool {
        if world.phase != Phase::Busy || self.was_cut {
            return false;
        }
        if world.happens(world.plan.deaf_one_in) {
            self.deaf_until_ns = world.soon(DEAF_NS_MAX);
            self.moved_ns = self.moved_ns.max(self.deaf_until_ns);
            world.count("clients that do not read", self.who, format_args!("does not read"));
        }
        if !world.happens(world.plan.cut_one_in) {
            return false;
        }
        self.was_cut = true;
        match world.prng.below(3) {
            0 => {
                self.conn.reset();
                world.count("resets by clients", self.who, format_args!("resets its connection"));
                true
            }
            1 => {
                world.count("closes by clients", self.who, format_args!("closes its connection"));
                true
            }
            _ => {
                self.unsent.clear();
                self.written = 0;
                self.conn.shutdown_write();
                world.count("half-closes by clients", self.who, format_args!("stops sending"));
                false
            }
        }
    }
}

/// The length of a reply which begins as a bulk string.
pub fn bytes_of_bulk(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.strip_prefix(b"$")?;
    let end = digits.iter().position(|byte| *byte == b'\r')?;
    let len: usize = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    Some(1 + end + 2 + len + 2)
}
