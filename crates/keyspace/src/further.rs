//! Further Accesses: more of them than workers. A walker, a loader, or a script that outlives its
//! turn has a section, locks, undo log and counters of its own; nothing of that is a worker's.
//!
//! A further Access comes from another one ([`Access::further`]) and ends with its drop. It differs
//! from a worker's in what is divided among workers, or done in their name:
//!
//! - It sweeps nothing: slots are divided among workers.
//! - It parks no session, because whoever wakes one tells a worker. A task of a worker parks
//!   through that worker's Access; a thread of its own tries again.
//! - It has no place among the fences ([`crate::Fences`]). Who executes a client's commands through
//!   it does that in the name of a worker, which passes no fence before the last of them.
//! - Keys that somebody waits for are left to its owner ([`Access::take_ready`]), as a worker's
//!   are.

use crate::access::Access;
use crate::gate::Gate;
use crate::stand::Stand;
use base::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many further Accesses there may be at a time.
pub(crate) const FURTHER_MAX: usize = if cfg!(shuttle) { 2 } else { 64 };

/// There are as many further Accesses as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "all {FURTHER_MAX} further accesses are in use")
    }
}

impl std::error::Error for NoRoom {}

/// Who has an Access: the workers' numbers first, then those of further ones.
#[derive(Debug)]
pub(crate) struct Claims {
    workers: usize,
    taken: Mutex<Vec<bool>>,
}

impl Claims {
    /// Nobody has one.
    pub fn new(workers: usize) -> Self {
        Self { workers, taken: Mutex::new(vec![false; workers + FURTHER_MAX]) }
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    fn taken(&self) -> MutexGuard<'_, Vec<bool>> {
        // A panic under this mutex leaves it whole: one number changes at a time.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a worker's number; each has one Access at a time.
    pub fn claim_worker(&self, worker: usize) {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        let was = std::mem::replace(&mut self.taken()[worker], true);
        assert!(!was, "worker {worker} has an Access already");
    }

    /// Takes the lowest free number of a further Access for who has number `by` and stands there.
    /// If that is a worker that is alone, it is not so any more.
    pub fn claim_further(
        &self,
        gate: &Gate,
        by: usize,
        stand: &mut Stand,
    ) -> Result<usize, NoRoom> {
        let mut taken = self.taken();
        let first = self.workers;
        let free = taken[first..].iter().position(|taken| !taken).ok_or(NoRoom)?;
        if self.workers == 1 && !taken[first..].contains(&true) {
            // So the caller is the one worker: nobody else has an Access to call this with.
            stand.end_alone(gate, by);
        }
        let index = first + free;
        taken[index] = true;
        gate.add_section(index);
        Ok(index)
    }

    /// Gives a number back, whose owner is outside and holds nothing. With the last further one, a
    /// single worker is alone again.
    pub fn release(&self, gate: &Gate, index: usize) {
        let mut taken = self.taken();
        taken[index] = false;
        let is_last = index >= self.workers && !taken[self.workers..].contains(&true);
        if is_last && self.workers == 1 {
            gate.begin_alone();
        }
    }
}

impl Access {
    /// One more Access, beyond the workers' own: the only way to one. May be called inside the
    /// section, and under World.
    ///
    /// # Errors
    /// If there are too many.
    pub fn further(&mut self) -> Result<Access, NoRoom> {
        let ks = Arc::clone(&self.ks);
        let index = ks.claims.claim_further(&ks.gate, self.w.index, &mut self.w.stand)?;
        Ok(Self::of(ks, index))
    }

    /// True if this is no worker's.
    pub fn is_further(&self) -> bool {
        self.w.index >= self.ks.workers()
    }
}

#[cfg(all(test, shuttle))]
mod models;
