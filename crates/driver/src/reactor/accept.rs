//! Listening sockets and accepting connections.

use super::Reactor;
use crate::poller::{LISTENERS_MAX, Poller};
use crate::trouble::{Accept, is_register_short};
use crate::{Event, ListenAddr, ListenError, ListenOptions, ListenerId};
use base::MonoNs;
use rustix::io::Errno;

/// Connections accepted per turn.
pub const ACCEPTS_MAX: usize = 64;
/// Without a free descriptor the driver stops accepting for this long, or until one becomes free.
pub const ACCEPT_RETRY_NS: u64 = 100_000_000;

/// The listening sockets of a driver.
pub struct Listening<L> {
    listeners: Vec<Option<L>>,
    /// Set while descriptors are short: when to accept again.
    pub retry_at: Option<MonoNs>,
    /// How many more connections may be accepted in this turn, of [`ACCEPTS_MAX`].
    accepts_left: usize,
    /// Overflows of listeners that are closed.
    pub overflows_closed: u64,
}

impl<L> Listening<L> {
    pub const fn new() -> Self {
        Self {
            listeners: Vec::new(),
            retry_at: None,
            accepts_left: ACCEPTS_MAX,
            overflows_closed: 0,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &L)> {
        self.listeners.iter().enumerate().filter_map(|(i, l)| Some((i, l.as_ref()?)))
    }

    pub fn find(&self, id: ListenerId) -> Option<&L> {
        self.listeners.get(id.0 as usize)?.as_ref()
    }

    pub fn remove(&mut self, id: ListenerId) -> Option<L> {
        self.listeners.get_mut(id.0 as usize)?.take()
    }

    fn free_place(&mut self) -> Option<usize> {
        let free = self.listeners.iter().position(Option::is_none);
        free.or_else(|| {
            (self.listeners.len() < LISTENERS_MAX).then(|| {
                self.listeners.push(None);
                self.listeners.len() - 1
            })
        })
    }
}

impl<P: Poller, M: Send> Reactor<P, M> {
    pub(super) fn open_listener(
        &mut self,
        at: &ListenAddr,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let too_many = || ListenError(Errno::MFILE.into());
        let number = self.listening.free_place().ok_or_else(too_many)?;
        let listener = self.poller.listen(at, &options)?;
        self.poller.arm(&listener, number, true).map_err(|e| ListenError(e.into()))?;
        self.listening.listeners[number] = Some(listener);
        Ok(ListenerId(number as u32))
    }

    pub(super) fn on_listener(&mut self, number: usize) -> Option<Event<M>> {
        let listener = self.listening.listeners.get(number).and_then(Option::as_ref);
        if let Some(listener) = listener
            && self.listening.accepts_left > 0
        {
            self.listening.accepts_left -= 1;
            match self.poller.accept(listener) {
                Ok((socket, peer)) => {
                    let listener = ListenerId(number as u32);
                    return Some(Event::Accepted { listener, socket, peer });
                }
                Err(error) => match Accept::of(error) {
                    Accept::Nobody => {}
                    Accept::Short => {
                        self.stats.accept_errors += 1;
                        self.arm_all(false);
                        self.listening.retry_at = Some(self.now.plus(ACCEPT_RETRY_NS));
                    }
                    Accept::Gone => {
                        self.stats.accept_errors += 1;
                        return None;
                    }
                },
            }
        }
        self.ready_at += 1; // level-triggered: remaining connections are reported again
        None
    }

    /// Starts a turn: resets the number of accepts, and accepts again if the pause for want of
    /// descriptors is over.
    pub(super) fn accept_again(&mut self, now: MonoNs) {
        self.listening.accepts_left = ACCEPTS_MAX;
        if self.listening.retry_at.is_some_and(|at| at <= now) {
            let all = self.arm_all(true);
            self.listening.retry_at = (!all).then_some(now.plus(ACCEPT_RETRY_NS));
        }
    }

    /// A descriptor has become free: ends the pause at the next turn.
    pub(super) fn accept_after_release(&mut self) {
        if self.listening.retry_at.is_some() {
            self.listening.retry_at = Some(MonoNs(0));
        }
    }

    /// Registers or deregisters all listeners. False if the kernel had no memory for one of them.
    fn arm_all(&mut self, armed: bool) -> bool {
        let mut all = true;
        for (number, listener) in self.listening.iter() {
            if let Err(error) = self.poller.arm(listener, number, armed) {
                all &= !is_register_short(error);
            }
        }
        all
    }
}
