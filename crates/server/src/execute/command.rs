//! Execution: a window's commands, one by one, each on its locked slots.

use crate::execute::caller::Caller;
use crate::execute::finish::Panicked;
use crate::execute::gates::Verdict;
use crate::execute::gates::closed;
use crate::execute::hot::accepts;
use crate::execute::locks::lock_keys;
use crate::execute::sizes::{is_large, protocol_len};
use crate::execute::steps::run_through;
use crate::execute::window::{Framed, Hashed, KeyRef, NO_KEY, Window, key_ref};
use crate::sessions::session::{Suspended, gate};
use crate::worker::batch::After;
use crate::worker::core::Core;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::error::ExecRefused;
use command::spec::{CommandSpec, DataFn, Handler, LockClass, Traits};
use command::{CommandId, Ctx, Done, Error, Full};
use driver::ConnId;
use keyspace::{Access, Guard, Parked};
use resp::{Args, OutBuf, OutPos, Proto, Reply};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A command of at least this many keys declares itself long: others suspend instead of waiting for
/// their slots.
const LONG_KEYS: usize = 1024;
/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Executed (or refused) and answered.
    Done,
    /// Not executed: the session waits, and the same command is tried again.
    Retry,
    /// Executed; its reply comes later, and the session executes nothing until then.
    Waiting,
}

/// What a command's handler leaves.
pub enum Called {
    /// Nothing more to do.
    Over(Outcome),
    /// What a handler of data says; the rest is done when its locks have dropped.
    Left(Done),
}

impl From<Outcome> for Called {
    fn from(outcome: Outcome) -> Self {
        Self::Over(outcome)
    }
}

impl Core {
    /// Executes the window in order and empties it.
    pub fn execute_window(
        &mut self,
        access: &mut Access,
        window: &mut Window,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        window.ask_first(&self.shared.keyspace);
        let started = self.clock.now();
        self.enter(access);
        self.run_from(access, window, input, out);
        access.leave();
        self.account(window, started);
        window.clear();
    }

    /// Runs all commands; a panic in one ends that connection and the rest goes on.
    fn run_from(&mut self, access: &mut Access, window: &Window, input: &[u8], out: &mut OutBuf) {
        let mut next = 0;
        self.batch.begin(window.has_members);
        while next < window.commands.len() {
            let result = catch_unwind(AssertUnwindSafe(|| {
                while next < window.commands.len() {
                    let at = next;
                    next += 1; // whatever happens, this one is not tried again
                    let c = &window.commands[at];
                    window.ask_ahead(&self.shared.keyspace, at);
                    if at >= self.batch.warmed
                        && c.id.is_some_and(|id| self.hot[id.index()].member != 0)
                    {
                        self.warm(access, window, at, input);
                    }
                    if self.batch.is_behind_gate {
                        self.run_behind_gate(access, window, c, input, out);
                    } else {
                        self.run_framed(access, window, c, input, out);
                    }
                }
            }));
            if result.is_err() {
                self.after_panic(access, out, window.commands[next - 1].session);
            }
        }
    }

    #[inline]
    fn run_framed(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        let Some(session) = self.sessions[c.session as usize].as_deref_mut() else {
            return self.leave_short_path(window, c);
        };
        // The short path: a plain session, nothing unusual in the server, one key.
        if (session.gates | self.gates) == 0
            && let Some(id) = c.id
        {
            let hot = self.hot[id.index()];
            if let Some(run) = hot.run
                && accepts(hot.arity, c.spans_len as usize)
            {
                self.turn.output.open(c.session, out);
                self.running.begin(c.session, id, out.position());
                let done = match access.lock_plain(c.key.slot, self.turn.unix_ms()) {
                    Ok(mut guard) => {
                        let mut ctx = Ctx::new(
                            &mut guard,
                            Reply::new(out, session.proto),
                            window.args(input, c),
                            session.db,
                            self.turn.unix_ms(),
                            &self.settings.command,
                            &mut self.tally,
                            c.key,
                        );
                        // A command that has replied leaves nothing to drop.
                        let result = ManuallyDrop::new(run(&mut ctx));
                        let has_replied = matches!(*result, Ok(Done::Replied));
                        if !has_replied && result.is_err() {
                            guard.rollback();
                        }
                        let hold = self.finish_change(&mut guard);
                        if has_replied && !is_large(self.running.reply_from(), out) {
                            return self.turn.output.hold(hold);
                        }
                        drop(guard);
                        self.turn.output.hold(hold);
                        if has_replied {
                            return self.note_large_reply(window, c, input, out);
                        }
                        match ManuallyDrop::into_inner(result) {
                            Ok(done) => done,
                            Err(e) => return self.refuse_framed(out, c.session, id, &e),
                        }
                    }
                    Err(parked) => Done::Park(parked),
                };
                return self.go_on_framed(access, window, c, input, out, done);
            }
        }
        self.run_off_path(access, window, c, input, out);
    }

    /// The full path of one framed command, timed by itself.
    #[inline(never)]
    pub(crate) fn run_off_path(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        self.leave_short_path(window, c);
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        let args = window.args(input, c);
        if session.is_stopped() {
            return;
        }
        let caller = Caller::of_session(session);
        let started = self.clock.now();
        let outcome = self.execute(access, out, &caller, c.id, args, c.key);
        if outcome != Outcome::Retry {
            self.batch.timed_ns += self.clock.now().since(started);
            let request = u64::from(c.end - c.start);
            self.note_executed(&caller, c.id, args, started, outcome, self.sizes(request, out));
        }
        match outcome {
            Outcome::Done => {
                if caller.session(self).is_stopped() {
                    self.stop_at(c.session, c.end as usize);
                }
            }
            Outcome::Retry => self.stop_at(c.session, c.start as usize),
            Outcome::Waiting => self.stop_at(c.session, c.end as usize),
        }
    }

    /// What was framed from `from` on goes back to the session's input.
    pub(crate) fn stop_at(&mut self, session: u32, from: usize) {
        if let Some(s) = self.sessions[session as usize].as_deref() {
            let to = if s.close_after_reply { from } else { s.input_end };
            self.batch.after.push(After::Stop { conn: s.conn, from, to });
        }
    }

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
        self.enter(access);
        // Killed while it waited, maybe by what this worker has just heard.
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
        let key = id.map_or(NO_KEY, |id| {
            let at = u32::from(self.hot[id.index()].first_key);
            if at != 0 && at < args.len() as u32 {
                key_ref(&self.shared.keyspace, args, at as usize)
            } else {
                NO_KEY
            }
        });
        let result =
            catch_unwind(AssertUnwindSafe(|| self.execute(access, out, &caller, id, args, key)));
        let outcome = result.unwrap_or_else(|_| {
            self.after_panic(access, out, conn.index);
            Outcome::Done
        });
        access.leave();
        if outcome != Outcome::Retry {
            let sizes = self.sizes(protocol_len(args), out);
            self.note_executed(&caller, id, args, started, outcome, sizes);
        }
        outcome
    }

    /// The World gate is closed: only what must get through does; the rest waits for it to open.
    fn run_behind_gate(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        self.leave_short_path(window, c);
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        if session.is_stopped() {
            return;
        }
        let caller = Caller::of_session(session);
        if !c.id.is_some_and(passes_closed_gate) {
            self.park(access, &caller, Parked::Gate);
            return self.stop_at(c.session, c.start as usize);
        }
        let started = self.clock.now();
        let args = window.args(input, c);
        let outcome = self.execute(access, out, &caller, c.id, args, c.key);
        if outcome != Outcome::Retry {
            let request = u64::from(c.end - c.start);
            self.note_executed(&caller, c.id, args, started, outcome, self.sizes(request, out));
        }
        if outcome != Outcome::Done || caller.session(self).is_stopped() {
            self.stop_at(c.session, c.end as usize);
        }
    }

    /// Suspends a session until the way is free.
    pub fn park(&mut self, access: &mut Access, caller: &Caller, at: Parked) {
        let keyspace = Arc::clone(&self.shared.keyspace);
        let s = caller.session(self);
        match at {
            Parked::Section(_) => s.await_turn(&keyspace),
            Parked::Turn => s.set_gate(gate::TURN, true),
            Parked::Freeze => s.set_gate(gate::MAY_FREEZE, true),
            // That may take very long; it comes back later.
            Parked::Frozen(_) => s.end_turn(),
            Parked::Thaw => s.turn = None,
            Parked::Slot(_) | Parked::Gate | Parked::Growth => {}
        }
        s.suspend(Suspended::Parked(at));
        let conn = s.conn;
        if !access.park(at, conn.token()) {
            self.shared.post(self.id, crate::worker::message::Message::Retry(conn));
        }
    }

    /// The full path: gates, locks, handler.
    fn execute(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        id: Option<CommandId>,
        args: Args<'_>,
        key: KeyRef,
    ) -> Outcome {
        let index = caller.conn().index;
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
                let outcome = self.dispatch(access, out, caller, id, args, key);
                if id.spec().traits.contains(Traits::RUNS_QUEUE) {
                    mark = out.position(); // what is not wanted of its reply is gone already
                }
                outcome
            }
            Verdict::Queue(id) => {
                self.queue(caller, id, args, out);
                Outcome::Done
            }
            Verdict::Wait => {
                let s = caller.session(self);
                s.end_turn();
                self.hold_back(caller);
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
                crate::log::warning(format_args!(
                    "Possible SECURITY ATTACK detected: a client at {} speaks HTTP; connection closed",
                    session.card.addr
                ));
                self.finish(caller);
                Outcome::Done
            }
        };
        let is_noted = gate::PREPARED | gate::TURN | gate::MAY_FREEZE | gate::MUTE;
        if outcome != Outcome::Retry && caller.session(self).gates & is_noted != 0 {
            self.end_command(caller, mark, out, outcome == Outcome::Done);
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
        if is_exec {
            let multi = s.end_transaction();
            self.free_queue(multi);
            self.unwatch_soon(caller);
            let text = String::from_utf8_lossy(&e.text()).into_owned();
            let why = text.strip_prefix("ERR ").unwrap_or(&text);
            e = ExecRefused { why: why.into() }.into();
        } else {
            s.fail_transaction();
        }
        self.refuse(out, caller.proto, id, &e, false);
    }

    /// What was noted at the session for this command ends with it: work that was done ahead, a
    /// turn, and whether its reply is wanted (CLIENT REPLY OFF and SKIP), which is dropped
    /// otherwise.
    #[cold]
    fn end_command(&mut self, caller: &Caller, mark: OutPos, out: &mut OutBuf, has_ended: bool) {
        let s = caller.session(self);
        s.end_turn();
        s.mute(mark, out);
        if has_ended {
            s.end_reply();
        }
        if s.gates & gate::PREPARED != 0 {
            let ns = s.prepared_ns;
            s.forget_prepared();
            self.running.add_time_ahead(ns);
        }
    }

    /// Calls a command's handler under its locks, and goes on with what it leaves.
    fn dispatch(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        key: KeyRef,
    ) -> Outcome {
        // As on the short path: nothing is to be dropped of a command that has replied.
        let called = ManuallyDrop::new(self.call_locked(access, out, caller, id, args, key));
        if matches!(*called, Called::Left(Done::Replied)) {
            return Outcome::Done;
        }
        match ManuallyDrop::into_inner(called) {
            Called::Over(outcome) => outcome,
            Called::Left(done) => self.go_on(access, out, caller, id, done),
        }
    }

    /// Takes the locks the command's class asks for and calls its handler.
    fn call_locked(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        key: KeyRef,
    ) -> Called {
        let spec = id.spec();
        if spec.traits.contains(Traits::RUNS_QUEUE) {
            return self.exec(access, out, caller, id, args).into();
        }
        let mut class = command::keys::lock_class(spec, args);
        let keys = || self.shared.keyspace.db_len(caller.db);
        if class == LockClass::Each && command::keys::sees_one_moment(spec, args, keys) {
            class = LockClass::World;
        }
        access.set_exempt_from_turns(caller.may_pass);
        let hashed = Hashed { first: key, all: &[] };
        match class {
            LockClass::None | LockClass::Each => {
                let mut guard = access.free(self.turn.unix_ms());
                self.call(&mut guard, out, caller, id, args, hashed)
            }
            LockClass::Keys | LockClass::Growing => {
                self.locking.collect(&self.shared.keyspace, caller.db, id, args, key);
                let is_long = self.locking.keys.len() >= LONG_KEYS;
                if is_long && let Err(parked) = access.may_be_long() {
                    return Called::Left(Done::Park(parked));
                }
                let slots = std::mem::take(&mut self.locking.slots);
                let parked = match lock_keys(access, spec, class, args, &slots, self.turn.unix_ms())
                {
                    Ok(mut guard) => {
                        self.locking.slots = slots;
                        if is_long {
                            guard.mark_long();
                        }
                        let keys = std::mem::take(&mut self.locking.keys);
                        let first = keys.first().copied().unwrap_or(key);
                        let hashed = Hashed { first, all: &keys };
                        let called = self.call(&mut guard, out, caller, id, args, hashed);
                        drop(guard);
                        self.locking.keys = keys;
                        if class == LockClass::Growing {
                            self.await_growers_turn(caller, &called);
                        }
                        return called;
                    }
                    Err(parked) => parked,
                };
                self.locking.slots = slots;
                let called = Called::Left(Done::Park(parked));
                if class == LockClass::Growing {
                    self.await_growers_turn(caller, &called);
                }
                called
            }
            LockClass::World => {
                access.step_beside();
                let called = if let Err(parked) = access.try_world() {
                    Called::Left(Done::Park(parked))
                } else if let Err(parked) = self.may_run_in_world(caller, spec, args) {
                    access.open_world();
                    Called::Left(Done::Park(parked))
                } else {
                    let mut guard = access.world(self.turn.unix_ms());
                    let called = self.call(&mut guard, out, caller, id, args, hashed);
                    drop(guard);
                    if self.tasks.sleeping.is_none() {
                        access.open_world();
                    }
                    called
                };
                self.reenter(access);
                called
            }
        }
    }

    /// A grower that has come upon a long holder waits for its turn.
    #[cold]
    pub(crate) fn await_growers_turn(&mut self, caller: &Caller, called: &Called) {
        if matches!(called, Called::Left(Done::Park(Parked::Slot(_)))) {
            let keyspace = Arc::clone(&self.shared.keyspace);
            caller.session(self).await_turn(&keyspace);
        }
    }

    /// After a World command the window goes on; if the gate is closed now, what is left of it
    /// parks by itself because every further command checks it.
    pub(crate) fn reenter(&mut self, access: &mut Access) {
        self.enter(access);
    }

    /// Goes inside if the gate is open. Nothing is restricted anew while anybody is inside, so this
    /// is where to look whether the short path is closed.
    #[inline]
    fn enter(&mut self, access: &mut Access) {
        self.batch.is_behind_gate = !access.enter_or_stay_beside();
        self.follow();
        if self.shared.keyspace.is_restricted() != (self.gates & closed::RESTRICTED != 0) {
            self.refresh_gates();
        }
    }

    /// Calls a handler under locks already held; used by single commands and by EXEC.
    pub fn call(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        hashed: Hashed<'_>,
    ) -> Called {
        let spec = id.spec();
        let (from, mark) = (out.position(), guard.mark());
        let result = if self.gates & closed::ARMED == 0 {
            self.handle(guard, out, caller, spec, args, hashed)
        } else {
            self.handle_armed(guard, out, caller, spec, args, hashed)
        };
        let runs_again = matches!(result, Ok(Called::Left(Done::Prepare(_) | Done::Park(_))));
        if result.is_err() {
            guard.rollback_to(mark);
        }
        if self.is_watched() && !runs_again {
            self.note_for_monitors(guard, caller, id, args);
        }
        self.finish_command(guard, caller);
        result.unwrap_or_else(|e| {
            out.truncate(from);
            self.refuse(out, caller.proto, Some(id), &e, true);
            Outcome::Done.into()
        })
    }

    /// Calls the handler, whatever its kind.
    fn handle(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        spec: &'static CommandSpec,
        args: Args<'_>,
        hashed: Hashed<'_>,
    ) -> Result<Called, Error> {
        match spec.handler {
            Handler::Data(run) => {
                self.call_data(guard, out, caller, args, hashed, run).map(Called::Left)
            }
            Handler::Blocking(wait, take) => {
                self.call_blocking(guard, out, caller, args, hashed, (wait, take))
            }
            Handler::Session(parse) => {
                caller.rule(guard);
                let op = parse(args);
                op.and_then(|op| self.session_op(guard, out, caller, args, op)).map(Called::Over)
            }
            Handler::Server(parse) => {
                caller.rule(guard);
                parse(args).and_then(|op| self.server_op(guard, out, caller, op))
            }
            Handler::Container => {
                Err(Error::unknown_subcommand(spec.name, args.get(args.len().min(2) - 1)))
            }
        }
    }

    /// Of all handlers, one may be made to panic or to fail.
    #[cold]
    fn handle_armed(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        spec: &'static CommandSpec,
        args: Args<'_>,
        hashed: Hashed<'_>,
    ) -> Result<Called, Error> {
        let called = self.catch_handler(|core| core.handle(guard, out, caller, spec, args, hashed));
        called.unwrap_or_else(|Panicked(why)| resume_unwind(why))
    }

    /// A handler's context for a request of a caller, whose rules hold under these locks from here
    /// on.
    pub(crate) fn ctx<'a, 'g>(
        &'a mut self,
        guard: &'a mut Guard<'g>,
        out: &'a mut OutBuf,
        caller: &Caller,
        args: Args<'a>,
        key: KeyRef,
    ) -> Ctx<'a, 'g> {
        caller.rule(guard);
        let (settings, tally) = (&self.settings.command, &mut self.tally);
        let reply = caller.reply(out);
        Ctx::new(guard, reply, args, caller.db, self.turn.unix_ms(), settings, tally, key)
    }

    fn call_data(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        args: Args<'_>,
        hashed: Hashed<'_>,
        run: DataFn,
    ) -> Result<Done, Error> {
        self.arm(guard, self.running.id());
        let full = Full::new(self.take_prepared(caller), hashed.all);
        let mut ctx = self.ctx(guard, out, caller, args, hashed.first).with_full(&full);
        let mut result = run(&mut ctx);
        if !caller.may_suspend {
            result = run_through(&mut ctx, result, run);
        }
        self.keep_prepared(caller, &result, full.into_prepared());
        result
    }

    /// A command of the short path has failed.
    #[cold]
    fn refuse_framed(&mut self, out: &mut OutBuf, session: u32, id: CommandId, e: &Error) {
        let Some(s) = self.sessions[session as usize].as_deref() else { return };
        self.refuse(out, s.proto, Some(id), e, true);
    }

    /// Writes an error reply and counts it.
    pub fn refuse(
        &mut self,
        out: &mut OutBuf,
        proto: Proto,
        id: Option<CommandId>,
        e: &Error,
        executed: bool,
    ) {
        let text = e.text();
        let counters = &self.shared.workers[self.id];
        counters.errors.count(&text);
        if let Some(id) = id {
            if executed {
                counters.commands.failed(id.index());
            } else {
                counters.commands.rejected(id.index());
            }
        }
        Reply::new(out, proto).error_bytes(&text);
    }

    /// A request of this session panicked: its guard has put everything back. The connection ends,
    /// whether or not a handler was reached, because its client waits for a reply; nobody else
    /// notices.
    fn after_panic(&mut self, access: &mut Access, out: &mut OutBuf, session: u32) {
        if access.holds_world() && self.tasks.sleeping.is_none() {
            access.open_world();
            self.reenter(access);
        }
        let running = self.running.take_of(session);
        if running.is_some() {
            self.turn.output.take_back(session, self.running.reply_from(), out);
        }
        let Some(conn) = self.sessions[session as usize].as_deref().map(|s| s.conn) else { return };
        self.close_after_panic(conn, running);
        self.turn.output.open(session, out);
        self.batch.after.push(After::Stop { conn, from: 0, to: 0 });
    }

    /// A command panicked, and what it had begun was undone: its session ends. Nobody serves it any
    /// more.
    #[cold]
    pub(crate) fn close_after_panic(&mut self, conn: ConnId, id: Option<CommandId>) {
        let Some(s) = self.session_mut(conn) else { return };
        crate::log::warning(format_args!(
            "Command '{}' of client id={} addr={} panicked; its changes were undone and the connection is closed",
            id.map_or("?", |id| id.spec().full_name),
            s.card.id,
            s.card.addr
        ));
        if let Suspended::Blocked(blocked) = &s.suspended {
            blocked.ticket.claim();
        }
        s.finish();
        self.turn.closing.push(conn);
    }
}

/// Commands that are served while somebody holds World for long.
fn passes_closed_gate(id: CommandId) -> bool {
    id.spec().traits.contains(Traits::PASSES_CLOSED_GATE)
}
