//! Releases: watches, and tickets of waits which are over, are removed from their slots in later
//! turns, one slot at a time, a bounded number per turn, client by client.
//!
//! A client may leave more only when most of its keys are released. So the queue is bounded: by
//! `LEFT_KEYS_MAX` and one request for each client, by `LEFT_WORKER_KEYS_MAX` and small requests
//! for all (`left`).

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

/// Keys of a client which are released before those of the next one.
const KEYS_AT_ONCE: usize = 64;

impl Core {
    /// Queues watches, to be removed from their slots.
    pub(crate) fn release_watches(&mut self, conn: ConnId, watches: Watches) {
        self.queue_release(conn, Left::Watches(watches));
    }

    /// Queues a ticket, to be removed from the queues of its keys.
    pub(crate) fn release_ticket(&mut self, conn: ConnId, ticket: Arc<Ticket>) {
        self.queue_release(conn, Left::Ticket(ticket, 0));
    }

    pub(crate) fn queue_release(&mut self, conn: ConnId, left: Left) {
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

    /// Whether a command must wait because it would leave more keys than its client may now.
    pub(crate) fn must_await_releases(
        &self,
        session: &Session,
        spec: &CommandSpec,
        n: usize,
    ) -> bool {
        let leaves_keys =
            spec.traits.contains(Traits::WATCHES) || matches!(spec.handler, Handler::Blocking(..));
        leaves_keys && !self.tasks.releases.admits(session.keys_left, keys_left_by(session, n))
    }

    /// The session waits until it may leave more keys.
    pub(crate) fn await_releases(&mut self, caller: &Caller, n: usize) {
        let s = caller.session(self);
        s.end_turn();
        s.suspend(Suspended::Releasing);
        let more = keys_left_by(s, n);
        self.tasks.releases.waiting.push((caller.conn(), more));
    }

    /// Releases a turn's part of the keys. If the gate is closed, that is retried later.
    fn release_some(&mut self, access: &mut Access) {
        if !access.enter() {
            return self.tasks.retries.postpone(Work::Releases, self.turn.now());
        }
        let mut budget = RELEASES_PER_TURN;
        // If a slot is held for long, the next client's keys are tried, each client once.
        let mut held = 0;
        while budget > 0
            && held < self.tasks.releases.queue.len()
            && let Some((conn, mut left)) = self.tasks.releases.queue.pop_front()
        {
            let before = left.keys();
            let released = self.release_at_once(access, conn, &mut left, budget.min(KEYS_AT_ONCE));
            let count = before - left.keys();
            // An attempt which finds its slot held costs as much as a release.
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
            self.tasks.retries.postpone(Work::Releases, self.turn.now());
        }
        access.leave();
    }

    /// Releases up to so many keys of one client.
    fn release_at_once(
        &mut self,
        access: &mut Access,
        conn: ConnId,
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
                Left::Subscriptions(all) => self.release_some_subscriptions(conn, all, 1),
            }
        }
        Ok(())
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Releases a turn's part of the keys, and wakes sessions which waited for that.
    pub(crate) fn release_keys(&mut self) {
        if self.core.tasks.releases.is_empty() && self.core.tasks.releases.waiting.is_empty() {
            return;
        }
        self.core.release_some(&mut self.access);
        for (conn, more) in std::mem::take(&mut self.core.tasks.releases.waiting) {
            let session = self.core.session_mut(conn);
            let Some(s) = session.filter(|s| matches!(s.suspended, Suspended::Releasing)) else {
                continue; // the client was closed
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

/// The most keys which a session leaves at once if its next request has so many words.
fn keys_left_by(session: &Session, words: usize) -> usize {
    session.watched.len() + words
}
