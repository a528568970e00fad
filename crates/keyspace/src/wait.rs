//! Waiting for keys: sessions that are blocked until somebody fills a key they can take from.
//!
//! A blocked command leaves one [`Ticket`] in the queue of each of its keys while it holds their slots, so no push is
//! missed. Whoever changes such a key finds it in the guard's ready list ([`Guard::next_ready`]) when its command has
//! been committed, still under the same locks, and serves the first live ticket. Serving, a timeout, CLIENT UNBLOCK and a
//! disconnect race for the ticket with one compare-exchange ([`Ticket::claim`]); the winner answers.

use crate::guard::{Guard, Mode, with_parts};
use crate::slot::Slot;
use crate::space::Key;
use crate::stats::add;
use base::sync::Arc;
use base::sync::atomic::{AtomicBool, Ordering};
use base::{DbIndex, SlotId};
use std::any::Any;
use std::collections::BTreeMap;
use value::Kind;

/// A blocked command, shared by the queues of its keys and its session.
pub struct Ticket {
    /// Never reused: tickets are served in this order.
    pub id: u64,
    /// The kind of value it can take from.
    pub kind: Kind,
    /// The logical database of its keys.
    pub db: DbIndex,
    /// Its keys, in the order of the command.
    pub keys: Vec<Box<[u8]>>,
    /// What the server needs to serve it.
    pub request: Box<dyn Any + Send + Sync>,
    claimed: AtomicBool,
}

impl Ticket {
    /// A ticket that nobody has claimed.
    pub fn new(
        id: u64,
        kind: Kind,
        db: DbIndex,
        keys: Vec<Box<[u8]>>,
        request: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self { id, kind, db, keys, request, claimed: AtomicBool::new(false) })
    }

    /// The right to answer this command: true for one caller only.
    pub fn claim(&self) -> bool {
        self.claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// True if somebody has claimed it.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// A key that was changed while somebody waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its logical database.
    pub db: DbIndex,
    /// The key.
    pub key: Box<[u8]>,
}

/// Who waits for one key, the longest wait first.
struct Queue {
    key: Box<[u8]>,
    tickets: BTreeMap<u64, Arc<Ticket>>,
}

/// The waits of one slot, by logical database and hash.
#[derive(Default)]
pub(crate) struct Waiters {
    by_key: BTreeMap<(DbIndex, u64), Vec<Queue>>,
    count: usize,
    keys: usize,
}

impl Waiters {
    pub fn len(&self) -> usize {
        self.count
    }

    fn queue(&self, db: DbIndex, hash: u64, key: &[u8]) -> Option<&Queue> {
        self.by_key.get(&(db, hash))?.iter().find(|queue| *queue.key == *key)
    }

    /// True if somebody waits for this key.
    pub fn has(&self, db: DbIndex, hash: u64, key: &[u8]) -> bool {
        self.count > 0 && self.queue(db, hash, key).is_some()
    }

    /// Every key of a database that somebody waits for.
    pub fn of_db(&self, db: DbIndex) -> impl Iterator<Item = (&[u8], u64)> {
        self.by_key
            .range((db, 0)..=(db, u64::MAX))
            .flat_map(|((_, hash), queues)| queues.iter().map(|queue| (&*queue.key, *hash)))
    }

    fn add(&mut self, db: DbIndex, key: &Key<'_>, ticket: &Arc<Ticket>) {
        let queues = self.by_key.entry((db, key.hash)).or_default();
        let at = queues.iter().position(|queue| *queue.key == *key.bytes).unwrap_or_else(|| {
            queues.push(Queue { key: key.bytes.into(), tickets: BTreeMap::new() });
            self.keys += 1;
            queues.len() - 1
        });
        // A command may name a key twice.
        if queues[at].tickets.insert(ticket.id, Arc::clone(ticket)).is_none() {
            self.count += 1;
        }
    }

    fn remove(&mut self, db: DbIndex, key: &Key<'_>, id: u64) {
        let Some(queues) = self.by_key.get_mut(&(db, key.hash)) else { return };
        let Some(at) = queues.iter().position(|queue| *queue.key == *key.bytes) else { return };
        if queues[at].tickets.remove(&id).is_some() {
            self.count -= 1;
        }
        if queues[at].tickets.is_empty() {
            queues.swap_remove(at);
            self.keys -= 1;
        }
        if queues.is_empty() {
            self.by_key.remove(&(db, key.hash));
        }
    }

    /// The first live ticket that takes from this kind; dead ones before it are dropped.
    fn first(&mut self, db: DbIndex, key: &Key<'_>, kind: Kind) -> Option<Arc<Ticket>> {
        loop {
            let queue = self.queue(db, key.hash, key.bytes)?;
            let ticket = queue.tickets.values().find(|t| t.kind == kind || t.is_claimed())?;
            if !ticket.is_claimed() {
                return Some(Arc::clone(ticket));
            }
            let id = ticket.id;
            self.remove(db, key, id);
        }
    }
}

impl Guard<'_> {
    /// Puts a ticket into the queues of its keys, whose slots the guard covers.
    pub fn wait(&mut self, ticket: &Arc<Ticket>) {
        for bytes in &ticket.keys {
            let key = self.keyspace().key(bytes);
            self.with_waiters(key.slot, |waiters| waiters.add(ticket.db, &key, ticket));
        }
    }

    /// Takes a ticket out of the queue of one of its keys, whose slot the guard covers; harmless if it is not there.
    pub fn unwait(&mut self, ticket: &Ticket, bytes: &[u8]) {
        let key = self.keyspace().key(bytes);
        self.with_waiters(key.slot, |waiters| waiters.remove(ticket.db, &key, ticket.id));
    }

    /// Runs `f` on the waits of a slot, and counts what it did.
    fn with_waiters<R>(&mut self, slot: SlotId, f: impl FnOnce(&mut Waiters) -> R) -> R {
        with_parts(self.owned(slot), |slot: &Slot, parts| {
            let before = parts.waiters.keys;
            let result = f(&mut parts.waiters);
            let stats = self.ks.stats(self.w.index);
            add(&stats.waited, parts.waiters.keys as i64 - before as i64);
            slot.set_watches(parts.watchers.len() + parts.waiters.len());
            result
        })
    }

    /// True if committed changes were of keys that somebody waits for.
    #[inline(always)]
    pub fn has_ready(&self) -> bool {
        !self.w.ready.is_empty()
    }

    /// The next such key, in the order of the changes.
    pub fn next_ready(&mut self) -> Option<Ready> {
        if self.w.ready.is_empty() { None } else { Some(self.w.ready.remove(0)) }
    }

    /// The first live ticket for a key that can be served from what is there now. The guard covers the key's slot.
    pub fn waiter(&mut self, ready: &Ready) -> Option<Arc<Ticket>> {
        let key = self.keyspace().key(&ready.key);
        let kind = self.peek(ready.db, &key)?.kind();
        if !self.owned(key.slot).is_watched() {
            return None;
        }
        self.with_waiters(key.slot, |waiters| waiters.first(ready.db, &key, kind))
    }

    /// True if the guard covers a slot.
    pub fn covers(&self, slot: SlotId) -> bool {
        match self.mode() {
            Mode::World => true,
            Mode::One(own) => own == slot,
            Mode::Many | Mode::Growing | Mode::Free => self.w.held.contains(&slot),
        }
    }

    /// Takes one more slot if that is possible without waiting: so the order of slots does not matter. Used to serve
    /// a waiter that moves to another key.
    pub fn try_cover(&mut self, slot: SlotId) -> bool {
        if self.covers(slot) {
            return true;
        }
        if self.mode() == Mode::Growing {
            self.cover(slot);
            return true;
        }
        if self.mode() == Mode::Free || !self.w.try_lock(self.ks.slot(slot)) {
            return false;
        }
        if let Mode::One(own) = self.mode() {
            self.w.held.push(own);
            self.set_mode(Mode::Many);
        }
        self.w.held.push(slot);
        self.w.seen = self.w.seen.max(self.ks.slot(slot).last_seq());
        true
    }

    /// Puts a key back that could not be served now.
    pub fn not_served(&mut self, ready: Ready) {
        self.w.ready.push(ready);
    }
}
