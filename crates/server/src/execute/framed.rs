//! A window's commands, one by one.
//!
//! ```text
//! execute_window -> run_from     under one net: a panic ends one connection
//!   run_framed                   the short path: one key, one lock, no clock
//!     follow_up_framed           its handler left work to do
//!   run_off_path                 the full path (`request`), timed by itself
//!   run_behind_gate              the World gate is closed: parks all but a few commands
//! ```

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::hot::accepts;
use crate::execute::outcome::Outcome;
use crate::execute::request::{Request, passes_closed_gate};
use crate::execute::sizes::is_large;
use crate::execute::window::{Framed, Window};
use crate::worker::batch::After;
use crate::worker::core::Core;
use command::{CommandId, Ctx, Done, Error, record};
use keyspace::{Access, Parked};
use resp::{OutBuf, Reply};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Core {
    /// Executes the window in order and empties it.
    pub fn execute_window(
        &mut self,
        access: &mut Access,
        window: &mut Window,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        window.prefetch_first(&self.shared.keyspace);
        let started = self.clock.now();
        self.batch.is_mixed = window.is_mixed;
        self.enter(access);
        self.run_from(access, window, input, out);
        access.leave();
        self.sampler.pass(window.commands.len());
        self.account(window, started);
        window.clear();
    }

    /// Runs all commands. A panic in one ends its connection; the other commands still run.
    fn run_from(&mut self, access: &mut Access, window: &Window, input: &[u8], out: &mut OutBuf) {
        let mut next = 0;
        self.batch.begin(window.has_members);
        while next < window.commands.len() {
            let run = || self.run_until_panic(access, window, &mut next, input, out);
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                self.after_panic(access, out, window.commands[next - 1].session);
            }
        }
    }

    /// Runs the commands from `next` on, which moves behind each before it runs: one that panics is
    /// not run again.
    #[inline(never)] // what is borrowed by a function is known not to overlap, unlike a closure's
    fn run_until_panic(
        &mut self,
        access: &mut Access,
        window: &Window,
        next: &mut usize,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        while let Some(c) = window.commands.get(*next) {
            let at = *next;
            *next += 1;
            window.prefetch_ahead(&self.shared.keyspace, at);
            if self.batch.needs_attention(at) {
                if self.batch.is_cold(at) && c.id.is_some_and(|id| self.hot[id.index()].member != 0)
                {
                    self.warm(access, window, at, input);
                }
                if self.batch.is_unusual(at) {
                    self.run_unusual(access, window, at, input, out);
                    continue;
                }
            }
            self.run_framed::<false>(access, window, c, input, out);
        }
    }

    /// While changes leave records, behind the World gate, in several databases, or for a command
    /// that is looked at.
    #[inline(never)]
    fn run_unusual(
        &mut self,
        access: &mut Access,
        window: &Window,
        at: usize,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        let c = &window.commands[at];
        if self.batch.is_behind_gate {
            self.run_behind_gate(access, window, c, input, out);
        } else if self.sampler.is_next(at) {
            self.run_sampled(access, window, c, input, out);
        } else {
            self.run_usual(access, window, c, input, out);
        }
        if self.batch.is_mixed {
            self.count_for_database(c);
        }
    }

    /// One command of a window that is not behind the gate.
    #[inline(never)]
    pub(super) fn run_usual(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        if self.batch.is_numbered {
            self.run_framed::<true>(access, window, c, input, out);
        } else {
            self.run_framed::<false>(access, window, c, input, out);
        }
    }

    /// One command. If changes draw numbers, those of the short path leave the request as their
    /// record as it was received.
    #[inline(always)] // into the loop over the window, although `run_usual` calls it, too
    fn run_framed<const NUMBERED: bool>(
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
        let open = if NUMBERED { closed::NUMBERED | closed::AWAITED } else { 0 };
        if (session.gates | self.gates & !open) == 0
            && let Some((id, hot)) = c.id.map(|id| (id, self.hot[id.index()]))
            && let Some(run) = hot.run
            && accepts(hot.arity, c.spans_len as usize)
        {
            self.turn.output.open(c.session, out);
            self.running.begin(c.session, id, out.position());
            let done = match access.lock_plain(c.key.slot, self.turn.unix_ms()) {
                Ok(mut guard) => {
                    let mark = NUMBERED.then(|| guard.mark());
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
                    let result = run(&mut ctx);
                    let has_replied = matches!(result, Ok(Done::Replied));
                    if !has_replied && result.is_err() {
                        guard.rollback();
                    } else if let Some(mark) = mark {
                        let request = &input[c.start as usize..c.end as usize];
                        let args = window.args(input, c);
                        record::framed(&mut guard, mark, id.spec(), session.db, args, request);
                    }
                    if NUMBERED {
                        self.finish_recorded(&mut guard, has_replied);
                    } else {
                        self.finish_change(&mut guard); // (AWAITED is open: none has a hold)
                    }
                    if has_replied {
                        std::mem::forget(result); // nothing is in it to be dropped
                        if !is_large(self.running.reply_from(), out) {
                            return;
                        }
                        drop(guard);
                        return self.record_large_reply(window, c, input, out);
                    }
                    drop(guard);
                    match result {
                        Ok(done) => done,
                        Err(e) => return self.refuse_framed(out, c.session, id, &e),
                    }
                }
                Err(parked) => Done::Park(parked),
            };
            return self.follow_up_framed(access, window, c, input, out, done);
        }
        self.run_off_path(access, window, c, input, out);
    }

    /// The full path of one framed command, timed by itself.
    #[inline(never)]
    fn run_off_path(
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
        let args = window.args(input, c);
        let request = Request { caller: &caller, id: c.id, args, key: c.key };
        let started = self.clock.now();
        self.running.time_from(started);
        self.count_lookups(window.db); // those of the commands before
        let outcome = self.execute(access, out, &request);
        self.count_lookups(caller.db);
        if outcome != Outcome::Retry {
            let ns = self.clock.now().since(started);
            self.batch.timed_ns += ns;
            let sizes = self.sizes(u64::from(c.end - c.start), out);
            self.record_executed(&request, started, ns, outcome, sizes);
        }
        if caller.session(self).db != window.db {
            self.mix_databases(window.db);
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

    /// The World gate is closed: only commands that may pass it run; others park until it opens.
    fn run_behind_gate(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        if c.id.is_some_and(passes_closed_gate) {
            return self.run_off_path(access, window, c, input, out);
        }
        self.leave_short_path(window, c);
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        if session.is_stopped() {
            return;
        }
        let caller = Caller::of_session(session);
        self.park(access, &caller, Parked::Gate);
        self.stop_at(c.session, c.start as usize);
    }

    /// A handler of the short path left some or all of its work: that is timed by itself.
    #[cold]
    fn follow_up_framed(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
        done: Done,
    ) {
        if matches!(done, Done::Reach) {
            return self.run_off_path(access, window, c, input, out);
        }
        let (Some(session), Some(id)) = (self.sessions[c.session as usize].as_deref(), c.id) else {
            return;
        };
        let caller = Caller::of_session(session);
        self.leave_short_path(window, c);
        let started = self.clock.now();
        self.running.time_from(started);
        _ = self.running.unlock(started); // as part of the window its hold is bounded
        let outcome = self.follow_up(access, out, &caller, id, done);
        if outcome == Outcome::Retry {
            return self.stop_at(c.session, c.start as usize);
        }
        let ns = self.clock.now().since(started);
        self.batch.timed_ns += ns;
        let sizes = self.sizes(u64::from(c.end - c.start), out);
        let args = window.args(input, c);
        let request = Request { caller: &caller, id: c.id, args, key: c.key };
        self.record_executed(&request, started, ns, outcome, sizes);
        if outcome == Outcome::Waiting || caller.session(self).is_stopped() {
            self.stop_at(c.session, c.end as usize);
        }
    }

    /// Stops the session: what was framed from `from` on returns to its input.
    pub(crate) fn stop_at(&mut self, session: u32, from: usize) {
        if let Some(s) = self.sessions[session as usize].as_deref() {
            let to = if s.close_after_reply { from } else { s.input_end };
            self.batch.after.push(After::Stop { conn: s.conn, from, to });
        }
    }

    /// Replies the error of a command of the short path.
    #[cold]
    fn refuse_framed(&mut self, out: &mut OutBuf, session: u32, id: CommandId, e: &Error) {
        let Some(s) = self.sessions[session as usize].as_deref() else { return };
        self.refuse(out, s.proto, Some(id), e, true);
    }
}
