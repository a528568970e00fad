//! Blocking commands: a session waits, with a ticket in the queues of its keys; whoever fills one
//! of them serves it.

use crate::execute::blocked::{BlockedRequest, args_of, caller_of, request_of};
use crate::execute::caller::Caller;
use crate::execute::outcome::{Called, Outcome};
use crate::execute::request::Command;
use crate::execute::steps::run_through;
use crate::sessions::card::flag;
use crate::sessions::session;
use crate::sessions::session::{Blocked, ReplyMode, Session, Suspended, gate};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::{Message, Served};
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::spec::{AtOnce, TakeFn, Wait, WaitFn};
use command::{Done, Error, Full};
use driver::{ConnId, Driver};
use keyspace::{Guard, Ticket};
use resp::{Args, OutBuf, OutPos, OwnedRequest, Reply};

const MS: u64 = 1_000_000;
/// What a key in a queue takes beside its name, which stands in its ticket and in its slot.
const QUEUED_KEY_BYTES: u64 = 640;
/// A wait that takes no more than this begins though memory is full: who waits for few keys may
/// free some.
const SMALL_WAIT_BYTES: u64 = 16 << 10;
/// CLIENT UNBLOCK ERROR, in the words of Redis.
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

impl Core {
    /// Takes from the first key that has something; else the session waits. Inside EXEC nobody
    /// waits.
    pub(crate) fn call_blocking(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
        (wait, take): (WaitFn, TakeFn),
    ) -> Result<Called, Error> {
        let Command { caller, args, hashed, .. } = *command;
        self.arm(guard, self.running.id());
        let wait = wait(args)?;
        let full = Full::new(self.take_prepared(caller), hashed.all);
        let mut ctx = self.ctx(guard, out, caller, args, hashed.first).with_full(&full);
        let mut waits_as = None;
        for at in wait.keys.clone() {
            let mut taken = take(&mut ctx, &wait, at);
            if !caller.may_suspend {
                taken = run_through(&mut ctx, taken, |ctx| take(ctx, &wait, at));
            }
            match taken {
                Ok(Done::Nothing) => {}
                Ok(Done::NothingYet(args)) => waits_as = Some(*args),
                taken => {
                    self.store_prepared(caller, &taken, full.into_prepared());
                    return taken.map(Called::Left);
                }
            }
        }
        let is_over = self.is_over(guard, caller, wait.at_once)?;
        if is_over || !caller.may_suspend || wait.timeout_ms == Some(0) {
            let is_synced = self.shows_as_synced(guard, caller);
            reply_nothing(&mut caller.reply(out), wait.at_once, is_synced, false);
            return Ok(Outcome::Done.into());
        }
        let words = waits_as.unwrap_or_else(|| OwnedRequest::new(args));
        let in_queues = bytes_in_queues(words.args(), &wait);
        let is_large = words.memory() as u64 + in_queues > SMALL_WAIT_BYTES;
        if is_large && self.is_memory_full() {
            return Err(Error::OutOfMemory);
        }
        let words = session::HeldRequest::new(caller.session(self), words, in_queues);
        self.block(guard, BlockedRequest { caller: caller.waiting(self.id), words, wait, take });
        Ok(Outcome::Waiting.into())
    }

    fn block(&mut self, guard: &mut Guard<'_>, request: BlockedRequest) {
        let (caller, kind) = (request.caller, request.wait.kind);
        let args = request.words.args();
        let keys = request.wait.keys.clone().map(|at| args.get(at)).collect();
        let further = request.wait.further.map(|at| args.get(at).into());
        let timeout = request.wait.timeout_ms;
        let id = self.shared.next_ticket.fetch_add(1, Relaxed);
        let ends = request.wait.ends_without_key;
        let ticket = Ticket::new(id, kind, caller.db, keys, further, ends, Box::new(request));
        guard.add_ticket(&ticket);
        let until = timeout.map(|ms| self.turn.now().plus(ms.saturating_mul(MS)));
        if let Some(at) = until {
            self.tasks.waiting.timeouts.insert((at, id, caller.conn().index));
        }
        let synced = self.list_sync(&caller, request_of(&ticket).wait.at_once, id);
        self.shared.blocked.fetch_add(1, Relaxed);
        let s = caller.session(self);
        s.card.set_flag(
            if until.is_some() { flag::BLOCKED | flag::TIMED } else { flag::BLOCKED },
            true,
        );
        *s.card.ticket.lock().expect("no panic while a card is held") = Some(ticket.clone());
        s.suspend(Suspended::Blocked(Blocked { ticket, until, synced, ns: 0, request: 0 }));
    }

    /// The session waits no longer; its ticket, if it had one, leaves the queues soon.
    pub(crate) fn unblock(&mut self, conn: ConnId) -> Option<Blocked> {
        let s = self.session_mut(conn)?;
        if !matches!(s.suspended, Suspended::Blocked(_)) {
            return None;
        }
        let Suspended::Blocked(blocked) = std::mem::replace(&mut s.suspended, Suspended::No) else {
            return None;
        };
        s.card.set_flag(flag::BLOCKED | flag::TIMED, false);
        s.card.waiting_bytes.store(0, Relaxed);
        s.card.commands.add(1);
        *s.card.ticket.lock().expect("no panic while a card is held") = None;
        self.unlist(&blocked, conn);
        let now = self.turn.now();
        if let Some(s) = self.session_mut(conn) {
            s.unanswered.restart(now);
        }
        Some(blocked)
    }

    /// CLIENT PAUSE holds the session back until it ends; it counts as blocked.
    pub(crate) fn park_until_pause_ends(&mut self, caller: &Caller) {
        self.shared.blocked.fetch_add(1, Relaxed);
        let s = caller.session(self);
        s.card.set_flag(flag::BLOCKED, true);
        s.suspend(Suspended::Pause);
    }

    /// Wakes the session if a pause holds it back.
    pub(crate) fn end_pause_wait(&mut self, conn: ConnId) {
        let session = self.session_mut(conn).filter(|s| matches!(s.suspended, Suspended::Pause));
        let Some(session) = session else { return };
        session.card.set_flag(flag::BLOCKED, false);
        session.wake();
        self.shared.blocked.fetch_sub(1, Relaxed);
    }

    fn unlist(&mut self, blocked: &Blocked, conn: ConnId) {
        if let Some(at) = blocked.until {
            self.tasks.waiting.timeouts.remove(&(at, blocked.ticket.id, conn.index));
        }
        if let Some(number) = blocked.synced {
            self.tasks.waiting.syncs.remove(&(number, blocked.ticket.id, conn.index));
        }
        self.shared.blocked.fetch_sub(1, Relaxed);
        self.release_ticket(conn, blocked.ticket.clone());
    }

    /// A connection is gone: nobody needs to serve it.
    pub(crate) fn forget_blocked(&mut self, session: &mut Session) {
        if let Suspended::Blocked(blocked) = &session.suspended {
            blocked.ticket.claim();
            self.unlist(blocked, session.conn);
        }
        if matches!(session.suspended, Suspended::Pause) {
            self.shared.blocked.fetch_sub(1, Relaxed);
        }
    }

    /// CLIENT UNBLOCK: true if the client was blocked.
    pub(crate) fn unblock_client(&mut self, id: u64, with_error: bool) -> bool {
        let Some(card) = self.shared.registry.get(id) else { return false };
        let ticket = card.ticket.lock().expect("no panic while a card is held").clone();
        let Some(ticket) = ticket.filter(|ticket| ticket.claim()) else { return false };
        let place = card.place(); // a blocked client does not move
        let message = Message::Unblocked { conn: place.conn, ticket, with_error };
        self.shared.post(place.worker, message);
        true
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// True if the session still waits with this ticket.
    fn waits_with(&mut self, conn: ConnId, ticket: &Arc<Ticket>) -> bool {
        self.core.session_mut(conn).is_some_and(
            |s| matches!(&s.suspended, Suspended::Blocked(b) if Arc::ptr_eq(&b.ticket, ticket)),
        )
    }

    /// Somebody has served one of our blocked sessions.
    pub(crate) fn on_served(&mut self, served: Served) {
        let Served { conn, ticket, out, hold, ns, has_failed } = served;
        if self.waits_with(conn, &ticket)
            && let Some(blocked) = self.core.unblock(conn)
        {
            let reply = out.len_between(OutPos::default(), out.position());
            self.core.record_unblocked(caller_of(&ticket), &blocked, ns, reply, has_failed);
            self.core.note_served(conn);
            self.answer(conn, |core, own| {
                own.append(out);
                core.turn.output.hold_at(hold);
            });
            self.core.tell_late_reads(&ticket, conn);
        }
    }

    /// The command of one of our blocked sessions panicked when it was served: what it had taken is
    /// back.
    pub(crate) fn on_serving_panicked(&mut self, conn: ConnId, ticket: &Arc<Ticket>) {
        if !self.waits_with(conn, ticket) {
            return;
        }
        let id = command::lookup(args_of(ticket).get(0));
        if self.core.unblock(conn).is_some() {
            self.core.close_after_panic(conn, id);
        }
    }

    pub(crate) fn on_unblocked(&mut self, conn: ConnId, ticket: &Arc<Ticket>, with_error: bool) {
        if !self.waits_with(conn, ticket) {
            return;
        }
        let Some(blocked) = self.core.unblock(conn) else { return };
        let caller = caller_of(ticket);
        self.core.record_unblocked(caller, &blocked, 0, 0, with_error);
        let is_synced = self.core.is_synced(conn);
        self.answer(conn, |core, out| {
            let mut reply = caller.reply(out);
            if with_error {
                core.counters().errors.count(UNBLOCKED.as_bytes());
                reply.error(UNBLOCKED);
            } else {
                reply_nothing(&mut reply, at_once(ticket), is_synced, true);
            }
        });
    }

    /// Writes the reply of a blocked command, and lets its session go on.
    pub(crate) fn answer(&mut self, conn: ConnId, write: impl FnOnce(&mut Core, &mut OutBuf)) {
        let (_, out) = self.driver.io();
        let listens = |s: &mut Session| s.gates & gate::LISTENS != 0;
        if self.core.session_mut(conn).is_some_and(listens) {
            self.core.deliver_waiting(out, conn); // what came before a change that it shows
        }
        self.core.turn.output.open(conn.index, out);
        let mark = out.position();
        write(&mut self.core, out);
        if let Some(s) = self.core.session_mut(conn) {
            s.mute(mark, out);
        }
        self.end_answer(conn);
    }

    /// The reply of a command that has waited is written: its session goes on.
    pub(crate) fn end_answer(&mut self, conn: ConnId) {
        if let Some(s) = self.core.session_mut(conn) {
            let (seen, is_wanted) = (s.seen, s.reply_mode == ReplyMode::On);
            s.end_reply();
            self.core.turn.output.hold(seen);
            if is_wanted {
                self.core.note_done(conn);
            }
        }
        self.wake(conn);
        self.release_pushes(conn);
    }

    /// Sessions whose time is up.
    pub(crate) fn end_waits(&mut self) {
        while let Some(&(at, id, place)) = self.core.tasks.waiting.timeouts.first()
            && at <= self.core.turn.now()
        {
            self.core.tasks.waiting.timeouts.pop_first();
            let Some(s) = self.core.sessions.get(place as usize).and_then(Option::as_deref) else {
                continue;
            };
            let conn = s.conn;
            let is_due = matches!(&s.suspended, Suspended::Blocked(b) if b.ticket.id == id && b.ticket.claim());
            if is_due && let Some(blocked) = self.core.unblock(conn) {
                let (caller, nothing) = (caller_of(&blocked.ticket), at_once(&blocked.ticket));
                let is_synced = self.core.is_synced(conn);
                self.answer(conn, |_, out| {
                    reply_nothing(&mut caller.reply(out), nothing, is_synced, true);
                });
            }
        }
    }
}

pub(super) fn at_once(ticket: &Ticket) -> AtOnce {
    request_of(ticket).wait.at_once
}

/// Bytes that a wait takes in the queues of its keys.
fn bytes_in_queues(args: Args<'_>, wait: &Wait) -> u64 {
    let keys = wait.keys.clone().chain(wait.further);
    keys.map(|at| QUEUED_KEY_BYTES + 2 * args.len_of(at) as u64).sum()
}

/// What a command answers that got nothing, after it has waited or because it may not wait.
pub(super) fn reply_nothing(
    reply: &mut Reply<'_>,
    at_once: AtOnce,
    is_synced: bool,
    has_waited: bool,
) {
    match at_once {
        AtOnce::Null if !has_waited => reply.null(),
        AtOnce::NullArray | AtOnce::Null => reply.null_array(),
        AtOnce::Zero => reply.integer(0),
        AtOnce::Synced { .. } => {
            reply.array(2);
            reply.integer(i64::from(is_synced));
            reply.integer(0);
        }
    }
}
