//! The full path of a request: its gates, its command, its end.

use crate::execute::caller::Caller;
use crate::execute::gates::Verdict;
use crate::execute::outcome::Outcome;
use crate::execute::sizes::protocol_len;
use crate::execute::window::{Hashed, KeyRef, NO_KEY, key_ref};
use crate::sessions::session::{Session, gate};
use crate::worker::core::Core;
use base::sync::atomic::Ordering::Relaxed;
use command::spec::{Flags, Traits};
use command::{CommandId, Error};
use driver::ConnId;
use keyspace::{Access, Parked};
use resp::{Args, OutBuf, OutPos};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A request on its way to its handler.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// On whose behalf it runs.
    pub caller: &'a Caller,
    /// The command; none if there is none of that name.
    pub id: Option<CommandId>,
    /// Its words.
    pub args: Args<'a>,
    /// Its first key, hashed when it was framed.
    pub key: KeyRef,
}

/// A request that has passed its gates.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// On whose behalf it runs.
    pub caller: &'a Caller,
    /// Which command it is.
    pub id: CommandId,
    /// Its words.
    pub args: Args<'a>,
    /// Those of its keys that are hashed already.
    pub hashed: Hashed<'a>,
}

/// Gates of a session that are set for one command, and end with it.
const GATES_OF_COMMAND: u32 =
    gate::PREPARED | gate::TURN | gate::MAY_FREEZE | gate::MUTE | gate::CACHING;

impl Core {
    /// A request that stands alone: assembled, or retried.
    pub fn execute_alone(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        conn: ConnId,
        args: Args<'_>,
    ) -> Outcome {
        let id = command::lookup(args.get(0));
        let started = self.clock.now();
        self.running.time_from(started);
        self.enter(access);
        // Killed while it waited, perhaps by a change that this worker has just taken over.
        let Some(session) = self.session_mut(conn).filter(|s| !s.is_stopped()) else {
            access.leave();
            return Outcome::Done;
        };
        let caller = Caller::of_session(session);
        if self.batch.is_behind_gate && !id.is_some_and(passes_closed_gate) {
            access.leave();
            self.park(access, &caller, Parked::Gate);
            return Outcome::Retry;
        }
        let key = id.map_or(NO_KEY, |id| self.first_key(id, args));
        let request = Request { caller: &caller, id, args, key };
        let result = catch_unwind(AssertUnwindSafe(|| self.execute(access, out, &request)));
        let outcome = result.unwrap_or_else(|_| {
            self.after_panic(access, out, conn.index);
            Outcome::Done
        });
        access.leave();
        if outcome != Outcome::Retry {
            let sizes = self.sizes(protocol_len(args), out);
            let ns = self.clock.now().since(started);
            self.record_executed(&request, started, ns, outcome, sizes);
        }
        outcome
    }

    /// The first key of a request that was not framed in a window.
    fn first_key(&self, id: CommandId, args: Args<'_>) -> KeyRef {
        let at = u32::from(self.hot[id.index()].first_key);
        if at != 0 && at < args.len() as u32 {
            key_ref(&self.shared.keyspace, args, at as usize)
        } else {
            NO_KEY
        }
    }

    /// The full path: gates, locks, handler, and the end of what was noted for this command.
    pub(super) fn execute(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        request: &Request<'_>,
    ) -> Outcome {
        let Request { caller, id, args, key } = *request;
        let index = caller.conn().index;
        let Some(session) = self.sessions[index as usize].as_deref() else {
            return Outcome::Done;
        };
        let listens = session.gates & gate::LISTENS != 0;
        if listens {
            self.deliver_before(out, caller.conn());
        }
        let Some(session) = self.sessions[index as usize].as_deref() else {
            return Outcome::Done;
        };
        self.turn.output.open(index, out);
        let mut mark = out.position();
        self.running.reset(mark);
        let outcome = match self.gate(session, caller, id, args) {
            Verdict::Pass(id) => {
                session.card.last_command.store(id.index() as u32, Relaxed);
                self.running.begin_handler(index, id);
                let hashed = Hashed { first: key, all: &[] };
                let outcome = self.dispatch(access, out, &Command { caller, id, args, hashed });
                let spec = id.spec();
                if listens && outcome == Outcome::Done && !spec.flags.contains(Flags::PUBSUB) {
                    mark = self.deliver_behind(out, (caller.conn(), caller.proto), mark);
                }
                if spec.traits.contains(Traits::RUNS_QUEUE)
                    || spec.traits.contains(Traits::CONFIRMS)
                {
                    mark = out.position(); // what is not wanted of its reply is gone already
                }
                outcome
            }
            Verdict::Queue(id) => {
                self.queue(caller, id, args, out);
                Outcome::Done
            }
            Verdict::Wait => {
                caller.session(self).end_turn();
                self.park_until_pause_ends(caller);
                Outcome::Retry
            }
            Verdict::WaitForReleases => {
                self.await_releases(caller, args.len());
                Outcome::Retry
            }
            Verdict::Refuse(id, e) => {
                self.refuse_before(out, caller, id, e);
                Outcome::Done
            }
            Verdict::Close => {
                warn_of_http(session);
                self.finish(caller);
                Outcome::Done
            }
        };
        let gates = caller.session(self).gates;
        if listens {
            self.key_events.set_runner(None);
        }
        if outcome != Outcome::Retry && gates & GATES_OF_COMMAND != 0 {
            self.end_command((caller, id), mark, out, outcome == Outcome::Done);
        }
        outcome
    }

    /// A command that did not pass its gates: the open transaction cannot succeed any more. EXEC
    /// itself ends it.
    fn refuse_before(
        &mut self,
        out: &mut OutBuf,
        caller: &Caller,
        id: Option<CommandId>,
        mut e: Error,
    ) {
        let is_exec = id.is_some_and(|id| id.spec().traits.contains(Traits::RUNS_QUEUE));
        let s = caller.session(self);
        end_caching(s, None);
        if is_exec {
            let multi = s.end_transaction();
            self.free_queue(multi);
            self.unwatch_soon(caller);
            e = Error::exec_refused(&e);
        } else {
            s.fail_transaction();
        }
        self.refuse(out, caller.proto, id, &e, false);
    }

    /// Clears what the session keeps for this one command: work that was done ahead of it, its
    /// turn, and whether its reply is wanted. One that is not (CLIENT REPLY OFF and SKIP) is
    /// dropped.
    #[cold]
    fn end_command(
        &mut self,
        (caller, id): (&Caller, Option<CommandId>),
        mark: OutPos,
        out: &mut OutBuf,
        has_ended: bool,
    ) {
        let s = caller.session(self);
        s.end_turn();
        end_caching(s, id);
        s.mute(mark, out);
        if has_ended {
            s.end_reply();
        }
        if s.gates & gate::PREPARED != 0 {
            let ns = s.prepared_ns;
            s.forget_prepared();
            self.running.set_time_ahead(ns);
        }
    }
}

/// What CLIENT CACHING has said holds until a command ends that is none of CLIENT, as in Redis, or
/// its transaction.
fn end_caching(s: &mut Session, id: Option<CommandId>) {
    let keeps = id.is_some_and(|id| id.spec().traits.contains(Traits::KEEPS_CACHING));
    if s.multi.is_none() && !keeps {
        s.set_gate(gate::CACHING, false);
    }
}

fn warn_of_http(session: &Session) {
    crate::log::warning(format_args!(
        "Possible SECURITY ATTACK detected: a client at {} sends HTTP; connection closed",
        session.card.addr
    ));
}

/// Commands that are served while somebody holds World for long.
pub(super) fn passes_closed_gate(id: CommandId) -> bool {
    id.spec().traits.contains(Traits::PASSES_CLOSED_GATE)
}
