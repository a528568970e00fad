//! What clients leave at keys: watches, and the tickets of waits that are over. They are taken out
//! of their slots in later turns, one slot at a time and so many per turn, the clients by turns.
//!
//! A client may leave more only when most of what it has left is released, so what waits here is
//! bounded: by `LEFT_KEYS_MAX` and one request for each client, by `LEFT_WORKER_KEYS_MAX` and small
//! requests for all (`left`).

use crate::execute::caller::Caller;
use crate::sessions::session::{Session, Suspended};
use crate::sessions::watches::Watches;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::left::Left;
use crate::worker::message::Message;
use crate::worker::retry::{RELEASES_PER_TURN, Work};
use base::sync::Arc;
use command::spec::{CommandSpec, Handler, Traits};
use driver::{ConnId, Driver};
use keyspace::{Access, Intent, Parked, Ticket};

/// So many keys of a client are released before the next one's.
const KEYS_AT_ONCE: usize = 64;

impl Core {
    /// Has watches taken out of their slots.
    pub(crate) fn release_watches(&mut self, conn: ConnId, watches: Watches) {
        self.leave(conn, Left::Watches(watches));
    }

    /// Has a ticket taken out of the queues of its keys.
    pub(crate) fn release_ticket(&mut self, conn: ConnId, ticket: Arc<Ticket>) {
        self.leave(conn, Left::Ticket(ticket, 0));
    }

    fn leave(&mut self, conn: ConnId, left: Left) {
        let keys = left.keys();
        if keys == 0 {
            return;
        }
        self.tasks.releases.keys += keys;
        self.tasks.releases.queue.push_back((conn, left));
        if let Some(session) = self.session_mut(conn) {
            session.keys_left += keys;
        }
    }

    /// Whether a command would leave more keys than its client may now.
    pub(crate) fn leaves_too_much(&self, session: &Session, spec: &CommandSpec, n: usize) -> bool {
        let leaves_keys =
            spec.traits.contains(Traits::WATCHES) || matches!(spec.handler, Handler::Blocking(..));
        leaves_keys && !self.tasks.releases.admits(session.keys_left, may_leave(session, n))
    }

    /// The session waits until it may leave more keys.
    pub(crate) fn await_releases(&mut self, caller: &Caller, n: usize) {
        let s = caller.session(self);
        s.end_turn();
        s.suspend(Suspended::Releasing);
        let more = may_leave(s, n);
        self.tasks.releases.waiting.push((caller.conn(), more));
    }

    /// Releases so many keys; behind the gate that is tried again.
    fn release_some(&mut self, access: &mut Access) {
        if !access.enter() {
            return self.tasks.retries.put_off(Work::Releases, self.turn.now());
        }
        let mut budget = RELEASES_PER_TURN;
        // Behind a long holder the next client's are looked at, each once.
        let mut held = 0;
        while budget > 0
            && held < self.tasks.releases.queue.len()
            && let Some((conn, mut left)) = self.tasks.releases.queue.pop_front()
        {
            let before = left.keys();
            let released = self.release_at_once(access, &mut left, budget.min(KEYS_AT_ONCE));
            let count = before - left.keys();
            // A look that finds its key held costs as much as a release.
            budget -= count.max(usize::from(released.is_err()));
            self.tasks.releases.keys -= count;
            if let Some(session) = self.session_mut(conn) {
                session.keys_left -= count;
            }
            held = if released.is_ok() { 0 } else { held + 1 };
            if left.keys() > 0 {
                self.tasks.releases.queue.push_back((conn, left));
            }
        }
        if held > 0 {
            self.tasks.retries.put_off(Work::Releases, self.turn.now());
        }
        access.leave();
    }

    /// Releases up to so many keys of one client.
    fn release_at_once(
        &mut self,
        access: &mut Access,
        left: &mut Left,
        count: usize,
    ) -> Result<(), Parked> {
        let keyspace = Arc::clone(&self.shared.keyspace);
        for _ in 0..count {
            match left {
                Left::Watches(watches) => {
                    let Some((watched, cell)) = watches.first() else { break };
                    let key = keyspace.key(&watched.key);
                    let mut guard = access.lock_one(key.slot, self.turn.unix_ms(), Intent::Read)?;
                    guard.unwatch(watched.db, &key, cell);
                    drop(guard);
                    watches.pop();
                }
                Left::Ticket(ticket, done) => {
                    let Some(bytes) = ticket.keys.get(*done) else { break };
                    let slot = keyspace.key(bytes).slot;
                    let mut guard = access.lock_one(slot, self.turn.unix_ms(), Intent::Read)?;
                    guard.remove_ticket(ticket, bytes);
                    *done += 1;
                }
            }
        }
        Ok(())
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Releases a turn's part of what clients have left at keys, and lets those go on that waited
    /// for it.
    pub(crate) fn release_keys(&mut self) {
        if self.core.tasks.releases.is_empty() && self.core.tasks.releases.waiting.is_empty() {
            return;
        }
        self.core.release_some(&mut self.access);
        for (conn, more) in std::mem::take(&mut self.core.tasks.releases.waiting) {
            let session = self.core.session_mut(conn);
            let Some(s) = session.filter(|s| matches!(s.suspended, Suspended::Releasing)) else {
                continue; // the client is gone
            };
            let left = s.keys_left;
            if self.core.tasks.releases.admits(left, more) {
                self.wake(conn);
            } else {
                self.core.tasks.releases.waiting.push((conn, more));
            }
        }
    }
}

/// How many keys a session leaves at once if its next request has so many words.
fn may_leave(session: &Session, words: usize) -> usize {
    session.watched.len() + words
}
