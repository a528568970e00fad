//! Retries of background work which met the closed gate or a slot that is held for long.

use base::MonoNs;

/// The pause before a retry: long enough to cost nothing, short enough that nobody notices.
pub const RETRY_NS: u64 = 1_000_000;
/// Keys whose watches and tickets are released per turn at most, and as many whose waiters are
/// served; each takes one slot's lock.
pub const RELEASES_PER_TURN: usize = 512;

/// A kind of background work.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Watches and tickets to be removed from their slots.
    Releases,
    /// The ends of MIGRATEs.
    Trips,
    /// Serving clients that wait for deferred keys.
    Deferred,
    /// The moment of a save.
    Save,
    /// DEBUG LOADAOF, and removing what is there before a file is loaded.
    Load,
    /// The begin and the end of the append-only file.
    Journal,
}

/// The earliest time of the next attempt, by kind; in the past for work which met no obstacle.
#[derive(Default)]
pub struct Retries([MonoNs; 6]);

impl Retries {
    /// Postpones work which met the gate or a slot that is held for long.
    pub fn postpone(&mut self, work: Work, now: MonoNs) {
        self.0[work as usize] = now.plus(RETRY_NS);
    }

    /// When the work is to be tried next, if there is any.
    pub fn next(&self, work: Work, is_any: bool, now: MonoNs) -> Option<MonoNs> {
        is_any.then(|| self.0[work as usize].max(now))
    }
}
