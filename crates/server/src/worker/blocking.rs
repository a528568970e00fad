//! Blocking commands: a session waits, with a ticket in the queues of its keys; whoever fills one of them serves it.
//!
//! Serving happens under the locks of the command that filled the key, after its commit and before its locks drop (for
//! EXEC: after its last command). A waiter that moves to a further key needs that key's slot, too: it is taken
//! without waiting. If somebody holds it, the locks are dropped and both slots are taken in order, before the
//! session that pushed goes on.

use super::execute::Outcome;
use super::window::NO_KEY;
use super::{Core, Worker};
use crate::client_card::flag;
use crate::message::{Message, Served};
use crate::session::{Blocked, ReplyMode, Session, Suspended};
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use base::{DbIndex, MonoNs};
use command::spec::{AtOnce, TakeFn, Wait, WaitFn};
use command::{Ctx, Error};
use driver::{ConnId, Driver};
use keyspace::{Access, Guard, Ready, Ticket};
use resp::{Args, OutBuf, OwnedRequest, Proto, Reply};
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;
/// CLIENT UNBLOCK ERROR, as recorded.
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// What a worker needs to serve somebody's blocked command.
struct Request {
    worker: usize,
    conn: ConnId,
    proto: Proto,
    db: DbIndex,
    args: OwnedRequest,
    wait: Wait,
    take: TakeFn,
}

/// The blocked sessions of a worker.
#[derive(Default)]
pub struct Waiting {
    /// Whose time ends when.
    timeouts: BTreeSet<(MonoNs, u64, u32)>,
    /// Tickets to be taken out of the queues of their keys as soon as no lock is held.
    done: Vec<Arc<Ticket>>,
    /// A key was filled, and its waiter could not be served yet.
    late: bool,
}

impl Waiting {
    /// A key was filled whose waiter could not be served under the locks of who filled it.
    #[inline(always)]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// See [`Waiting::is_late`].
    pub fn set_late(&mut self) {
        self.late = true;
    }

    /// When something must be done, if anything.
    pub fn next_wake(&self, now: MonoNs) -> Option<MonoNs> {
        if self.late || !self.done.is_empty() {
            return Some(now);
        }
        self.timeouts.first().map(|(at, ..)| *at)
    }
}

impl Core {
    /// Takes from the first key that has something; else the session waits. Inside EXEC nobody waits.
    #[allow(clippy::too_many_arguments)] // a handler's context, as for the other kinds
    pub(super) fn call_blocking(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        args: Args<'_>,
        wait: WaitFn,
        take: TakeFn,
    ) -> Result<Outcome, Error> {
        self.arm(guard);
        let Some(session) = self.sessions[conn.index as usize].as_deref() else {
            return Ok(Outcome::Done);
        };
        let wait = wait(args)?;
        let (proto, db) = (session.proto, session.db);
        let mut ctx = Ctx::new(
            guard,
            Reply::new(out, proto),
            args,
            db,
            self.unix_ms,
            &self.settings.command,
            &mut self.tally,
            NO_KEY,
        );
        for at in wait.keys.clone() {
            if take(&mut ctx, &wait, at)? {
                return Ok(Outcome::Done);
            }
        }
        if self.in_exec || wait.timeout_ms == Some(0) {
            match wait.at_once {
                AtOnce::Null => Reply::new(out, proto).null(),
                _ => reply_nothing(&mut Reply::new(out, proto), wait.at_once),
            }
            return Ok(Outcome::Done);
        }
        let request =
            Request { worker: self.id, conn, proto, db, args: OwnedRequest::new(args), wait, take };
        self.block(guard, request);
        Ok(Outcome::Waiting)
    }

    fn block(&mut self, guard: &mut Guard<'_>, request: Request) {
        let conn = request.conn;
        let (kind, db) = (request.wait.kind, request.db);
        let args = request.args.args();
        let keys = request.wait.keys.clone().map(|at| args.get(at).into()).collect();
        let timeout = request.wait.timeout_ms;
        let id = self.shared.next_ticket.fetch_add(1, Relaxed);
        let ticket = Ticket::new(id, kind, db, keys, Box::new(request));
        guard.wait(&ticket);
        let until = timeout.map(|ms| self.now.plus(ms.saturating_mul(MS)));
        if let Some(at) = until {
            self.waiting.timeouts.insert((at, id, conn.index));
        }
        self.shared.blocked.fetch_add(1, Relaxed);
        let Some(s) = self.session_mut(conn) else { return };
        s.card.set_flag(flag::BLOCKED, true);
        *s.card.ticket.lock().expect("no panic while a card is held") = Some(ticket.clone());
        s.suspend(Suspended::Blocked(Blocked { ticket, until }));
    }

    /// Serves who waits for the keys that were just filled, under the locks of who filled them.
    #[cold]
    pub(super) fn serve(&mut self, guard: &mut Guard<'_>) {
        let mut left = Vec::new();
        while let Some(ready) = guard.next_ready() {
            if !guard.covers(guard.keyspace().key(&ready.key).slot) {
                left.push(ready); // an earlier command's, that is late
                continue;
            }
            while let Some(ticket) = guard.waiter(&ready) {
                if !self.serve_one(guard, &ready, &ticket) {
                    left.push(ready);
                    break;
                }
            }
        }
        self.waiting.late |= !left.is_empty();
        for ready in left {
            guard.not_served(ready);
        }
    }

    /// False if a further slot is needed and not to be had.
    fn serve_one(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Arc<Ticket>) -> bool {
        let request: &Request = ticket.request.downcast_ref().expect("tickets are made here");
        let args = request.args.args();
        if let Some(at) = request.wait.further
            && !guard.try_cover(guard.keyspace().key(args.get(at)).slot)
        {
            return false;
        }
        guard.unwait(ticket, &ready.key);
        if !ticket.claim() {
            return true;
        }
        let mut out = OutBuf::new();
        let at = request.wait.keys.clone().find(|&at| args.get(at) == &*ready.key);
        let mut ctx = Ctx::new(
            guard,
            Reply::new(&mut out, request.proto),
            args,
            request.db,
            self.unix_ms,
            &self.settings.command,
            &mut self.tally,
            NO_KEY,
        );
        let mut taken = (request.take)(&mut ctx, &request.wait, at.expect("one of its keys"));
        while let Some(mut rest) = ctx.tally.rest.take() {
            match rest.step(&mut ctx) {
                Ok(true) => {}
                Ok(false) => ctx.tally.rest = Some(rest),
                Err(e) => taken = Err(e),
            }
        }
        guard.commit();
        let mut reply = Reply::new(&mut out, request.proto);
        match taken {
            Ok(true) => {}
            Ok(false) => reply.null_array(),
            Err(e) => {
                let text = e.text();
                self.counters().errors.count(&text);
                reply.error_bytes(&text);
            }
        }
        let served = Served { conn: request.conn, ticket: ticket.clone(), out, hold: guard.seq() };
        self.shared.post(request.worker, Message::Served(Box::new(served)));
        true
    }

    /// Serves those who could not be served under the locks of who filled their key.
    #[cold]
    pub(super) fn serve_late(&mut self, access: &mut Access) {
        self.waiting.late = false;
        for _ in 0..64 {
            let Some(slot) = access.ready_slot() else { return };
            let further = access.ready_further(|ticket| {
                let request: &Request =
                    ticket.request.downcast_ref().expect("tickets are made here");
                let args = request.args.args();
                request.wait.further.map(|at| self.shared.keyspace.key(args.get(at)).slot)
            });
            let mut slots = vec![slot];
            slots.extend(further);
            slots.sort_unstable();
            slots.dedup();
            match access.lock(&slots, self.unix_ms) {
                Ok(mut guard) => self.serve(&mut guard),
                Err(_) => break,
            }
        }
        self.waiting.late = access.has_ready();
    }

    /// The session waits no longer; its ticket, if it had one, leaves the queues soon.
    fn unblock(&mut self, conn: ConnId) -> Option<Blocked> {
        let s = self.session_mut(conn)?;
        if !matches!(s.suspended, Suspended::Blocked(_)) {
            return None;
        }
        let Suspended::Blocked(blocked) = std::mem::replace(&mut s.suspended, Suspended::No) else {
            return None;
        };
        s.card.set_flag(flag::BLOCKED, false);
        *s.card.ticket.lock().expect("no panic while a card is held") = None;
        self.unlist(&blocked, conn);
        Some(blocked)
    }

    fn unlist(&mut self, blocked: &Blocked, conn: ConnId) {
        if let Some(at) = blocked.until {
            self.waiting.timeouts.remove(&(at, blocked.ticket.id, conn.index));
        }
        self.shared.blocked.fetch_sub(1, Relaxed);
        self.waiting.done.push(blocked.ticket.clone());
    }

    /// A connection is gone: nobody needs to serve it.
    pub(super) fn forget_blocked(&mut self, session: &mut Session) {
        if let Suspended::Blocked(blocked) = &session.suspended {
            blocked.ticket.claim();
            self.unlist(blocked, session.conn);
        }
    }

    /// Takes tickets that are done out of the queues of their keys, one slot at a time; behind a long holder the
    /// rest waits for the next turn.
    pub(super) fn release_tickets(&mut self, access: &mut Access) {
        if self.waiting.done.is_empty() && !self.waiting.late || !access.enter() {
            return;
        }
        if self.waiting.late {
            self.serve_late(access);
        }
        'tickets: while let Some(ticket) = self.waiting.done.pop() {
            for bytes in &ticket.keys {
                let slot = self.shared.keyspace.key(bytes).slot;
                let Ok(mut guard) = access.lock_one(slot, self.unix_ms) else {
                    self.waiting.done.push(ticket);
                    break 'tickets;
                };
                guard.unwait(&ticket, bytes);
            }
        }
        access.leave();
    }

    /// CLIENT UNBLOCK: true if the client was blocked.
    pub(crate) fn unblock_client(&mut self, id: u64, with_error: bool) -> bool {
        let cards = self.shared.registry.all();
        let Some(card) = cards.iter().find(|card| card.id == id) else { return false };
        let ticket = card.ticket.lock().expect("no panic while a card is held").clone();
        let Some(ticket) = ticket.filter(|ticket| ticket.claim()) else { return false };
        let message = Message::Unblocked { conn: card.conn, ticket, with_error };
        self.shared.post(card.worker as usize, message);
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
    pub(super) fn on_served(&mut self, served: Served) {
        let Served { conn, ticket, out, hold } = served;
        if self.waits_with(conn, &ticket) {
            self.core.unblock(conn);
            self.answer(conn, |core, own| {
                own.append(out);
                core.output.hold(hold);
            });
        }
    }

    pub(super) fn on_unblocked(&mut self, conn: ConnId, ticket: &Arc<Ticket>, with_error: bool) {
        if !self.waits_with(conn, ticket) {
            return;
        }
        self.core.unblock(conn);
        let Some(proto) = self.core.session_mut(conn).map(|s| s.proto) else { return };
        self.answer(conn, |core, out| {
            let mut reply = Reply::new(out, proto);
            if with_error {
                core.counters().errors.count(UNBLOCKED.as_bytes());
                reply.error(UNBLOCKED);
            } else {
                reply_nothing(&mut reply, at_once(ticket));
            }
        });
    }

    /// Writes the reply of a blocked command, and lets its session go on.
    fn answer(&mut self, conn: ConnId, write: impl FnOnce(&mut Core, &mut OutBuf)) {
        let muted = self.core.session_mut(conn).is_none_or(|s| s.reply_mode != ReplyMode::On);
        let (_, out) = self.driver.io();
        self.core.output.open(conn.index, out);
        let mark = out.position();
        write(&mut self.core, out);
        if muted {
            out.truncate(mark);
            if let Some(s) = self.core.session_mut(conn)
                && s.reply_mode == ReplyMode::SkipNext
            {
                s.reply_mode = ReplyMode::On;
                s.set_gate(crate::session::gate::MUTE, false);
            }
        }
        self.wake(conn);
    }

    /// Sessions whose time is up.
    pub(super) fn end_waits(&mut self) {
        while let Some(&(at, id, place)) = self.core.waiting.timeouts.first()
            && at <= self.core.now
        {
            self.core.waiting.timeouts.pop_first();
            let Some(s) = self.core.sessions.get(place as usize).and_then(Option::as_deref) else {
                continue;
            };
            let (conn, proto) = (s.conn, s.proto);
            let is_due = matches!(&s.suspended, Suspended::Blocked(b) if b.ticket.id == id && b.ticket.claim());
            if is_due && let Some(blocked) = self.core.unblock(conn) {
                let nothing = at_once(&blocked.ticket);
                self.answer(conn, |_, out| reply_nothing(&mut Reply::new(out, proto), nothing));
            }
        }
        self.core.release_tickets(&mut self.access);
    }
}

fn at_once(ticket: &Ticket) -> AtOnce {
    let request: &Request = ticket.request.downcast_ref().expect("tickets are made here");
    request.wait.at_once
}

/// What a command answers that has waited for nothing.
fn reply_nothing(reply: &mut Reply<'_>, at_once: AtOnce) {
    match at_once {
        AtOnce::NullArray | AtOnce::Null => reply.null_array(),
        AtOnce::Zero => reply.integer(0),
        AtOnce::Zeros => {
            reply.array(2);
            reply.integer(0);
            reply.integer(0);
        }
    }
}
