//! Connections under the ring: what is asked of the kernel for each, and what has come and was not
//! taken yet.
//!
//! A place stays taken until every operation on it has completed, so its descriptor's number cannot
//! come back while the kernel still works on it. What the reactor wants (its interest, as epoll
//! would have it) and what is under way are kept apart; [`Streams::settle`] brings the second to
//! the first, once per poll.

use super::buffers::{Buffers, NONE};
use super::ring::{Done, Ring};
use super::tag::{Kind, Tag};
use crate::RECV_MAX;
use crate::poller::{EVENTS_MAX, Ready, Token};
use crate::trouble;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// A connection that holds so many buffers is not received from until some of them were taken.
pub const HELD_MAX: usize = 2 * RECV_MAX / super::buffers::BUFFER_BYTES;

/// An operation that completes once, whatever it did before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Not under way.
    #[default]
    Off,
    /// Under way.
    On,
    /// Taken back, not completed yet.
    Ending,
}

/// A connection of the poller.
pub struct Stream(u32);

/// Input that no buffer holds any more.
#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    taken: usize,
}

/// Epoll's flags in the 16 bits that the ones used here take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags(u16);

impl Flags {
    const ALL: Flags = Flags(u16::MAX);

    const fn of(flags: EventFlags) -> Self {
        Self(flags.bits() as u16)
    }

    const fn get(self) -> EventFlags {
        EventFlags::from_bits_retain(self.0 as u32)
    }
}

struct Place {
    fd: Option<OwnedFd>,
    generation: u32,
    token: Token,
    /// What the reactor is told of, in epoll's words; nothing at all if it is not registered.
    interest: Flags,
    registered: bool,
    closing: bool,
    receive: Op,
    poll: Op,
    /// What the poll under way waits for.
    mask: Flags,
    /// The latest poll told nothing of interest: the kernel always tells that the peer stopped
    /// sending. The next one tells changes only.
    edge: bool,
    /// What polls found, to be reported.
    found: Flags,
    /// In the list of those to look at in the next poll; in the list of those to settle.
    marked: bool,
    stale: bool,
    /// The peer stopped sending.
    ended: bool,
    error: Option<Errno>,
    /// Buffers received into: the first, the last, their number, and the bytes taken of the first.
    first: u16,
    last: u16,
    held: u16,
    taken: u16,
    /// What was received before those.
    copied: Option<Box<Copied>>,
}

const _: () = assert!(size_of::<Place>() <= 56, "an idle connection is small");
const _: () = assert!(super::buffers::BUFFER_BYTES <= u16::MAX as usize);

impl Place {
    fn has_input(&self) -> bool {
        self.first != NONE || self.copied.is_some()
    }

    /// An operation on it has failed: taken back, or to be tried again, or the connection is over.
    fn note(&mut self, error: Option<Errno>) {
        if let Some(error) = error.filter(|error| *error != Errno::CANCELED)
            && trouble::Stream::of(error) == trouble::Stream::Over
        {
            self.error = Some(error);
        }
    }

    /// What is to be reported of it now.
    fn flags(&self) -> EventFlags {
        let mut flags = self.found.get();
        if self.interest.get().contains(EventFlags::IN)
            && (self.has_input() || self.ended || self.error.is_some())
        {
            flags |= EventFlags::IN;
        }
        if self.error.is_some() {
            flags |= EventFlags::ERR;
        }
        flags
    }

    fn wants_receive(&self) -> bool {
        self.registered
            && self.interest.get().contains(EventFlags::IN)
            && !self.ended
            && self.error.is_none()
            && self.copied.is_none()
            && (self.held as usize) < HELD_MAX
    }

    /// What to poll for: whatever a receive does not tell.
    fn wanted_poll(&self) -> Option<EventFlags> {
        let wanted = self.interest.get() & (EventFlags::OUT | EventFlags::RDHUP);
        let needed = !self.interest.get().contains(EventFlags::IN) || !wanted.is_empty();
        (self.registered && needed && self.found == Flags::default()).then_some(wanted)
    }
}

/// All of them.
#[derive(Default)]
pub struct Streams {
    places: Vec<Place>,
    free: Vec<u32>,
    generation: u32,
    /// Places that may have something to report.
    marked: Vec<u32>,
    /// Places whose operations may not be those that are wanted.
    stale: Vec<u32>,
    /// A receive found no buffer since the last poll.
    starved: bool,
}

impl Streams {
    /// Takes a socket in.
    pub fn insert(&mut self, fd: OwnedFd) -> Stream {
        self.generation = self.generation.wrapping_add(1);
        let place = Place {
            fd: Some(fd),
            generation: self.generation,
            token: Token(0),
            interest: Flags::default(),
            registered: false,
            closing: false,
            receive: Op::Off,
            poll: Op::Off,
            mask: Flags::default(),
            edge: false,
            found: Flags::default(),
            marked: false,
            stale: false,
            ended: false,
            error: None,
            first: NONE,
            last: NONE,
            held: 0,
            taken: 0,
            copied: None,
        };
        let at = self.free.pop().unwrap_or(self.places.len() as u32);
        match self.places.get_mut(at as usize) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        Stream(at)
    }

    /// The socket.
    pub fn fd(&self, stream: &Stream) -> BorrowedFd<'_> {
        let fd = &self.places[stream.0 as usize].fd;
        fd.as_ref().expect("a stream is open until it is closed").as_fd()
    }

    /// Reports these flags under this token from now on.
    pub fn register(&mut self, stream: &Stream, token: Token, interest: EventFlags) {
        let place = &mut self.places[stream.0 as usize];
        (place.token, place.interest, place.registered) = (token, Flags::of(interest), true);
        place.edge = false;
        place.found = Flags::of(place.found.get() & (interest | EventFlags::HUP | EventFlags::ERR));
        self.mark(stream.0);
        self.touch(stream.0);
    }

    /// Reports nothing more; what has arrived is thrown away.
    pub fn forget(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.drop_input(stream.0, buffers);
        let place = &mut self.places[stream.0 as usize];
        (place.registered, place.interest) = (false, Flags::default());
        place.found = Flags::default();
        self.touch(stream.0);
    }

    /// Closes the socket as soon as nothing is under way on it.
    pub fn close(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.forget(stream, buffers);
        self.places[stream.0 as usize].closing = true;
        self.free_if_done(stream.0);
    }

    /// Takes bytes that have arrived; 0 is the end.
    pub fn take(
        &mut self,
        stream: &Stream,
        room: &mut [u8],
        buffers: &mut Buffers,
    ) -> Result<usize, Errno> {
        let place = &mut self.places[stream.0 as usize];
        let mut count = 0;
        if let Some(copied) = &mut place.copied {
            let left = &copied.bytes[copied.taken..];
            count = left.len().min(room.len());
            room[..count].copy_from_slice(&left[..count]);
            copied.taken += count;
            if copied.taken < copied.bytes.len() {
                return Ok(count);
            }
            place.copied = None;
        }
        while place.first != NONE && count < room.len() {
            let number = place.first;
            let left = &buffers.bytes(number)[place.taken as usize..];
            let n = left.len().min(room.len() - count);
            room[count..count + n].copy_from_slice(&left[..n]);
            count += n;
            if n < left.len() {
                place.taken += n as u16;
                break;
            }
            (place.first, place.taken) = (buffers.next(number), 0);
            place.held -= 1;
            buffers.give_back(number);
        }
        if place.receive != Op::On {
            self.touch(stream.0);
        } else if count > 0 {
            return Ok(count);
        }
        let place = &mut self.places[stream.0 as usize];
        match place.error {
            _ if count > 0 => Ok(count),
            Some(error) => Err(error),
            None if place.ended => Ok(0),
            None => Err(Errno::AGAIN),
        }
    }

    /// True if bytes that have arrived were not taken.
    pub fn has_input(&self, stream: &Stream) -> bool {
        self.places[stream.0 as usize].has_input()
    }

    /// Throws away what has arrived.
    pub fn discard(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.drop_input(stream.0, buffers);
    }

    fn drop_input(&mut self, at: u32, buffers: &mut Buffers) {
        let place = &mut self.places[at as usize];
        while place.first != NONE {
            let number = place.first;
            place.first = buffers.next(number);
            buffers.give_back(number);
        }
        (place.held, place.taken, place.copied) = (0, 0, None);
    }

    fn mark(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.marked, true) {
            self.marked.push(at);
        }
    }

    fn touch(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.stale, true) {
            self.stale.push(at);
        }
    }

    /// A receive or a poll completed, or a multishot receive brought bytes.
    #[inline]
    pub fn on_done(&mut self, buffers: &mut Buffers, done: &Done) {
        let (tag, at) = (done.tag(), done.tag().place);
        let place = self.places.get_mut(at as usize).expect("places are never taken away");
        // In release builds, too: one compare of words that are read anyway, and if it fails, bytes
        // of one client would be taken for another's. `free_if_done` gives a place back when all
        // its operations have completed.
        let ours = Tag::new(tag.kind, place.generation, at) == tag;
        assert!(ours, "a place is reused when all its operations have completed");
        if tag.kind == Kind::Poll {
            if !done.more() {
                place.poll = Op::Off;
            }
            place.note(done.error());
            if done.result() > 0 && place.registered {
                let found = EventFlags::from_bits_retain(done.result() as u32);
                let told = place.interest.get() | EventFlags::HUP | EventFlags::ERR;
                place.found = Flags::of(place.found.get() | (found & told));
                place.edge = place.found == Flags::default();
            }
            self.mark(at);
            return self.touch(at);
        }
        if let Some(number) = done.buffer() {
            if done.result() > 0 && place.registered {
                match place.last {
                    last if place.first != NONE => buffers.link(last, number),
                    _ => place.first = number,
                }
                place.last = number;
                place.held += 1;
                if place.held as usize == HELD_MAX {
                    self.touch(at);
                }
            } else {
                buffers.give_back(number);
            }
        }
        let place = &mut self.places[at as usize];
        match done.error() {
            None if done.result() == 0 => place.ended = true,
            Some(Errno::NOBUFS) => self.starved = true,
            error => place.note(error),
        }
        let place = &mut self.places[at as usize];
        if !done.more() {
            place.receive = Op::Off;
            self.touch(at);
        }
        self.mark(at);
    }

    /// Appends what there is to report, no more than fits. What the reactor does not take is
    /// reported again.
    pub fn report(&mut self, ready: &mut Vec<Ready>) {
        let mut kept = 0;
        for i in 0..self.marked.len() {
            let at = self.marked[i];
            let place = &mut self.places[at as usize];
            let flags = place.flags();
            let told = place.registered && !flags.is_empty();
            if !told && place.first == NONE {
                place.marked = false;
                continue;
            }
            // (One that only holds buffers stays in the list, where crowding finds it.)
            if told && ready.len() < EVENTS_MAX {
                ready.push(Ready { token: place.token, flags });
                if place.found != Flags::default() {
                    // Level-triggered: whatever is under way, a new poll tells what still holds.
                    (place.found, place.mask) = (Flags::default(), Flags::ALL);
                    self.touch(at);
                }
            }
            self.marked[kept] = at;
            kept += 1;
        }
        // Those that did not fit are the first next time.
        self.marked.truncate(kept);
        let told = ready.len().min(kept);
        self.marked.rotate_left(told);
    }

    /// True if the next report has something to say.
    pub fn has_report(&self) -> bool {
        self.marked.iter().any(|&at| {
            let place = &self.places[at as usize];
            place.registered && !place.flags().is_empty()
        })
    }

    /// Makes room in crowded buffers, then starts and takes back operations as is wanted. Where the
    /// kernel has all buffers, what nobody took within a turn is copied, so that others can be
    /// received from.
    pub fn settle(&mut self, ring: &mut Ring) {
        ring.buffers.look();
        if self.starved || ring.buffers.is_crowded() {
            self.starved = false;
            if !ring.buffers.add_more() {
                self.make_room(&mut ring.buffers);
            }
        }
        let mut stale = std::mem::take(&mut self.stale);
        for at in stale.drain(..) {
            self.places[at as usize].stale = false;
            self.settle_one(at, ring);
        }
        debug_assert!(self.stale.is_empty(), "settling leaves nothing to settle");
        self.stale = stale;
    }

    fn settle_one(&mut self, at: u32, ring: &mut Ring) {
        let place = &mut self.places[at as usize];
        let Some(fd) = &place.fd else { return };
        let tag = |kind| Tag::new(kind, place.generation, at);
        match (place.receive, place.wants_receive()) {
            (Op::Off, true) => {
                ring.receive(fd.as_fd(), tag(Kind::Receive));
                place.receive = Op::On;
            }
            (Op::On, false) => {
                ring.cancel(tag(Kind::Receive));
                place.receive = Op::Ending;
            }
            _ => {}
        }
        match (place.poll, place.wanted_poll()) {
            (Op::Off, Some(mask)) => {
                ring.poll(fd.as_fd(), mask.bits(), place.edge, tag(Kind::Poll));
                (place.poll, place.mask) = (Op::On, Flags::of(mask));
            }
            (Op::On, wanted) if wanted.map(Flags::of) != Some(place.mask) => {
                ring.cancel(tag(Kind::Poll));
                place.poll = Op::Ending;
            }
            _ => {}
        }
        self.free_if_done(at);
    }

    fn free_if_done(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if place.closing && place.receive == Op::Off && place.poll == Op::Off {
            place.closing = false;
            place.fd = None;
            self.free.push(at);
        }
    }

    /// Copies what nobody took, and gives those buffers back.
    fn make_room(&mut self, buffers: &mut Buffers) {
        for i in 0..self.marked.len() {
            let at = self.marked[i];
            let place = &mut self.places[at as usize];
            if place.first == NONE {
                continue;
            }
            let copied = place.copied.get_or_insert_default();
            copied.bytes.drain(..copied.taken);
            copied.taken = 0;
            while place.first != NONE {
                let number = place.first;
                copied.bytes.extend_from_slice(&buffers.bytes(number)[place.taken as usize..]);
                (place.first, place.taken) = (buffers.next(number), 0);
                buffers.give_back(number);
            }
            place.held = 0;
            self.touch(at);
        }
    }
}
