//! Further Accesses: Accesses beyond those of the workers. A walker, a loader, or a script that
//! outlives its turn has its own section, locks, undo log and counters, separate from those of any
//! worker.
//!
//! A further Access comes from another one ([`Access::further`]) and ends with its drop. It differs
//! from a worker's Access in these points:
//!
//! - It sweeps nothing: slots are divided among workers.
//! - It parks no session, because a wake-up is sent to a worker. A task of a worker parks through
//!   that worker's Access; a separate thread retries.
//! - It takes no part in fences ([`crate::Fences`]). Code that executes a client's commands through
//!   it acts for a worker, and that worker passes no fence before the last of these commands has
//!   ended.
//! - As with a worker's Access, its owner serves the clients that wait for keys
//!   ([`Access::take_ready`]).

use crate::access::Access;
use crate::gate::Gate;
use crate::stand::Stand;
use base::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of further Accesses at a time.
pub(crate) const FURTHER_MAX: usize = if cfg!(shuttle) { 2 } else { 64 };

/// The maximum number of further Accesses exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "all {FURTHER_MAX} further accesses are in use")
    }
}

impl std::error::Error for NoRoom {}

/// Which Accesses exist, by number: first those of workers, then further ones.
#[derive(Debug)]
pub(crate) struct Claims {
    workers: usize,
    taken: Mutex<Vec<bool>>,
}

impl Claims {
    /// No Access exists.
    pub fn new(workers: usize) -> Self {
        Self { workers, taken: Mutex::new(vec![false; workers + FURTHER_MAX]) }
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    fn taken(&self) -> MutexGuard<'_, Vec<bool>> {
        // A panic under this mutex leaves the data consistent: one number changes at a time.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a worker's number; each worker has one Access at a time.
    pub fn claim_worker(&self, worker: usize) {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        let was = std::mem::replace(&mut self.taken()[worker], true);
        assert!(!was, "worker {worker} has an Access already");
    }

    /// Claims the lowest free number of a further Access, on behalf of the Access with number `by`
    /// and its `stand`. If `by` is a worker that was alone, it is no longer alone.
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
            // So the caller is the only worker: there is no other Access that could call this.
            stand.end_alone(gate, by);
        }
        let index = first + free;
        taken[index] = true;
        gate.add_section(index);
        Ok(index)
    }

    /// Releases a number. Its owner must be outside the section and hold no lock. When the last
    /// further Access ends, a single worker is alone again.
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
    /// Creates a further Access; there is no other way to get one. May be called inside the
    /// section, and under World.
    ///
    /// # Errors If the maximum number exists already.
    pub fn further(&mut self) -> Result<Access, NoRoom> {
        let ks = Arc::clone(&self.ks);
        let index = ks.claims.claim_further(&ks.gate, self.w.index, &mut self.w.stand)?;
        Ok(Self::of(ks, index))
    }

    /// True if this Access does not belong to a worker.
    pub fn is_further(&self) -> bool {
        self.w.index >= self.ks.workers()
    }
}

#[cfg(all(test, shuttle))]
mod models;
