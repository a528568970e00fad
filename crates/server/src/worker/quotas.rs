//! Shares of a worker's time: a session whose share is used up stops, and goes on in a later turn.
//!
//! What is charged are clock readings that exist anyway: a command that is timed by itself, and a
//! window of commands of the short path which took `NOTED_NS` or more. The command that used up
//! the share is executed; what its session has sent behind it goes back to the driver, as behind a
//! command that waits, and the session waits among `left`.
//!
//! Before each wait [`Worker::continue_left`] lets the first of them go on that owes nothing: one
//! in a turn, as one long command does a step in a turn. A round gives each of them a share. While
//! other clients have work there is one round a turn at most, so whoever owes much waits for some
//! turns. If they have none, nobody waits for the debts: rounds follow at once.

use crate::execute::window::Window;
use crate::sessions::quota::SHARE_NS;
use crate::sessions::session::{Session, Suspended};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use driver::{ConnId, Driver};

/// Shares that are given before one wait. One session gets all that it may owe.
const SHARES_PER_TURN: usize = 1024;

impl Core {
    /// Charges a session with the time of a command, which may have written its reply. The session
    /// stops if nothing of its share is left.
    #[inline]
    pub(crate) fn charge(&mut self, session: u32, ns: u64, is_answered: bool) {
        let (turn, tracks) = (self.turn.now(), self.settings.latency_tracking);
        let Some(s) = self.sessions[session as usize].as_deref_mut() else { return };
        if is_answered & tracks {
            s.unanswered.add_done(1);
        }
        if s.quota.charge(turn, ns) {
            self.stop_if_spent(session);
        }
    }

    /// Charges the sessions of a window's commands of the short path. What was not timed by itself
    /// took `ns` altogether; each command of the window has a part of that. (It is not known which
    /// of them took long. None does by itself, so whoever had bad luck pays no more than a share.)
    pub(crate) fn charge_window(&mut self, window: &Window, ns: u64) {
        let each = ns.min(SHARE_NS) / window.commands.len().max(1) as u64;
        for run in window.commands.chunk_by(|a, b| a.session == b.session) {
            let (session, turn) = (run[0].session, self.turn.now());
            let short = run.iter().filter(|c| self.batch.is_on_short_path(c)).count() as u64;
            let Some(s) = self.sessions[session as usize].as_deref_mut() else { continue };
            if short > 0 && s.quota.charge(turn, each * short) && self.stop_if_spent(session) {
                let last = window.commands.iter().rfind(|c| c.session == session);
                self.stop_at(session, last.map_or(0, |c| c.end as usize));
            }
        }
    }

    /// Stops a session that runs and has nothing left, unless it is the only one of its worker:
    /// then nobody waits. True if it stops.
    #[cold]
    fn stop_if_spent(&mut self, session: u32) -> bool {
        let is_alone = self.is_alone();
        let Some(s) = self.sessions[session as usize].as_deref_mut() else { return false };
        if is_alone {
            s.quota.restore();
        }
        if s.is_stopped() || !s.quota.is_spent() {
            return false;
        }
        s.suspend(Suspended::Spent);
        self.quotas.add(s.conn);
        true
    }

    /// True if no other client could wait.
    fn is_alone(&self) -> bool {
        self.counters().connections.load(Relaxed) <= 1 && self.shared.ingest.of_worker(self.id) == 0
    }

    /// True if this turn had input of sessions that do not wait among `left`, or some of them is in
    /// the middle of a long command.
    fn had_others(&mut self) -> bool {
        let added = std::mem::take(&mut self.quotas.added);
        let (inputs, now) = (self.turn.inputs() as usize, self.turn.now());
        let resumed = self.quotas.resumed.take().and_then(|conn| self.session_mut(conn));
        let ran =
            |s: &mut Session| !matches!(s.suspended, Suspended::Spent) && s.last_active == now;
        let had_inputs = inputs > added + usize::from(resumed.is_some_and(ran));
        had_inputs || !self.tasks.runnable.is_empty()
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// The end of a turn that leaves sessions without a share: gives shares in rounds until one of
    /// them may go on, in the next turn. Returns until when the worker may wait, which is not at
    /// all while some of them are left.
    #[cold]
    #[inline(never)]
    pub(super) fn continue_left(&mut self, until: Option<MonoNs>) -> Option<MonoNs> {
        let round = self.core.quotas.left.len();
        let shares = if self.core.had_others() { round } else { SHARES_PER_TURN };
        let is_alone = self.core.is_alone();
        for _ in 0..shares.min(SHARES_PER_TURN) {
            let Some(conn) = self.core.quotas.left.pop_front() else { break };
            let Some(s) = self.core.session_mut(conn) else { continue };
            if s.quota.pay() || is_alone {
                self.core.quotas.resumed = Some(conn);
                self.wake(conn);
                break;
            }
            self.core.quotas.left.push_back(conn);
        }
        if self.core.quotas.is_empty() { until } else { Some(self.core.turn.now()) }
    }

    /// A long command of this session has ended, so it goes on, at once if it owes nothing.
    pub(super) fn wake_in_turn(&mut self, conn: ConnId) {
        let is_alone = self.core.is_alone();
        match self.core.session_mut(conn) {
            Some(s) if s.quota.is_spent() && !is_alone && !s.close_after_reply => {
                s.suspend(Suspended::Spent);
                self.core.quotas.add(conn);
            }
            _ => self.wake(conn),
        }
    }
}
