//! Blocking commands: a session waits, with a ticket in the queues of its keys; whoever fills one
//! of them serves it.
//!
//! Serving happens under the locks of the command that filled the key, after its commit and before
//! its locks drop (for EXEC: after its last command). A waiter that moves to a further key needs
//! that key's slot, too: the command has taken it before it changed anything
//! ([`keyspace::Access::lock_to_fill`]).

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::outcome::{Called, Outcome};
use crate::execute::panics::Panicked;
use crate::execute::request::Command;
use crate::execute::steps::run_through;
use crate::execute::window::NO_KEY;
use crate::sessions::card::flag;
use crate::sessions::output::Hold;
use crate::sessions::session;
use crate::sessions::session::{Blocked, Session, Suspended};
use crate::shared::Shared;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::{Message, Served};
use crate::worker::retry::{RELEASES_PER_TURN, RETRY_NS, Work};
use base::UnixMs;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::spec::{AtOnce, TakeFn, Wait, WaitFn};
use command::{Done, Error, Full};
use driver::{ConnId, Driver};
use keyspace::{Access, Guard, Kind, Ready, Ticket};
use resp::{Args, OutBuf, OutPos, OwnedRequest, Reply};

const MS: u64 = 1_000_000;
/// What a key in a queue takes beside its name, which stands in its ticket and in its slot.
const QUEUED_KEY_BYTES: u64 = 640;
/// A wait that takes no more than this begins though memory is full: who waits for few keys may
/// free some.
const SMALL_WAIT_BYTES: u64 = 16 << 10;
/// Waiters looked at before the slots count as held for long.
const SERVED_BRIEFLY: usize = 64;
/// So many keys of a waiter count as one more: a command of 1,024 keys is long, and so is serving
/// one.
const KEYS_OF_A_LOOK: usize = 16;
/// CLIENT UNBLOCK ERROR, as recorded.
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// What a worker needs to serve somebody's blocked command.
struct BlockedRequest {
    caller: Caller,
    words: session::HeldRequest,
    wait: Wait,
    take: TakeFn,
}

/// The right to answer a waiter, which nobody else has then. Dropped without an answer, because of
/// a panic, it has the waiter's connection closed: a client that nobody may answer would wait for
/// ever.
struct Claimed<'a> {
    shared: Arc<Shared>,
    ticket: &'a Arc<Ticket>,
    is_answered: bool,
}

impl<'a> Claimed<'a> {
    /// Claims a ticket, unless somebody has.
    fn claim(shared: &Arc<Shared>, ticket: &'a Arc<Ticket>) -> Option<Self> {
        let shared = Arc::clone(shared);
        ticket.claim().then(|| Self { shared, ticket, is_answered: false })
    }

    /// Posts the reply.
    fn answer(mut self, out: OutBuf, hold: Hold, ns: u64, has_failed: bool) {
        let (worker, conn) = caller_of(self.ticket).waits_at();
        let served = Served { conn, ticket: self.ticket.clone(), out, hold, ns, has_failed };
        self.is_answered = true;
        self.shared.post(worker, Message::Served(Box::new(served)));
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let (worker, conn) = caller_of(self.ticket).waits_at();
            let ticket = self.ticket.clone();
            self.shared.post(worker, Message::ServingPanicked { conn, ticket });
        }
    }
}

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
                    self.keep_prepared(caller, &taken, full.into_prepared());
                    return taken.map(Called::Left);
                }
            }
        }
        if !caller.may_suspend || wait.timeout_ms == Some(0) {
            reply_nothing(&mut caller.reply(out), wait.at_once, false);
            return Ok(Outcome::Done.into());
        }
        let words = waits_as.unwrap_or_else(|| OwnedRequest::new(args));
        let in_queues = bytes_in_queues(words.args(), &wait);
        let is_large = words.memory() as u64 + in_queues > SMALL_WAIT_BYTES;
        if is_large && self.gates & closed::MEMORY != 0 {
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
        self.shared.blocked.fetch_add(1, Relaxed);
        let s = caller.session(self);
        s.card.set_flag(
            if until.is_some() { flag::BLOCKED | flag::TIMED } else { flag::BLOCKED },
            true,
        );
        *s.card.ticket.lock().expect("no panic while a card is held") = Some(ticket.clone());
        s.suspend(Suspended::Blocked(Blocked { ticket, until, ns: 0, request: 0 }));
    }

    /// Serves who waits for the keys that were just filled, under the locks of who filled them: all
    /// of them, or somebody else would come between. Where they are many the slots are held for
    /// long.
    #[cold]
    pub(crate) fn serve(&mut self, guard: &mut Guard<'_>) {
        let (mut looks, mut is_long) = (0, false);
        // A transaction may have taken its time: what has expired by its end serves nobody.
        let now = UnixMs(self.clock.unix_us(self.turn.now(), self.turn.unix_ms()) / 1000);
        guard.advance(now);
        while let Some(ready) = guard.next_ready() {
            // A walk has given its slots back; it fills nothing, but removes what has expired. So
            // does the sweep.
            if !guard.covers(guard.keyspace().key(&ready.key).slot) {
                self.tasks.waiting.removed.push_back(ready);
                self.timers.expire_at = self.turn.now();
                continue;
            }
            let mut from = 0;
            while let Some(ticket) = guard.first_ticket_from(&ready, from) {
                // Each of its keys is looked at, too.
                looks += 1 + ticket.keys.len() / KEYS_OF_A_LOOK;
                if !is_long && looks >= SERVED_BRIEFLY {
                    is_long = true;
                    guard.mark_long();
                }
                if !self.has_something(guard, &ready, &ticket) {
                    from = ticket.id + 1;
                    continue;
                }
                if !self.serve_one(guard, &ready, &ticket) {
                    self.defer(ready);
                    break;
                }
            }
        }
    }

    /// Who waits for a key is served by the worker as soon as nobody stands in the way.
    fn defer(&mut self, ready: Ready) {
        self.tasks.waiting.removed.push_back(ready);
        self.tasks.retries.put_off(Work::Removed, self.turn.now());
        self.timers.expire_at = self.timers.expire_at.min(self.turn.now().plus(RETRY_NS));
    }

    /// Whether a waiter can be served from a key, or is to be told that it never can: of a stream,
    /// that depends on its ids; who waits for several elements needs as many.
    fn has_something(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Ticket) -> bool {
        let request = request_of(ticket);
        // Whether it sees what is past its time is not for who fills the key to say.
        request.caller.rule(guard);
        if is_enough(&request.wait) {
            return guard.holds(ready.db, &ready.key, request.wait.kind);
        }
        let args = request.words.args();
        // A panic would keep those behind it from being served: the key is no longer among those
        // that are ready.
        let asked = self.catch(|core| {
            let mut keys = request.wait.keys.clone().filter(|&at| args.get(at) == &*ready.key);
            keys.any(|at| core.is_ready(guard, request, at))
        });
        asked.unwrap_or_else(|Panicked(_)| {
            crate::log::warning(format_args!("A panic while a client that waits was looked at"));
            false
        })
    }

    /// Returns false when serving needs a slot that is not covered: it is held for long, or the
    /// command did not fill the key, but has changed what a panic left there with somebody waiting.
    fn serve_one(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Arc<Ticket>) -> bool {
        let request = request_of(ticket);
        if let Some(further) = &ticket.destination {
            let slot = guard.keyspace().key(further).slot;
            if guard.cover(slot).is_err() || !guard.covers(slot) {
                return false;
            }
        }
        guard.exempt_from_turns();
        guard.remove_ticket(ticket, &ready.key);
        let Some(claimed) = Claimed::claim(&self.shared, ticket) else { return true };
        let started = self.clock.now();
        let mut out = OutBuf::new();
        let taken = self.catch_handler(|core| core.take_for(guard, &mut out, ready, ticket));
        let Ok(taken) = taken else {
            guard.rollback();
            return true;
        };
        if taken.is_err() {
            guard.rollback();
        }
        guard.finish();
        let mut reply = request.caller.reply(&mut out);
        let has_failed = taken.is_err();
        match taken {
            Ok(Done::Nothing | Done::NothingYet(_)) => reply.null_array(),
            Ok(_) => {}
            Err(e) => {
                let text = e.text();
                self.counters().errors.count(&text);
                reply.error_bytes(&text);
            }
        }
        let hold = self.hold_of_told(guard);
        let ns = self.clock.now().since(started);
        claimed.answer(out, hold, ns, has_failed);
        true
    }

    /// The argument that a waiter takes from: the first that has something. Keys outside of these
    /// locks have nothing, or whoever filled them serves who waits then.
    fn served_from(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Ticket) -> usize {
        let request = request_of(ticket);
        let (args, wait) = (request.words.args(), &request.wait);
        // While no other key is ready, whoever waits for one has been served from it.
        let may_have_more = guard.has_ready();
        let mut keys = wait.keys.clone();
        let at = keys.find(|&at| {
            let bytes = args.get(at);
            *bytes == *ready.key
                || may_have_more
                    && guard.holds(ticket.db, bytes, wait.kind)
                    && (is_enough(wait) || self.is_ready(guard, request, at))
        });
        at.expect("one of its keys")
    }

    /// Whether the key in an argument has what is waited for: entries behind an id, or so many
    /// elements.
    fn is_ready(&mut self, guard: &mut Guard<'_>, request: &BlockedRequest, at: usize) -> bool {
        let (args, wait) = (request.words.args(), &request.wait);
        let mut out = OutBuf::new();
        let mut ctx = self.ctx(guard, &mut out, &request.caller, args, NO_KEY);
        match wait.kind {
            Kind::List => command::list::has_elements(&mut ctx, at, wait.least),
            _ => command::stream::is_ready(&mut ctx, at),
        }
    }

    /// Runs a blocked command for who waits with it, under the locks of who filled its key.
    fn take_for(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        ready: &Ready,
        ticket: &Ticket,
    ) -> Result<Done, Error> {
        let at = self.served_from(guard, ready, ticket);
        let request = request_of(ticket);
        let args = request.words.args();
        self.arm(guard, command::lookup(args.get(0)));
        let full = Full::new(None, &[]);
        let mut ctx = self.ctx(guard, out, &request.caller, args, NO_KEY).with_full(&full);
        let taken = (request.take)(&mut ctx, &request.wait, at);
        run_through(&mut ctx, taken, |ctx| (request.take)(ctx, &request.wait, at))
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
        Some(blocked)
    }

    /// CLIENT PAUSE holds the session back until it ends; it counts as blocked.
    pub(crate) fn hold_back(&mut self, caller: &Caller) {
        self.shared.blocked.fetch_add(1, Relaxed);
        let s = caller.session(self);
        s.card.set_flag(flag::BLOCKED, true);
        s.suspend(Suspended::Pause);
    }

    /// Wakes the session if a pause holds it back.
    pub(crate) fn let_go(&mut self, conn: ConnId) {
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

    /// Serves who could not be served by who changed their keys, of so many per turn; behind a long
    /// holder that is tried again. False if somebody is yet to be served.
    pub(crate) fn serve_deferred(&mut self, access: &mut Access) -> bool {
        self.tasks.waiting.removed.extend(access.take_ready());
        if self.are_writes_paused() {
            return false; // who is served takes something; the end of the pause looks here again
        }
        for _ in 0..self.tasks.waiting.removed.len().min(RELEASES_PER_TURN) {
            let Some(ready) = self.tasks.waiting.removed.pop_front() else { break };
            let slot = self.shared.keyspace.key(&ready.key).slot;
            let served = self.catch(|core| {
                let fills = || vec![&*ready.key];
                let mut guard =
                    access.lock_to_fill(&[slot], false, core.turn.unix_ms(), fills).ok()?;
                guard.push_ready(ready.clone());
                core.serve(&mut guard);
                Some(())
            });
            match served {
                Ok(Some(())) => {}
                Ok(None) => {
                    self.tasks.retries.put_off(Work::Removed, self.turn.now());
                    self.tasks.waiting.removed.push_back(ready);
                }
                Err(Panicked(_)) => crate::log::warning(format_args!(
                    "A panic while clients were served whose key was removed; it is not tried again"
                )),
            }
        }
        self.tasks.waiting.removed.is_empty()
    }

    /// CLIENT UNBLOCK: true if the client was blocked.
    pub(crate) fn unblock_client(&mut self, id: u64, with_error: bool) -> bool {
        let Some(card) = self.shared.registry.get(id) else { return false };
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
    pub(crate) fn on_served(&mut self, served: Served) {
        let Served { conn, ticket, out, hold, ns, has_failed } = served;
        if self.waits_with(conn, &ticket)
            && let Some(blocked) = self.core.unblock(conn)
        {
            let reply = out.len_between(OutPos::default(), out.position());
            self.core.note_unblocked(caller_of(&ticket), &blocked, ns, reply, has_failed);
            self.answer(conn, |core, own| {
                own.append(out);
                core.turn.output.hold_at(hold);
            });
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
        self.core.note_unblocked(caller, &blocked, 0, 0, with_error);
        self.answer(conn, |core, out| {
            let mut reply = caller.reply(out);
            if with_error {
                core.counters().errors.count(UNBLOCKED.as_bytes());
                reply.error(UNBLOCKED);
            } else {
                reply_nothing(&mut reply, at_once(ticket), true);
            }
        });
    }

    /// Writes the reply of a blocked command, and lets its session go on.
    pub(crate) fn answer(&mut self, conn: ConnId, write: impl FnOnce(&mut Core, &mut OutBuf)) {
        let (_, out) = self.driver.io();
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
            let seen = s.seen;
            s.end_reply();
            self.core.turn.output.hold(seen);
        }
        self.wake(conn);
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
                self.answer(conn, |_, out| reply_nothing(&mut caller.reply(out), nothing, true));
            }
        }
    }
}

fn at_once(ticket: &Ticket) -> AtOnce {
    request_of(ticket).wait.at_once
}

fn caller_of(ticket: &Ticket) -> &Caller {
    &request_of(ticket).caller
}

fn request_of(ticket: &Ticket) -> &BlockedRequest {
    ticket.request.downcast_ref().expect("tickets are made here")
}

/// The arguments of the command that waits with this ticket.
pub(crate) fn args_of(ticket: &Ticket) -> Args<'_> {
    request_of(ticket).words.args()
}

/// Bytes that a wait takes in the queues of its keys.
fn bytes_in_queues(args: Args<'_>, wait: &Wait) -> u64 {
    let keys = wait.keys.clone().chain(wait.further);
    keys.map(|at| QUEUED_KEY_BYTES + 2 * args.get(at).len() as u64).sum()
}

/// What a command answers that got nothing, after it has waited or because it may not wait.
fn reply_nothing(reply: &mut Reply<'_>, at_once: AtOnce, has_waited: bool) {
    match at_once {
        AtOnce::Null if !has_waited => reply.null(),
        AtOnce::NullArray | AtOnce::Null => reply.null_array(),
        AtOnce::Zero => reply.integer(0),
        AtOnce::Zeros => {
            reply.array(2);
            reply.integer(0);
            reply.integer(0);
        }
    }
}

/// True if who waits takes from any value of its kind that is there.
fn is_enough(wait: &Wait) -> bool {
    wait.kind != Kind::Stream && wait.least == 1
}
