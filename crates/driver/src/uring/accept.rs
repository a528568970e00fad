//! Listening sockets under the ring: connections are accepted as they come and wait here to be
//! taken.

use super::ring::{Done, Ring};
use super::streams::Op;
use super::tag::{Kind, Tag};
use crate::epoll::listen::Listener;
use crate::poller::{EVENTS_MAX, Ready, Token};
use crate::trouble::Accept;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::VecDeque;

/// A listening socket of the poller.
pub struct Listening(u32);

struct Place {
    generation: u32,
    /// The socket; open longer than it listens if an accept is under way.
    fd: Option<OwnedFd>,
    listener: Option<Listener>,
    number: usize,
    armed: bool,
    accept: Op,
    came: VecDeque<OwnedFd>,
    error: Option<Errno>,
}

/// All of them. Few: each poll looks at every one.
#[derive(Default)]
pub struct Listeners {
    places: Vec<Place>,
    generation: u32,
    stale: bool,
}

impl Listeners {
    /// Takes a listening socket in.
    pub fn insert(&mut self, listener: Listener) -> Listening {
        self.generation = self.generation.wrapping_add(1);
        let place = Place {
            generation: self.generation,
            fd: None,
            listener: Some(listener),
            number: 0,
            armed: false,
            accept: Op::Off,
            came: VecDeque::new(),
            error: None,
        };
        let is_free = |p: &Place| p.listener.is_none() && p.accept == Op::Off;
        let free = self.places.iter().position(is_free);
        let at = free.unwrap_or(self.places.len());
        match self.places.get_mut(at) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        Listening(at as u32)
    }

    /// The socket.
    pub fn find(&self, id: &Listening) -> &Listener {
        let listener = &self.places[id.0 as usize].listener;
        listener.as_ref().expect("a listener is open until it is closed")
    }

    /// Nobody can connect from now on. An accept under way holds the socket: it is told to end, and
    /// stops listening now.
    pub fn close(&mut self, id: &Listening) {
        let place = &mut self.places[id.0 as usize];
        place.armed = false;
        place.came.clear();
        if let Some(listener) = place.listener.take()
            && place.accept != Op::Off
        {
            // Fails only for a socket that does not listen.
            let _ = shutdown(&listener.fd, Shutdown::Both);
            place.fd = Some(listener.into_fd());
        }
        self.stale = true;
    }

    /// Reports under this number from now on, or no longer.
    pub fn arm(&mut self, id: &Listening, number: usize, armed: bool) {
        let place = &mut self.places[id.0 as usize];
        (place.number, place.armed) = (number, armed);
        self.stale = true;
    }

    /// True if some listener waits for a descriptor to become free.
    pub fn rests(&self) -> bool {
        self.places.iter().any(|p| p.listener.is_some() && !p.armed)
    }

    /// Takes one connection.
    pub fn accept(&mut self, id: &Listening) -> Result<OwnedFd, Errno> {
        let place = &mut self.places[id.0 as usize];
        match (place.came.pop_front(), place.error.take()) {
            (Some(fd), error) => {
                place.error = error;
                Ok(fd)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(Errno::AGAIN),
        }
    }

    /// An accept completed.
    pub fn on_done(&mut self, done: Done) {
        let (tag, error, more) = (done.tag(), done.error(), done.more());
        let accepted = done.accepted();
        let place = self.places.get_mut(tag.place as usize).expect("places are never taken away");
        // A listener's place is reused when its accept has completed: else a connection would come
        // to another port.
        assert_eq!(Tag::new(Kind::Accept, place.generation, tag.place), tag);
        if place.listener.is_some() {
            place.came.extend(accepted); // (of a closed one they are closed)
            if let Some(error) = error
                && Accept::of(error) != Accept::Nobody
            {
                place.error = Some(error);
            }
        }
        if !more {
            place.accept = Op::Off;
            if place.listener.is_none() {
                place.fd = None;
            }
            self.stale = true;
        }
    }

    /// Appends the listeners that have something.
    pub fn report(&self, ready: &mut Vec<Ready>) {
        for place in self.places.iter().filter(|p| p.has_report()) {
            if ready.len() < EVENTS_MAX {
                ready.push(Ready { token: Token::listener(place.number), flags: EventFlags::IN });
            }
        }
    }

    /// True if there is such a listener.
    pub fn has_report(&self) -> bool {
        self.places.iter().any(Place::has_report)
    }

    /// Starts and takes back accepts.
    pub fn settle(&mut self, ring: &mut Ring) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            let tag = Tag::new(Kind::Accept, place.generation, at as u32);
            match (place.accept, place.armed, &place.listener) {
                // An error is told first: the reactor may want a rest.
                (Op::Off, true, Some(listener)) if place.error.is_none() => {
                    ring.accept(listener.fd.as_fd(), tag);
                    place.accept = Op::On;
                }
                (Op::Off, true, Some(_)) => self.stale = true,
                (Op::On, false, _) => {
                    ring.cancel(tag);
                    place.accept = Op::Ending;
                }
                _ => {}
            }
        }
    }
}

impl Place {
    fn has_report(&self) -> bool {
        self.armed && (!self.came.is_empty() || self.error.is_some())
    }
}
