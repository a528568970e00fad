//! Listening sockets under the ring: the kernel accepts connections as they arrive, and they wait
//! here until the reactor takes them.

use super::ring::{Completion, Ring};
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
    /// The socket of a closed listener while an accept is active.
    fd: Option<OwnedFd>,
    listener: Option<Listener>,
    number: usize,
    armed: bool,
    accept: Op,
    accepted: VecDeque<OwnedFd>,
    error: Option<Errno>,
}

/// All listening sockets of a ring. They are few: each poll visits every one.
#[derive(Default)]
pub struct Listeners {
    places: Vec<Place>,
    generation: u32,
    stale: bool,
}

impl Listeners {
    /// Adds a listening socket.
    pub fn insert(&mut self, listener: Listener) -> Listening {
        self.generation = self.generation.wrapping_add(1);
        let place = Place {
            generation: self.generation,
            fd: None,
            listener: Some(listener),
            number: 0,
            armed: false,
            accept: Op::Idle,
            accepted: VecDeque::new(),
            error: None,
        };
        let is_free = |p: &Place| p.listener.is_none() && p.accept == Op::Idle;
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

    /// Stops listening at once. An active accept still uses the socket, so it is cancelled, and the
    /// socket is closed when it has completed.
    pub fn close(&mut self, id: &Listening) {
        let place = &mut self.places[id.0 as usize];
        place.armed = false;
        place.accepted.clear();
        if let Some(listener) = place.listener.take()
            && place.accept != Op::Idle
        {
            // Fails only for a socket that does not listen.
            let _ = shutdown(&listener.fd, Shutdown::Both);
            place.fd = Some(listener.into_fd());
        }
        self.stale = true;
    }

    /// Starts to report under this number, or stops.
    pub fn arm(&mut self, id: &Listening, number: usize, armed: bool) {
        let place = &mut self.places[id.0 as usize];
        (place.number, place.armed) = (number, armed);
        self.stale = true;
    }

    /// True if a listener is paused because the process has no free descriptor.
    pub fn has_paused(&self) -> bool {
        self.places.iter().any(|p| p.listener.is_some() && !p.armed)
    }

    /// Takes one connection.
    pub fn accept(&mut self, id: &Listening) -> Result<OwnedFd, Errno> {
        let place = &mut self.places[id.0 as usize];
        match (place.accepted.pop_front(), place.error.take()) {
            (Some(fd), error) => {
                place.error = error;
                Ok(fd)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(Errno::AGAIN),
        }
    }

    /// An accept completed.
    pub fn on_done(&mut self, done: Completion) {
        let (tag, error, more) = (done.tag(), done.error(), done.more());
        let accepted = done.descriptor();
        let place = self.places.get_mut(tag.place as usize).expect("places are never taken away");
        // A listener's place is reused when its accept has completed: else a connection would come
        // to another port.
        assert_eq!(Tag::new(Kind::Accept, place.generation, tag.place), tag);
        if place.listener.is_some() {
            place.accepted.extend(accepted); // (dropping them closes them)
            if let Some(error) = error
                && Accept::of(error) != Accept::Nobody
            {
                place.error = Some(error);
            }
        }
        if !more {
            place.accept = Op::Idle;
            if place.listener.is_none() {
                place.fd = None;
            }
            self.stale = true;
        }
    }

    /// Appends the listeners that have a connection or an error.
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

    /// Starts and cancels accepts.
    pub fn submit_changes(&mut self, ring: &mut Ring) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        for (at, place) in self.places.iter_mut().enumerate() {
            let tag = Tag::new(Kind::Accept, place.generation, at as u32);
            match (place.accept, place.armed, &place.listener) {
                // An error is reported first: the reactor may pause accepting.
                (Op::Idle, true, Some(listener)) if place.error.is_none() => {
                    ring.accept(listener.fd.as_fd(), tag);
                    place.accept = Op::Active;
                }
                (Op::Idle, true, Some(_)) => self.stale = true,
                (Op::Active, false, _) => {
                    ring.cancel(tag);
                    place.accept = Op::Cancelling;
                }
                _ => {}
            }
        }
    }
}

impl Place {
    fn has_report(&self) -> bool {
        self.armed && (!self.accepted.is_empty() || self.error.is_some())
    }
}
