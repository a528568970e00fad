//! WAITAOF: a session waits until what it has written is synced. Here also wake those which wait
//! for a disk that fails (`disk.rs`).
//!
//! The number of a session's last change is [`Session::wrote`]. The writer of the append-only file
//! publishes up to where it has synced (`persist/journal/status.rs`). It wakes the workers only if
//! somebody waits for that, so it costs nothing otherwise.
//!
//! [`Session::wrote`]: crate::sessions::session::Session::wrote

use crate::execute::blocked::{caller_of, request_of};
use crate::execute::caller::Caller;
use crate::execute::waiting::reply_nothing;
use crate::persist::journal::status::DiskState;
use crate::sessions::session::{Blocked, Suspended};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::SeqNo;
use base::sync::atomic::Ordering::Relaxed;
use command::Error;
use command::spec::AtOnce;
use driver::{ConnId, Driver};
use keyspace::Guard;

/// The number of those that wait for more than a sync, which is never synced.
const NEVER: SeqNo = SeqNo(u64::MAX);

impl Core {
    /// True if everything that the session has written is synced.
    pub(super) fn is_synced(&self, conn: ConnId) -> bool {
        let session = self.sessions.get(conn.index as usize).and_then(Option::as_deref);
        let wrote = session.filter(|s| s.conn == conn).map(|s| s.wrote);
        self.settings.appendonly && wrote.is_some_and(|wrote| self.shared.journal.is_synced(wrote))
    }

    /// As [`Core::is_synced`], for a reply which is written under these locks. What a transaction
    /// has changed so far is synced before its reply leaves, or it is not.
    pub(super) fn shows_as_synced(&self, guard: &Guard<'_>, caller: &Caller) -> bool {
        let is_held = self.shared.journal.holds_replies.load(Relaxed);
        self.is_synced(caller.conn()) && (is_held || !guard.has_unnumbered())
    }

    /// True if the command waits for nothing but a sync, and that has been.
    ///
    /// # Errors
    /// [`Error::WaitLocalOff`].
    pub(super) fn is_over(
        &self,
        guard: &Guard<'_>,
        caller: &Caller,
        at_once: AtOnce,
    ) -> Result<bool, Error> {
        let AtOnce::Synced { asks, ends } = at_once else { return Ok(false) };
        if asks && !self.settings.appendonly {
            return Err(Error::WaitLocalOff);
        }
        Ok(ends && self.shows_as_synced(guard, caller))
    }

    /// The session begins to wait with this ticket. Returns for which number, if the append-only
    /// file concerns it.
    pub(super) fn list_sync(&mut self, caller: &Caller, at_once: AtOnce, id: u64) -> Option<SeqNo> {
        let AtOnce::Synced { asks: true, ends } = at_once else { return None };
        let number = if ends { caller.session(self).wrote } else { NEVER };
        // Whether it is synced meanwhile is looked at in the end of this turn.
        self.tasks.waiting.syncs.insert((number, id, caller.conn().index));
        Some(number)
    }

    /// The next of those that wait which can be answered.
    fn next_sync(&mut self) -> Option<(u64, u32)> {
        let &(number, id, place) = self.tasks.waiting.syncs.first()?;
        if self.settings.appendonly && self.shared.journal.must_await(number) {
            return None;
        }
        self.tasks.waiting.syncs.pop_first();
        Some((id, place))
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Answers sessions in WAITAOF whose writes are synced; and all, if there is no append-only
    /// file any more.
    #[inline]
    pub(crate) fn end_syncs(&mut self) {
        if !self.core.tasks.waiting.syncs.is_empty() {
            self.end_some_syncs();
        }
    }

    #[cold]
    fn end_some_syncs(&mut self) {
        while let Some((id, place)) = self.core.next_sync() {
            let Some(s) = self.core.sessions.get(place as usize).and_then(Option::as_deref) else {
                continue;
            };
            let conn = s.conn;
            let is_its = |b: &Blocked| b.ticket.id == id && b.ticket.claim();
            if matches!(&s.suspended, Suspended::Blocked(b) if is_its(b))
                && let Some(blocked) = self.core.unblock(conn)
            {
                self.answer_synced(conn, &blocked);
            }
        }
    }

    fn answer_synced(&mut self, conn: ConnId, blocked: &Blocked) {
        let caller = caller_of(&blocked.ticket);
        let (is_on, at_once) =
            (self.core.settings.appendonly, request_of(&blocked.ticket).wait.at_once);
        self.core.record_unblocked(caller, blocked, 0, 0, !is_on);
        self.answer(conn, |core, out| {
            let mut reply = caller.reply(out);
            if is_on {
                reply_nothing(&mut reply, at_once, true, true);
            } else {
                let text = Error::WaitLocalOff.text();
                core.counters().errors.count(&text);
                reply.error_bytes(&text);
            }
        });
    }

    /// Wakes sessions that wait for the disk, if anything has changed.
    #[inline]
    pub(crate) fn end_disk_waits(&mut self) {
        if let Some(seen) = self.core.tasks.disk {
            self.end_disk_waits_since(seen);
        }
    }

    #[cold]
    fn end_disk_waits_since(&mut self, seen: DiskState) {
        if self.core.disk_state() != seen {
            self.core.tasks.disk = None;
            // They run by the rules of the next turn.
            self.core.refresh_gates();
            self.wake_where(|s| matches!(s, Suspended::Disk));
        }
    }
}
