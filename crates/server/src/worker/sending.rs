//! The end of a turn: replies leave, one send for each session, and sessions that are done close.

use crate::sessions::session::Session;
use crate::worker::Worker;
use crate::worker::message::Message;
use driver::Driver;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Hands every segment to the driver: one send per session.
    pub(crate) fn flush(&mut self) {
        let (_, out) = self.driver.io();
        self.core.turn.output.close(out);
        if self.core.turn.output.take_held() || !self.core.holding.is_empty() {
            return self.flush_held();
        }
        if !(self.core.turn.output.segments.is_empty() && self.core.turn.closing.is_empty()) {
            self.send_segments();
        }
    }

    /// Sends the segments, and closes the sessions which have ended.
    pub(crate) fn send_segments(&mut self) {
        let segments = std::mem::take(&mut self.core.turn.output.segments);
        for s in &segments {
            let Some(session) = self.core.sessions[s.session as usize].as_deref_mut() else {
                continue;
            };
            let conn = session.conn;
            session.handed += s.len(self.driver.io().1) as u64;
            let backlog = self.driver.send(conn, s.to_driver());
            session.note_sent(backlog);
            if backlog > 0 {
                self.on_unsent(conn);
            }
        }
        self.driver.flush_output();
        while let Some((conn, _)) = self.driver.next_backlogged() {
            self.on_unsent(conn);
        }
        if self.core.settings.latency_tracking {
            self.count_answered(&segments);
        }
        self.core.turn.output.segments = segments;
        self.core.turn.output.segments.clear();
        if !self.core.turn.closing.is_empty() {
            self.close_sent();
        }
    }

    /// Closes the sessions which have ended, as far as nothing holds their replies.
    #[cold]
    fn close_sent(&mut self) {
        let now = self.core.turn.now();
        for conn in std::mem::take(&mut self.core.turn.closing) {
            let waits = |s: &mut Session| {
                if let Some(outbox) = &mut s.outbox {
                    outbox.leaves_since.get_or_insert(now);
                }
                s.outbox.is_some() || s.has_parked_reply()
            };
            if self.core.session_mut(conn).is_some_and(waits) {
                // Closed once its held replies have left, or by `end_leavers`.
                self.core.turn.closing.push(conn);
                self.core.timers.is_busy = true;
            } else {
                self.driver.close_after_flush(conn);
            }
        }
    }
}
