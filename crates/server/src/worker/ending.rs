//! The end of a worker: what is executed is written and answered first. `shutdown.rs` has the
//! stages.

use crate::sessions::session::Suspended;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::tasks::FileUser;
use base::sync::Arc;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use driver::{ConnId, Driver};

const S: u64 = 1_000_000_000;
/// How long a shutdown waits for clients to take their replies.
const FLUSH_LIMIT_NS: u64 = S;
/// How long it waits at least while nothing of the append-only file becomes durable. (Redis waits
/// as long as the disk takes.)
const JOURNAL_LIMIT_NS: u64 = 60 * S;

impl Core {
    /// `shutdown-timeout`, at least so long.
    fn shutdown_timeout_ns(&self, least_ns: u64) -> u64 {
        least_ns.max(self.settings.shutdown_timeout_s.saturating_mul(S))
    }

    /// The server ends, and the append-only file may yet become durable.
    pub(crate) fn awaits_journal(&self) -> bool {
        let status = &self.shared.journal;
        self.shutdown.has_begun() && status.is_on() && !status.is_over()
    }

    /// What goes on in steps has a second; then nothing is changed any more.
    fn fall_still(&mut self, late: bool) {
        let goes_on = |why: &Suspended| {
            matches!(why, Suspended::Task(_) | Suspended::TaskParked(_) | Suspended::Migrating)
        };
        let is_busy = self.sessions.iter().flatten().any(|s| goes_on(&s.suspended));
        if !self.shutdown.is_still && (late || !is_busy) {
            self.shutdown.is_still = true;
            self.shared.stopped_workers.fetch_add(1, Release);
        }
    }

    /// At worker 0: whether the append-only file is written as a whole, or given up.
    fn end_journal_wait(&mut self) {
        let shared = Arc::clone(&self.shared);
        let limit_ns = self.shutdown_timeout_ns(JOURNAL_LIMIT_NS);
        let awaits_journal = self.awaits_journal();
        let Some(journal) = self.tasks.journal.as_mut().filter(|_| awaits_journal) else { return };
        let are_still = shared.stopped_workers.load(Acquire) >= shared.workers.len();
        let (durable, now) = (journal.writer.durable(), self.turn.now());
        let has_all = journal.may_end(shared.keyspace.journal());
        // Once more it is looked whether the file is there: nobody notices it behind the end.
        if are_still && has_all && !std::mem::replace(&mut self.shutdown.has_looked, true) {
            let look = journal.writer.look().map(|op| (FileUser::JournalLook, op));
            self.tasks.file_ops.extend(look);
        }
        let is_written = are_still && has_all && !journal.writer.is_looking();
        let before = self.shutdown.durable.filter(|(before, _)| are_still && *before == durable);
        let (_, since) = *self.shutdown.durable.insert(before.unwrap_or((durable, now)));
        let is_late = now.since(since) > limit_ns;
        // Files that are gone are not made anew any more. A second SIGINT waits for nothing.
        let is_vain = journal.writer.is_lost() || shared.saves.was_cut_short.load(Relaxed);
        if is_written || is_late || are_still && is_vain {
            shared.journal.end(is_written, journal.writer.is_lost());
        }
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Replies of executed commands leave: those which are held when what they show is durable, the
    /// others at most for a second. Unread input is dropped.
    pub(crate) fn shut_down(&mut self) {
        let now = self.core.turn.now();
        let begins = !self.core.shutdown.has_begun();
        if begins {
            self.begin_shutdown();
        }
        let started = *self.core.shutdown.since.get_or_insert(now);
        if begins {
            self.core.shutdown.held_at = now;
            self.cancel_loading();
            self.finish_ingest();
            self.core.tasks.saving.forget_claimed();
            self.core.stop_save("the server ends");
        }
        self.core.fall_still(now.since(started) > FLUSH_LIMIT_NS);
        self.core.end_journal_wait();
        // Read before the flush: what was durable then has released its replies.
        let awaits_journal = self.core.awaits_journal();
        self.flush();
        if awaits_journal && !(self.core.holding.is_empty() && self.ingest.holding.is_empty()) {
            self.core.shutdown.held_at = now;
        }
        let late = now.since(self.core.shutdown.held_at) > FLUSH_LIMIT_NS;
        let open: Vec<ConnId> = self.core.sessions.iter().flatten().map(|s| s.conn).collect();
        let tasks = &self.core.tasks;
        let is_writing = tasks.rewriting.is_some() || tasks.saving.running.is_some();
        let is_flushed = open.is_empty() && self.ingest.is_empty() && !is_writing;
        let has_journal = awaits_journal && tasks.journal.is_some();
        let awaits_client = self.core.shared.loads.expects_any(self.core.id);
        if (is_flushed || late) && !has_journal && !awaits_client {
            for conn in open {
                self.close_now(conn);
            }
            self.close_all_ingest();
            self.core.retire();
            self.core.shutdown.is_done = true;
        }
    }

    /// Accepts and executes nothing from here on.
    fn begin_shutdown(&mut self) {
        for listener in std::mem::take(&mut self.core.shutdown.listeners) {
            self.driver.close_listener(listener);
        }
        let open: Vec<ConnId> = self.core.sessions.iter().flatten().map(|s| s.conn).collect();
        for conn in open {
            self.end_session(conn);
        }
    }

    /// A session executes nothing more, and is closed once its replies have left.
    pub(super) fn end_session(&mut self, conn: ConnId) {
        if let Some(s) = self.core.session_mut(conn) {
            s.finish();
            self.driver.pause(conn);
            self.core.turn.closing.push(conn);
        }
    }

    /// Closes clients which have left and whose replies are held for too long.
    pub(crate) fn end_leavers(&mut self) {
        if self.core.turn.closing.is_empty() || self.core.shutdown.has_begun() {
            return;
        }
        let (now, limit_ns) = (self.core.turn.now(), self.core.shutdown_timeout_ns(S));
        for conn in self.core.turn.closing.clone() {
            let outbox = self.core.session_mut(conn).and_then(|s| s.outbox.as_deref());
            let since = outbox.and_then(|outbox| outbox.leaves_since);
            if since.is_some_and(|since| now.since(since) > limit_ns) {
                self.core.turn.closing.retain(|other| *other != conn);
                self.close_now(conn);
            }
        }
    }
}
