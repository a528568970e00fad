//! Serving sessions that wait for keys, on behalf of whoever fills them.
//!
//! This happens under the locks of the command that filled the key, after its commit and before its
//! locks drop (for EXEC: after its last command). A waiter that moves to a further key needs that
//! key's slot, too: the command has locked it before it changed anything
//! ([`keyspace::Access::lock_to_fill`]).

use crate::execute::blocked::{BlockedRequest, caller_of, is_enough, request_of};
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
use command::{Done, Error, Full};
use keyspace::{Access, Guard, Kind, Ready, Ticket};
use resp::OutBuf;

/// Waiters looked at before the slots count as held for long.
const SERVED_BRIEFLY: usize = 64;
/// So many keys of a waiter count as one more: a command of 1,024 keys is long, and so is serving
/// one.
const KEYS_OF_A_LOOK: usize = 16;

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
        request.caller.apply_to(guard);
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
        let hold = self.hold_of_notices(guard);
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
}
