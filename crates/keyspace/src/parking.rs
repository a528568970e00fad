//! Sessions that wait for a long slot holder, for the World gate or for the growth token: a FIFO
//! per place. Parking is rare and long, so one mutex guards all queues; nothing else is locked
//! under it.

use base::SlotId;
use base::sync::{Mutex, OnceLock, PoisonError};
use std::collections::{BTreeMap, VecDeque};

/// Where a command could not go on. It has done nothing and holds nothing: queue its session with
/// [`crate::Access::park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parked {
    /// Behind a long holder of this slot.
    Slot(SlotId),
    /// At the closed World gate.
    Gate,
    /// Needing World, until the one of this number ([`crate::Access::number`]), who is inside for
    /// long, leaves.
    Section(usize),
    /// About to be long, while somebody waits for a turn who was turned back by long holders
    /// ([`crate::Turn`]).
    Turn,
    /// Behind another grower.
    Growth,
    /// At a frozen slot that was to be changed.
    Frozen(SlotId),
    /// Needing the whole keyspace, of which a part is frozen.
    Thaw,
    /// About to freeze slots, while somebody waits for a thaw who needs the whole keyspace
    /// ([`crate::ThawTurn`]).
    Freeze,
}

/// Who tells a worker that a parked session may try again. Called without any lock held.
pub trait Waker: Send + Sync {
    /// Session `token` of `worker` may try again. Only workers park, so this is below
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
    /// Says who wakes parked sessions; once.
    pub fn set_waker(&self, waker: Box<dyn Waker>) {
        assert!(self.waker.set(waker).is_ok(), "the waker is set once");
    }

    /// Queues a session if `mark` succeeds under the queues' mutex, that is, if there still is
    /// somebody who will call [`Parking::release`].
    pub fn park(&self, at: Parked, worker: usize, token: u64, mark: impl FnOnce() -> bool) -> bool {
        // A panic under this mutex leaves the queues whole: every step is one push or remove.
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let marked = mark();
        if marked {
            queues.entry(at).or_default().push_back(Ticket { worker, token });
        }
        marked
    }

    /// Wakes everybody parked there, in order of arrival.
    #[cold]
    pub fn release(&self, at: Parked) {
        let queue = self.queues.lock().unwrap_or_else(PoisonError::into_inner).remove(&at);
        let Some(queue) = queue else { return };
        let Some(waker) = self.waker.get() else { return };
        for ticket in queue {
            waker.wake(ticket.worker, ticket.token);
        }
    }

    /// Forgets a session that will not try again; false if it was not queued there.
    pub fn forget(&self, at: Parked, worker: usize, token: u64) -> bool {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queues.get_mut(&at) else { return false };
        let before = queue.len();
        queue.retain(|ticket| *ticket != Ticket { worker, token });
        queue.len() < before
    }
}
