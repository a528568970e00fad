//! Service time: from the receive that completed a request to the send that took the last byte of
//! its reply. `docs/design/0026-service-time.md` says what counts from when.
//!
//! A receive has the time at which its turn began, which the driver has read. The replies of a
//! flush share one reading, after its sends. So a request costs no clock reading; most of the work
//! is done once for all requests of a session and turn (`sessions/unanswered.rs`).

use crate::sessions::output::Segment;
use crate::sessions::unanswered::Answers;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver};

impl Core {
    /// A request of this session has ended, and wrote its reply.
    #[inline]
    pub(crate) fn note_done(&mut self, conn: ConnId) {
        if self.settings.latency_tracking
            && let Some(session) = self.session_mut(conn)
        {
            session.unanswered.add_done(1);
        }
    }

    /// Counts requests whose replies have left.
    #[inline]
    fn record_service(&mut self, count: u64, ns: u64) {
        self.shared.workers[self.id].service.record(count, ns);
        self.unfolded.record(self.turn.unix_ms().0, count, ns);
    }

    fn record_answers(&mut self, answers: Answers, sent: MonoNs) {
        if answers.count > 0 {
            self.record_service(answers.count.into(), sent.since(answers.received));
        }
    }

    /// `latency-tracking` was changed: what has begun is not counted.
    #[cold]
    pub(crate) fn forget_unanswered(&mut self) {
        self.sessions.iter_mut().flatten().for_each(|s| s.unanswered.forget());
    }

    /// Adds what was recorded since the last call to the heat map, which all workers share.
    pub(crate) fn fold_service(&mut self) {
        self.shared.heat.fold(&mut self.unfolded);
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// These segments were given to the driver, and it has sent what it could.
    pub(crate) fn count_answered(&mut self, segments: &[Segment]) {
        let turn = self.core.turn.now();
        let (mut fresh, mut are_all) = (0, true);
        for s in segments {
            let Some(session) = self.core.sessions[s.session as usize].as_deref_mut() else {
                continue;
            };
            match session.unanswered.take_fresh(turn) {
                Some(count) if !session.output_blocked => fresh += u64::from(count),
                Some(count) => {
                    session.unanswered.add_done(count);
                    are_all = false;
                }
                None => are_all = false,
            }
        }
        if !are_all {
            self.count_others(segments);
        }
        if fresh > 0 {
            let ns = self.core.clock.now().since(turn);
            self.core.record_service(fresh, ns);
        }
    }

    /// Counts requests which came in earlier turns, and notes those whose replies did not leave
    /// completely.
    #[cold]
    fn count_others(&mut self, segments: &[Segment]) {
        let sent = self.core.clock.now();
        for s in segments {
            let Some(session) = self.core.sessions[s.session as usize].as_deref_mut() else {
                continue;
            };
            let done = session.unanswered.take_done();
            session.unanswered.leave(done);
            if self.driver.backlog(session.conn) == 0 {
                let left = session.unanswered.take_left();
                for answers in left {
                    self.core.record_answers(answers, sent);
                }
            }
        }
    }

    /// Everything that a session's client had not read has left.
    pub(crate) fn count_drained(&mut self, conn: ConnId) {
        let Some(session) = self.core.session_mut(conn) else { return };
        let left = session.unanswered.take_left();
        if !left.is_empty() && self.core.settings.latency_tracking {
            let sent = self.core.clock.now();
            for answers in left {
                self.core.record_answers(answers, sent);
            }
        }
    }
}
