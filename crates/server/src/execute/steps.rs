//! What follows when a handler has returned and its locks have dropped: the remaining reply in
//! steps, work ahead of the command, a wait behind a long holder.

use crate::execute::caller::Caller;
use crate::execute::outcome::Outcome;
use crate::execute::panics::Panicked;
use crate::execute::window::NO_KEY;
use crate::sessions::session::{Suspended, Task, gate};
use crate::worker::core::Core;
use command::Progress;
use command::{CommandId, Ctx, Done, Error, Prepared, Resumable};
use driver::ConnId;
use keyspace::{Access, Guard, Parked};
use resp::{Args, OutBuf};

impl Core {
    /// Follows up on what a handler left, its locks dropped.
    pub(super) fn follow_up(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        id: CommandId,
        done: Done,
    ) -> Outcome {
        match done {
            Done::Replied => Outcome::Done,
            Done::Steps(work) => self.begin_task(access, out, caller, Task::Resumable(work, id)),
            Done::Prepare(work) => {
                self.suspend(caller, Suspended::Task(Task::Preparing(work, id)));
                Outcome::Retry
            }
            Done::Park(at) => {
                self.park(access, caller, at);
                Outcome::Retry
            }
            Done::Reach => unreachable!("all that serving needs was locked"),
            Done::Nothing | Done::NothingYet(_) => unreachable!("a handler of data replies"),
        }
    }

    /// Runs the first step; a session with more to do executes nothing else until the last one.
    /// (Behind a command under World the gate may be closed again.)
    fn begin_task(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        mut task: Task,
    ) -> Outcome {
        let progress = if self.batch.is_behind_gate {
            Progress::Park(Parked::Gate)
        } else {
            self.step(access, out, caller, &mut task)
        };
        match progress {
            Progress::Complete => return Outcome::Done,
            Progress::More => self.suspend(caller, Suspended::Task(task)),
            Progress::Park(at) => self.park_task(access, caller, task, at),
        }
        Outcome::Waiting
    }

    /// Marks a session as suspended and remembers what must run later.
    pub fn suspend(&mut self, caller: &Caller, why: Suspended) {
        if matches!(why, Suspended::Task(_)) {
            self.tasks.runnable.push_back(caller.conn());
        }
        caller.session(self).suspend(why);
    }

    /// One step of a long command.
    pub(crate) fn step(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        task: &mut Task,
    ) -> Progress {
        let seen = caller.session(self).seen;
        self.turn.output.hold(seen);
        let (id, replies) = (task.command(), !matches!(task, Task::Preparing(..)));
        let stepped = self.catch_handler(|core| match task {
            Task::Reclaim(_) if core.tasks.is_reclaiming => Ok(Progress::More),
            Task::Reclaim(_) => {
                caller.reply(out).ok();
                Ok(Progress::Complete)
            }
            Task::Subscribing(work) => Ok(core.go_on_subscribing(out, caller, work)),
            Task::Watching(next, _) => Ok(core.go_on_watching(access, out, caller, next)),
            Task::Resumable(work, id) | Task::Preparing(work, id) => {
                core.step_work(access, out, caller, (&mut **work, *id))
            }
        });
        match stepped {
            Ok(Ok(progress)) => progress,
            Ok(Err(e)) => {
                if replies {
                    self.refuse(out, caller.proto, id, &e, true);
                }
                Progress::Complete
            }
            Err(Panicked(_)) => {
                self.close_after_panic(caller.conn(), id);
                Progress::Complete
            }
        }
    }

    /// One step of what a handler has left.
    fn step_work(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        caller: &Caller,
        (work, id): (&mut dyn Resumable, CommandId),
    ) -> Result<Progress, Error> {
        let mut guard = access.free(self.turn.unix_ms());
        self.arm(&mut guard, Some(id));
        let result = work.step(&mut self.ctx(&mut guard, out, caller, Args::default(), NO_KEY));
        if result.is_err() {
            guard.rollback();
        }
        let hold = self.finish_noted(&mut guard);
        self.turn.output.hold(hold);
        let s = caller.session(self);
        s.seen = s.seen.max(hold);
        s.wrote = s.wrote.max(guard.take_drawn());
        result
    }

    /// Takes the task of a session that is to do a step. None if its replies have not left: it
    /// resumes when they have. A session with an assembled request runs that in the next turn.
    pub(crate) fn take_task(&mut self, conn: ConnId) -> Option<(Caller, Task)> {
        let session = self.session_mut(conn)?;
        if session.output_blocked && matches!(session.suspended, Suspended::Task(_)) {
            session.stalled = true;
            return None;
        }
        let caller = Caller::of_step(session);
        match std::mem::replace(&mut session.suspended, Suspended::No) {
            Suspended::Task(task) => Some((caller, task)),
            other => {
                session.suspended = other;
                self.tasks.runnable.push_back(conn);
                None
            }
        }
    }

    /// A long command waits until a long holder is out of its way.
    pub(crate) fn park_task(
        &mut self,
        access: &mut Access,
        caller: &Caller,
        task: Task,
        at: Parked,
    ) {
        self.suspend(caller, Suspended::TaskParked(task));
        self.retry_when_free(access, at, caller.conn());
    }

    /// The way of a long command is free; false if it does not wait for that.
    pub(crate) fn unpark_task(&mut self, conn: ConnId) -> bool {
        let Some(s) = self.session_mut(conn) else { return false };
        match std::mem::replace(&mut s.suspended, Suspended::No) {
            Suspended::TaskParked(task) => s.suspend(Suspended::Task(task)),
            other => {
                s.suspended = other;
                return false;
            }
        }
        self.tasks.runnable.push_back(conn);
        true
    }

    /// What was done ahead of a command; inside EXEC nothing is.
    #[inline]
    pub(crate) fn take_prepared(&mut self, caller: &Caller) -> Prepared {
        if caller.may_suspend { caller.session(self).prepared.take() } else { None }
    }

    /// What was done ahead of a command is kept for its next run, if the way of this one was not
    /// free.
    #[inline]
    pub(crate) fn store_prepared(
        &mut self,
        caller: &Caller,
        result: &Result<Done, Error>,
        prepared: Prepared,
    ) {
        if matches!(result, Ok(Done::Park(_)))
            && let Some(work) = prepared
        {
            let s = caller.session(self);
            s.prepared = Some(work);
            s.set_gate(gate::PREPARED, true);
        }
    }

    /// All steps at once, under the locks of an EXEC.
    pub(crate) fn run_all(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        caller: &Caller,
        mut work: Box<dyn Resumable>,
    ) -> Result<(), Error> {
        run_steps(&mut *work, &mut self.ctx(guard, out, caller, Args::default(), NO_KEY))
    }
}

/// Does what a handler has left, under the locks that it has, which are all that it can need; then
/// the command runs again if that was done ahead of it.
pub(crate) fn run_through(
    ctx: &mut Ctx<'_, '_>,
    mut result: Result<Done, Error>,
    mut again: impl FnMut(&mut Ctx<'_, '_>) -> Result<Done, Error>,
) -> Result<Done, Error> {
    loop {
        match result? {
            Done::Steps(mut work) => {
                run_steps(&mut *work, ctx)?;
                return Ok(Done::Replied);
            }
            Done::Prepare(mut work) => {
                run_steps(&mut *work, ctx)?;
                ctx.set_prepared(work);
                result = again(ctx);
            }
            Done::Park(at) => unreachable!("all locks are held, and it would wait: {at:?}"),
            done => return Ok(done),
        }
    }
}

fn run_steps(work: &mut dyn Resumable, ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    ctx.guard.mark_long();
    loop {
        match work.step(ctx)? {
            Progress::Complete => return Ok(()),
            Progress::More => {}
            Progress::Park(at) => unreachable!("all locks are held, and it would wait: {at:?}"),
        }
    }
}
