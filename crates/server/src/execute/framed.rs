//! A window's commands, one by one.
//!
//! ```text
//! execute_window -> run_from     under one net: a panic ends one connection
//!   run_framed -> run_short      the short path: one key, one lock, no clock
//!     follow_up_framed           its handler left work to do
//!   run_off_path                 the full path (`request`), timed by itself
//!     run_tracked                but a read of a client that tracks, if no message waits, and a
//!     publish_to_nobody          message that nobody receives, take the short path
//!   run_behind_gate              the World gate is closed: parks all but a few commands
//! ```

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::execute::hot::{Hot, accepts};
use crate::execute::outcome::Outcome;
use crate::execute::request::{Request, passes_closed_gate};
use crate::execute::sizes::is_large;
use crate::execute::window::{Framed, Window};
use crate::pubsub::names::Asked;
use crate::sessions::session::gate;
use crate::worker::batch::After;
use crate::worker::core::Core;
use base::sync::atomic::Ordering::Relaxed;
use command::spec::Flags;
use command::{CommandId, Ctx, Done, Error, record};
use keyspace::{Access, Parked};
use resp::{Args, OutBuf, Reply};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Conditions of the whole server with which the short path goes on, while changes draw numbers.
const NUMBERED_OPEN: u32 = closed::NUMBERED | closed::AWAITED;

/// What has become of a command on the short path.
enum Short {
    /// It has run, or is not to run.
    Over,
    /// Its handler left some or all of its work.
    Left(Done),
    /// It is not for the short path.
    Unfit,
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

    /// One command.
    #[inline(always)] // into the loop over the window, although `run_usual` calls it, too
    fn run_framed<const NUMBERED: bool>(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        match self.run_short::<NUMBERED, false>(access, window, c, input, out) {
            Short::Over => {}
            Short::Left(done) => self.follow_up_framed(access, window, c, input, out, done),
            Short::Unfit => self.run_off_path(access, window, c, input, out),
        }
    }

    /// The short path of a command: a plain session, nothing unusual in the server, one key. If
    /// changes draw numbers, the command leaves its request as its record as it was received.
    /// `TRACKED`: it is a read of a client that tracks, and unfit if messages wait at this worker.
    #[inline(always)]
    fn run_short<const NUMBERED: bool, const TRACKED: bool>(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) -> Short {
        let Some(session) = self.sessions[c.session as usize].as_deref_mut() else {
            self.leave_short_path(window, c);
            return Short::Over;
        };
        let open = if NUMBERED { NUMBERED_OPEN } else { 0 };
        let tracking = if TRACKED { gate::TRACKING } else { 0 };
        if (session.gates & !tracking | self.gates & !open) != 0 {
            return Short::Unfit;
        }
        let hot = c.id.map(|id| (id, self.hot[id.index()]));
        let Some((id, Hot { run: Some(run), arity, .. })) = hot else { return Short::Unfit };
        if !accepts(arity, c.spans_len as usize) {
            return Short::Unfit;
        }
        self.turn.output.open(c.session, out);
        self.running.begin(c.session, id, out.position());
        let (now, lookups) = (self.turn.unix_ms(), (self.tally.hits, self.tally.misses));
        let mut guard = match access.lock_plain(c.key.slot, now) {
            Ok(guard) => guard,
            Err(_) if TRACKED => return Short::Unfit,
            Err(parked) => return Short::Left(Done::Park(parked)),
        };
        if TRACKED && self.pubsub.has_posts(self.shared.pubsub.inbox(self.id)) {
            return Short::Unfit;
        }
        let (args, db) = (window.args(input, c), session.db);
        let mark = NUMBERED.then(|| guard.mark());
        let (reply, settings) = (Reply::new(out, session.proto), &self.settings.command);
        let mut ctx = Ctx::new(&mut guard, reply, args, db, now, settings, &mut self.tally, c.key);
        let result = run(&mut ctx);
        let has_replied = matches!(result, Ok(Done::Replied));
        if !has_replied && result.is_err() {
            guard.rollback();
        } else if let Some(mark) = mark {
            let request = &input[c.start as usize..c.end as usize];
            record::framed(&mut guard, mark, id.spec(), db, args, request);
        }
        if NUMBERED {
            self.finish_recorded(&mut guard, has_replied);
        } else {
            self.finish_change(&mut guard); // (AWAITED is open: none has a hold)
        }
        if has_replied {
            std::mem::forget(result); // nothing is in it to be dropped
            if TRACKED {
                self.remember_framed(c, args);
            }
            if is_large(self.running.reply_from(), out) {
                drop(guard);
                self.record_large_reply(window, c, input, out);
            }
            return Short::Over;
        }
        drop(guard);
        if TRACKED {
            // It runs once more, and counts once.
            (self.tally.hits, self.tally.misses) = lookups;
            out.truncate(self.running.reply_from());
            return Short::Unfit;
        }
        result.map_or_else(|e| self.refuse_framed(out, c.session, id, &e), Short::Left)
    }

    /// One command that the loop over the window does not run by itself. Most take the full path,
    /// timed by themselves.
    #[inline(never)]
    fn run_off_path(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) {
        if self.is_tracked_read(c) && self.run_tracked(access, window, c, input, out)
            || self.publish_to_nobody(window, c, input, out)
        {
            return;
        }
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

    /// A read of a client that tracks, on the short path. False if it is to take the full path.
    #[inline(never)]
    fn run_tracked(
        &mut self,
        access: &mut Access,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) -> bool {
        let short = if self.batch.is_numbered {
            self.run_short::<true, true>(access, window, c, input, out)
        } else {
            self.run_short::<false, true>(access, window, c, input, out)
        };
        !matches!(short, Short::Unfit)
    }

    /// A read of a client that tracks and is not unusual in another way.
    fn is_tracked_read(&self, c: &Framed) -> bool {
        let session = self.sessions[c.session as usize].as_deref();
        session.is_some_and(|s| s.gates == gate::TRACKING && s.pushes.is_none())
            && c.id.is_some_and(|id| id.spec().flags.contains(Flags::READONLY))
    }

    /// A client that tracks has read the key of this command, under its lock.
    #[inline]
    fn remember_framed(&mut self, c: &Framed, args: Args<'_>) {
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return };
        if let Some(id) = c.id {
            session.card.last_command.store(id.index() as u32, Relaxed);
        }
        if session.tracks_reads() {
            let reader = (self.id, session.conn);
            let key = Asked { hash: c.key.hash, text: args.get(c.key.arg as usize) };
            self.shared.remember_read(key, reader.0, reader.1);
            self.forget_reads(2, reader);
        }
    }

    /// PUBLISH and SPUBLISH on the short path. False if somebody receives the message, or something
    /// is unusual.
    #[inline]
    fn publish_to_nobody(
        &mut self,
        window: &Window,
        c: &Framed,
        input: &[u8],
        out: &mut OutBuf,
    ) -> bool {
        let Some(id) = c.id else { return false };
        let Hot { publishes: Some(subject), arity, .. } = self.hot[id.index()] else {
            return false;
        };
        if !accepts(arity, c.spans_len as usize) {
            return false;
        }
        let Some(session) = self.sessions[c.session as usize].as_deref() else { return false };
        if (session.gates | self.gates & !NUMBERED_OPEN) != 0 {
            return false;
        }
        self.turn.output.open(c.session, out);
        self.running.begin(c.session, id, out.position());
        if !self.has_no_receivers(subject, window.args(input, c).get(1)) {
            return false;
        }
        session.card.last_command.store(id.index() as u32, Relaxed);
        Reply::new(out, session.proto).integer(0);
        true
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
    fn refuse_framed(&mut self, out: &mut OutBuf, session: u32, id: CommandId, e: &Error) -> Short {
        if let Some(s) = self.sessions[session as usize].as_deref() {
            self.refuse(out, s.proto, Some(id), e, true);
        }
        Short::Over
    }
}
