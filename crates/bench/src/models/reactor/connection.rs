//! One connection of an event loop.

use resp::OutBuf;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::models::counters::Counts;
use crate::models::input::{Input, Received};
use crate::models::options::Options;
use crate::models::output::Output;
use crate::models::session::{Session, Step};

/// Receives per turn; then the other connections.
const READS_PER_TURN: usize = 4;
/// Requests of one connection that wait for another thread's reply; beyond it the client is not
/// read.
pub const DEFERRED_MAX: usize = 64;

/// What a new connection is watched for.
pub const FIRST_INTEREST: EventFlags = EventFlags::IN;

/// A connection and where it stands.
pub struct Connection<S> {
    fd: OwnedFd,
    session: S,
    input: Input,
    output: Output,
    /// Requests whose replies are under way.
    deferred: usize,
    /// The peer sends no more.
    at_end: bool,
    /// The conversation is over, and the last words are written.
    ended: bool,
    /// There may be a whole request in the input.
    has_input: bool,
    /// Its last turn received bytes.
    received: bool,
    /// Its turn after the mail is set.
    turn_is_due: bool,
    /// What it is watched for.
    watched: EventFlags,
}

impl<S: Session> Connection<S> {
    /// A new one.
    pub fn new(fd: OwnedFd, session: S, options: &Options) -> Self {
        Self {
            fd,
            session,
            input: Input::default(),
            output: Output::new(options),
            deferred: 0,
            at_end: false,
            ended: false,
            has_input: false,
            received: false,
            turn_is_due: false,
            watched: FIRST_INTEREST,
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Did its last turn bring anything?
    pub fn has_received(&self) -> bool {
        self.received
    }

    /// What it waits for now, if that is not what it is watched for.
    pub fn new_interest(&mut self) -> Option<EventFlags> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.wants_input());
        flags.set(EventFlags::OUT, self.output.is_blocked());
        (std::mem::replace(&mut self.watched, flags) != flags).then_some(flags)
    }

    /// A deferred reply has come. True if this is the first since its last turn.
    pub fn answer(&mut self, bytes: &OutBuf, counts: &Counts) -> bool {
        self.deferred -= 1;
        self.output.buf.bytes.extend_from_slice(&bytes.bytes);
        if self.output.is_due() && !self.output.is_blocked() {
            // An error is met again in the turn.
            let _ = self.output.send_some(self.fd.as_fd(), counts);
        }
        !std::mem::replace(&mut self.turn_is_due, true)
    }

    /// Executes, reads and sends what can be now; false once it is done.
    pub fn turn(&mut self, mut readable: bool, counts: &Counts) -> Result<bool, Errno> {
        (self.turn_is_due, self.received) = (false, false);
        if self.output.is_blocked() {
            self.output.send_some(self.fd.as_fd(), counts)?;
        }
        let mut reads = 0;
        loop {
            self.execute(counts)?;
            if !readable || !self.wants_input() || reads == READS_PER_TURN {
                break;
            }
            reads += 1;
            match self.input.receive(self.fd.as_fd(), RecvFlags::DONTWAIT, counts)? {
                Received::Bytes { emptied } => {
                    (self.has_input, self.received, readable) = (true, true, !emptied);
                }
                Received::Nothing => readable = false,
                Received::End => self.at_end = true,
            }
        }
        // With more to be read the next turn comes at once.
        let idle = !(readable && self.wants_input());
        let done = self.is_done();
        if done || (idle && self.output.is_due_when_idle() && !self.output.is_blocked()) {
            self.output.send_some(self.fd.as_fd(), counts)?;
        }
        Ok(!(done && self.output.is_empty()))
    }

    /// Reads from the socket: while there will be more, and no reply is stuck, and not too many are
    /// under way.
    fn wants_input(&self) -> bool {
        !self.ended && !self.at_end && self.accepts_requests()
    }

    fn accepts_requests(&self) -> bool {
        !self.output.is_blocked() && self.deferred < DEFERRED_MAX
    }

    /// Executes whole requests.
    fn execute(&mut self, counts: &Counts) -> Result<(), Errno> {
        while self.has_input && !self.ended && self.accepts_requests() {
            match self.session.step(&mut self.input, &mut self.output.buf) {
                Step::Replied => {
                    counts.request(1);
                    if self.output.is_due() {
                        self.output.send_some(self.fd.as_fd(), counts)?;
                    }
                }
                Step::Deferred => {
                    counts.request(1);
                    self.deferred += 1;
                }
                Step::Starved => self.has_input = false,
                Step::End => (self.at_end, self.has_input) = (true, false),
            }
        }
        Ok(())
    }

    /// Is everything that came answered, and nothing else to come? Then the last words are written.
    fn is_done(&mut self) -> bool {
        if self.at_end && !self.has_input && self.deferred == 0 && !self.ended {
            self.ended = true;
            self.session.farewell(&mut self.output.buf);
        }
        self.ended
    }
}
