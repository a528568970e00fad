//! What all workers share of client-side caching.

use crate::tracking::listed::ByWorker;
use crate::tracking::prefixes::Prefixes;
use crate::tracking::table::{Forgotten, Keys};
use base::sync::Mutex;
use base::sync::atomic::Ordering::{Relaxed, Release};
use base::sync::atomic::{AtomicBool, AtomicU64};
use driver::ConnId;

/// So many prefixes are left under one lock.
const PREFIXES_TOGETHER: usize = 64;

/// Who tracks, besides single keys.
#[derive(Debug, Default)]
pub struct Clients {
    /// All of them.
    pub all: ByWorker,
    /// Those that are told of prefixes.
    pub prefixes: Prefixes,
    /// How many there are.
    count: u64,
}

/// Client-side caching, as all workers share it. Lock order: the slot of a key, then a part of the
/// table or the clients, then an inbox.
#[derive(Debug, Default)]
pub struct ClientTracking {
    /// Who has read which keys.
    pub keys: Keys,
    clients: Mutex<Clients>,
    /// Workers tell of all keys that change.
    is_told: AtomicBool,
    /// How many clients track, for INFO.
    pub client_count: AtomicU64,
    /// How many different prefixes clients have, for INFO and for changes: without one no lock is
    /// taken.
    pub prefix_count: AtomicU64,
}

impl ClientTracking {
    /// True if workers tell of all changes already, so that one more client may begin to track
    /// while they run.
    pub fn is_told(&self) -> bool {
        self.is_told.load(Relaxed)
    }

    /// A client begins to track. `begin` has workers tell of changes from here on; it is called
    /// under World, for the first client alone. False if this is the first one and `is_alone` is
    /// false: nothing has happened.
    pub fn join(
        &self,
        (worker, conn): (usize, ConnId),
        is_alone: bool,
        begin: impl FnOnce(),
    ) -> bool {
        let mut clients = self.clients();
        if !self.is_told() {
            if !is_alone {
                return false;
            }
            self.is_told.store(true, Relaxed);
            begin();
        }
        clients.all.join(worker, conn);
        clients.count += 1;
        self.client_count.store(clients.count, Relaxed);
        true
    }

    /// A client tracks no more. With the last one, `end` has workers tell of changes no longer, and
    /// what is remembered is returned.
    pub fn leave(&self, (worker, conn): (usize, ConnId), end: impl FnOnce()) -> Option<Forgotten> {
        let mut clients = self.clients();
        clients.all.leave(worker, conn);
        clients.count -= 1;
        let forgotten = (clients.count == 0).then(|| {
            self.is_told.store(false, Relaxed);
            end();
            self.keys.clear()
        });
        self.client_count.store(clients.count, Release);
        forgotten
    }

    /// A client is told of the keys of these prefixes no more; some are left at a time.
    pub fn leave_prefixes<'a>(
        &self,
        mut prefixes: impl ExactSizeIterator<Item = &'a [u8]>,
        (worker, conn): (usize, ConnId),
    ) {
        while prefixes.len() > 0 {
            let mut clients = self.clients();
            let some = prefixes.by_ref().take(PREFIXES_TOGETHER);
            some.for_each(|prefix| clients.prefixes.leave(prefix, worker, conn));
            self.prefix_count.store(clients.prefixes.len() as u64, Relaxed);
        }
    }

    /// A client is told of the keys of a prefix from here on.
    pub fn join_prefix(&self, prefix: &[u8], worker: usize, conn: ConnId) {
        let mut clients = self.clients();
        clients.prefixes.join(prefix, worker, conn);
        self.prefix_count.store(clients.prefixes.len() as u64, Relaxed);
    }

    /// The clients, locked.
    pub fn clients(&self) -> base::sync::MutexGuard<'_, Clients> {
        self.clients.lock().expect("no panic while the clients are held")
    }

    /// True if more keys are remembered than `most`; 0 is no bound.
    pub fn is_over(&self, most: u64) -> bool {
        most > 0 && self.keys.len.load(Relaxed) > most
    }

    /// Their bytes, about.
    pub fn bytes(&self) -> u64 {
        self.keys.bytes.load(Relaxed)
    }
}
