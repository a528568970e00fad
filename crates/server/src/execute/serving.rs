//! Serving sessions that wait for keys: the worker that fills a key runs their blocked commands.
//!
//! This happens under the locks of the command that filled the key, after its commit and before its
//! locks drop (for EXEC: after its last command). A waiter that moves an element to another key
//! needs that key's slot, too: [`keyspace::Access::lock_to_fill`] locks it before the first change.

use crate::execute::blocked::{BlockedRequest, accepts_any_value, caller_of, request_of};
use crate::execute::panics::Panicked;
use crate::execute::steps::run_through;
use crate::execute::window::NO_KEY;
use crate::sessions::output::Hold;
use crate::shared::Shared;
use crate::worker::core::Core;
use crate::worker::message::{Message, Served};
use crate::worker::retry::{RELEASES_PER_TURN, RETRY_NS, Work};
use base::UnixMs;
use base::sync::Arc;
use command::{Done, Error, Full, record};
use keyspace::{Access, Guard, Kind, Ready, Ticket};
use resp::OutBuf;

/// Waiters checked before the slots count as held for long.
const SERVED_BRIEFLY: usize = 64;
/// So many keys of a waiter count as one more waiter: serving a command of 1,024 keys takes long,
/// as running it does.
const KEYS_PER_CHECK: usize = 16;

/// The exclusive right to answer a waiter. Dropped without an answer, because of a panic, it closes
/// the waiter's connection: no other worker may answer that client, which would wait for ever.
struct Claimed<'a> {
    shared: Arc<Shared>,
    ticket: &'a Arc<Ticket>,
    is_answered: bool,
}

impl<'a> Claimed<'a> {
    /// Claims a ticket; `None` if it was claimed before.
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
    /// Serves all clients that wait for the keys just filled, under the locks of the command that
    /// filled them, so that no other command gets in between. With many clients the slots are
    /// marked as held for long.
    #[cold]
    pub(crate) fn serve(&mut self, guard: &mut Guard<'_>) {
        let (mut checks, mut is_long) = (0, false);
        // A transaction may have run for long: a key that has expired by its end serves nobody.
        let now = UnixMs(self.clock.unix_us(self.turn.now(), self.turn.unix_ms()) / 1000);
        guard.advance(now);
        // What clients do who are served is not done by the one who serves them.
        let runner = self.key_events.take_runner();
        while let Some(ready) = guard.next_ready() {
            // A walk and the sweep fill no key, but remove expired ones, and have released the slot
            // by now.
            if !guard.covers(guard.keyspace().key(&ready.key).slot) {
                self.tasks.waiting.deferred.push_back(ready);
                self.timers.expire_at = self.turn.now();
                continue;
            }
            let mut from = 0;
            while let Some(ticket) = guard.first_ticket_from(&ready, from) {
                // Each key of the waiter is checked, too.
                checks += 1 + ticket.keys.len() / KEYS_PER_CHECK;
                if !is_long && checks >= SERVED_BRIEFLY {
                    is_long = true;
                    guard.mark_long();
                }
                if !self.can_be_served(guard, &ready, &ticket) {
                    from = ticket.id + 1;
                    continue;
                }
                if !self.serve_one(guard, &ready, &ticket) {
                    self.defer(ready);
                    break;
                }
            }
        }
        self.key_events.set_runner(runner);
    }

    /// Leaves the waiters of a key to the worker, which retries until the slots can be locked.
    fn defer(&mut self, ready: Ready) {
        self.tasks.waiting.deferred.push_back(ready);
        self.tasks.retries.postpone(Work::Deferred, self.turn.now());
        self.timers.expire_at = self.timers.expire_at.min(self.turn.now().plus(RETRY_NS));
    }

    /// True if the key has what the waiter needs (of a stream, entries after its id; of a list, as
    /// many elements as it asks for), or if the waiter must be answered that it never will.
    fn can_be_served(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Ticket) -> bool {
        let request = request_of(ticket);
        // Whether expired keys are visible is decided by the waiter, not by the command that fills.
        request.caller.apply_to(guard);
        if accepts_any_value(&request.wait) {
            return guard.holds(ready.db, &ready.key, request.wait.kind);
        }
        let args = request.words.args();
        // A panic that left this function would leave the next waiters unserved: the key has been
        // removed from the list of ready keys.
        let asked = self.catch(|core| {
            let mut keys = request.wait.keys.clone().filter(|&at| args.get(at) == &*ready.key);
            keys.any(|at| core.is_ready(guard, request, at))
        });
        asked.unwrap_or_else(|Panicked(_)| {
            crate::log::warning(format_args!(
                "Panic while checking whether a blocked client can be served; it stays blocked"
            ));
            false
        })
    }

    /// Returns false when serving needs a slot that this guard cannot lock: it is held for long, or
    /// the command was not expected to fill the key, as after a panic that left a filled key with
    /// clients waiting for it.
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
        let mark = guard.mark();
        let taken = self.catch_handler(|core| core.run_blocked(guard, &mut out, ready, ticket));
        let Ok(taken) = taken else {
            guard.rollback();
            return true;
        };
        let args = request.words.args();
        if taken.is_err() {
            guard.rollback();
        } else if let Some(id) = command::lookup(args.get(0)) {
            record::leave(guard, mark, id.spec(), ready.db, args);
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
        let hold = self.hold_of_notices(guard);
        let ns = self.clock.now().since(started);
        claimed.answer(out, hold, ns, has_failed);
        true
    }

    /// The argument that a waiter is served from: the first key that has what it needs. Keys not
    /// locked here are skipped: the command that fills one of them serves its waiters itself.
    fn served_from(&mut self, guard: &mut Guard<'_>, ready: &Ready, ticket: &Ticket) -> usize {
        let request = request_of(ticket);
        let (args, wait) = (request.words.args(), &request.wait);
        // If no other key is ready, the waiters of the others have been served already.
        let may_have_more = guard.has_ready();
        let mut keys = wait.keys.clone();
        let at = keys.find(|&at| {
            let bytes = args.get(at);
            *bytes == *ready.key
                || may_have_more
                    && guard.holds(ticket.db, bytes, wait.kind)
                    && (accepts_any_value(wait) || self.is_ready(guard, request, at))
        });
        at.expect("one of its keys")
    }

    /// Whether the key in an argument has what is waited for: entries after an id, or enough
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

    /// Runs a blocked command for its client, under the locks of the command that filled its key.
    fn run_blocked(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        ready: &Ready,
        ticket: &Ticket,
    ) -> Result<Done, Error> {
        let at = self.served_from(guard, ready, ticket);
        let request = request_of(ticket);
        let args = request.words.args();
        let id = command::lookup(args.get(0));
        if let Some(id) = id {
            self.refuse_if_full(id.spec(), ready.db)?;
        }
        self.arm(guard, id);
        let full = Full::new(None, &[]);
        let mut ctx = self.ctx(guard, out, &request.caller, args, NO_KEY).with_full(&full);
        let taken = (request.take)(&mut ctx, &request.wait, at);
        run_through(&mut ctx, taken, |ctx| (request.take)(ctx, &request.wait, at))
    }

    /// Serves the waiters of the deferred keys, of at most [`RELEASES_PER_TURN`] keys a turn. A
    /// slot that is held for long is retried. Returns false if keys remain which have to be
    /// retried.
    pub(crate) fn serve_deferred(&mut self, access: &mut Access) -> bool {
        self.tasks.waiting.deferred.extend(access.take_ready());
        if self.are_writes_held() {
            // Serving writes; the end of the pause calls this again.
            return true;
        }
        for _ in 0..self.tasks.waiting.deferred.len().min(RELEASES_PER_TURN) {
            let Some(ready) = self.tasks.waiting.deferred.pop_front() else { break };
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
                    self.tasks.retries.postpone(Work::Deferred, self.turn.now());
                    self.tasks.waiting.deferred.push_back(ready);
                }
                Err(Panicked(_)) => crate::log::warning(format_args!(
                    "Panic while serving clients blocked on a removed key; this is not retried"
                )),
            }
        }
        self.tasks.waiting.deferred.is_empty()
    }
}
