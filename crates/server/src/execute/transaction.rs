//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! Before its first command, EXEC locks the slots of all queued commands, of every watched key, and
//! of the keys needed to serve clients that wait for its keys. So transactions are strictly
//! serializable. A queue with a command on the whole keyspace takes World. SCAN and RANDOMKEY do
//! not need World: the slots that they visit are locked in advance, too. Only DBSIZE does not show
//! a single moment (`docs/LOCKS.md`).

use crate::execute::caller::Caller;
use crate::execute::disk::Shown;
use crate::execute::outcome::{Called, Outcome};
use crate::execute::queue::Needs;
use crate::execute::request::Command;
use crate::execute::sizes::{Sizes, protocol_len};
use crate::execute::window::Hashed;
use crate::sessions::card::flag;
use crate::sessions::output::Hold;
use crate::sessions::session::{Multi, Session, Suspended, gate};
use crate::sessions::watches::Watches;
use crate::worker::core::Core;
use base::SlotId;
use base::sync::Arc;
use base::sync::atomic::Ordering::Relaxed;
use command::spec::Traits;
use command::{CommandId, Done, Error};
use keyspace::{Access, Guard, Intent, Parked};
use resp::{Args, OutBuf, OwnedRequest};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An EXEC of at least this many watched keys declares itself long, too: others suspend instead of
/// waiting. Its watches are removed from their slots after EXEC, in steps.
const LONG_WATCHED: usize = 256;
/// A queue of at least this many commands is freed away from the worker.
const LONG_QUEUE: usize = 256;

/// Why a queue has not run yet.
enum Waits {
    /// Its way is not free.
    Parked(Parked),
    /// It would show what is not durable, and the disk fails.
    Disk,
}

impl Core {
    /// MULTI.
    pub(crate) fn multi(&mut self, caller: &Caller, out: &mut OutBuf) -> Result<(), Error> {
        let s = caller.session(self);
        if s.multi.is_some() {
            return Err(Error::NestedMulti);
        }
        s.multi = Some(Box::new(Multi::new(s.requests_held.another())));
        s.set_gate(gate::MULTI, true);
        s.card.multi.store(0, Relaxed);
        s.card.set_flag(flag::MULTI, true);
        caller.reply(out).ok();
        Ok(())
    }

    /// Queues a command that passed the gates.
    pub(crate) fn queue(
        &mut self,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
        out: &mut OutBuf,
    ) {
        let limit = self.settings.query_buffer_max;
        let s = caller.session(self);
        let bytes = args.lens().sum::<usize>() as u64;
        if s.multi.as_ref().is_some_and(|m| m.held.bytes() + bytes > limit) {
            self.log_query_limit(caller.conn());
            return self.finish(caller);
        }
        if let Some(multi) = &mut s.multi {
            let request = OwnedRequest::new(args);
            multi.held.set(multi.held.bytes() + request.memory() as u64);
            multi.queue.push((id, request));
            s.card.multi.store(multi.queue.len() as i64, Relaxed);
            s.card.multi_bytes.store(multi.held.bytes(), Relaxed);
        }
        caller.reply(out).simple("QUEUED");
    }

    /// DISCARD.
    pub(crate) fn discard(&mut self, caller: &Caller) -> Result<(), Error> {
        let s = caller.session(self);
        if s.multi.is_none() {
            return Err(Error::DiscardWithoutMulti);
        }
        let multi = s.end_transaction();
        self.free_queue(multi);
        self.unwatch_soon(caller);
        Ok(())
    }

    /// Frees a queue; a long one is freed by the reclaimer.
    pub(crate) fn free_queue(&self, multi: Option<Box<Multi>>) {
        if let Some(mut multi) = multi.filter(|multi| multi.queue.len() >= LONG_QUEUE) {
            multi.end();
            self.shared.keyspace.reclaimer().reclaim_parts(multi);
        }
    }

    /// EXEC.
    pub(crate) fn exec(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
    ) -> Outcome {
        let caller = command.caller;
        let s = caller.session(self);
        let Some(multi) = s.multi.take() else {
            return self.refuse_exec(out, command, &Error::ExecWithoutMulti);
        };
        if multi.failed {
            _ = s.end_transaction();
            self.free_queue(Some(multi));
            self.unwatch_soon(caller);
            return self.refuse_exec(out, command, &Error::ExecAbort);
        }
        access.set_exempt_from_turns(caller.may_pass);
        let needs = multi.needs();
        let ran = if needs == Needs::World {
            self.exec_in_world(access, out, command, &multi)
        } else {
            self.exec_on_slots(access, out, command, &multi, needs)
        };
        let Err(why) = ran else {
            self.free_queue(Some(multi));
            let waits = matches!(caller.session(self).suspended, Suspended::Rewriting(_));
            return if waits { Outcome::Waiting } else { Outcome::Done };
        };
        caller.session(self).multi = Some(multi);
        let Waits::Parked(why) = why else {
            let s = caller.session(self);
            s.end_turn();
            s.suspend(Suspended::Disk);
            return Outcome::Retry;
        };
        if needs == Needs::Walks {
            self.await_growers_turn(caller, &Called::Left(Done::Park(why)));
        }
        self.park(access, caller, why);
        Outcome::Retry
    }

    /// Runs a queue with a command on the whole keyspace.
    fn exec_in_world(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
        multi: &Multi,
    ) -> Result<(), Waits> {
        // Which keys such a command changes is not known in advance.
        let may_run = |core: &mut Self| core.may_change_everything(command.caller);
        let mut got = self.try_world(access, may_run).map_err(Waits::Parked);
        if got.is_ok() {
            let mut guard = access.world(self.turn.unix_ms());
            guard.exempt_from_turns(); // a queue that has begun does not park
            got = self.exec_locked(&mut guard, out, command, multi);
            drop(guard);
            access.open_world();
        }
        self.enter(access);
        got
    }

    /// Runs a queue on the slots of its keys, of the watched keys, and of its walks. The watches
    /// stay with the session until the locks are held: if the lock attempt parks or panics, they
    /// are not lost.
    fn exec_on_slots(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        command: &Command<'_>,
        multi: &Multi,
        needs: Needs,
    ) -> Result<(), Waits> {
        let caller = command.caller;
        let has_many_watches = caller.session(self).watched.len() >= LONG_WATCHED;
        if (has_many_watches || multi.may_be_long()) && access.may_be_long().is_err() {
            return Err(Waits::Parked(Parked::Turn));
        }
        self.collect_exec_slots(caller, multi);
        let slots = std::mem::take(&mut self.locking.slots);
        let locked = self.lock_queue(access, caller, multi, needs, &slots);
        self.locking.slots = slots;
        let mut guard = locked.map_err(Waits::Parked)?;
        guard.exempt_from_turns();
        if multi.is_long() || has_many_watches {
            guard.mark_long();
        }
        self.exec_locked(&mut guard, out, command, multi)
    }

    /// Locks the slots of the queue, which are `slots`, and those of its walks.
    fn lock_queue<'a>(
        &mut self,
        access: &'a mut Access,
        caller: &Caller,
        multi: &Multi,
        needs: Needs,
        slots: &[SlotId],
    ) -> Result<Guard<'a>, Parked> {
        let (walks, intent) = (needs == Needs::Walks, multi.intent());
        let mut guard = match intent {
            Intent::Write => {
                access.lock_to_fill(slots, walks, self.turn.unix_ms(), || multi.filled())?
            }
            _ if walks => access.grow(slots, self.turn.unix_ms(), intent)?,
            _ => access.lock(slots, self.turn.unix_ms(), intent)?,
        };
        if walks {
            caller.apply_to(&mut guard);
            guard.survey(caller.db, &multi.walks(), intent, || self.tally.draw())?;
        }
        Ok(guard)
    }

    /// Refuses an EXEC that has nothing to execute. Monitors are sent its line nevertheless.
    fn refuse_exec(&mut self, out: &mut OutBuf, command: &Command<'_>, e: &Error) -> Outcome {
        let Command { caller, id, args, .. } = *command;
        let from = out.position();
        self.refuse(out, caller.proto, Some(id), e, true);
        caller.session(self).mute(from, out);
        if self.has_monitors()
            && let Some(line) = self.monitor_line(caller, id, args)
        {
            self.shared.post_to_monitors(&line, Hold::NONE);
        }
        Outcome::Done
    }

    fn exec_locked(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        command: &Command<'_>,
        multi: &Multi,
    ) -> Result<(), Waits> {
        let Command { caller, id, args, .. } = *command;
        let refusal = match self.look_at_queue(guard, multi) {
            Shown::Yes => None,
            Shown::Later => return Err(Waits::Disk),
            Shown::Never(error) => Some(error),
        };
        caller.apply_to(guard);
        let s = caller.session(self);
        let dirty = s.watched.iter().any(|(w, cell)| {
            let key = guard.keyspace().key(&w.key);
            guard.expire_watched(w.db, &key);
            cell.is_dirty()
        });
        let watched = s.watched.take();
        s.publish_watched();
        if watched.len() < LONG_WATCHED {
            unwatch(guard, &watched);
        } else {
            self.release_watches(caller.conn(), watched);
        }
        let s = caller.session(self);
        _ = s.end_transaction(); // its queue is here
        if let Some(error) = refusal {
            guard.forget_seen();
            _ = self.refuse_exec(out, command, &Error::exec_refused(&error));
            return Ok(());
        }
        let (from, mut reply) = (out.position(), caller.reply(out));
        if dirty {
            reply.null_array();
        } else {
            reply.array(multi.queue.len());
        }
        // Each reply is dropped by itself: the queue may contain CLIENT REPLY.
        s.mute(from, out);
        let mut panicked = None;
        self.running.rewrites = None;
        if !dirty {
            panicked = self.run_queue(guard, out, caller, (id, multi)).err();
        }
        if self.has_monitors() {
            // The line of EXEC follows the lines of its commands.
            self.attach_command_line(guard, caller, id, args);
        }
        // The changes of the commands before a panic are committed.
        let hold = self.finish_noted(guard);
        self.turn.output.hold(hold);
        if caller.listens && self.has_posts() {
            self.note_cut();
        }
        self.key_events.set_runner(None);
        let s = caller.session(self);
        s.wrote = s.wrote.max(guard.take_drawn());
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
        let hold = Hold { seq: hold, fence: self.turn.output.fence_so_far() };
        self.park_reply(caller, from, out, hold);
        Ok(())
    }

    /// Runs the queue. Its changes stay in the undo log, to be committed together. A command that
    /// panics is rolled back alone, and those after it do not run.
    fn run_queue(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        (runner, multi): (CommandId, &Multi),
    ) -> Result<(), Box<dyn Any + Send>> {
        let mut mark = guard.mark();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            for (id, request) in &multi.queue {
                mark = guard.mark();
                let queued = Caller::of_queue(caller.session(self)).run_by(runner.spec());
                self.run_queued(guard, out, &queued, *id, request.args());
                mark = guard.mark();
            }
        }));
        if ran.is_err() {
            guard.rollback_to(mark);
        }
        ran
    }

    fn run_queued(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        id: CommandId,
        args: Args<'_>,
    ) {
        self.running.begin_handler(caller.conn().index, id);
        let started = self.clock.now();
        let from = out.position();
        let hashed = Hashed::NONE;
        let called = self.call(guard, out, &Command { caller, id, args, hashed });
        // All that it needs is locked, and inside EXEC no command suspends.
        assert!(matches!(called, Called::Over(_) | Called::Left(Done::Replied)));
        if !id.spec().traits.contains(Traits::CONFIRMS) {
            caller.session(self).mute(from, out);
        }
        let ns = self.clock.now().since(started);
        let reply = out.len_between(from, out.position()) as u64;
        let sizes = Sizes { request: protocol_len(args), reply };
        self.record_command(caller, Some(id), args, ns, sizes);
    }

    fn collect_exec_slots(&mut self, caller: &Caller, multi: &Multi) {
        let mut slots = std::mem::take(&mut self.locking.slots);
        slots.clear();
        let ks = Arc::clone(&self.shared.keyspace);
        for (id, request) in &multi.queue {
            let args = request.args();
            // A command whose keys cannot be found fails when it runs.
            let _ = command::keys::for_each(id.spec(), args, |key| {
                slots.push(ks.key(args.get(key.arg)).slot);
            });
        }
        slots.extend(caller.session(self).watched.iter().map(|(w, _)| ks.key(&w.key).slot));
        slots.sort_unstable();
        slots.dedup();
        self.locking.slots = slots;
    }
}

impl Session {
    /// Leaves MULTI. Returns the queue, if EXEC has not taken it.
    #[must_use]
    pub fn end_transaction(&mut self) -> Option<Box<Multi>> {
        self.set_gate(gate::MULTI, false);
        self.card.multi.store(-1, Relaxed);
        self.card.multi_bytes.store(0, Relaxed);
        self.card.set_flag(flag::MULTI, false);
        self.multi.take()
    }
}

/// Removes the cells of the watches from their slots.
fn unwatch(guard: &mut Guard<'_>, watched: &Watches) {
    for (w, cell) in watched.iter() {
        let key = guard.keyspace().key(&w.key);
        guard.unwatch(w.db, &key, cell);
    }
}
