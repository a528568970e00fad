//! Connections under the ring: the operations on each, and input that the reactor has not read yet.
//!
//! ```text
//!  reactor                         Place of a connection                        kernel
//!  -------                         ---------------------                        ------
//!  register(interest)  -------->   wanted:   wants_receive(), wanted_poll()
//!                                     |  submit_changes(), once per poll:
//!                                     |  Idle and wanted -> start; Active and not wanted -> cancel
//!                                     v
//!                                  active:   receive: Op, poll: Op + mask  -->  multishot receive,
//!                                                                               poll
//!                                  arrived:  buffers first..last, copied,   <--  completions
//!  recv: read()        <--------             ended, error, found                 (on_done)
//!  poll: report()      <--------   flags() of the above, as epoll would report them
//!
//!  Op:   Idle --start--> Active --the kernel ended it--> Idle
//!                          |                              ^
//!                          +--cancel--> Cancelling -------+  its last completion
//! ```
//!
//! A place is reused only after all operations on it have completed, so the number of its
//! descriptor cannot belong to another connection while the kernel still uses it. A connection is
//! not received from while it has [`HELD_MAX`] buffers. When all buffers are provided and they run
//! short, input that was not read is copied out of them, so that others can be received from.

use super::buffers::{Buffers, NONE};
use super::ring::{Completion, Ring};
use super::tag::{Kind, Tag};
use crate::RECV_MAX;
use crate::poller::{EVENTS_MAX, Ready, Token};
use crate::trouble;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// A connection with so many filled buffers is not received from until some are read.
pub const HELD_MAX: usize = 2 * RECV_MAX / super::buffers::BUFFER_BYTES;

/// The state of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Not started, or completed.
    #[default]
    Idle,
    /// Started.
    Active,
    /// Cancelled, but not completed yet.
    Cancelling,
}

/// A connection of the poller.
pub struct Stream(u32);

/// Input that was copied out of buffers.
#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    taken: usize,
}

/// Those flags of epoll that are used here, in 16 bits.
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
    /// The events to report, as epoll flags; none while the connection is not registered.
    interest: Flags,
    registered: bool,
    /// Its input is not received into buffers: the reactor receives it.
    bulk: bool,
    closing: bool,
    /// It is to leave this ring: no operation is started on it.
    leaving: bool,
    receive: Op,
    poll: Op,
    /// The flags of the active poll.
    mask: Flags,
    /// The last poll reported nothing of interest (the kernel always reports that the peer stopped
    /// sending): the next one reports changes only.
    edge_triggered: bool,
    /// Flags that polls found, to be reported.
    found: Flags,
    /// In the list `reportable`, and in the list `stale`.
    reportable: bool,
    stale: bool,
    /// The peer stopped sending.
    ended: bool,
    error: Option<Errno>,
    /// Filled buffers: the first, the last, their number, and the bytes read of the first.
    first: u16,
    last: u16,
    held: u16,
    taken: u16,
    /// Input before these buffers.
    copied: Option<Box<Copied>>,
}

const _: () = assert!(size_of::<Place>() <= 56, "an idle connection is small");
const _: () = assert!(super::buffers::BUFFER_BYTES <= u16::MAX as usize);

impl Place {
    fn has_input(&self) -> bool {
        self.first != NONE || self.copied.is_some()
    }

    /// Records the error of an operation, unless it was cancelled or can be tried again.
    fn note(&mut self, error: Option<Errno>) {
        if let Some(error) = error.filter(|error| *error != Errno::CANCELED)
            && trouble::Stream::of(error) == trouble::Stream::Over
        {
            self.error = Some(error);
        }
    }

    /// The flags to report now.
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
            && !self.bulk
            && !self.leaving
            && !self.ended
            && self.error.is_none()
            && self.copied.is_none()
            && (self.held as usize) < HELD_MAX
    }

    /// The flags to poll for: those that a receive does not report.
    fn wanted_poll(&self) -> Option<EventFlags> {
        let input = if self.bulk { EventFlags::IN } else { EventFlags::empty() };
        let wanted = self.interest.get() & (EventFlags::OUT | EventFlags::RDHUP | input);
        let needed = !self.interest.get().contains(EventFlags::IN) || !wanted.is_empty();
        let may = self.registered && !self.leaving;
        (may && needed && self.found == Flags::default()).then_some(wanted)
    }
}

/// All connections of a ring.
#[derive(Default)]
pub struct Streams {
    places: Vec<Place>,
    free: Vec<u32>,
    generation: u32,
    /// Places that may have something to report.
    reportable: Vec<u32>,
    /// Places whose active operations may differ from the wanted ones.
    stale: Vec<u32>,
    /// A receive found no buffer since the last poll.
    starved: bool,
}

impl Streams {
    /// Adds a connection.
    pub fn insert(&mut self, fd: OwnedFd) -> Stream {
        self.generation = self.generation.wrapping_add(1);
        let place = Place {
            fd: Some(fd),
            generation: self.generation,
            token: Token(0),
            interest: Flags::default(),
            registered: false,
            bulk: false,
            closing: false,
            leaving: false,
            receive: Op::Idle,
            poll: Op::Idle,
            mask: Flags::default(),
            edge_triggered: false,
            found: Flags::default(),
            reportable: false,
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

    /// Adds a connection of another ring, and what was received from it there.
    pub fn attach(&mut self, fd: OwnedFd, unread: Vec<u8>) -> Stream {
        let stream = self.insert(fd);
        if !unread.is_empty() {
            let copied = Copied { bytes: unread, taken: 0 };
            self.places[stream.0 as usize].copied = Some(Box::new(copied));
        }
        stream
    }

    /// Cancels the operations on a stream that is to leave, and starts none. What they receive
    /// until they have completed is kept.
    pub fn begin_leaving(&mut self, stream: &Stream, ring: &mut Ring) {
        self.places[stream.0 as usize].leaving = true;
        self.submit_one(stream.0, ring);
    }

    /// True if no operation on it is active.
    pub fn is_quiet(&self, stream: &Stream) -> bool {
        let place = &self.places[stream.0 as usize];
        place.receive == Op::Idle && place.poll == Op::Idle
    }

    /// Removes a stream that is to leave. Returns its socket and its unread input. `None` if an
    /// operation is active, or has failed, which is yet to be reported: then it stays.
    pub fn leave(&mut self, stream: &Stream, buffers: &mut Buffers) -> Option<(OwnedFd, Vec<u8>)> {
        let is_quiet = self.is_quiet(stream);
        let place = &mut self.places[stream.0 as usize];
        place.leaving = false;
        if !is_quiet || place.error.is_some() {
            self.mark_stale(stream.0);
            return None;
        }
        let fd = place.fd.take()?;
        let copied = place.copied.take();
        let mut unread = copied.map_or_else(Vec::new, |c| c.bytes[c.taken..].to_vec());
        while place.first != NONE {
            let number = place.first;
            unread.extend_from_slice(&buffers.bytes(number)[place.taken as usize..]);
            (place.first, place.taken) = (buffers.next(number), 0);
            buffers.release(number);
        }
        place.held = 0;
        (place.registered, place.interest) = (false, Flags::default());
        place.found = Flags::default();
        self.free.push(stream.0);
        Some((fd, unread))
    }

    /// The socket.
    pub fn fd(&self, stream: &Stream) -> BorrowedFd<'_> {
        let fd = &self.places[stream.0 as usize].fd;
        fd.as_ref().expect("a stream is open until it is closed").as_fd()
    }

    /// Reports these flags under this token from the next poll on.
    pub fn register(&mut self, stream: &Stream, token: Token, interest: EventFlags) {
        let place = &mut self.places[stream.0 as usize];
        (place.token, place.interest, place.registered) = (token, Flags::of(interest), true);
        place.edge_triggered = false;
        place.found = Flags::of(place.found.get() & (interest | EventFlags::HUP | EventFlags::ERR));
        self.mark_reportable(stream.0);
        self.mark_stale(stream.0);
    }

    /// Stops reporting and discards unread input.
    pub fn deregister(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.drop_input(stream.0, buffers);
        let place = &mut self.places[stream.0 as usize];
        (place.registered, place.interest) = (false, Flags::default());
        place.found = Flags::default();
        self.mark_stale(stream.0);
    }

    /// Closes the socket when all operations on it have completed.
    pub fn close(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.deregister(stream, buffers);
        self.places[stream.0 as usize].closing = true;
        self.free_if_done(stream.0);
    }

    /// Reads input that has arrived; 0: the peer stopped sending.
    pub fn read(
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
            buffers.release(number);
        }
        if place.receive != Op::Active {
            self.mark_stale(stream.0);
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

    /// Begins or ends a bulk: whether the reactor receives by itself. Takes effect with
    /// `submit_changes`.
    pub fn set_bulk(&mut self, stream: &Stream, bulk: bool) {
        self.places[stream.0 as usize].bulk = bulk;
        self.mark_stale(stream.0);
    }

    /// True if the kernel may still receive into buffers: what the socket holds comes later.
    pub fn is_receiving(&self, stream: &Stream) -> bool {
        self.places[stream.0 as usize].receive != Op::Idle
    }

    /// True if there is unread input.
    pub fn has_input(&self, stream: &Stream) -> bool {
        self.places[stream.0 as usize].has_input()
    }

    /// Discards unread input.
    pub fn discard(&mut self, stream: &Stream, buffers: &mut Buffers) {
        self.drop_input(stream.0, buffers);
    }

    fn drop_input(&mut self, at: u32, buffers: &mut Buffers) {
        let place = &mut self.places[at as usize];
        while place.first != NONE {
            let number = place.first;
            place.first = buffers.next(number);
            buffers.release(number);
        }
        (place.held, place.taken, place.copied) = (0, 0, None);
    }

    fn mark_reportable(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.reportable, true) {
            self.reportable.push(at);
        }
    }

    fn mark_stale(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.stale, true) {
            self.stale.push(at);
        }
    }

    /// A receive or a poll completed, or a multishot receive brought bytes.
    #[inline]
    pub fn on_done(&mut self, buffers: &mut Buffers, done: &Completion) {
        let (tag, at) = (done.tag(), done.tag().place);
        let place = self.places.get_mut(at as usize).expect("places are never taken away");
        // In release builds, too: one compare of words that are read anyway, and if it fails, bytes
        // of one client would be taken for another's. `free_if_done` gives a place back when all
        // its operations have completed.
        let ours = Tag::new(tag.kind, place.generation, at) == tag;
        assert!(ours, "a place is reused when all its operations have completed");
        if tag.kind == Kind::Poll {
            if !done.more() {
                place.poll = Op::Idle;
            }
            place.note(done.error());
            if done.result() > 0 && place.registered {
                let found = EventFlags::from_bits_retain(done.result() as u32);
                let told = place.interest.get() | EventFlags::HUP | EventFlags::ERR;
                place.found = Flags::of(place.found.get() | (found & told));
                place.edge_triggered = place.found == Flags::default();
            }
            self.mark_reportable(at);
            return self.mark_stale(at);
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
                    self.mark_stale(at);
                }
            } else {
                buffers.release(number);
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
            place.receive = Op::Idle;
            self.mark_stale(at);
        }
        self.mark_reportable(at);
    }

    /// Appends events, at most as many as fit. As with level-triggered epoll, input that the
    /// reactor does not read is reported again.
    pub fn report(&mut self, ready: &mut Vec<Ready>) {
        let mut kept = 0;
        for i in 0..self.reportable.len() {
            let at = self.reportable[i];
            let place = &mut self.places[at as usize];
            let flags = place.flags();
            let told = place.registered && !flags.is_empty();
            if !told && place.first == NONE {
                place.reportable = false;
                continue;
            }
            // (A place with unread buffers stays in the list, where `make_room` finds it.)
            if told && ready.len() < EVENTS_MAX {
                ready.push(Ready { token: place.token, flags });
                if place.found != Flags::default() {
                    // Level-triggered: a new poll finds what still holds.
                    (place.found, place.mask) = (Flags::default(), Flags::ALL);
                    self.mark_stale(at);
                }
            }
            self.reportable[kept] = at;
            kept += 1;
        }
        // Events that did not fit come first next time.
        self.reportable.truncate(kept);
        let told = ready.len().min(kept);
        self.reportable.rotate_left(told);
    }

    /// True if there is an event to report.
    pub fn has_report(&self) -> bool {
        self.reportable.iter().any(|&at| {
            let place = &self.places[at as usize];
            place.registered && !place.flags().is_empty()
        })
    }

    /// Provides more buffers if they are crowded, then starts and cancels operations, so that the
    /// active ones become the wanted ones. If there are no more buffers, unread input is copied.
    pub fn submit_changes(&mut self, ring: &mut Ring) {
        ring.buffers.begin_turn();
        if self.starved || ring.buffers.is_crowded() {
            self.starved = false;
            if !ring.buffers.add_more() {
                self.make_room(&mut ring.buffers);
            }
        }
        let mut stale = std::mem::take(&mut self.stale);
        for at in stale.drain(..) {
            self.places[at as usize].stale = false;
            self.submit_one(at, ring);
        }
        debug_assert!(self.stale.is_empty(), "submitting changes makes none");
        self.stale = stale;
    }

    fn submit_one(&mut self, at: u32, ring: &mut Ring) {
        let place = &mut self.places[at as usize];
        let Some(fd) = &place.fd else { return };
        let tag = |kind| Tag::new(kind, place.generation, at);
        match (place.receive, place.wants_receive()) {
            (Op::Idle, true) => {
                ring.receive(fd.as_fd(), tag(Kind::Receive));
                place.receive = Op::Active;
            }
            (Op::Active, false) => {
                ring.cancel(tag(Kind::Receive));
                place.receive = Op::Cancelling;
            }
            _ => {}
        }
        match (place.poll, place.wanted_poll()) {
            (Op::Idle, Some(mask)) => {
                ring.poll(fd.as_fd(), mask.bits(), place.edge_triggered, tag(Kind::Poll));
                (place.poll, place.mask) = (Op::Active, Flags::of(mask));
            }
            (Op::Active, wanted) if wanted.map(Flags::of) != Some(place.mask) => {
                ring.cancel(tag(Kind::Poll));
                place.poll = Op::Cancelling;
            }
            _ => {}
        }
        self.free_if_done(at);
    }

    fn free_if_done(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if place.closing && place.receive == Op::Idle && place.poll == Op::Idle {
            place.closing = false;
            place.fd = None;
            self.free.push(at);
        }
    }

    /// Copies unread input and releases its buffers.
    fn make_room(&mut self, buffers: &mut Buffers) {
        for i in 0..self.reportable.len() {
            let at = self.reportable[i];
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
                buffers.release(number);
            }
            place.held = 0;
            self.mark_stale(at);
        }
    }
}
