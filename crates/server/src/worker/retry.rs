//! When background work is tried again that met the closed gate or a long holder.

use base::MonoNs;

/// Work that waits is tried again after this long: seldom enough to cost nothing, soon enough to be
/// late for nobody.
pub const RETRY_NS: u64 = 1_000_000;
/// Keys that a turn takes watches and tickets back from, and as many whose waiters it tells, at
/// most; each is one slot's lock.
pub const RELEASES_PER_TURN: usize = 512;

/// A kind of it.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Watches and tickets to be taken out of their slots.
    Releases,
    /// The ends of MIGRATEs.
    Trips,
    /// Who waits for keys that were removed.
    Removed,
}

/// The earliest next time of each kind; of those that met nothing that is long past.
#[derive(Default)]
pub struct Retries([MonoNs; 3]);

impl Retries {
    /// It met the gate or a long holder.
    pub fn put_off(&mut self, work: Work, now: MonoNs) {
        self.0[work as usize] = now.plus(RETRY_NS);
    }

    /// When it is to be tried next, if there is any of it.
    pub fn next(&self, work: Work, is_any: bool, now: MonoNs) -> Option<MonoNs> {
        is_any.then(|| self.0[work as usize].max(now))
    }
}
