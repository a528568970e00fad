//! A client moves to another worker: what it leaves, what goes with it, and how it arrives.
//!
//! ```text
//! worker that it leaves                          worker that it goes to
//!   expect(to), then look for a shutdown
//!   detach: socket and unread input
//!   card: on the way to `to`
//!   post Moved(session, connection)   ------->     attach; card: here, at this connection
//!                                                  killed meanwhile: close
//!                                                  the server ends: as the others
//!                                                  has_come
//! ```
//!
//! It moves between two turns, when nothing refers to it but its card (`Session::may_move`) and
//! its driver has nothing under way for it. So there is nothing to be lost but what it has sent and
//! the server has not read, which goes with it.
//!
//! **CLIENT KILL** marks the card, and then reads where the client is. The worker at which it
//! arrives writes that, and then reads the mark. Both go through the card's mutex, so one of them
//! sees the other: the message finds the client, or the client is closed when it arrives. A message
//! which finds that it has left goes after it.
//!
//! **Shutdown.** The worker that it leaves counts it at the other one, and then reads whether the
//! server ends; that worker sees that it ends, and then reads the count. All is sequentially
//! consistent, so either the client stays, or the other worker waits for it.

use crate::sessions::card::{Place, flag};
use crate::sessions::session::Suspended;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::load::{
    BUSY_PERIODS, Idle, LOOKED_MAX, STAY_NS, TRIES_MAX, WORTH_NS, WORTH_PERCENT, share_max,
};
use crate::worker::message::{Message, Moved};
use base::sync::Arc;
use base::sync::atomic::Ordering::{Relaxed, SeqCst};
use driver::{ConnId, Driver};
use std::cmp::Reverse;

/// With DEBUG MOVE-CLIENTS a worker hands on a client so often.
const FORCED_NS: u64 = 200_000;

impl Core {
    /// Ends a period and publishes how busy the worker was. Returns the worker that should take a
    /// client of this one, and how busy this one was.
    fn measure_load(&mut self, poll_ns: u64) -> Option<(Idle, u32)> {
        let processed = self.counters().processed.get();
        let executes = processed != self.load.processed || !self.tasks.runnable.is_empty();
        let is_active = executes || self.has_other_work();
        let Some(percent) = self.load.measure(self.turn.now(), poll_ns, is_active) else {
            self.timers.is_busy = true; // a period has begun, and must end
            return None;
        };
        self.load.processed = processed;
        self.shared.loads.publish(self.id, percent);
        self.timers.is_busy |= executes && percent > 0; // a further period shows when it is idle
        if self.load.busy_periods < BUSY_PERIODS {
            return None;
        }
        let idle = self.shared.loads.idle_other(self.id);
        self.load.is_noted &= idle.is_some();
        idle.map(|idle| (idle, percent))
    }

    /// True if the worker may be busy although it executes no commands.
    fn has_other_work(&self) -> bool {
        self.shared.ingest.of_worker(self.id) > 0
            || self.tasks.are_ready()
            || self.tasks.journal.is_some()
            || self.tasks.loading.is_some()
            || self.tasks.saving.running.is_some()
            || self.timers.expires_more
            || self.tending.step_at.is_some()
    }

    /// The clients that could go there, the heaviest first. In every second period their weights
    /// are noted, in the others compared with that.
    fn heaviest(&mut self, idle: Idle, busy: u32) -> Vec<ConnId> {
        let now = self.turn.now();
        let places = self.sessions.len();
        let end = places.min(self.load.from + LOOKED_MAX);
        let looked = &mut self.sessions[self.load.from.min(end)..end];
        if !std::mem::replace(&mut self.load.is_noted, true) {
            looked.iter_mut().flatten().for_each(|s| s.weighed = s.weight());
            return Vec::new();
        }
        self.load.is_noted = false;
        self.load.from = if end == places { 0 } else { end };
        let weights = looked.iter().flatten().map(|s| (s.weight().wrapping_sub(s.weighed), s));
        let all: u64 = weights.clone().map(|(weight, _)| weight).sum();
        let most = all / 100 * share_max(busy, idle.busy);
        let least = WORTH_NS.max(all / 100 * WORTH_PERCENT);
        let fits = |weight: u64| weight <= most && weight > least;
        let may =
            weights.filter(|(weight, s)| fits(*weight) && s.may_move() && now >= s.stays_until);
        let mut found: Vec<(u64, ConnId)> = may.map(|(weight, s)| (weight, s.conn)).collect();
        found.sort_unstable_by_key(|(weight, _)| Reverse(*weight));
        found.into_iter().take(TRIES_MAX).map(|(_, conn)| conn).collect()
    }

    /// The next client that may move, for DEBUG MOVE-CLIENTS.
    fn next_movable(&mut self) -> Option<ConnId> {
        let looked = self.sessions.iter().skip(self.load.from).take(LOOKED_MAX);
        let found = looked.flatten().find(|s| s.may_move()).map(|s| s.conn);
        self.load.from = match found {
            Some(conn) => conn.index as usize + 1,
            None if self.load.from + LOOKED_MAX < self.sessions.len() => {
                self.load.from + LOOKED_MAX
            }
            None => 0,
        };
        found
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Measures how busy the worker is, and hands a client over if that is better. Called by
    /// housekeeping.
    pub(super) fn tend_load(&mut self) {
        let shared = Arc::clone(&self.core.shared);
        if shared.workers.len() < 2 || self.core.shutdown.has_begun() {
            return;
        }
        if shared.loads.is_forced.load(Relaxed) {
            return self.hand_on();
        }
        let poll_ns = self.driver.stats().poll_ns;
        let Some((idle, busy)) = self.core.measure_load(poll_ns) else { return };
        let heaviest = self.core.heaviest(idle, busy);
        if heaviest.is_empty() || !shared.loads.claim(idle) {
            return;
        }
        self.flush();
        if heaviest.into_iter().any(|conn| self.hand_over(conn, idle.worker)) {
            self.core.load.restart(self.core.turn.now(), poll_ns);
        } else {
            shared.loads.release(idle);
        }
    }

    /// DEBUG MOVE-CLIENTS.
    fn hand_on(&mut self) {
        self.core.timers.is_busy = true;
        self.core.timers.housekeeping_at = self.core.turn.now().plus(FORCED_NS);
        self.flush();
        if let Some(conn) = self.core.next_movable() {
            let next = (self.core.id + 1) % self.core.shared.workers.len();
            self.hand_over(conn, next);
        }
    }

    /// Hands a client over. False if it has to stay.
    fn hand_over(&mut self, conn: ConnId, to: usize) -> bool {
        if self.core.session_mut(conn).is_none_or(|s| !s.may_move()) {
            return false;
        }
        let shared = Arc::clone(&self.core.shared);
        shared.loads.expect(to);
        let detached =
            if shared.shutting_down.load(SeqCst) { None } else { self.driver.detach(conn) };
        let session = detached.and_then(|connection| {
            Some(Moved { session: self.core.sessions[conn.index as usize].take()?, connection })
        });
        let Some(mut moved) = session else {
            shared.loads.has_come(to);
            return false;
        };
        if matches!(moved.session.suspended, Suspended::Spent) {
            self.core.quotas.remove(conn);
            moved.session.wake();
        }
        self.core.counters().connections.fetch_sub(1, Relaxed);
        shared.workers[to].connections.fetch_add(1, Relaxed);
        moved.session.card.set_place(Place::on_the_way(to));
        shared.post(to, Message::Moved(Box::new(moved)));
        true
    }

    /// A client of another worker arrives.
    pub(crate) fn on_moved(&mut self, moved: Moved) {
        self.core.follow();
        let Moved { mut session, connection } = moved;
        let (now, poll_ns) = (self.core.turn.now(), self.driver.stats().poll_ns);
        let conn = self.driver.attach(connection);
        session.arrive(conn, &self.core.counters().client_memory);
        session.stays_until = now.plus(STAY_NS);
        let card = session.card.clone();
        card.set_place(Place { worker: self.core.id, conn });
        self.core.insert_session(session);
        self.core.counters().moved_clients.add(1);
        self.core.load.restart(now, poll_ns);
        self.core.timers.is_busy = true;
        self.core.shared.loads.has_come(self.core.id);
        if card.has_flag(flag::CLOSE_ASAP) {
            self.core.stop_condemned();
            self.close_now(conn);
        } else if self.core.shutdown.has_begun() {
            self.end_session(conn);
        }
    }
}
