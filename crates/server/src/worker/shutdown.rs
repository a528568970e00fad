//! The end of a worker: replies of executed commands leave, at most for a second; unread input is
//! dropped.

use super::Worker;
use crate::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, ListenerId};

/// How long a shutdown waits for clients to take their replies.
const FLUSH_LIMIT_NS: u64 = 1_000_000_000;

/// How far a worker has come with ending.
pub struct Shutdown {
    /// What it accepts on until then.
    listeners: Vec<ListenerId>,
    /// Since when it accepts and executes nothing.
    since: Option<MonoNs>,
    is_done: bool,
}

impl Shutdown {
    /// None is under way.
    pub fn new(listeners: Vec<ListenerId>) -> Self {
        Self { listeners, since: None, is_done: false }
    }

    /// True once the worker executes nothing any more.
    pub fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// True when the worker has ended.
    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// The end of a turn while the server shuts down.
    pub(super) fn shut_down(&mut self) {
        let now = self.core.turn.now();
        if !self.core.shutdown.has_begun() {
            self.begin_shutdown();
        }
        let started = *self.core.shutdown.since.get_or_insert(now);
        if started == now {
            self.finish_ingest();
        }
        self.flush();
        let open: Vec<ConnId> = self.core.sessions.iter().flatten().map(|s| s.conn).collect();
        let late = now.since(started) > FLUSH_LIMIT_NS;
        if (open.is_empty() && self.ingest.is_empty()) || late {
            for conn in open {
                self.close_now(conn);
            }
            self.drop_ingest();
            self.core.retire();
            self.core.shutdown.is_done = true;
        }
    }

    /// Accepts and executes nothing from here on.
    fn begin_shutdown(&mut self) {
        for listener in std::mem::take(&mut self.core.shutdown.listeners) {
            self.driver.close_listener(listener);
        }
        for s in self.core.sessions.iter_mut().flatten() {
            s.finish();
            self.driver.pause(s.conn);
            self.core.turn.closing.push(s.conn);
        }
    }
}
