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
    over: bool,
    /// There may be a whole request in the input.
    fed: bool,
    /// Its last turn brought bytes.
    brought: bool,
    /// Its turn after the mail is set.
    answered: bool,
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
            over: false,
            fed: false,
            brought: false,
            answered: false,
            watched: FIRST_INTEREST,
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Did its last turn bring anything?
    pub fn has_brought(&self) -> bool {
        self.brought
    }

    /// What it waits for now, if that is not what it is watched for.
    pub fn new_interest(&mut self) -> Option<EventFlags> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.reads());
        flags.set(EventFlags::OUT, self.output.is_stuck());
        (std::mem::replace(&mut self.watched, flags) != flags).then_some(flags)
    }

    /// A deferred reply has come. True if this is the first since its last turn.
    pub fn answer(&mut self, bytes: &OutBuf, counts: &Counts) -> bool {
        self.deferred -= 1;
        self.output.buf.bytes.extend_from_slice(&bytes.bytes);
        if self.output.is_due() && !self.output.is_stuck() {
            // An error is met again in the turn.
            let _ = self.output.send_some(self.fd.as_fd(), counts);
        }
        !std::mem::replace(&mut self.answered, true)
    }

    /// Executes, reads and sends what can be now; false once it is done.
    pub fn turn(&mut self, mut readable: bool, counts: &Counts) -> Result<bool, Errno> {
        (self.answered, self.brought) = (false, false);
        if self.output.is_stuck() {
            self.output.send_some(self.fd.as_fd(), counts)?;
        }
        let mut reads = 0;
        loop {
            self.execute(counts)?;
            if !readable || !self.reads() || reads == READS_PER_TURN {
                break;
            }
            reads += 1;
            match self.input.receive(self.fd.as_fd(), RecvFlags::DONTWAIT, counts)? {
                Received::Bytes { emptied } => {
                    (self.fed, self.brought, readable) = (true, true, !emptied);
                }
                Received::Nothing => readable = false,
                Received::End => self.at_end = true,
            }
        }
        // With more to be read the next turn comes at once.
        let idle = !(readable && self.reads());
        let done = self.is_done();
        if done || (idle && self.output.is_due_when_idle() && !self.output.is_stuck()) {
            self.output.send_some(self.fd.as_fd(), counts)?;
        }
        Ok(!(done && self.output.is_empty()))
    }

    /// Reads from the socket: while there will be more, and no reply is stuck, and not too many are
    /// under way.
    fn reads(&self) -> bool {
        !self.over && !self.at_end && self.takes()
    }

    fn takes(&self) -> bool {
        !self.output.is_stuck() && self.deferred < DEFERRED_MAX
    }

    /// Executes whole requests.
    fn execute(&mut self, counts: &Counts) -> Result<(), Errno> {
        while self.fed && !self.over && self.takes() {
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
                Step::Starved => self.fed = false,
                Step::End => (self.at_end, self.fed) = (true, false),
            }
        }
        Ok(())
    }

    /// Is everything that came answered, and nothing else to come? Then the last words are written.
    fn is_done(&mut self) -> bool {
        if self.at_end && !self.fed && self.deferred == 0 && !self.over {
            self.over = true;
            self.session.farewell(&mut self.output.buf);
        }
        self.over
    }
}
