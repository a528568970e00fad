//! An event loop: one thread that waits for many connections with epoll (level-triggered) and
//! serves those that are ready. Other threads hand it connections and replies through its inbox.

mod connection;
mod inbox;

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::context::Context;
use super::counters::Counts;
use super::options::{EVENTS_MAX, Reading};
use super::session::Session;
use connection::Connection;
pub use inbox::{Inbox, Mail, Token};

/// Rounds of reading without a poll, at most: the other connections wait meanwhile.
const ROUNDS_MAX: usize = 8;

/// The inbox has mail.
const MAIL: u64 = u64::MAX;
/// The model ends.
const STOP: u64 = u64::MAX - 1;

/// An event loop whose connections `open` opens.
pub struct Reactor<S, F> {
    context: Arc<Context>,
    set: OwnedFd,
    inbox: Arc<Inbox>,
    places: Vec<Place<S>>,
    free: Vec<u32>,
    /// Connections with input since the last poll, if they are to be read again before the next.
    recent: Vec<Token>,
    open: F,
}

/// Where a connection is, or was.
struct Place<S> {
    generation: u32,
    connection: Option<Connection<S>>,
}

impl<S: Session, F: FnMut(&Arc<Inbox>, Token) -> S> Reactor<S, F> {
    /// An event loop without connections. `open` makes the conversation of each that comes.
    pub fn new(context: &Arc<Context>, open: F) -> io::Result<Self> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        let inbox = Arc::new(Inbox::new()?);
        // Edge-triggered: each post wakes once, and nothing need be read.
        let mail = EventData::new_u64(MAIL);
        epoll::add(&set, inbox.fd(), mail, EventFlags::IN | EventFlags::ET)?;
        epoll::add(&set, context.stop_fd(), EventData::new_u64(STOP), EventFlags::IN)?;
        let context = Arc::clone(context);
        Ok(Self {
            context,
            set,
            inbox,
            places: Vec::new(),
            free: Vec::new(),
            recent: Vec::new(),
            open,
        })
    }

    /// Where others post mail for this loop.
    pub fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Serves until the model ends.
    pub fn run(mut self) {
        let context = Arc::clone(&self.context);
        let counts = context.counters.shard();
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_MAX];
        let most = context.options.events;
        while !context.is_stopped() {
            // Connections with input in every round may have kept others waiting: then this poll
            // does not sleep.
            let had_input = (0..ROUNDS_MAX).all(|_| self.read_again(counts));
            let timeout = had_input.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
            // An interrupted wait found nothing.
            let found = epoll::wait(&self.set, &mut room[..most], timeout.as_ref());
            counts.poll(found.as_ref().map_or(0, |(events, _)| events.len()));
            let Ok((events, _)) = found else { continue };
            for event in events.iter() {
                match event.data.u64() {
                    STOP => return,
                    MAIL => self.read_mail(counts),
                    token => {
                        // A read reports an error or a hang-up.
                        let readable = EventFlags::IN | EventFlags::HUP | EventFlags::ERR;
                        let flags = event.flags;
                        self.turn(Token(token), flags.intersects(readable), counts);
                    }
                }
            }
        }
    }

    /// Reads those again that have just had input; false if none has any.
    fn read_again(&mut self, counts: &Counts) -> bool {
        for token in std::mem::take(&mut self.recent) {
            self.turn(token, true, counts);
        }
        !self.recent.is_empty()
    }

    /// Takes connections in and gives replies to theirs.
    fn read_mail(&mut self, counts: &Counts) {
        let mut answered = Vec::new();
        for mail in self.inbox.take() {
            match mail {
                Mail::Connection(fd) => self.open_connection(fd, counts),
                Mail::Reply { to, bytes } => {
                    if let Some(connection) = self.connection(to)
                        && connection.answer(&bytes, counts)
                    {
                        answered.push(to);
                    }
                }
            }
        }
        for token in answered {
            self.turn(token, false, counts);
        }
    }

    fn open_connection(&mut self, fd: OwnedFd, counts: &Counts) {
        counts.connection();
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, connection: None });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        let token = Token::new(index, place.generation);
        let data = EventData::new_u64(token.0);
        if epoll::add(&self.set, &fd, data, connection::FIRST_INTEREST).is_err() {
            // Too many descriptors are watched: this one is refused.
            self.free.push(index);
            return;
        }
        let session = (self.open)(&self.inbox, token);
        place.connection = Some(Connection::new(fd, session, &self.context.options));
    }

    fn connection(&mut self, token: Token) -> Option<&mut Connection<S>> {
        let place = self.places.get_mut(token.index())?;
        if place.generation == token.generation() { place.connection.as_mut() } else { None }
    }

    /// Lets a connection do what it can, and forgets it if it has ended.
    fn turn(&mut self, token: Token, readable: bool, counts: &Counts) {
        let Some(connection) = self.connection(token) else { return };
        let alive = connection.turn(readable, counts).unwrap_or(false);
        let again = alive && connection.has_received();
        if again && self.context.options.read == Reading::First && !self.recent.contains(&token) {
            self.recent.push(token);
        }
        if !(alive && self.watch(token)) {
            // Closing the descriptor takes it out of the set.
            self.places[token.index()].connection = None;
            self.free.push(token.index() as u32);
        }
    }

    /// Watches a connection for what it waits for now.
    fn watch(&mut self, token: Token) -> bool {
        let Some(connection) = &mut self.places[token.index()].connection else { return false };
        let Some(flags) = connection.new_interest() else { return true };
        let data = EventData::new_u64(token.0);
        epoll::modify(&self.set, connection.fd(), data, flags).is_ok()
    }
}
