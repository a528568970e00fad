//! Parked sessions, which wait for a long holder of a slot, for the World gate, for the growth
//! token and so on: a FIFO queue for each place. Parking is rare and lasts long, so one mutex
//! guards all queues. Nothing else is locked under it.

use base::SlotId;
use base::sync::{Mutex, OnceLock, PoisonError};
use std::collections::{BTreeMap, VecDeque};

/// The reason why a command must wait. It has changed nothing and holds nothing: the caller parks
/// its session with [`crate::Access::park`] and retries it when it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parked {
    /// Behind a long holder of this slot.
    Slot(SlotId),
    /// At the closed World gate.
    Gate,
    /// It needs World, and the Access with this number ([`crate::Access::number`]) is inside for
    /// long.
    Section(usize),
    /// It would be long while another command waits for a turn ([`crate::Turn`]).
    Turn,
    /// Another command has the growth token.
    Growth,
    /// It would change a frozen slot.
    Frozen(SlotId),
    /// It needs all slots, and some are frozen.
    Thaw,
    /// It would freeze slots while another command waits for a thaw ([`crate::ThawTurn`]).
    Freeze,
}

/// Notifies workers that parked sessions can be retried. Called without any lock held.
pub trait Waker: Send + Sync {
    /// Session `token` of `worker` can be retried. Only workers park, so `worker` is below
    /// [`crate::Keyspace::workers`].
    fn wake(&self, worker: usize, token: u64);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    worker: usize,
    token: u64,
}

/// All queues.
#[derive(Default)]
pub(crate) struct Parking {
    queues: Mutex<BTreeMap<Parked, VecDeque<Ticket>>>,
    waker: OnceLock<Box<dyn Waker>>,
}

impl Parking {
    /// Sets the waker, once.
    pub fn set_waker(&self, waker: Box<dyn Waker>) {
        assert!(self.waker.set(waker).is_ok(), "the waker is set once");
    }

    /// Queues a session if `mark` succeeds under the mutex: if there still is a holder that will
    /// call [`Parking::release`].
    pub fn park(&self, at: Parked, worker: usize, token: u64, mark: impl FnOnce() -> bool) -> bool {
        // A panic under this mutex leaves the queues whole: every step is one push or remove.
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let marked = mark();
        if marked {
            queues.entry(at).or_default().push_back(Ticket { worker, token });
        }
        marked
    }

    /// Wakes all sessions that are parked there, in order of arrival.
    #[cold]
    pub fn release(&self, at: Parked) {
        let queue = self.queues.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
        let Some(queue) = queue else { return };
        let Some(waker) = self.waker.get() else { return };
        for ticket in queue {
            waker.wake(ticket.worker, ticket.token);
        }
    }

    /// Removes a session that will not be retried; false if it was not queued there.
    pub fn forget(&self, at: Parked, worker: usize, token: u64) -> bool {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queues.get_mut(&at) else { return false };
        let before = queue.len();
        queue.retain(|ticket| *ticket != Ticket { worker, token });
        queue.len() < before
    }
}
